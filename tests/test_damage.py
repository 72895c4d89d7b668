"""Saved results that are damaged are refused by name; old ones, without checksums, still load."""

import gc
import json
import pickle
import shutil
import warnings

import h5netcdf
import numpy as np
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes.utils import checksums, files
from tests.test_results import KINDS, LOADERS, results  # noqa: F401  a fixture

FORMATS = ["nc", "zarr"]


def flipped(raw, rng):
    damaged = bytearray(raw)
    damaged[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def flips(path, rng, count):
    """Flip a bit of the file, or of one in the folder, each as likely as its size, and back."""
    parts = [part for part in path.rglob("*") if part.is_file()] if path.is_dir() else [path]
    sizes = np.array([part.stat().st_size for part in parts])
    for k in rng.choice(len(parts), count, p=sizes / sizes.sum()):
        raw = parts[k].read_bytes()
        parts[k].write_bytes(flipped(raw, rng))
        yield parts[k]
        parts[k].write_bytes(raw)


def outcome(load, path, right):
    """Return whether the file is refused; it must be, or hold the same data."""
    try:
        with warnings.catch_warnings():
            # other libraries on damaged files; damage to the name of the checksums
            warnings.simplefilter("ignore")
            found = load(path)
    except edp.InvalidInputError:
        return True
    assert found.equals(right)
    return False


def everything():
    """Return a small tree with variables of every kind."""
    rng = np.random.default_rng(2)
    days = np.array(["2024-01-01", "2024-03-05"], dtype="datetime64[s]")
    data = xr.Dataset(
        {
            "delta": (("draw", "epsilon"), rng.random((40, 5))),
            "small": ("draw", rng.random(40).astype(np.float32)),
            "flag": ("draw", rng.random(40) < 0.5),
            "count": ("draw", rng.integers(0, 9, 40)),
            "text": ("day", np.array(["Ann", "Bøb, with a long name"])),
            "nothing": ("day", np.array([None, None], dtype=object)),
            "missing": ("day", [np.nan, np.inf]),
        },
        {"epsilon": np.linspace(0.0, 1.0, 5), "day": days},
        {"kernel": "laplace", "draws": 40, "share": 0.25, "one": [3]},
    )
    tree = xr.DataTree.from_dict({"posterior": data, "posterior/below": data[["small"]]})
    tree.attrs["settings"] = json.dumps({"query": "sum:kwh"})
    return tree


@pytest.mark.full
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path, suffix):
    path = files.save_tree(everything(), tmp_path / f"tree.{suffix}")
    right = files.load_tree(path)
    rng = np.random.default_rng(1)
    refused = [outcome(files.load_tree, path, right) for _ in flips(path, rng, 120)]
    assert np.mean(refused) > 0.1


@pytest.mark.full
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_of_every_result_is_refused_or_changes_nothing(
    results,  # noqa: F811
    kind,
    suffix,
    tmp_path,
):
    path = results[kind].save(tmp_path / f"result.{suffix}")
    right = LOADERS[kind](path).tree
    rng = np.random.default_rng([KINDS.index(kind), len(suffix)])
    refused = [
        outcome(lambda name: LOADERS[kind](name).tree, path, right) for _ in flips(path, rng, 12)
    ]
    assert any(refused)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_bit_of_delta_is_refused_by_name(results, kind, tmp_path):  # noqa: F811
    path = results[kind].save(tmp_path / "result.nc")
    raw, delta = path.read_bytes(), results[kind].delta.to_numpy().tobytes()
    start = raw.index(delta)
    rng = np.random.default_rng(3)
    for place in rng.integers(len(delta), size=20):
        damaged = bytearray(raw)
        damaged[start + place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(edp.InvalidInputError, match=r"damaged: (\w+)/delta is not as it was"):
            LOADERS[kind](path)


@pytest.mark.full
def test_a_chunk_that_is_gone_is_noticed(results, tmp_path):  # noqa: F811
    path = results["Audit"].save(tmp_path / "audit.zarr")
    shutil.rmtree(path / "posterior" / "delta" / "c")
    with pytest.raises(edp.InvalidInputError, match="posterior/delta is not as it was saved"):
        edp.load(path)


def test_a_variable_that_is_gone_or_added_is_named(tmp_path):
    tree = everything()
    tree.attrs[checksums.ATTRIBUTE] = json.dumps(checksums.of_tree(tree))
    checksums.verify(tree, "tree.nc")
    less, more = tree.copy(), tree.copy()
    less["posterior"] = tree["posterior"].to_dataset().drop_vars("flag")
    with pytest.raises(edp.InvalidInputError, match="posterior/flag is missing"):
        checksums.verify(less, "tree.nc")
    more["posterior/below"] = tree["posterior/below"].to_dataset().assign(other=1.0)
    with pytest.raises(edp.InvalidInputError, match="posterior/below/other is not as it was saved"):
        checksums.verify(more, "tree.nc")


@pytest.fixture
def without_checksums(monkeypatch):
    """Save as earlier versions did."""
    monkeypatch.setattr(checksums, "of_tree", lambda tree: {})
    saved = files.save_tree

    def save(tree, path):
        monkeypatch.setattr(checksums, "ATTRIBUTE", "unused")
        try:
            return saved(tree, path)
        finally:
            monkeypatch.setattr(checksums, "ATTRIBUTE", "checksums")

    monkeypatch.setattr(files, "save_tree", save)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_earlier_files_load_with_a_warning(results, kind, tmp_path, without_checksums):  # noqa: F811
    path = results[kind].save(tmp_path / "result.nc")
    with pytest.warns(edp.EdpBayesWarning, match="saved without checksums.*cannot be verified"):
        found = LOADERS[kind](path)
    assert (found.delta == results[kind].delta).all()
    assert any("saved without checksums" in sentence for sentence in found.warnings)


BAD = {
    "posterior/delta": -0.5,
    "posterior/total_risk": 1.5,
    "posterior/epsilon": np.nan,
    "individuals/mean": np.inf,
    "mixture/weights": 2.0,
    "mixture/scales": -1.0,
    "mixture/locations": np.nan,
    "observed_data/response": np.inf,
    "new_individual/exceeds": 7.0,
    "lower_bounds/delta": 1.1,
    "densities/density_with": np.nan,
}


@pytest.mark.full
@pytest.mark.parametrize("place", BAD)
def test_numbers_that_cannot_be_are_refused_by_name(
    results,  # noqa: F811
    place,
    tmp_path,
    without_checksums,
):
    audit = pickle.loads(pickle.dumps(results["Audit"]))
    group, name = place.split("/")
    data = audit.tree[group].to_dataset()
    values = data[name].to_numpy().copy()
    values.flat[-1] = BAD[place]
    audit.tree[group] = (
        data.assign_coords({name: values})
        if name in data.dims
        else data.assign({name: (data[name].dims, values)})
    )
    path = audit.save(tmp_path / "audit.nc")
    with pytest.raises(edp.InvalidInputError, match=f"{place} must be numbers from .*, found"):
        edp.load(path)


def test_files_that_cannot_be_opened_leave_no_traceback_behind(tmp_path, monkeypatch):
    values = np.random.default_rng(0).random((2, 50, 3))
    tree = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"delta": (("chain", "draw", "epsilon"), values)})}
    )
    raw = files.save_tree(tree, tmp_path / "whole.nc").read_bytes()
    stray, closed = [], []
    monkeypatch.setattr("sys.unraisablehook", lambda found: stray.append(found.exc_value))
    close = h5netcdf.File.close
    monkeypatch.setattr(h5netcdf.File, "close", lambda one: (closed.append(1), close(one)))
    rng, path = np.random.default_rng(1), tmp_path / "damaged.nc"
    refused = 0
    for _ in range(40):
        damaged = bytearray(raw)
        for at in rng.integers(0, 3000, 15):
            damaged[at] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            files.load_tree(path)
        except edp.InvalidInputError:
            refused += 1
    gc.collect()
    assert refused > 20
    assert closed
    assert not stray
