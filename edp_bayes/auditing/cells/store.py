"""Finished cells, a line of JSON each, under the fingerprint of the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import files

__all__ = ["CellStore"]


class CellStore:
    """Rows of finished cells by their keys; on disk if there is a path.

    Raises
    ------
    InvalidInputError
        If the file is that of another run.
    """

    def __init__(self, path: str | Path | None, run: str) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[str, dict[str, Any]] = {}
        if self.path is None:
            return
        if self.path.exists():
            whole = list(_lines(self.path))
            if not whole or whole[0].get("run") != run:
                raise InvalidInputError(
                    f"{self.path} holds cells of other data, another query or other columns: "
                    "remove it, or give another store"
                )
            self.rows = {json.dumps(one["key"]): one["row"] for one in whole[1:]}
        else:
            whole = [{"run": run}]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # without a line that a kill cut off, to which the next would be added
        with files.replaced(self.path) as temporary:
            temporary.write_text("".join(json.dumps(one) + "\n" for one in whole), encoding="utf-8")

    def get(self, key: Iterable[str]) -> dict[str, Any] | None:
        """Return the row of a finished cell."""
        return self.rows.get(json.dumps(list(key)))

    def add(self, key: Iterable[str], row: Mapping[str, Any]) -> None:
        """Add the row of a cell that is finished."""
        self.rows[json.dumps(list(key))] = dict(row)
        if self.path is None:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": list(key), "row": dict(row)}) + "\n")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Return what every line holds, up to one that is not whole."""
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return
