"""Checksums of everything a saved tree holds: damage is noticed, whatever the file's format.

They tell of damage, not of forgery: a program that can write the file can write its checksums.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ATTRIBUTE", "checksum", "of_tree", "verify"]

ATTRIBUTE = "checksums"
DIGITS = 32  # of SHA-256, in base 16


def checksum(value: Any) -> str:
    """Return the checksum of what JSON can hold.

    Examples
    --------
    >>> checksum({"b": 1, "a": 0.5}) == checksum({"a": 0.5, "b": 1})
    True
    """
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def of_tree(tree: xr.DataTree) -> dict[str, str]:
    """Return the checksum of every variable and of the attributes of every group, by path."""
    found = {}
    for group in tree.subtree:
        data = group.to_dataset(inherit=False)
        place = group.path.strip("/")
        attributes = {k: v for k, v in group.attrs.items() if place or k != ATTRIBUTE}
        found[f"{place or 'root'} (attributes)"] = checksum(_plain(attributes))
        for name, variable in data.variables.items():
            digest = hashlib.sha256(
                checksum([list(variable.dims), _plain(variable.attrs)]).encode()
            )
            for part in _parts(variable.to_numpy()):
                digest.update(part)
            found[f"{place}/{name}".strip("/")] = digest.hexdigest()[:DIGITS]
    return found


def verify(tree: xr.DataTree, path: object) -> None:
    """Refuse a tree whose checksums are not those that stand in its attributes.

    Raises
    ------
    InvalidInputError
        Naming the first variable that is damaged, missing or should not be there.
    """
    try:
        expected = dict(json.loads(tree.attrs[ATTRIBUTE]))
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{path} is damaged: its checksums cannot be read. Take a copy, or audit again"
        ) from None
    found = of_tree(tree)
    for name in [*expected, *found]:
        if expected.get(name) != found.get(name):
            what = "is missing" if name not in found else "is not as it was saved"
            raise InvalidInputError(
                f"{path} is damaged: {name} {what}. Take a copy, or audit again"
            )


def _parts(values: NDArray[Any]) -> list[Any]:
    """Return bytes that are the same before and after a file, whatever holds numbers and text."""
    values = np.asarray(values)
    if values.dtype == object and all(item is None or item != item for item in values.flat):
        values = np.full(values.shape, np.nan)
    shape = json.dumps(values.shape).encode()
    if values.dtype.kind in "mM":
        # files change the unit
        coarse = values.astype(f"{values.dtype.kind}8[us]")
        rest = (values - coarse.astype(values.dtype)).astype("m8[ns]")
        return [b"time", shape, coarse.astype("<i8").tobytes(), rest.astype("<i8").tobytes()]
    if values.dtype.kind in "biufc":
        array = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False))
        return [array.dtype.str.encode(), shape, array]
    # files have no missing text
    texts = ["" if item is None or item != item else str(item) for item in values.ravel()]
    return [b"text", shape, checksum(texts).encode()]


def _plain(attributes: Any) -> dict[str, list[Any]]:
    """Return attributes as lists of text and numbers: files tell no number from a list of one."""
    return {
        str(name): [
            item if isinstance(item, str) else repr(float(item)) if _number(item) else str(item)
            for item in np.ravel(np.asarray(value, dtype=object)).tolist()
        ]
        for name, value in attributes.items()
    }


def _number(item: object) -> bool:
    return isinstance(item, bool | int | float | np.number | np.bool_)
