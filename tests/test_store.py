"""A store: killed runs continue with the bits of an uninterrupted one, and mix-ups are refused."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.auditing import store
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models import Stacked

PEOPLE, EPSILON = 300, [0.02, 0.3]
OPTIONS = {"draws": 40, "tune": 50, "chains": 2, "random_seed": 5, "progressbar": False}
MIXTURE = edp.DirichletProcessMixture(components=4)


def make_responses(seed=7):
    rng = np.random.default_rng(seed)
    c = rng.gamma(2.0, 0.05, (30, PEOPLE)) * (rng.random((30, PEOPLE)) < 0.1)
    return edp.Responses.from_arrays(
        20.0 + rng.standard_normal(30) + c.sum(axis=1), contribution=c, query="sum"
    )


def run(path=None, **changes):
    options = {"epsilon": EPSILON, "model": MIXTURE, **OPTIONS, **changes}
    return edp.audit(options.pop("responses", make_responses()), store=path, **options)


TIMES = ("perf_counter_diff", "perf_counter_start", "process_time_diff")


def same(first, second):
    assert first.tree.children.keys() == second.tree.children.keys()
    for group in first.tree.children:
        ours, theirs = (a.tree[group].to_dataset() for a in (first, second))
        for name in ours.variables:
            if name not in TIMES:
                assert ours[name].equals(theirs[name]), (group, name)
    assert first.warnings == second.warnings


@pytest.fixture(scope="module")
def uninterrupted():
    return run()


SCRIPT = """
import os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
import test_store
from edp_bayes.auditing import query

def killed(*ignored):
    os.kill(os.getpid(), signal.SIGKILL)

write = pathlib.Path.write_bytes

def write_half(path, content):
    if path.name != sys.argv[3]:
        return write(path, content)
    write(path, content[: len(content) // 2])
    killed()

pathlib.Path.write_bytes = write_half
query.remove = killed
test_store.run(sys.argv[2])
"""

# While which file is half written, or at the very end, and how many blocks are finished then.
MOMENTS = {"settings.json": 0, "block-000000.npz": 0, "block-000002.npz": 2, "the end": 3}


def blocks(path):
    return sorted(path.glob("block-*.npz"))


@pytest.mark.full
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_at_any_moment_continues_with_the_same_bits(moment, tmp_path, uninterrupted):
    path = tmp_path / "store"
    command = [sys.executable, "-c", SCRIPT, os.path.dirname(__file__), path, moment]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    before = {part: part.stat().st_mtime_ns for part in blocks(path)}
    assert len(before) == MOMENTS[moment]
    same(uninterrupted, run(path, keep_store=True))
    # who was evaluated before is not again
    assert before.items() <= {part: part.stat().st_mtime_ns for part in blocks(path)}.items()
    assert not any(path.glob(".*"))


@pytest.mark.full
def test_a_store_is_removed_at_the_end_unless_kept(tmp_path, uninterrupted):
    path = tmp_path / "store"
    same(uninterrupted, run(path, executor=2, keep_store=True))
    assert len(blocks(path)) == 3
    for part in path.iterdir():
        assert part.stat().st_mode & 0o077 == 0
    (path / "notes.txt").write_text("mine")
    same(uninterrupted, run(path))
    assert [part.name for part in path.iterdir()] == ["notes.txt"]


CHANGES = {
    "fingerprint of the data": {"responses": make_responses(8)},
    "epsilon": {"epsilon": [0.02, 0.4]},
    "model": {"model": edp.FiniteMixture(components=4)},
    "draws": {"draws": 41},
    "tune": {"tune": 51},
    "random_seed": {"random_seed": 6},
    "adversary": {"adversary": edp.Adversary(trend=True)},
    "noise": {"responses": make_responses().replaced(noise=edp.LaplaceNoise(0.1))},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "store"
    run(path, keep_store=True)
    return path


@pytest.mark.parametrize("name", CHANGES)
def test_a_store_of_another_audit_is_refused_by_what_differs(finished, name):
    with pytest.raises(InvalidInputError, match=f"is of another audit: {name} is "):
        run(finished, **CHANGES[name])


def test_a_store_of_another_version_is_refused(finished, monkeypatch):
    monkeypatch.setattr(edp, "__version__", "9.9")
    with pytest.raises(InvalidInputError, match=r"version of edp_bayes is 0\.1\.0 there and 9\.9"):
        run(finished)


def test_what_changes_no_risk_may_change(finished, uninterrupted):
    found = run(finished, keep=3, random_seed=None, keep_store=True)
    np.testing.assert_array_equal(found.delta, uninterrupted.delta)
    assert found.individual_delta.sizes["individual"] == 3
    assert found.settings["random_seed"] == OPTIONS["random_seed"]


def test_a_damaged_block_is_evaluated_again(finished, uninterrupted):
    first, second, _ = blocks(finished)
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    second.write_bytes(second.read_bytes()[:1000])
    same(uninterrupted, run(finished, keep_store=True))
    assert store._load(first, np.arange(128)) is not None


def test_other_draws_under_the_same_settings_are_refused(finished, monkeypatch):
    kept = (finished / "fit.json").read_text()
    (finished / "fit.json").write_text('{"draws": "0"}')
    with pytest.raises(InvalidInputError, match="is of other draws, though the settings are the"):
        run(finished)
    (finished / "fit.json").write_text(kept)


def test_two_runs_do_not_share_a_store(finished):
    with (
        store.opened(finished, store._read(finished / "settings.json")),
        pytest.raises(InvalidInputError, match="is in use by another run"),
    ):
        run(finished)


@pytest.mark.full
def test_draws_of_nuts_are_kept(tmp_path, monkeypatch):
    options = {
        "model": Stacked(
            [edp.FiniteMixture(components=1, kernel="laplace"), edp.SmoothedBootstrap()]
        ),
        "adversary": edp.Adversary(trend=True),
        "sampler": "nutpie",
        "cores": 1,
    }
    first = run(tmp_path / "store", keep_store=True, **options)
    # of the regression, and of the density of its residuals
    kept = sorted(part.name for part in tmp_path.glob("store/draws*"))
    assert kept == ["draws-0.nc", "draws-1.nc"]
    monkeypatch.setattr("pymc.sample", None)
    same(first, run(tmp_path / "store", keep_store=True, **options))
    other = edp.FiniteMixture(components=2, kernel="laplace")
    monkeypatch.setattr(edp.FiniteMixture, "build", lambda self, *data: build(other, *data))
    with pytest.raises(InvalidInputError, match="has draws of another model"):
        run(tmp_path / "store", **options)


build = edp.FiniteMixture.build


@pytest.mark.full
def test_a_full_disk_leaves_what_was_kept_and_nothing_half_written(
    tmp_path, monkeypatch, uninterrupted
):
    path, written, kept = tmp_path / "store", [], type(tmp_path).write_bytes

    def full(self, content):
        if self.name.startswith("block") and len(written) == 1:
            kept(self, content[:1000])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.extend([self.name] if self.name.startswith("block") else [])
        return kept(self, content)

    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), "write_bytes", full)
        with pytest.raises(
            InvalidInputError, match=r"block-000001.npz cannot be written: No space"
        ):
            run(path)
    assert [part.name for part in blocks(path)] == ["block-000000.npz"]
    assert not any(path.glob(".*"))
    same(uninterrupted, run(path))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda path: 3, InputTypeError, "store must be the path of a folder, found 3"),
        (lambda path: path.touch() or path, InvalidInputError, "must be a folder, .* is a file"),
        (
            lambda path: path.mkdir() or (path / "x").touch() or path,
            InvalidInputError,
            "is a folder of something else: give a new or empty one",
        ),
        (
            lambda path: path.mkdir() or path.joinpath("settings.json").write_bytes(b"") or path,
            InvalidInputError,
            "store .* cannot be read",
        ),
        (lambda path: "/proc/nowhere/store", InvalidInputError, "cannot be written"),
    ],
)
def test_what_is_no_store_is_refused_and_left_as_it_is(make, error, message, tmp_path):
    path = make(tmp_path / "store")
    with pytest.raises(error, match=message):
        run(path, random_seed=None)
