"""Rounded answers on the command line: their step, and what is published of them."""

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from tests.command_line import refused


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(4)
    rows = [(week, who) for week in range(30) for who in range(9) for _ in range(rng.poisson(0.7))]
    path = tmp_path_factory.mktemp("table") / "visits.csv"
    pd.DataFrame(rows, columns=["week", "who"]).to_csv(path, index=False)
    return path


def asked(table, out, *more):
    keys = ["--database", "week", "--individual", "who", "--epsilon", "0.1,0.5", "--no-past"]
    few = ["--query", "count", "--draws", "50", "--model", "bootstrap", "--seed", "1"]
    return ["audit", str(table), "--verbose", *keys, *few, "--out", str(out), *more]


@pytest.mark.full
def test_a_count_is_rounded_and_published_in_bins(table, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(asked(table, out, "--bins", "3.5,8.5")) == 0
    said = " ".join(capsys.readouterr().out.split())
    audit, published = (edp.load(out / name) for name in ("audit.nc", "published.nc"))
    assert audit.settings["step"] == 1.0
    assert published.settings["released"]["bins"] == [3.5, 8.5]
    assert (published.delta <= audit.delta).all()
    assert "The answer reduced to one of 3 bins: median and 95%" in said
    assert "published.nc" in said


@pytest.mark.full
@pytest.mark.parametrize(("option", "step"), [(["--no-step"], None), (["--step", "0.5"], 0.5)])
def test_the_step_is_what_is_asked_for(table, tmp_path, option, step):
    out = tmp_path / "out"
    assert main(asked(table, out, "--quiet", *option)) == 0
    assert edp.load(out / "audit.nc").settings.get("step") == step


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--step", "1", "--no-step"], "--step and --no-step contradict"),
        (["--step", "0"], "--step must be greater than 0"),
        (["--offset", "worst"], "--offset is that of a grid: give --rounded-to"),
        (["--rounded-to", "10", "--offset", "there"], "--offset must be a number or worst"),
        (["--bins", "1,x"], "--bins must be edges such as 1000,2000,5000, found '1,x'"),
        (["--bins", "1,2", "--threshold", "3"], "bins stand alone"),
    ],
)
def test_what_contradicts_is_refused_before_any_work(table, tmp_path, capsys, option, message):
    assert message in refused(capsys, *asked(table, tmp_path / "out", "--quiet", *option))
    assert not (tmp_path / "out").exists()


def test_rounding_is_for_one_query(table, tmp_path, capsys):
    both = ["--query", "count", "--rounded-to", "2", "--quiet"]
    assert "are for one query, found 2" in refused(capsys, *asked(table, tmp_path / "out", *both))
