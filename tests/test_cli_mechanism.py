"""`edp-bayes mechanism` from two files of outcomes."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.cli import failing, main
from edp_bayes.cli.app import app


def run(*arguments):
    import typer

    return failing.run(typer.main.get_command(app), [str(a) for a in arguments])


@pytest.fixture
def pair(tmp_path):
    rng = np.random.default_rng(0)
    for name, centre in (("a", 0.0), ("b", 1.0)):
        np.save(tmp_path / f"{name}.npy", rng.laplace(centre, 1.0, 3000))
    return tmp_path / "a.npy", tmp_path / "b.npy"


@pytest.mark.full
def test_the_curve_and_the_files(pair, tmp_path, capsys):
    out = tmp_path / "out"
    options = ("--epsilon", "0.1,0.5,1", "--seed", 1, "--adjacency", "add-remove")
    assert run("mechanism", *pair, *options, "--unit", "a person-day", "--out", out) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "95% simultaneous band" in printed
    assert "Local epsilon at tau = 0.01" in printed
    assert "Neighbours: add-remove; unit of privacy: a person-day." in printed
    found = edp.load(out / "mechanism.nc")
    assert (found.settings["adjacency"], found.settings["unit"]) == ("add-remove", "a person-day")
    assert "WARNING" not in printed
    assert "Checks No check failed." in printed
    assert repr(found).endswith("draws, no check failed)")
    truth = -np.expm1((0.5 - 1.0) / 2)
    low, high = np.quantile(found.delta.sel(epsilon=0.5), [0.005, 0.995])
    assert low < truth < high
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "with 95% probability; its median is" in page
    assert "89%" not in page


def test_the_report_is_not_written_over_the_outcomes(pair, tmp_path, capsys):
    samples = pair[0].rename(tmp_path / "report.html")
    before = samples.read_bytes()
    assert run("mechanism", samples, pair[1], "--out", tmp_path) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert samples.read_bytes() == before


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npy", "missing.npy"], "there is no such file"),
        (["{text}", "{b}"], "as a NumPy file of numbers or strings"),
        (["{damaged}", "{b}"], "as a NumPy file of numbers or strings"),
        (["{archive}", "{b}"], "must hold one array, found an archive of one, two"),
        (["{a}", "{counts}"], "found floats in samples and integers in samples_neighbour"),
        (["{a}", "{nothing}"], "at least one outcome"),
        (["{a}", "{b}", "--tau", "2"], "tau"),
        (["{a}", "{b}", "--kind", "odd"], "kind must be one of"),
        (["{a}", "{b}", "--adjacency", "odd"], "adjacency must be one of"),
        (["{a}", "{b}", "--epsilon", "1:0:5"], "epsilon"),
    ],
    ids=[
        "file",
        "text",
        "damaged",
        "archive",
        "two kinds",
        "empty",
        "tau",
        "kind",
        "adjacency",
        "epsilon",
    ],
)
def test_bad_input_is_one_line(pair, tmp_path, capsys, arguments, message):
    names = {"a": pair[0], "b": pair[1]}
    names |= {
        name: tmp_path / f"{name}.npy"
        for name in ("text", "damaged", "archive", "counts", "nothing")
    }
    names["text"].write_text("1.5, 2.5")
    names["damaged"].write_bytes(b"PK\x03\x04" + bytes(30))
    with names["archive"].open("wb") as file:
        np.savez(file, one=np.zeros(3), two=np.ones(3))
    np.save(names["counts"], np.arange(3))
    np.save(names["nothing"], np.empty(0))
    assert run("mechanism", *(text.format(**names) for text in arguments)) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error


def test_a_record_does_not_take_the_place_of_the_samples(capsys, tmp_path):
    samples = [tmp_path / name for name in ("one.npy", "other.npy")]
    for path in samples:
        np.save(path, np.arange(50.0))
    before = samples[0].read_bytes()
    assert main(["mechanism", *map(str, samples), "--json", str(samples[0])]) == 2
    assert samples[0].read_bytes() == before
    assert main(["mechanism", *map(str, samples), "--json", str(tmp_path)]) == 2
    assert "--json must name a file" in capsys.readouterr().err
