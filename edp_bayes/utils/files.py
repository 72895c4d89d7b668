"""Files that are complete or not there at all."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["load_tree", "replaced", "require_zarr", "save_tree"]

SUFFIXES = (".nc", ".zarr")


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a temporary path beside the target; rename it to the target once all went well.

    Raises
    ------
    InvalidInputError
        If the folder cannot be made or written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error.strerror or error}") from None
    try:
        temporary = folder / path.name
        try:
            yield temporary
            if path.is_dir() and temporary.is_dir():
                os.replace(path, folder / "old")
            os.replace(temporary, path)
        except OSError as error:
            raise InvalidInputError(
                f"{path} cannot be written: {error.strerror or error}"
            ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def save_tree(tree: xr.DataTree, path: Path) -> Path:
    """Write a tree to NetCDF (.nc) or Zarr (.zarr), as the name says."""
    if path.suffix not in SUFFIXES:
        raise InvalidInputError(
            f"cannot tell the format of {path}: its name must end in {' or '.join(SUFFIXES)}"
        )
    if path.suffix == ".zarr":
        require_zarr(path)
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


def require_zarr(what: object) -> None:
    """Raise InvalidInputError where the package that Zarr files need is missing."""
    if find_spec("zarr") is None:
        raise InvalidInputError(f"{what} needs the zarr package: install edp_bayes[zarr]")


def load_tree(path: Path) -> xr.DataTree:
    """Read a tree that `save_tree` wrote, wholly into memory.

    Raises
    ------
    InvalidInputError
        If there is no such file, or it is not whole.
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
        with xr.open_datatree(path, engine=engine, **options) as tree:
            return tree.load()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InvalidInputError(
            f"{path} cannot be read as an audit, a NetCDF file (.nc) or Zarr folder (.zarr): "
            f"{str(error).partition('[')[0] or type(error).__name__}"
        ) from None
