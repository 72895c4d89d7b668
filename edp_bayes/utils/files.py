"""Files that are complete or not there at all."""

from __future__ import annotations

import contextlib
import io
import json
import os
import traceback
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.utils import checksums, leftovers
from edp_bayes.utils.formatting import short

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["load_tree", "replaced", "require_zarr", "save_tree"]

SUFFIXES = (".nc", ".zarr")


@contextlib.contextmanager
def replaced(path: Path, *, private: bool = True) -> Iterator[Path]:
    """Give a temporary path beside the target; rename it to the target once all went well.

    Parameters
    ----------
    path : Path
        The target, a file or folder.
    private : bool
        Nobody but the user may read it, as what may hold names.

    Raises
    ------
    InvalidInputError
        If the folder cannot be made or written.

    Warns
    -----
    EdpBayesWarning
        If there was something left of a run that was killed while it wrote the target.
    """
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if count := leftovers.remove_leftovers(path.parent, [path.name]):
                said = f"Removed {count} unfinished {path.name} of a run that was killed."
                warnings.warn(said, EdpBayesWarning, stacklevel=4)
            folder = stack.enter_context(leftovers.temporary_folder(path))
            temporary = folder / path.name
            yield temporary
            if private:
                _make_private(temporary)
            if path.is_dir() and temporary.is_dir():
                os.replace(path, folder / leftovers.OLD)
            os.replace(temporary, path)
        except OSError as error:
            raise InvalidInputError(
                f"{path} cannot be written: {error.strerror or error}"
            ) from None


def _make_private(path: Path) -> None:
    """Leave a file or folder to its owner; what is in the folder cannot be reached otherwise."""
    path.chmod(0o700 if path.is_dir() else 0o600)


def save_tree(tree: xr.DataTree, path: Path) -> Path:
    """Write a tree to NetCDF (.nc) or Zarr (.zarr), as the name says, with checksums."""
    if path.suffix not in SUFFIXES:
        raise InvalidInputError(
            f"cannot tell the format of {path}: its name must end in {' or '.join(SUFFIXES)}"
        )
    if path.suffix == ".zarr":
        require_zarr(path)
    _require_attributes(tree)
    tree = tree.copy()
    tree.attrs[checksums.ATTRIBUTE] = json.dumps(checksums.of_tree(tree))
    with replaced(path) as temporary:
        if path.suffix == ".zarr":
            tree.to_zarr(temporary, consolidated=False)
            return path
        try:
            # By way of memory: HDF5 ends a write to a full disk in tracebacks, not in an exception.
            content = io.BytesIO()
            tree.to_netcdf(content, engine="h5netcdf")
        except (UnicodeEncodeError, ValueError) as error:
            # HDF5 cannot hold every text: a label with a null character, or half a surrogate
            raise InvalidInputError(
                f"{path} cannot be written ({error}): give it a name that ends in .zarr, or labels "
                "without such characters"
            ) from error
        temporary.write_bytes(content.getvalue())
    return path


def _require_attributes(tree: xr.DataTree) -> None:
    """Refuse attributes that one of the two formats cannot hold, before anything is written."""
    for group in tree.subtree:
        data = group.to_dataset(inherit=False)
        of = "" if group.path == "/" else f" of {group.path.strip('/')}"
        _require_plain(group.attrs, of)
        for name, variable in data.variables.items():
            _require_plain(variable.attrs, f" of {f'{group.path}/{name}'.strip('/')}")


def _require_plain(attributes: Mapping[Any, Any], of: str) -> None:
    for name, value in attributes.items():
        if not isinstance(name, str):
            raise InvalidInputError(f"the attribute {name!r}{of} must have text as its name")
        if not _is_plain(value):
            shown = short(f"{type(value).__name__} {value!r}")
            raise InvalidInputError(
                f"the attribute {name!r}{of} must be text, a number, or a list of either, which a "
                f"file can hold, found {shown}: give text, such as str(...) or json.dumps(...), or "
                "delete it"
            )


def _is_plain(value: Any) -> bool:
    """Return whether NetCDF and Zarr hold an attribute, and give it back."""
    if isinstance(value, str):
        return type(value) is str
    items = value.ravel().tolist() if isinstance(value, np.ndarray) else value
    if isinstance(items, list | tuple) and items and all(type(item) is str for item in items):
        return isinstance(value, list | tuple) or value.dtype == object
    try:
        return np.asarray(value).dtype.kind in "iuf"
    except ValueError:  # Lists of unequal lengths.
        return False


def require_zarr(what: object) -> None:
    """Raise InvalidInputError where the package that Zarr files need is missing."""
    if find_spec("zarr") is None:
        raise InvalidInputError(f"{what} needs the zarr package: install edp_bayes[zarr]")


def _close_unopened(error: BaseException) -> None:
    """Close files that h5netcdf could not open to the end.

    It would fail at that later, and write a traceback to stderr, for want of an attribute that is
    set last.
    """
    from h5netcdf import File

    chain: BaseException | None = error
    while chain is not None:
        for frame, _ in traceback.walk_tb(chain.__traceback__):
            one = frame.f_locals.get("self")
            if isinstance(one, File) and not hasattr(one, "_writable"):
                one._writable = False
                one.close()
        chain = chain.__context__


def load_tree(path: Path) -> xr.DataTree:
    """Read a tree that `save_tree` wrote, wholly into memory.

    Raises
    ------
    InvalidInputError
        If there is no such file, it is not whole or not as it was saved.

    Warns
    -----
    EdpBayesWarning
        If it holds no checksums, as a tree that was written otherwise.
    """
    import xarray as xr

    if not path.exists():
        raise InvalidInputError(f"{path} does not exist")
    if path.suffix == ".zarr":
        require_zarr(path)
    if path.is_dir() and path.suffix != ".zarr":
        raise InvalidInputError(f"{path} is a folder: give the audit in it, such as audit.nc")
    try:
        engine = "zarr" if path.suffix == ".zarr" else "h5netcdf"
        options: dict[str, Any] = {"consolidated": False} if engine == "zarr" else {}
        with xr.open_datatree(path, engine=engine, **options) as opened:
            tree = opened.load()
    except Exception as error:  # whatever the libraries meet in a damaged file
        _close_unopened(error)
        raise InvalidInputError(
            f"{path} cannot be read as an audit, a NetCDF file (.nc) or Zarr folder (.zarr): "
            f"{str(error).partition('[')[0] or type(error).__name__}"
        ) from None
    if checksums.ATTRIBUTE in tree.attrs:
        checksums.verify(tree, path)
        del tree.attrs[checksums.ATTRIBUTE]
    else:
        said = "was saved without checksums: that it is as it was saved cannot be verified"
        warnings.warn(f"{path} {said}", EdpBayesWarning, stacklevel=4)
        with contextlib.suppress(KeyError, ValueError):  # what is no result has no warnings
            known = json.loads(tree.attrs["warnings"])
            tree.attrs["warnings"] = json.dumps([*known, [f"The file {said}."]])
    return tree
