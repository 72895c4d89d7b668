"""What a file holds does not steer a terminal: escapes, carriage returns, turned directions."""

import io
import traceback
import warnings

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.utils import progress, terminal

HOSTILE = "\x1b]0;owned\x07\x1b[31m\rfine\u202e\x9b2J"
STEERING = set("\x1b\x07\r\u202e\x9b\x00")


def hostile_table(path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "week": np.repeat(np.arange(12), 3),
            f"who{HOSTILE}": [f"{HOSTILE}{k}" for k in np.tile(np.arange(3), 12)],
            f"x{HOSTILE}": rng.normal(10.0, 1.0, 36),
        }
    )
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "change", [{"--database": "month"}, {"--query": "sum:y"}, {"--individual": f"who{HOSTILE}2"}]
)
def test_errors_show_them(change, tmp_path, capsys):
    path = hostile_table(tmp_path / f"a{HOSTILE}.csv")
    given = {
        "--database": "week", "--individual": f"who{HOSTILE}", "--query": "count",
        "--out": str(tmp_path / "out"),
    } | change  # fmt: skip
    arguments = [word for pair in given.items() for word in pair]
    assert main(["audit", str(path), *arguments]) == 2
    captured = capsys.readouterr()
    assert not STEERING & set(captured.out + captured.err)
    assert "\u241b[31m" in captured.err


def test_file_names_that_are_not_there_show_them(tmp_path, capsys):
    assert main(["noise", str(tmp_path / f"a{HOSTILE}.nc"), "--epsilon", "1"]) == 2
    captured = capsys.readouterr()
    assert not STEERING & set(captured.out + captured.err)


def test_tracebacks_and_warnings_show_them(tmp_path):
    path = hostile_table(tmp_path / "a.csv")
    with pytest.raises(InvalidInputError) as found:
        edp.Databases.from_table(path, database="month", individual="y")
    text = "".join(traceback.format_exception_only(found.value))
    assert "\u241b[31m" in text
    assert not STEERING & set(text)
    shown = warnings.formatwarning(EdpBayesWarning(HOSTILE), EdpBayesWarning, "a.py", 1)
    assert not STEERING & set(shown)


def test_the_console_keeps_lines_and_its_own_styles_and_shows_the_rest():
    from rich.table import Table
    from rich.text import Text

    out = io.StringIO()
    console = terminal.terminal(file=out, force_terminal=True, width=200)
    table = Table(HOSTILE)
    table.add_row(Text(HOSTILE, style="bold"))
    console.print(table)
    console.print(f"one\n{HOSTILE}")
    text = out.getvalue()
    assert text.count("\u241b[31m") == 3
    assert "one\n" in text
    assert "\x1b[1m" in text  # bold, of the console's own
    assert not (STEERING - {"\x1b"}) & set(text)
    assert "\x1b[31m" not in text
    assert "\x1b]0" not in text


def test_progress_shows_them(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_BAR", 0.0)
    list(progress.track(range(3), HOSTILE, total=3, show=True))
    with progress.working(HOSTILE, show=True) as say:
        say(HOSTILE)
    assert not (STEERING - {"\r"}) & set(capsys.readouterr().out)


@pytest.mark.full
def test_the_report_shows_them_and_the_summary_holds_them(tmp_path):
    path = hostile_table(tmp_path / "a.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        databases = edp.Databases.from_table(path, database="week", individual=f"who{HOSTILE}")
        audit = edp.audit(
            databases.respond(edp.queries.Sum(f"x{HOSTILE}")),
            epsilon=[0.1, 0.5], draws=40, tune=40, chains=2, random_seed=1, progressbar=False,
        )  # fmt: skip
        page = audit.report(tmp_path / "report.html", names=True).read_text(encoding="utf-8")
    assert not STEERING & set(page)
    assert "\u241b[31m" in page
    assert f"{HOSTILE}0" in audit.individuals["individual"].to_numpy().tolist()
