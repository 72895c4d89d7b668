"""What every result says of its making: versions, settings, checks and warnings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import xarray as xr

from edp_bayes.results.effects import require_known
from edp_bayes.utils.sentences import Sentence, stored

__all__ = ["recorded"]

LARGE_EPSILON, MOST_WORDED = 10.0, 30.0
LIBRARIES = (
    *("numpy", "scipy", "numba", "pymc", "arviz-stats", "xarray"),
    *("nutpie", "numpyro", "blackjax"),  # where they are installed
)


def recorded(
    groups: Mapping[str, xr.Dataset],
    *,
    settings: Mapping[str, Any],
    checks: Iterable[Mapping[str, Any]],
    warnings: Iterable[str],
    **more: Any,
) -> xr.DataTree:
    """Return groups, posterior among them, as a tree that says how they were made.

    Settings, to which the versions are added, checks, warnings and whatever else is given stand
    in its attributes as JSON. Every check must have an effect, see `edp_bayes.results.effects`.
    """
    checks = list(checks)
    for row in checks:
        require_known(row["check"])
    own = _version("edp_bayes")
    groups["posterior"].attrs = {
        "created_at": datetime.now(UTC).isoformat(),
        "inference_library": "edp_bayes",
        "inference_library_version": own,
    }
    tree = xr.DataTree.from_dict(dict(groups))
    record = {
        "settings": {
            **settings,
            "versions": {name: v for name in LIBRARIES if (v := _version(name))},
        },
        "checks": [{**row, "sentence": stored(row["sentence"])} for row in checks],
        "warnings": [stored(w) for w in dict.fromkeys([*warnings, *_large(groups["posterior"])])],
        **more,
    }
    values = {name: json.dumps(value) for name, value in record.items()}
    tree.attrs = {"edp_bayes_version": own, **values}
    return tree


@cache
def _version(library: str) -> str | None:
    """Return the version of a library, or None where it is not installed.

    Looked up once a process: ten libraries take 6 ms, and each result records them.
    """
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _large(posterior: xr.Dataset) -> list[Sentence]:
    """Return what to say of an epsilon that can hardly be meant."""
    top = float(posterior["epsilon"].max())
    if top < LARGE_EPSILON:
        return []
    times = f"{math.exp(top):,.0f}" if top < MOST_WORDED else f"exp({top:g})"
    return [
        Sentence(
            f"Epsilon reaches {top:g}: exp(epsilon) is {times}, so that an answer may be as many "
            f"times likelier with an individual as without. Was a percentage meant? {top:g}% is "
            f"epsilon = {top / 100:g}."
        )
    ]
