"""Contributions whose draws are those of a PyMC model: which variables, and their checks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.coupling.contributions.drawn import DrawnContributions
from edp_bayes.coupling.contributions.posterior import (
    ContributionDraws,
    ContributionSource,
    Statistics,
)
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.base import require_variables
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.responses.responses import Responses

__all__ = [
    "CONTRIBUTIONS",
    "ToSource",
    "check_names",
    "drawn_contributions",
    "drawn_without_regression",
    "refuse_shapes",
    "source_of",
]

# What makes a source of contributions of a mixture's draws and the responses they are of.
type ToSource = Callable[[Mixture, Responses], ContributionSource]

# Presence, intercept, slope and spread of contributions, in units of the response.
CONTRIBUTIONS = (
    "contribution_presence",
    "contribution_intercept",
    "contribution_slope",
    "contribution_spread",
)


def check_names(names: Any) -> None:
    """Refuse what does not name the four variables of contributions; None is no name.

    Raises
    ------
    InputTypeError
        If they are not four texts.
    """
    if names is None:
        return
    several = isinstance(names, tuple | list) and len(names) == len(CONTRIBUTIONS)
    if not (several and all(isinstance(name, str) for name in names)):
        raise InputTypeError(
            "contributions must be the names of presence, intercept, slope and spread, found "
            f"{names!r}"
        )


def drawn_contributions(
    posterior: xr.Dataset,
    weights: Array,
    responses: Responses,
    names: tuple[str, ...] = CONTRIBUTIONS,
    new: ContributionDraws | None = None,
) -> DrawnContributions:
    """Collect the draws of contributions of a posterior.

    Parameters
    ----------
    posterior : xarray.Dataset
        Dims (chain, draw, ...), the individuals in the order of the responses; or in another one,
        which their dim ``individual`` has as coordinates, and wherever this dim stands.
    weights : ndarray
        Shape (chain, draw, component).
    responses : Responses
        What they were drawn from.
    names : tuple of str
        Of presence, shape (individual,) or (individual, component), and of intercept, slope and
        spread, shape (individual,).
    new : ContributionDraws, optional
        Those of an individual not in the sample.

    Raises
    ------
    InvalidInputError
        If a name is not there, has another shape or other individuals, or its values are
        impossible.
    """
    require_variables(names, posterior.data_vars, " of contributions")
    people, components = responses.n_individuals, weights.shape[-1]
    ordered = [_ordered(posterior[name], responses) for name in names]
    arrays = [values.to_numpy() for values in ordered]
    refuse_shapes(names, [values.shape[2:] for values in arrays], people, components)
    parts = []
    for values in arrays:
        parts.append(np.asarray(values.reshape(-1, *values.shape[2:]), dtype=np.float64))
    presence, intercept, slope, spread = parts
    if ((presence < 0.0) | (presence > 1.0)).any() or (spread < 0.0).any():
        raise InvalidInputError(
            f"{names[0]} must be between 0 and 1 and {names[3]} at least 0, found values from "
            f"{presence.min():g} to {presence.max():g} and from {spread.min():g}"
        )
    presence = presence[..., None] if presence.ndim == 2 else presence
    return DrawnContributions.of(
        ContributionDraws(presence, intercept, slope, spread),
        weights.reshape(-1, components),
        Statistics.of(responses).centre,
        new,
    )


def refuse_shapes(
    names: tuple[str, ...], shapes: list[tuple[int, ...]], people: int, components: int
) -> None:
    """Refuse variables of contributions that are not of the individuals; see above."""
    one: list[tuple[int, ...]] = [(people,)]
    wanted = [[*one, (people, components)], one, one, one]
    for name, shape, allowed in zip(names, shapes, wanted, strict=True):
        if shape not in allowed:
            raise InvalidInputError(
                f"{name} must have the shape {' or '.join(map(str, allowed))} of the individuals, "
                f"found {shape}"
            )


def source_of(posterior: xr.Dataset, names: tuple[str, ...] | None) -> ToSource | None:
    """Return what takes contributions from a posterior by their names; None without names."""
    if names is None:
        return None
    return partial(_taken, posterior, names)


def _taken(
    posterior: xr.Dataset, names: tuple[str, ...], mixture: Mixture, responses: Responses
) -> DrawnContributions:
    return drawn_contributions(posterior, mixture.weights, responses, names)


def _ordered(values: xr.DataArray, responses: Responses) -> xr.DataArray:
    """Return a variable, draws first, with its individuals in the order of the responses."""
    person = [name for name in ("individual",) if name in values.dims]
    values = values.transpose("chain", "draw", *person, ...)
    if "individual" not in values.coords:
        return values
    wanted, found = labels.as_coordinate(responses.individual), values["individual"].to_numpy()
    if found.size == wanted.size and (found == wanted).all():
        return values
    if sorted(map(str, found.tolist())) != sorted(map(str, wanted.tolist())):
        raise InvalidInputError(
            f"{values.name} is of individuals who are not those of the responses: found "
            f"{labels.show_some(found)}, for {labels.show_some(wanted)}"
        )
    return values.sel(individual=wanted)


def drawn_without_regression(model: object) -> InvalidInputError:
    """Return what is raised where an adversary knows something and contributions are drawn."""
    return InvalidInputError(
        f"{model!r} draws contributions, and these have no regression on what an adversary knows: "
        "leave adversary= out, or take DirichletProcessMixture()"
    )
