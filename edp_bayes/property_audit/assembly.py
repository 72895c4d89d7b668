"""From draws to the audit of properties: one tree with settings, checks and warnings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes import diagnostics
from edp_bayes.property_audit.counts import PropertyCounts
from edp_bayes.property_audit.models import ProbabilityDraws
from edp_bayes.results.property import PropertyAudit

if TYPE_CHECKING:
    pass

__all__ = ["assemble"]

Array = NDArray[np.float64]

LIBRARIES = ("numpy", "scipy", "numba", "pymc", "nutpie", "arviz-stats", "xarray")
LEAST_DRAWS = 8


def assemble(
    *,
    counts: PropertyCounts,
    draws: ProbabilityDraws,
    likelihoods: Mapping[str, Array],
    kept: NDArray[np.int64],
    curves: Array,
    epsilon: Array,
    checks: list[dict[str, Any]],
    warnings: list[str],
    record: Mapping[str, Any],
) -> PropertyAudit:
    """Return the audit; nothing is sampled here.

    Parameters
    ----------
    counts, draws
        What was fitted, and how it came out.
    likelihoods : mapping
        Log likelihood of every model that was fitted, shape (chain, draw, database, property).
    kept : ndarray
        Draws of each chain whose curves were computed.
    curves : ndarray
        Shape (chain, draw, property, epsilon).
    epsilon : ndarray
        Shape (epsilon,).
    checks, warnings
        What was checked before, and what failed.
    record : mapping
        Settings.
    """
    chains, all_draws = draws.prob.shape[:2]
    lead = ("chain", "draw")
    named = {"property": list(counts.properties)}
    posterior = xr.Dataset(
        {
            "delta": ((*lead, "epsilon"), curves.max(axis=2)),
            "prob": ((*lead, "property"), draws.prob[:, kept]),
        },
        coords={"chain": np.arange(chains), "draw": kept, "epsilon": epsilon, **named},
        attrs={
            "created_at": datetime.now(UTC).isoformat(),
            "inference_library": "edp_bayes",
            "inference_library_version": version("edp_bayes"),
        },
    )
    if draws.concentration is not None:
        posterior["concentration"] = ((*lead, "property"), draws.concentration[:, kept])
    if counts.n_properties > 1:
        posterior["property_delta"] = ((*lead, "property", "epsilon"), curves)
    database = {"database": np.arange(counts.n_databases)}
    cells = ("database", "property")
    groups: dict[str, xr.Dataset] = {
        "posterior": posterior,
        "observed_data": xr.Dataset(
            {"count": (cells, counts.count), "n": ("database", counts.n)},
            coords={**database, **named},
        ),
        "log_likelihood": xr.Dataset(
            {name: ((*lead, *cells), values) for name, values in likelihoods.items()},
            coords={"chain": np.arange(chains), "draw": np.arange(all_draws), **database, **named},
        ),
    }
    if draws.sample_stats is not None:
        groups["sample_stats"] = draws.sample_stats
    found, failed = _convergence(posterior, draws.divergences)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {
        "edp_bayes_version": version("edp_bayes"),
        "settings": json.dumps({**record, "versions": {name: version(name) for name in LIBRARIES}}),
        "checks": json.dumps([*checks, *found]),
        "warnings": json.dumps([*warnings, *failed]),
    }
    return PropertyAudit(tree)


def _convergence(posterior: xr.Dataset, divergences: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each quantity whose draws are checked, and the failures in words."""
    if posterior.sizes["draw"] < LEAST_DRAWS:
        return [], []
    checks = [
        diagnostics.check_draws(posterior["prob"], divergences=divergences),
        diagnostics.check_draws(posterior["delta"]),
    ]
    return [check.row() for check in checks], [w for check in checks for w in check.warnings]
