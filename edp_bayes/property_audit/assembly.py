"""From draws to the audit of properties: one tree with settings, checks and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.diagnostics.convergence import convergence
from edp_bayes.property_audit.counts import PropertyCounts
from edp_bayes.property_audit.curves import CurvesOfDraws, Query
from edp_bayes.property_audit.models import ProbabilityDraws
from edp_bayes.results.property import PropertyAudit
from edp_bayes.results.recording import recorded
from edp_bayes.utils.arrays import Array

__all__ = ["assemble"]


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
    query: Query,
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
    query : Query
        What evaluates the curves at other epsilons.
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
    found, failed = convergence(
        posterior[["prob", "delta"]],
        divergences=draws.divergences,
        independent=draws.sample_stats is None,
    )
    tree = recorded(
        groups, settings=record, checks=[*checks, *found], warnings=[*warnings, *failed]
    )
    strength = None if draws.concentration is None else _flat(draws.concentration[:, kept])
    return PropertyAudit(tree, CurvesOfDraws(query, _flat(draws.prob[:, kept]), strength))


def _flat(values: Array) -> Array:
    """Join chains and draws."""
    return np.ascontiguousarray(values.reshape(-1, values.shape[-1]))
