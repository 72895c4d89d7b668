"""Answers that are 0 again and again, on the command line."""

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from tests.command_line import refused


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Weeks of purchases; in a third of them nothing is sold, and records say so."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(
        [(week, who) for week in range(36) for who in range(9) if rng.random() < 0.8],
        columns=["week", "who"],
    )
    rows["sales"] = rng.gamma(4.0, 1.0, len(rows)) * (rows["week"] % 3 > 0)
    path = tmp_path_factory.mktemp("table") / "sales.csv"
    rows.to_csv(path, index=False)
    return path


def asked(table, out, *more):
    keys = ["--database", "week", "--individual", "who", "--epsilon", "0.1,0.5"]
    few = ["--query", "sum:sales", "--draws", "50", "--seed", "1"]
    return ["audit", str(table), "--verbose", *keys, *few, "--out", str(out), *more]


@pytest.mark.full
def test_the_warning_names_what_works(table, tmp_path, capsys):
    assert main(asked(table, tmp_path / "one", "--no-past")) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "responses.replaced(atoms=[0]) (--atoms 0) gives it a probability of its own" in said
    out = tmp_path / "out"
    report = ["--report", str(out / "report.html")]
    assert main(asked(table, out, "--no-past", "--atoms", "0", *report)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "12 answers at the atom 0; the density is that of all others" in said
    assert "(--atoms 0)" not in said
    page = (out / "report.html").read_text()
    assert "12 answers at 0" in page
    audit = edp.load(out / "audit.nc")
    databases = edp.Databases.from_table(str(table), database="week", individual="who")
    hand = edp.audit(
        databases.respond(edp.queries.Sum("sales"), atoms="found"),
        epsilon=[0.1, 0.5],
        draws=50,
        random_seed=1,
        progressbar=False,
    )
    np.testing.assert_array_equal(audit.delta, hand.delta)
    noise = ["noise", str(out / "audit.nc"), "--epsilon", "0.5", "--out", str(tmp_path / "n.json")]
    assert "these have atoms: audit without atoms" in refused(capsys, *noise)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--atoms", "zero"], "--atoms must be numbers with commas between them"),
        (["--atoms", "5"], "5 is that of 0: leave it out of atoms"),
        (["--atoms", "0", "--transform", "sqrt"], "--atoms and --transform do not go together"),
        (["--atoms", "0", "--rounded-to", "10"], "--atoms and --rounded-to do not go together"),
        (["--atoms", "0", "--query", "count"], "--atoms is for one query, found 2"),
    ],
)
def test_what_cannot_be_is_refused(table, tmp_path, capsys, option, message):
    out = tmp_path / "out"
    assert message in refused(capsys, *asked(table, out, "--quiet", "--no-past", *option))


def test_against_who_knows_the_past_there_are_no_atoms(table, tmp_path, capsys):
    found = refused(capsys, *asked(table, tmp_path / "out", "--quiet", "--atoms", "0"))
    assert "leave out the adversary (--no-past" in found
