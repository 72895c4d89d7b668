"""A disk without room: one line, and nothing half-written."""

import errno
import io
import os

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.cli.folder import MADE
from edp_bayes.exceptions import InvalidInputError

WORDS = os.strerror(errno.ENOSPC)


class Full(io.FileIO):
    """A file on a disk with room for a thousand bytes."""

    def write(self, data):
        if self.tell() + len(data) > 1000:
            raise OSError(errno.ENOSPC, WORDS)
        return super().write(data)


def full_open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **rest):
    if isinstance(file, int) or rest.get("opener") or not set(mode) & set("wxa+"):
        return OPEN(file, mode, buffering, encoding, errors, newline, **rest)
    raw = Full(file, mode.replace("b", "").replace("t", ""))
    if "b" in mode:
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, newline)


OPEN = io.open


@pytest.fixture
def full_disk(monkeypatch):
    monkeypatch.setattr("builtins.open", full_open)
    monkeypatch.setattr(io, "open", full_open)


@pytest.fixture(scope="module")
def audit():
    contribution = np.random.default_rng(1).gamma(2.0, 1.0, (30, 4))
    return edp.audit(
        edp.Responses.from_arrays(contribution.sum(axis=1), contribution=contribution),
        epsilon=[0.1, 0.5],
        model=edp.SmoothedBootstrap(),
        draws=100,
        chains=2,
        random_seed=1,
        progressbar=False,
    )


RESULTS = {
    "audit.nc": lambda audit, path: audit.save(path),
    "report.html": lambda audit, path: audit.report(path),
    "summary.csv": lambda audit, path: MADE["summary.csv"](audit, 0.9, path),
    "delta.png": lambda audit, path: MADE["delta.png"](audit, 0.9, path),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_full_disk_is_one_error_of_ours_and_leaves_nothing(audit, tmp_path, name, full_disk):
    with pytest.raises(InvalidInputError, match=rf"{name} cannot be written: {WORDS}"):
        RESULTS[name](audit, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_results_of_before(audit, tmp_path, request):
    path = tmp_path / "audit.nc"
    audit.save(path)
    before = path.read_bytes()
    request.getfixturevalue("full_disk")
    with pytest.raises(InvalidInputError, match=WORDS):
        audit.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_one_line_on_the_command_line(tmp_path, capsys, request):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"week": np.repeat(np.arange(30), 4), "who": [*"abcd"] * 30, "x": rng.gamma(2.0, size=120)}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    request.getfixturevalue("full_disk")
    words = ["--database", "week", "--individual", "who", "--query", "sum:x", "--epsilon", "0.5"]
    words += ["--model", "bootstrap", "--draws", "15", "--chains", "2", "--seed", "1"]
    out = tmp_path / "out"
    assert main(["audit", str(tmp_path / "t.csv"), *words, "--quiet", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert said == f"edp-bayes: {out / 'audit.nc'} cannot be written: {WORDS}\n"
    assert not out.exists() or list(out.iterdir()) == []
