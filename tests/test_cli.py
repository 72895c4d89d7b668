import contextlib
import os
import re
import signal
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.cli.texts import columns, parse_epsilon, parse_model
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.summaries import interval
from edp_bayes.utils.formatting import crossing, risk
from tests.command_line import refused

FILES = {
    "audit.nc",
    "summary.csv",
    "delta.png",
    "total_risk.png",
    "density.png",
    "individuals.png",
}
HEAVY = ("pymc", "xarray", "scipy", "numba", "pandas", "matplotlib", "arviz_base", "nutpie")


def launch(*arguments, **options):
    """Start the program as a process of its own, at 80 columns."""
    environment = {**os.environ, "COLUMNS": "80", "PYTHONUNBUFFERED": "1"}
    code = "import sys; from edp_bayes.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Half-yearly meters of two towns, compound keys on both sides."""
    rng = np.random.default_rng(3)
    n, m = 30, 8
    frame = pd.DataFrame(
        {
            "year": np.repeat(2000 + np.arange(n) // 2, m),
            "half": np.repeat(np.arange(n) % 2, m),
            "town": np.tile(["north", "south"], n * m // 2),
            "meter": np.tile(np.arange(m), n),
            "kwh": rng.gamma(2.0, 1.0, n * m),
        }
    )
    path = tmp_path_factory.mktemp("table") / "meters.csv"
    frame.to_csv(path, index=False)
    return path


def options(table, out, **changes):
    """The arguments of a small audit; None leaves an option out."""
    chosen = {
        "database": "year,half",
        "individual": "town,meter",
        "query": "sum:kwh",
        "epsilon": "0.05:0.5:4",
        "model": "bootstrap",
        "draws": 150,
        "seed": 7,
        "out": out,
        **changes,
    }
    pairs = [(f"--{name}", str(value)) for name, value in chosen.items() if value is not None]
    return ["audit", str(table), "--verbose", *(word for pair in pairs for word in pair)]


@pytest.fixture(scope="module")
def finished(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "new" / "folder"
    process = launch(*options(table, out, name="south, 3", keep=2))
    stdout, stderr = process.communicate(timeout=120)
    return process.returncode, stdout, stderr, out


def test_importing_the_command_line_is_light():
    code = f"import sys, edp_bayes.cli; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from edp_bayes.cli import main; code = main(['audit', '--help'])\n"
        f"print(code, [m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--individual" in done.stdout
    assert done.stdout.strip().endswith("0 []")


def test_no_arguments_show_the_help(capsys):
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"edp-bayes {edp.__version__}\n"


def test_it_can_be_run_as_a_module():
    command = [sys.executable, "-m", "edp_bayes.cli"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"edp-bayes {edp.__version__}\n"
    wrong = subprocess.run([*command, "nothing"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")


@pytest.mark.full
def test_an_audit_ends_well(finished):
    code, stdout, stderr, _ = finished
    assert (code, stderr) == (0, "")
    assert "30 databases, 8 individuals" in stdout
    assert "SmoothedBootstrap" in stdout
    assert re.search(r"Seed +7\b", stdout)


def test_every_table_states_its_interval(finished):
    _, stdout, _, _ = finished
    assert "Risk by epsilon: median and 95% simultaneous band" in stdout
    words = "median and 95% equal-tailed interval"
    assert f"Epsilon at which delta falls to a target: {words}" in stdout
    assert f"Riskiest individuals at epsilon = 0.05: {words}" in stdout
    assert stdout.count("┏") == 4


def test_tables_fit_80_columns(finished):
    assert max(map(len, finished[1].splitlines())) <= 80
    assert "…" not in finished[1]


def test_printed_numbers_are_those_of_the_saved_audit(finished):
    _, stdout, _, out = finished
    audit = edp.load(out / "audit.nc")
    band = audit.band("delta", prob=0.95).isel(epsilon=0)
    row = next(line for line in stdout.splitlines() if line.startswith("│    0.05 │"))
    assert f"{float(band['median']):.2g} " in row
    assert f"{float(band['lower']):.2g} to {float(band['upper']):.2g}" in row


def test_all_files_are_there_and_no_temporary_ones(finished):
    out = finished[3]
    assert {path.name for path in out.iterdir()} == FILES
    for path in out.glob("*.png"):
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.full
def test_summary_is_a_table_of_finite_numbers(finished):
    summary = pd.read_csv(finished[3] / "summary.csv", index_col="quantity")
    assert {"median", "eti95_lb", "eti95_ub", "r_hat"} <= set(summary.columns)
    assert "delta[0.05]" in summary.index
    assert not summary.isna().any().any()
    # beside every number whether a check withholds it
    withheld = edp.load(finished[3] / "audit.nc").withheld is not None
    assert summary["withheld"].tolist() == [withheld] * len(summary)


def test_named_individuals_are_kept(finished):
    audit = edp.load(finished[3] / "audit.nc")
    assert "south, 3" in audit.individual_delta["individual"].to_numpy()
    assert audit.individual_delta.sizes["individual"] in (2, 3)


@pytest.mark.full
def test_same_seed_same_numbers_and_quiet_is_quiet(finished, table, tmp_path, capsys):
    arguments = options(table, tmp_path, name="south, 3", keep=2)
    assert main([*arguments, "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    first, second = (edp.load(folder / "audit.nc") for folder in (finished[3], tmp_path))
    np.testing.assert_array_equal(first.delta, second.delta)
    assert {path.name for path in tmp_path.iterdir()} == FILES


@pytest.mark.full
def test_an_interrupted_run_leaves_nothing_of_an_earlier_one(table, tmp_path, monkeypatch):
    out = tmp_path / "out"
    small = {"draws": 20, "chains": 2}
    assert main([*options(table, out, **small), "--zarr", "--report", str(out / "r.html")]) == 0
    assert {"audit.zarr", "summary.csv", "delta.png", "r.html"} <= {p.name for p in out.iterdir()}

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(edp.Audit, "plot_delta", interrupted)
    arguments = options(table, out, seed=8, report=out / "r.html", **small)
    with contextlib.suppress(KeyboardInterrupt):
        assert main(arguments) == 130
    assert {path.name for path in out.iterdir()} == {"audit.nc", "summary.csv"}
    assert edp.load(out / "audit.nc").settings["random_seed"] == 8


@pytest.mark.full
def test_zarr_and_a_single_column_from_parquet(tmp_path, capsys):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"day": np.repeat(pd.date_range("2026-01-05", periods=25), 4), "who": [*"abcd"] * 25}
    ).assign(amount=rng.gamma(2.0, size=100))
    path = tmp_path / "amounts.parquet"
    frame.to_parquet(path)
    arguments = options(
        path, tmp_path / "out", database="day", individual="who", query="mean:amount", draws=60
    )
    assert main([*arguments, "--zarr", "--kernel", "gaussian"]) == 0
    assert "kernel='gaussian'" in capsys.readouterr().out
    assert edp.load(tmp_path / "out" / "audit.zarr").settings["databases"] == 25


@pytest.mark.full
def test_failed_checks_are_printed_in_plain_words(tmp_path, capsys):
    rng = np.random.default_rng(11)
    level = np.zeros(60)
    for week in range(1, 60):
        level[week] = 0.8 * level[week - 1] + rng.normal()
    frame = pd.DataFrame({"week": np.repeat(np.arange(60), 5), "who": [*"abcde"] * 60})
    frame["x"] = 10.0 + np.repeat(level, 5) + rng.normal(size=300)
    path = tmp_path / "walk.csv"
    frame.to_csv(path, index=False)
    arguments = options(path, tmp_path, database="week", individual="who", query="mean:x", draws=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", edp.EdpBayesWarning)
        assert main([*arguments, "--no-past"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "checks failed: read them before relying on any number above" in printed
    assert "The databases are not independent: lag-1 autocorrelation" in printed
    assert "independent draws (at least 400" in printed
    assert "log predictive density" in printed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"database": "year,halff"}, "'halff'"),
        ({"individual": "nobody"}, "'nobody'"),
        ({"database": "year,"}, "--database must name columns, found 'year,'"),
        ({"individual": "year"}, "'year' cannot be a key"),
        ({"query": "sum:kw"}, "'kw'"),
        ({"query": "sum:town"}, "town"),
        ({"query": "total of kwh"}, "unknown query 'total of kwh'; the forms are"),
        ({"epsilon": "0.1:0.5"}, "--epsilon must be start:stop:count or a list"),
        ({"epsilon": "0.1:0.5:many"}, "--epsilon must be start:stop:count or a list"),
        ({"epsilon": "0.1:0.5:0"}, "a count from 1 to 10000"),
        ({"epsilon": "0.5:9:1"}, "a count of 1 has one value"),
        ({"epsilon": "0.1:inf:5"}, "finite ends"),
        ({"epsilon": "0.5:0.1:5"}, "--epsilon must be strictly increasing"),
        ({"epsilon": "-0.1,0.5"}, "--epsilon must not be negative"),
        ({"epsilon": "nan"}, "--epsilon must be finite"),
        ({"epsilon": ""}, "--epsilon must be start:stop:count or a list"),
        (
            {"model": "normal"},
            "--model must be dpm, finite:K or bootstrap, found 'normal'",
        ),
        ({"model": "finite:0"}, "--model must be dpm, finite:K or bootstrap"),
        ({"kernel": "cauchy"}, "kernel must be one of gaussian, laplace, found 'cauchy'"),
        ({"name": "south,99"}, "there is no individual 'south,99'"),
        ({"draws": "0"}, "--draws"),
        ({"draws": "ten"}, "--draws"),
        ({"seed": "-1"}, "--seed"),
        (
            {"target-accept": "1.2", "sampler": "nutpie"},
            "--target-accept must lie strictly between 0 and 1",
        ),
        (
            {"target-accept": "0.99", "model": "bootstrap"},
            "--target-accept is for --sampler nutpie, pymc, numpyro, blackjax, found no --sampler",
        ),
        ({"query": None}, "--query"),
        ({"colour": "red"}, "--colour"),
    ],
)
def test_what_a_user_can_get_wrong_is_one_line(capsys, table, tmp_path, changes, message):
    assert message in refused(capsys, *options(table, tmp_path, **changes))


def test_names_are_for_a_report(capsys, table, tmp_path):
    line = refused(capsys, *options(table, tmp_path), "--report-names")
    assert "--report-names is for a report" in line


def test_unknown_command_is_one_line(capsys):
    assert "audits" in refused(capsys, "audits")


@pytest.mark.parametrize("place", ["file", "proc"])
def test_unwritable_folder_is_refused_before_anything_is_read(capsys, tmp_path, place):
    if place == "proc" and not os.path.isdir("/proc"):
        pytest.skip("no /proc on this system")
    occupied = tmp_path / "occupied"
    occupied.write_text("")
    out = occupied / "out" if place == "file" else "/proc/edp-bayes-out"
    line = refused(capsys, *options(tmp_path / "missing.csv", out))
    assert "cannot be written" in line
    assert "missing.csv" not in line
    assert main(["demo", "--out", str(out)]) == 2


def test_a_refused_command_leaves_no_folder(capsys, tmp_path):
    refused(capsys, *options(tmp_path / "missing.csv", tmp_path / "out" / "deep"))
    assert list(tmp_path.iterdir()) == []


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["summary.csv", "meters.csv"])
def test_no_result_takes_the_place_of_the_table(capsys, table, tmp_path, name):
    source = tmp_path / name
    source.write_bytes(table.read_bytes())
    (tmp_path / "sub").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    before = files_of(tmp_path)
    again = tmp_path / "sub" / ".." / name
    for read in (source, link):
        for report in (source, again):
            words = options(read, tmp_path / "out", report=report)
            assert f"would overwrite {read}, which is read" in refused(capsys, *words)
        if name == "summary.csv":
            for out in (tmp_path, again.parent):
                assert "would overwrite" in refused(capsys, *options(read, out))
    assert files_of(tmp_path) == before
    assert not (tmp_path / "out").exists()


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(FILES | {"audit.zarr", "audit.zarr/report.html"}))
def test_the_report_needs_a_name_of_its_own(capsys, table, tmp_path, name):
    out = tmp_path / "o"
    for folder in (out, out / ".." / "o"):
        line = refused(capsys, *options(table, out, report=folder / name))
        assert "--report must have a name of its own" in line
    assert not out.exists()


def test_unreadable_tables_are_one_line(capsys, table, tmp_path):
    half = tmp_path / "half.parquet"
    pd.read_csv(table).to_parquet(half)
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
    text = tmp_path / "text.csv"
    text.write_bytes(b"\xff\xfe\x00 not a table")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    for path in (half, text, empty, folder, tmp_path / "missing.csv", tmp_path / "a.xlsx"):
        assert path.name in refused(capsys, *options(path, tmp_path / "out"))


@pytest.mark.full
@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_run_that_is_ended_is_one_line_and_leaves_nothing(table, tmp_path, number, code, word):
    process = launch(*options(table, tmp_path, sampler="nutpie", draws=20_000, tune=20_000))
    assert process.stdout is not None
    while "Sampling" not in process.stdout.readline():
        pass
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    assert stderr == f"edp-bayes: {word}\n"
    assert list(tmp_path.iterdir()) == []


def test_epsilon_as_text():
    np.testing.assert_array_equal(parse_epsilon("0.1:0.3:3"), [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(parse_epsilon("0, 0.25,1e0"), [0.0, 0.25, 1.0])
    np.testing.assert_array_equal(parse_epsilon("0.5:0.5:1"), [0.5])


def test_models_as_text():
    assert parse_model("dpm", None) == edp.DirichletProcessMixture()
    assert parse_model("finite:3", "laplace") == edp.FiniteMixture(components=3, kernel="laplace")
    assert parse_model("bootstrap", None) == edp.SmoothedBootstrap()


def test_columns_with_commas_or_repeated():
    assert columns(["a, b", "c"], "--database") == ("a", "b", "c")
    with pytest.raises(InvalidInputError, match="--database must name columns"):
        columns([""], "--database")


def test_epsilons_off_the_grid_are_said_to_be():
    import xarray as xr

    draws = xr.DataArray(np.r_[np.full(60, 0.1), np.full(35, 0.25), np.full(5, np.inf)])
    lower, middle, upper = interval(draws, 0.95)
    assert [crossing(value, 0.0, 0.5) for value in (lower, middle, upper)] == [
        "at most 0.1",
        "at most 0.1",
        "above 0.5",
    ]
    assert crossing(0.25, 0.249, 0.5) == "0.25"


@pytest.mark.full
def test_labels_cannot_steer_the_terminal(table, tmp_path, capsys):
    frame = pd.read_csv(table)
    frame["meter"] = "\x1b[31m\u202e" + frame["meter"].astype(str)
    path = tmp_path / "steering.csv"
    frame.to_csv(path, index=False)
    assert main(options(path, tmp_path / "out", individual="meter", draws=15, chains=2)) == 0
    out = capsys.readouterr().out
    assert "\u241b[31m\ufffd" in out
    assert not {"\x1b", "\u202e"} & set(out)


def test_risks_keep_two_digits_in_few_characters():
    values = (0.0, 0.123456, 1.0, 0.00098, 3.21e-5, 1e-6, 3.21e-7)
    shown = ["< 1e-6", "0.12", "1", "9.8e-4", "3.2e-5", "1.0e-6", "< 1e-6"]
    assert [risk(value) for value in values] == shown


def test_the_widest_numbers_fit_80_columns():
    from rich.console import Console

    from edp_bayes.cli.report import Table

    console = Console(width=80, record=True, quiet=True)
    table = Table()
    for head in ("epsilon", "delta", "band", "delta*", "band", "sum at\nmost"):
        table.add_column(head)
    wide = risk(9.87e-5)
    table.add_row("0.02345", wide, f"{wide} to {wide}", wide, f"{wide} to {wide}", wide)
    assert console.measure(table).maximum <= 80


@pytest.mark.full
def test_a_run_goes_on_where_nobody_reads_what_it_prints(tmp_path):
    rows = [f"{week},{who},{(week * who) % 7 + 1}" for week in range(30) for who in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["week,who,value", *rows]))
    words = "audit t.csv --database week --individual who --query sum:value --epsilon 0.1"
    few = "--draws 50 --chains 2 --seed 1 --out out"
    command = [sys.executable, "-m", "edp_bayes.cli", *words.split(), *few.split()]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()
    assert run.wait() == 0, run.stderr.read().decode()
    assert (tmp_path / "out" / "audit.nc").exists()
    run.stderr.close()
