"""The command line reads folders, patterns and remote places, and keeps results out of them."""

from __future__ import annotations

import json

import pytest

from edp_bayes.cli import main
from edp_bayes.loading import load
from tests.engine_tables import records


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    (folder / "sales").mkdir()
    table = records()
    for k in range(2):
        table.iloc[k::2].to_parquet(folder / "sales" / f"{k}.parquet")
    return folder


def run(table, out, *more):
    words = ["--database", "week", "--individual", "client", "--query", "sum:amount", "--no-past"]
    words += ["--epsilon", "0.1,0.3", "--model", "bootstrap", "--draws", "100", "--seed", "1"]
    return main(["audit", str(table), *words, "--out", str(out), "--quiet", *more])


@pytest.mark.full
def test_every_place_is_the_same_table(home, tmp_path):
    places = {
        "folder": home / "sales",
        "pattern": home / "sales" / "*.parquet",
        "remote": f"file://{home / 'sales'}",
    }
    found = {}
    for name, place in places.items():
        assert run(place, tmp_path / name) == 0
        audit = load(tmp_path / name / "audit.nc")
        found[name] = audit.settings["fingerprint"]
        noted = json.loads(audit.tree.attrs["source"]).get("table")
        assert noted == {"folder": "sales", "pattern": "*.parquet", "remote": None}[name]
    assert len(set(found.values())) == 1


@pytest.mark.full
def test_noise_finds_the_folder_again(home, tmp_path, capsys, monkeypatch):
    assert run(home / "sales", tmp_path / "out") == 0
    monkeypatch.chdir(home)
    words = ["noise", str(tmp_path / "out" / "audit.nc"), "--epsilon", "0.3", "--delta", "0.2"]
    words += ["--method", "laplace", "--out", str(tmp_path / "noise.json"), "--quiet"]
    assert main(words) == 0
    assert (tmp_path / "noise.json").exists()


@pytest.mark.parametrize("inside", ["", "deep/er"])
def test_results_lie_outside_the_folder_that_is_read(home, capsys, inside):
    before = sorted(home.rglob("*"))
    assert run(home / "sales", home / "sales" / inside) == 2
    assert "would lie in" in capsys.readouterr().err
    assert sorted(home.rglob("*")) == before


def test_a_place_that_is_unknown_is_one_line(tmp_path, capsys):
    for place, word in (
        ("nowhere://bucket/x", "nowhere"),
        (f"file://{tmp_path}/none.parquet", "none.parquet"),
        (str(tmp_path / "*.parquet"), "no such file"),
    ):
        assert run(place, tmp_path / "out") == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert word in error
