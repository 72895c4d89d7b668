"""`edp-bayes noise` and `edp-bayes release`."""

import contextlib
import io
import json
import math
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.cli.noise_work import responses_of
from edp_bayes.cli.run import Keys
from edp_bayes.noise import LaplaceNoise, NoiseDistribution
from edp_bayes.report import describe
from tests.command_line import printed, refused
from tests.noise.conftest import make_responses

HEAVY = ("pymc", "xarray", "scipy", "numba", "pandas", "matplotlib", "arviz_base", "nutpie")
KEYS = ("--database", "week", "--individual", "meter")


def in_words(capsys, *arguments):
    """Run, and return what is printed, as one line of words."""
    return " ".join(printed(capsys, *arguments).split())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Weekly meters, some of them absent now and then."""
    rng = np.random.default_rng(3)
    n, m = 30, 4
    frame = pd.DataFrame(
        {
            "week": np.repeat(np.arange(n), m),
            "meter": np.tile(np.arange(m), n),
            "kwh": rng.gamma(2.0, 1.0, n * m),
        }
    )
    path = tmp_path_factory.mktemp("project") / "meters.csv"
    frame[rng.random(n * m) < 0.9].to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def audits(table, tmp_path_factory):
    folder = table.parent
    paths = {}
    for model in ("bootstrap", "dpm"):
        words = [str(table), *KEYS, "--query", "sum:kwh", "--epsilon", "0.5", "--model", model]
        sizes = ["--draws", "15", "--chains", "2", "--seed", "7", "--quiet"]
        assert main(["audit", *words, *sizes, "--out", str(folder / model)]) == 0
        paths[model] = folder / model / "audit.nc"
    return paths


@pytest.mark.full
@pytest.mark.parametrize("command", ["noise", "release"])
def test_help_imports_nothing_heavy(command):
    code = (
        f"import sys; from edp_bayes.cli import main; code = main(['{command}', '--help'])\n"
        f"print(code, [m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("0 []")


@pytest.mark.full
@pytest.mark.parametrize("sampler", ["auto", "exact"])
def test_a_release_imports_nothing_heavy(tmp_path, sampler):
    if sampler == "auto":
        pytest.importorskip("opendp")
    path = NoiseDistribution((LaplaceNoise(2.0),)).save(tmp_path / "noise.json")
    words = ["release", str(path), "--value", "3", "--sampler", sampler]
    heavy = (*HEAVY, "polars")
    code = (
        f"import sys; from edp_bayes.cli import main; code = main({words})\n"
        f"print(code, [m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("0 []")


@pytest.mark.full
@pytest.mark.parametrize("model", ["bootstrap", "dpm"])
def test_noise_of_an_audit_is_found_verified_written_and_released(capsys, tmp_path, audits, model):
    out = tmp_path / "noise.json"
    words = in_words(
        capsys,
        *("noise", audits[model], "--epsilon", "2", "--prob", "0.9"),
        *("--out", out),
    )
    noise = NoiseDistribution.load(out)
    record = noise.record
    assert (record["method"], record["epsilon"], record["draws"]) == ("laplace", 2.0, 30)
    assert record["reached"] >= 0.9
    assert f"expected absolute noise {noise.mean_absolute:.4g}" in words
    assert f"P(epsilon = 2, delta = 0 holds | data) = {record['reached']:.3g}" in words
    assert "from the 30 draws it was made for and all 4 individuals" in words
    answer = float(in_words(capsys, "release", out, "--value", "12.5", "--sampler", "exact"))
    assert abs(answer - 12.5) < 40.0 * noise.mean_absolute
    step = 2.0 ** (math.frexp(noise.mean_absolute)[1] - 1 - 16)
    assert (answer / step).is_integer()


@pytest.mark.full
def test_the_same_noise_as_from_python_on_fewer_draws(capsys, tmp_path, audits, table):
    out = tmp_path / "noise.json"
    arguments = ("--epsilon", "2", "--method", "bottleneck", "--draws", "6", "--out", out)
    assert in_words(capsys, "noise", audits["bootstrap"], *arguments, "--quiet") == ""
    audit = edp.load(audits["bootstrap"])
    responses = responses_of(audit, str(table), Keys(("week",), ("meter",)), progressbar=False)
    expected = edp.noise.calibrate(
        audit, epsilon=2.0, method="bottleneck", responses=responses, most_draws=6
    )
    found = NoiseDistribution.load(out)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.components == expected.components
    assert found.record == {**expected.record, "audit_warnings": list(audit.warnings)}


@pytest.mark.full
def test_what_is_doubtful_about_the_audit_is_said_again(capsys, tmp_path, audits):
    audit = edp.load(audits["bootstrap"])
    doubts = audit.warnings
    assert doubts
    arguments = ("--epsilon", "2", "--method", "bottleneck", "--out", tmp_path / "noise.json")
    words = in_words(capsys, "noise", audits["bootstrap"], *arguments)
    count = f"{len(describe(audit).failed)} of {len(describe(audit).checks)} checks failed"
    assert f"The guarantee is worth no more than the audit: {count}." in words
    assert count in repr(audit)
    for doubt in doubts:
        assert " ".join(doubt.split()) in words


@pytest.mark.full
def test_a_delta_can_be_given(capsys, tmp_path, audits):
    arguments = ("--epsilon", "1", "--delta", "0.01", "--method", "gaussian")
    words = in_words(capsys, "noise", audits["dpm"], *arguments, "--out", tmp_path / "noise.json")
    assert "Noise by the method gaussian, for epsilon = 1, delta = 0.01" in words


@pytest.mark.full
def test_a_target_that_is_met_already_is_said_to_be(capsys, tmp_path, audits):
    out = tmp_path / "noise.json"
    words = in_words(capsys, "noise", audits["bootstrap"], "--epsilon", "60", "--out", out)
    assert "No noise is needed: the query is private at epsilon = 60, delta = 0 in" in words
    assert main(["release", str(out), "--value", "0.1"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "0.1\n"
    assert captured.err.startswith("WARNING  this noise is none at all")
    with pytest.warns(edp.EdpBayesWarning, match="the answer is the true value itself"):
        edp.noise.release(0.1, NoiseDistribution.load(out))


@pytest.mark.parametrize(
    ("line", "code", "stdout", "stderr"),
    [
        ("0.1\n", 0, "0.1\n", "WARNING  this noise is none at all"),
        ("abc\n", 2, "", "edp-bayes: the true answer must be a number, found 'abc'\n"),
        ("", 2, "", "edp-bayes: the true answer must be a number, found ''\n"),
    ],
)
def test_a_value_that_is_not_given_is_read_from_a_pipe(
    capsys, monkeypatch, tmp_path, line, code, stdout, stderr
):
    out = tmp_path / "noise.json"
    NoiseDistribution((edp.noise.NoNoise(),)).save(out)
    monkeypatch.setattr(sys, "stdin", io.StringIO(line))
    assert main(["release", str(out)]) == code
    captured = capsys.readouterr()
    assert captured.out == stdout
    assert captured.err.startswith(stderr)
    assert captured.err.count("\n") == 1


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(("typed", "code"), [(b"0.1\n", 0), (b"\x04", 2), (b"\x03", 130)])
def test_a_value_that_is_not_given_is_asked_for_and_not_shown(tmp_path, typed, code):
    import pty

    out = tmp_path / "noise.json"
    NoiseDistribution((edp.noise.NoNoise(),)).save(out)
    program = "import sys; from edp_bayes.cli import main; sys.exit(main(sys.argv[1:]))"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", program, "release", str(out)])
    shown = b""
    while b"The true answer" not in shown:
        shown += os.read(terminal, 1000)
    # Until echo is off, what is typed would be shown, and be thrown away.
    time.sleep(0.5)
    os.write(terminal, typed)
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 1000):
            shown += piece
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
    assert shown.count(b"0.1") == (1 if code == 0 else 0)


@pytest.mark.full
def test_the_published_construction_is_told_apart(capsys, tmp_path, audits):
    arguments = ("--epsilon", "2", "--method", "hausdorff", "--out", tmp_path / "noise.json")
    assert "guarantees nothing" in in_words(capsys, "noise", audits["bootstrap"], *arguments)
    assert "guarantees nothing" in NoiseDistribution.load(arguments[-1]).record["message"]


@pytest.mark.full
def test_a_moved_table_is_asked_for_and_checked(capsys, tmp_path, audits, table):
    moved = tmp_path / "audit.nc"
    audit = edp.load(audits["bootstrap"])
    audit.tree.attrs["source"] = json.dumps({"table": "gone.csv", "database": ["week"]})
    audit.save(moved)
    short = ("noise", moved, "--epsilon", "2", "--method", "bottleneck", "--out", tmp_path / "n")
    assert "gone.csv of the audit is not there" in refused(capsys, *short, *KEYS)
    assert "--individual must name" in refused(capsys, *short, "--table", table)
    assert "not those of the audit" in refused(
        capsys, *short, "--table", changed(table, tmp_path), *KEYS
    )
    assert "bottleneck" in in_words(capsys, *short, "--table", table, *KEYS)


@pytest.mark.full
@pytest.mark.parametrize("place", ["beside", "above", "here"])
def test_an_audit_holds_the_name_of_its_table_not_the_path(
    capsys, tmp_path, audits, table, place, monkeypatch
):
    held = audits["bootstrap"].read_bytes()
    assert str(table.parent).encode() not in held
    assert table.parent.name.encode() not in held
    assert b"meters.csv" in held
    saved = tmp_path / "results" / "audit.nc"
    saved.parent.mkdir()
    shutil.copy(audits["bootstrap"], saved)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    words = ("noise", saved, "--epsilon", "2", "--method", "bottleneck", "--out", tmp_path / "n")
    message = " ".join(refused(capsys, *words).split())
    assert "the table meters.csv of the audit is not there" in message
    where = {"beside": saved.parent, "above": tmp_path, "here": tmp_path / "here"}[place]
    shutil.copy(changed(table, tmp_path), where / "meters.csv")
    assert "not those of the audit" in refused(capsys, *words)
    shutil.copy(table, where / "meters.csv")
    assert "bottleneck" in in_words(capsys, *words)


def changed(table, folder):
    frame = pd.read_csv(table)
    frame.loc[0, "kwh"] += 1.0
    frame.to_csv(folder / "changed.csv", index=False)
    return folder / "changed.csv"


@pytest.mark.full
def test_the_noise_is_not_written_over_what_it_is_made_from(capsys, tmp_path, audits, table):
    saved, moved = tmp_path / "audit.nc", tmp_path / "table.csv"
    shutil.copy(audits["bootstrap"], saved)
    shutil.copy(table, moved)
    (tmp_path / "sub").mkdir()
    words = ("noise", saved, "--epsilon", "2", "--method", "bottleneck", *KEYS)
    over_audit = refused(capsys, *words, "--out", tmp_path / "sub" / ".." / "audit.nc")
    assert f"would overwrite {saved}, which is read" in over_audit
    over_table = refused(capsys, *words, "--table", moved, "--out", moved)
    assert f"would overwrite {moved}, which is read" in over_table
    # The table need not be given: it lies above the audit.
    words = ("noise", audits["bootstrap"], *words[2:])
    before = table.read_bytes()
    assert "would overwrite" in refused(capsys, *words, "--out", table)
    assert table.read_bytes() == before
    assert moved.read_bytes() == before
    assert saved.read_bytes() == audits["bootstrap"].read_bytes()


@pytest.mark.full
def test_an_audit_that_does_not_say_where_it_is_from(capsys, tmp_path):
    audit = edp.audit(
        make_responses(),
        epsilon=[0.1],
        model=edp.SmoothedBootstrap(),
        draws=15,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
    audit.save(tmp_path / "audit.nc")
    arguments = ("--epsilon", "0.1", "--out", tmp_path / "noise.json")
    assert "give --table" in refused(capsys, "noise", tmp_path / "audit.nc", *arguments)


@pytest.mark.full
def test_the_audit_of_a_stacked_model_is_refused(capsys, tmp_path, audits, table):
    audit = edp.load(audits["bootstrap"])
    settings = {**audit.settings, "model": "Stacked(models=(SmoothedBootstrap(),))"}
    audit.tree.attrs["settings"] = json.dumps(settings)
    audit.save(tmp_path / "audit.nc")
    arguments = ("--epsilon", "0.1", "--out", tmp_path / "noise.json", "--table", table)
    assert "model=Stacked(" in refused(capsys, "noise", tmp_path / "audit.nc", *arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": "0"}, "--epsilon must be greater than 0"),
        ({"epsilon": "-0.1"}, "--epsilon must be greater than 0"),
        ({"epsilon": "nan"}, "--epsilon must be finite"),
        ({"epsilon": None}, "--epsilon"),
        ({"delta": "1"}, "delta must be 0, or at least 1e-09 and below 1"),
        ({"method": "gaussian"}, "Gaussian noise is made for delta above 0"),
        ({"method": "partial", "delta": "0.1"}, "partial noise is made for delta = 0"),
        ({"method": "magic"}, "method must be one of"),
        ({"prob": "1"}, "prob must lie strictly between 0 and 1"),
        ({"draws": "0"}, "--draws"),
        ({"out": "/proc/none/noise.json"}, "cannot be written"),
    ],
    ids=str,
)
def test_what_a_user_can_get_wrong_about_noise_is_one_line(
    capsys, tmp_path, audits, changes, message
):
    chosen = {"epsilon": "0.5", "out": tmp_path / "noise.json", **changes}
    words = [f"--{name}={value}" for name, value in chosen.items() if value is not None]
    assert message in refused(capsys, "noise", audits["bootstrap"], *words)


def test_files_that_are_missing_half_or_something_else(capsys, tmp_path, audits):
    half = tmp_path / "half.nc"
    half.write_bytes(audits["bootstrap"].read_bytes()[:5000])
    rest = ("--epsilon", "0.5", "--out", tmp_path / "noise.json")
    assert "none.nc" in refused(capsys, "noise", tmp_path / "none.nc", *rest)
    assert "is a folder: give the audit in it" in refused(capsys, "noise", tmp_path, *rest)
    assert "half.nc" in refused(capsys, "noise", half, *rest)
    out = tmp_path / "saved.json"
    NoiseDistribution((edp.LaplaceNoise(1.0),)).save(out)
    cut = tmp_path / "cut.json"
    cut.write_text(out.read_text()[:30])
    assert "none.json" in refused(capsys, "release", tmp_path / "none.json", "--value", "1")
    assert "no saved noise" in refused(capsys, "release", cut, "--value", "1")
    shutil.copy(half, cut)
    assert "cannot be read" in refused(capsys, "release", cut, "--value", "1")
    assert "value must be finite" in refused(capsys, "release", out, "--value", "nan")
    assert "sampler must be one of" in refused(
        capsys, "release", out, "--value", "1", "--sampler", "numpy"
    )


@pytest.mark.full
def test_a_time_limit_is_passed_on(capsys, tmp_path, audits, monkeypatch):
    from edp_bayes.noise import search

    times = iter([0.0])
    monkeypatch.setattr(search, "now", lambda: next(times, 1e6))
    words = ["noise", str(audits["bootstrap"]), "--epsilon", "2", "--out", str(tmp_path / "n.json")]
    said = refused(capsys, *words, "--time-limit", "30")
    assert "time limit of 30 s passed" in said
    assert "--time-limit must" in refused(capsys, *words, "--time-limit", "0")
