"""From draws to the audit of a mechanism: one tree with settings, checks and warnings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from edp_bayes.black_box.analysis import Findings
from edp_bayes.black_box.outcomes import Outcomes
from edp_bayes.black_box.posterior.models import LogRatioModel
from edp_bayes.diagnostics.convergence import convergence
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.results.mechanism import MechanismAudit
from edp_bayes.results.recording import recorded
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array

__all__ = ["assemble", "record_of", "tree_of"]


def assemble(
    found: Findings,
    *,
    outcomes: Outcomes,
    model: LogRatioModel,
    settings: SamplerSettings,
    epsilon: Array,
    record: Mapping[str, Any],
) -> MechanismAudit:
    """Return the audit of one pair."""
    shape = (settings.chains, settings.draws)
    lead = ("chain", "draw")
    posterior = xr.Dataset(
        {
            "delta": ((*lead, "epsilon"), found.delta.reshape(*shape, -1)),
            "local_epsilon": (lead, found.local_epsilon.reshape(shape)),
        },
        coords={"epsilon": epsilon, **chain_coords(settings)},
    )
    cells = found.cells
    own = {
        "kind": outcomes.kind,
        "samples": list(outcomes.sizes),
        "cells": int(cells.a.size),
        "statistic": found.statistic,
        "lower_bound": found.lower_bound,
        "fingerprint": fingerprint(outcomes),
    }
    counts = xr.Dataset(
        {name: ("cell", getattr(cells, name)) for name in ("a", "b", "position", "width")},
        attrs={"sizes": list(cells.sizes)},
    )
    record = {**record, **own, **record_of(model, settings)}
    tree = tree_of(posterior, record, found.warnings, {"observed_data": counts})
    return MechanismAudit(tree, found.source)


def tree_of(
    posterior: xr.Dataset,
    record: Mapping[str, Any],
    warnings: list[str],
    groups: Mapping[str, xr.Dataset] | None = None,
    sampled: xr.Dataset | None = None,
) -> xr.DataTree:
    """Return the tree of an audit, its draws checked for convergence, or those it was made from."""
    checked = posterior if sampled is None else sampled
    checks, failed = convergence(checked[["delta", "local_epsilon"]])
    return recorded(
        {"posterior": posterior, **(groups or {})},
        settings=record,
        checks=checks,
        warnings=[*warnings, *failed],
    )


def record_of(model: LogRatioModel, settings: SamplerSettings) -> dict[str, Any]:
    """Return what is recorded of the model and of the sampling."""
    parameters: dict[str, Any] = vars(model)
    return {
        "model": type(model).__name__,
        "model_parameters": {name: repr(value) for name, value in parameters.items()},
        **settings.record,
    }


def chain_coords(settings: SamplerSettings) -> dict[str, Any]:
    """Return the coordinates of chains and draws."""
    return {"chain": np.arange(settings.chains), "draw": np.arange(settings.draws)}


def fingerprint(*samples: Outcomes) -> str:
    """Return a hash of the samples."""
    found = hashlib.sha256()
    for outcomes in samples:
        for side in (outcomes.first, outcomes.second):
            found.update(repr(side.shape).encode())
            found.update(labels.encode(side) if side.ndim == 1 else side.tobytes())
    return found.hexdigest()
