"""`edp-bayes property` and `edp-bayes interval`."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from edp_bayes import interval
from edp_bayes.cli.numbers import parse_counts, parse_mechanism, parse_noise, parse_numbers
from edp_bayes.distributions.noise import LaplaceNoise
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.loading import load
from edp_bayes.statistical_privacy import GaussianNoise, Subsampling, delta
from tests.command_line import printed, refused

HEAVY = ("pymc", "xarray", "scipy", "numba", "pandas", "matplotlib", "arviz_base", "nutpie")


@pytest.mark.full
@pytest.mark.parametrize("command", ["property", "interval"])
def test_help_imports_nothing_heavy(command):
    code = (
        f"import sys; from edp_bayes.cli import main; code = main(['{command}', '--help'])\n"
        f"print(code, [m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("0 []")
    assert "--count" in done.stdout


def test_a_known_probability_prints_and_writes_its_exact_curve(capsys, tmp_path):
    out = printed(
        capsys,
        *("property", "--n", "1000", "--prob", "0.1", "--epsilon", "0:0.5:51"),
        *("--mechanism", "gaussian:1", "--out", str(tmp_path)),
    )
    assert {path.name for path in tmp_path.iterdir()} == {"curve.csv", "delta.png"}
    table = pd.read_csv(tmp_path / "curve.csv")
    truth = delta(1000, 0.1, epsilon=table["epsilon"].to_numpy(), mechanism=GaussianNoise(0.001))
    np.testing.assert_allclose(table["delta"], truth, rtol=1e-12)
    np.testing.assert_array_equal(table["delta"], table[["delta_plus", "delta_minus"]].max(axis=1))
    assert len(table) == 51
    assert f"{truth[10]:.2g}" in out
    assert (tmp_path / "delta.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.full
def test_a_count_prints_and_writes_the_posterior(capsys, tmp_path):
    arguments = ("property", "--n", "1000", "--count", "103", "--epsilon", "0:0.5:6", "--seed", "1")
    out = printed(capsys, *arguments, "--out", str(tmp_path))
    assert "Risk by epsilon: median and 95% simultaneous band" in out
    assert "Probability of the property: median and 95% equal-tailed interval" in out
    assert "No check failed." in out
    assert re.search(r"not tested +overdispersion \(advises\): Not tested: 1 database", out)
    page = " ".join((tmp_path / "report.html").read_text(encoding="utf-8").split())
    assert "2 of 3 checks passed, 1 could not be tested." in page
    assert "</span> not tested</span> <span><strong>overdispersion</strong>" in page
    written = {"property.nc", "summary.csv", "delta.png", "report.html"}
    assert {path.name for path in tmp_path.iterdir()} == written
    audit = load(tmp_path / "property.nc")
    assert audit.checks.loc["overdispersion", "passed"] is None
    band = audit.band(prob=0.95).isel(epsilon=1)
    row = next(line for line in out.splitlines() if re.match(r"│ +0\.1 │", line))
    assert f"{float(band['median']):.2g} " in row
    summary = pd.read_csv(tmp_path / "summary.csv", index_col="quantity")
    assert np.isfinite(summary.to_numpy()).all()
    assert printed(capsys, *arguments) == out.split("\nWritten to")[0]
    assert printed(capsys, *arguments, "--quiet") == ""


def test_several_counts_that_vary_too_much_are_said_to(capsys):
    counts = "72,51,63,8,60,86,180,67,92,39,28,75"
    out = printed(
        capsys,
        *("property", "--n", "1000", "--count", counts[:16], "--count", counts[17:]),
        *("--epsilon", "0.1,0.2", "--draws", "100", "--seed", "2"),
    )
    words = " ".join(out.split())
    assert "counts of 12 database(s); dependent entries" in words
    assert "checks failed: read them before relying on any number above" in words
    assert "favour of the beta-binomial model" in words
    assert "independent entries" in " ".join(
        printed(
            capsys,
            *("property", "--n", "1000", "--count", counts, "--model", "binomial"),
            *("--epsilon", "0.1", "--draws", "300", "--seed", "2"),
        ).split()
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prob": "0"}, "must lie strictly between 0 and 1, found 0.0; such a query is trivial"),
        ({"prob": "1"}, "such a query is trivial"),
        ({"prob": "nan"}, "prob must be finite"),
        ({"prob": "much"}, "--prob"),
        ({"prob": None}, "exactly one of --prob and --count must be given"),
        ({"count": "3"}, "exactly one of --prob and --count must be given"),
        ({"n": "1"}, "--n must be at least 2, found 1"),
        ({"n": "many"}, "--n must be a whole number"),
        ({"n": "nan"}, "--n must be a whole number"),
        ({"n": "1000,900"}, "--n must be one number where --prob is given"),
        ({"n": None}, "--n"),
        ({"prob": None, "count": "1001"}, "count must not exceed n, found 1001 of 1000"),
        ({"prob": None, "count": "-1"}, "count must be at least 0, found -1"),
        ({"prob": None, "count": "1.5"}, "--count must be a whole number"),
        ({"prob": None, "count": "nan"}, "--count must be a whole number"),
        ({"prob": None, "count": "=3"}, "--count must name every property"),
        ({"prob": None, "count": "3", "n": "1000,900"}, "n must be one number or one a database"),
        ({"epsilon": "-0.1"}, "--epsilon must not be negative"),
        ({"epsilon": "nan"}, "--epsilon must be finite"),
        ({"epsilon": "0.5:0.1:5"}, "--epsilon must be strictly increasing"),
        ({"epsilon": "800", "mechanism": "gaussian:1"}, "epsilon must be at most 700"),
        ({"mechanism": "gaussian:-1"}, "noise scale must be greater than 0, found -1.0"),
        ({"mechanism": "laplace:nan"}, "noise scale must be finite"),
        ({"mechanism": "gaussian"}, "must be laplace:SCALE or gaussian:SCALE, found 'gaussian'"),
        ({"mechanism": "cauchy:1"}, "--mechanism must be gaussian:NU"),
        ({"mechanism": "subsampling:2000"}, "sample size must be at most n"),
        ({"mechanism": "subsampling:1.5"}, "sampling rate must be at most 1"),
        (
            {"mechanism": "gaussian:1+subsampling:10"},
            "at most one sampling followed by at most one noise",
        ),
        ({"known": "1000"}, "known must be below n"),
        ({"known": "-1"}, "known must be at least 0"),
        ({"known": "5", "known-positive": "6"}, "known_positive must not exceed known"),
        ({"model": "binomial"}, "--model must be left out where --prob is given"),
        ({"seed": "1", "draws": "9"}, "--seed, --draws must be left out where --prob is given"),
        ({"chains": "2"}, "--chains must be left out"),
        ({"model": "normal"}, "--model must be one of auto, binomial, beta-binomial"),
        ({"out": "/proc/none"}, "cannot be written"),
    ],
    ids=str,
)
def test_what_a_user_can_get_wrong_about_a_property_is_one_line(capsys, changes, message):
    chosen = {"n": "1000", "prob": "0.1", **changes}
    pairs = [(f"--{name}={value}",) for name, value in chosen.items() if value is not None]
    assert message in refused(capsys, "property", *(word for pair in pairs for word in pair))


def test_a_folder_may_have_brackets_in_its_name(capsys, tmp_path):
    out = tmp_path / "out[/a]"
    arguments = ["property", "--n=100", "--prob=0.1", "--epsilon=0.1,0.5", f"--out={out}"]
    assert "out[/a]" in "".join(printed(capsys, *arguments).split())
    assert (out / "curve.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (("--width", "0.2", "--level", "0.8"), "0.0804719"),
        (("--width", "0.2", "--epsilon", "0.0804718956"), "0.8 "),
        (("--level", "0.8", "--epsilon", "0.0804718956"), "0.2 "),
    ],
    ids=["epsilon", "level", "width"],
)
def test_the_interval_of_the_paper_in_all_directions(capsys, arguments, value):
    out = printed(capsys, "interval", "--count", "100", *arguments)
    assert value in out.splitlines()[4].rpartition("│")[0].rpartition("│")[2] + " "


def test_a_released_count_gives_a_posterior(capsys):
    out = printed(
        capsys,
        *("interval", "--released", "103.4", "--noise", "laplace:2"),
        *("--width", "0.1,0.2", "--level", "0.9", "--seed", "1"),
    )
    answer = interval.answer_from_release(103.4, LaplaceNoise(2.0), random_seed=1)
    found = interval.posterior(answer, width=[0.1, 0.2], level=[0.9])["interval_epsilon"]
    low, middle, high = np.quantile(
        found.sel(width=0.2, level=0.9), [0.025, 0.5, 0.975], method="inverted_cdf"
    )
    row = out.splitlines()[-2]
    assert f"{middle:.6g}" in row
    assert f"{low:.6g} to {high:.6g}" in row
    assert "95% equal-tailed interval" in " ".join(out.split())


def test_the_noise_of_a_released_count_follows_from_its_epsilon(capsys):
    rest = ("--width", "0.1", "--seed", "3", "--sensitivity", "2")
    first = printed(capsys, "interval", "--released", "50", "--epsilon", "0.5", *rest)
    noise = ("--noise", "laplace:4")
    assert first == printed(
        capsys, "interval", "--released", "50", "--epsilon", "0.5", *noise, *rest
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": "0"}, "--count must be greater than 0"),
        ({"count": "-5"}, "--count must be greater than 0"),
        ({"count": "nan"}, "--count must be finite"),
        ({"count": None}, "exactly one of --count and --released"),
        ({"released": "5"}, "exactly one of --count and --released"),
        ({"width": "0"}, "width must be greater than 0"),
        ({"width": "x"}, "--width must be a number or a list"),
        ({"width": "nan"}, "width must be finite"),
        ({"level": "1"}, "level must lie strictly between 0 and 1"),
        ({"level": None}, "exactly two of --width, --level and --epsilon must be given"),
        ({"epsilon": "0.1"}, "exactly two of --width, --level and --epsilon must be given"),
        ({"sensitivity": "0"}, "sensitivity must be greater than 0"),
        ({"noise": "laplace:1"}, "--noise is for a count that was --released"),
        ({"count": None, "released": "5"}, "needs its --noise"),
        ({"count": None, "released": "5", "noise": "cauchy:1"}, "--noise must be laplace:SCALE"),
        ({"count": None, "released": "nan", "noise": "laplace:1"}, "released must be finite"),
        ({"count": None, "released": "5", "noise": "laplace:0"}, "noise scale must be greater"),
    ],
    ids=str,
)
def test_what_a_user_can_get_wrong_about_an_interval_is_one_line(capsys, changes, message):
    chosen = {"count": "100", "width": "0.2", "level": "0.8", **changes}
    words = [f"--{name}={value}" for name, value in chosen.items() if value is not None]
    assert message in refused(capsys, "interval", *words)


def test_words_for_counts_and_mechanisms():
    assert parse_counts(["a=b=3"]) == {"a=b": [3]}
    assert parse_mechanism(None, 10) is None
    assert parse_mechanism("subsampling:0.5", 10) == (Subsampling(rate=0.5),)
    assert parse_mechanism("laplace:3", 10) == (LaplaceNoise(0.3),)
    assert parse_noise("gaussian:2", "--noise") == GaussianNoise(2.0)
    assert parse_numbers("1,2", "--width") == [1.0, 2.0]
    with pytest.raises(InvalidInputError, match="name every property, each once"):
        parse_counts(["a=3", "4"])
