"""Files on disk: complete or not there, private, and no trace of runs that were killed."""

import datetime as dt
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import files, leftovers

WRITE = """
import os, sys, time
from pathlib import Path
from edp_bayes.utils import files
with files.replaced(Path(sys.argv[1])) as temporary:
    {make}
    print("writing", flush=True)
    time.sleep(60)
"""
MAKE = {
    "audit.nc": "temporary.write_bytes(b'Ann' * 1000)",
    "audit.zarr": "temporary.mkdir(); (temporary / 'c').write_bytes(b'Ann' * 1000)",
}


def writing(target):
    """Start a process that has written half of the target."""
    code = WRITE.format(make=MAKE[target.name])
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    return process


def end(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def write(path, text="new"):
    with files.replaced(path) as temporary:
        temporary.write_text(text)


@pytest.mark.parametrize("name", MAKE)
def test_what_a_killed_run_left_is_removed_by_the_next_and_said(tmp_path, name):
    path = tmp_path / name
    end(writing(path))
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.warns(edp.EdpBayesWarning, match=f"Removed 1 unfinished {name} of a run"):
        write(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(leftovers.fcntl is None, reason="folders cannot be locked here")
def test_what_somebody_still_writes_is_left_alone(tmp_path):
    path = tmp_path / "audit.nc"
    process = writing(path)
    write(path)
    assert leftovers.remove_leftovers(tmp_path, [path.name]) == 0
    assert len(list(tmp_path.glob(".audit.nc.*/audit.nc"))) == 1
    end(process)
    assert leftovers.remove_leftovers(tmp_path, [path.name]) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_at_once_both_finish(tmp_path):
    path = tmp_path / "audit.nc"
    with files.replaced(path) as first:
        first.write_text("first")
        write(path, "second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_other_files_that_look_alike_stay(tmp_path):
    target = tmp_path / "elsewhere"
    target.mkdir()
    names = [".audit.nc.backup", ".audit.nc.2024_old_", ".other.nc.abcdefgh", "audit.nc.abcdefgh"]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / ".audit.nc.abcdefgh").symlink_to(target)
    (tmp_path / ".audit.nc.filefile").write_text("")
    assert leftovers.remove_leftovers(tmp_path, ["audit.nc"]) == 0
    assert len(list(tmp_path.iterdir())) == len(names) + 3


@pytest.mark.parametrize("moment", ["killed", "failed"])
def test_an_earlier_folder_comes_back_where_nothing_took_its_place(tmp_path, moment, monkeypatch):
    path = tmp_path / "audit.zarr"
    path.mkdir()
    (path / "c").write_text("earlier")
    if moment == "killed":
        left = tmp_path / ".audit.zarr.abcdefgh"
        left.mkdir()
        path.rename(left / leftovers.OLD)
        assert leftovers.remove_leftovers(tmp_path, [path.name]) == 1
    else:
        replace = os.replace

        def failing(source, to):
            if to == path and Path(source).name == path.name:
                raise OSError("no space")
            replace(source, to)

        monkeypatch.setattr(os, "replace", failing)
        with (
            pytest.raises(edp.InvalidInputError, match="no space"),
            files.replaced(path) as temporary,
        ):
            temporary.mkdir()
    assert (path / "c").read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_without_locks_only_old_leftovers_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "fcntl", None)
    path = tmp_path / "audit.nc"
    end(writing(path))
    write(path)
    [left] = tmp_path.glob(".audit.nc.*")
    old = time.time() - 2 * leftovers.LONGEST_WRITE
    os.utime(left, (old, old))
    assert leftovers.remove_leftovers(tmp_path, [path.name]) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_files_are_for_their_owner_unless_they_are_to_be_handed_on(tmp_path):
    path = tmp_path / "summary.csv"
    path.write_text("")
    path.chmod(0o644)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    umask = os.umask(0o022)
    try:
        with files.replaced(path, private=False) as temporary:
            temporary.write_text("")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    with files.replaced(tmp_path / "audit.zarr") as temporary:
        temporary.mkdir()
    assert stat.S_IMODE((tmp_path / "audit.zarr").stat().st_mode) == 0o700


HELD = ("text", 1, 2.5, np.float32(2.0), [1, 2], ["a", "b"], np.arange(3), (1.0, 2.0))
NOT_HELD = (
    None, True, np.True_, {"a": 1}, dt.datetime(2024, 1, 1), dt.date(2024, 1, 1), object(),
    np.datetime64("2024-01-01"), [1, "a"], [None], [True], 2**70, 1j, b"x", [[1], [1, 2]],
    Path("x"),
)  # fmt: skip


def noted(value, where=""):
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"x": ("a", np.arange(3.0))})})
    held = {"": tree, "posterior": tree["posterior"], "posterior/x": tree["posterior/x"]}[where]
    held.attrs["note"] = value
    return tree


@pytest.mark.parametrize("name", ["a.nc", "a.zarr"])
def test_what_no_file_holds_is_refused_before_an_earlier_file_is_touched(name, tmp_path):
    path = tmp_path / name
    files.save_tree(noted("first"), path)
    for value in NOT_HELD:
        with pytest.raises(InvalidInputError, match=r"attribute 'note' must be text, a number"):
            files.save_tree(noted(value), path)
    for where in ("posterior", "posterior/x"):
        with pytest.raises(InvalidInputError, match=f"attribute 'note' of {where} must .*json.dum"):
            files.save_tree(noted({"a": 1}, where), path)
    assert files.load_tree(path).attrs["note"] == "first"
    assert list(tmp_path.iterdir()) == [path]
    for value in HELD:
        files.save_tree(noted(value), path)
        assert np.array_equal(files.load_tree(path).attrs["note"], value)
