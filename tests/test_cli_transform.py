"""The scale on which an answer is modelled, on the command line."""

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from tests.command_line import refused


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(
        [(week, who) for week in range(30) for who in range(9) if rng.random() < 0.8],
        columns=["week", "who"],
    )
    rows["kwh"] = np.exp(rng.normal(0.0, 0.3, 30))[rows["week"]] * rng.gamma(2.0, 1.0, len(rows))
    path = tmp_path_factory.mktemp("table") / "energy.csv"
    rows.to_csv(path, index=False)
    return path


def asked(table, out, *more):
    keys = ["--database", "week", "--individual", "who", "--epsilon", "0.1,0.5", "--no-past"]
    few = ["--query", "sum:kwh", "--draws", "50", "--seed", "1"]
    return ["audit", str(table), "--verbose", *keys, *few, "--out", str(out), *more]


@pytest.mark.full
def test_the_audit_is_that_of_python_and_says_its_scale(table, tmp_path, capsys):
    out = tmp_path / "out"
    report = ["--report", str(out / "report.html")]
    assert main(asked(table, out, "--transform", "log", *report)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "modelled as log of the answer; risks are those of the answer" in said
    audit = edp.load(out / "audit.nc")
    databases = edp.Databases.from_table(str(table), database="week", individual="who")
    hand = edp.audit(
        databases.respond(edp.queries.Sum("kwh"), transform="log"),
        epsilon=[0.1, 0.5],
        draws=50,
        random_seed=1,
        progressbar=False,
    )
    np.testing.assert_array_equal(audit.delta, hand.delta)
    assert audit.settings["fingerprint"] == hand.settings["fingerprint"]
    noise = ["noise", str(out / "audit.nc"), "--epsilon", "0.5", "--out", str(tmp_path / "n.json")]
    assert "noise is added to the answer" in refused(capsys, *noise)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--transform", "ln"], "--transform must be"),
        (["--transform", "log", "--rounded-to", "10"], "--transform is a scale to model"),
        (["--transform", "log", "--query", "count"], "--transform is for one query, found 2"),
        (["--transform", "logit"], "needs answers between 0 and 1"),
        (["--transform", "log", "--step", "0.5"], "--transform is for continuous answers"),
    ],
)
def test_what_cannot_be_is_refused(table, tmp_path, capsys, option, message):
    assert message in refused(capsys, *asked(table, tmp_path / "out", "--quiet", *option))
