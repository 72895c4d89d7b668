"""Draws from the prior of the mixtures that Gibbs sampling draws, without their PyMC models.

The variables are those of the PyMC models by the same names; a test holds the two to each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.models.prior_draws import DRAWS, FEWEST, PriorDraws, normal_mixture
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.distributions.multivariate import Units
    from edp_bayes.models.base_measure import BaseMeasure, Standardisation
    from edp_bayes.models.joint_gibbs import Hyperparameters
    from edp_bayes.models.sampling import SamplerSettings

__all__ = ["gibbs_dataset", "prior_of_gibbs", "prior_of_joint_gibbs", "upper_roots"]

MOST = 50_000  # draws of which those with fine components are left out
DIMS = {
    "weights": ("component",),
    "scales": ("component",),
    "coefficients": ("term",),
    "roots": ("component", "axis", "other_axis"),
}
LOCATIONS = ("component", "axis")  # of several responses, or the first of them alone
ONES = ("axis",)


def gibbs_dataset(variables: dict[str, Array]) -> xr.Dataset:
    """Return variables of shape (chain, draw, ...) with the dims that they have in PyMC.

    Examples
    --------
    >>> gibbs_dataset({"rate": np.ones((4, 100)), "weights": np.ones((4, 100, 1))}).sizes
    Frozen({'chain': 4, 'draw': 100, 'component': 1})
    """
    import xarray as xr

    found: dict[str, tuple[tuple[str, ...], Array]] = {}
    sizes: dict[str, int] = {}
    for name, values in variables.items():
        own = {"locations": LOCATIONS, "centre": ONES}.get(name, DIMS.get(name, ()))
        dims = ("chain", "draw", *own[: values.ndim - 2])
        found[name] = (dims, values)
        sizes.update(zip(dims, values.shape, strict=True))
    return xr.Dataset(found, coords={name: np.arange(size) for name, size in sizes.items()})


def prior_of_gibbs(
    settings: SamplerSettings,
    base: BaseMeasure,
    units: Standardisation,
    *,
    components: int,
    concentration: tuple[float, float],
    weight_concentration: float,
    least: float,
) -> PriorDraws | None:
    """Return draws from the prior of a mixture of one response, in the units of the response.

    Parameters
    ----------
    settings : SamplerSettings
        Whose stream of random numbers is used.
    base : BaseMeasure
        Prior of a component.
    units : Standardisation
        What one and zero stand for.
    components : int
        Their number.
    concentration : tuple of float
        Shape and rate of the Gamma prior, where there is no `weight_concentration`.
    weight_concentration : float
        Each parameter of a Dirichlet prior; 0 for stick-breaking.
    least : float
        Of the smooth floor; see `edp_bayes.models.base_measure.least_of`.
    """

    def draw(rng: np.random.Generator, count: int) -> tuple[dict[str, Array], Array]:
        found, shares = _weights(rng, count, components, concentration, weight_concentration)
        each = (count, components)
        centre = base.location_scale * rng.standard_normal(count)
        rate = rng.gamma(base.rate_shape, 1.0 / base.rate_rate, count)
        precision = rng.gamma(base.precision_shape, 1.0 / base.precision_rate, count)
        sharp = rng.standard_gamma(base.shape, each)
        if base.scale_shape is None:
            variance = rate[:, None] / sharp
        else:
            variance = rng.standard_gamma(base.scale_shape, each) / sharp / rate[:, None]
        located = centre[:, None] + rng.standard_normal(each) / np.sqrt(precision)[:, None]
        found |= {
            "centre": centre,
            "rate": rate,
            "precision": precision,
            "weights": shares,
            "locations": units.centre + units.spread * located,
            "scales": units.spread * np.sqrt(variance),
        }
        with np.errstate(divide="ignore"):
            return found, -0.5 * least * (1.0 / variance).sum(axis=1)

    variables = _kept(draw, settings)
    if variables is None:
        return None
    parts = (variables[name] for name in ("weights", "locations", "scales"))
    return PriorDraws(gibbs_dataset(variables), Mixture(*parts))


def prior_of_joint_gibbs(
    settings: SamplerSettings, prior: Hyperparameters, units: Units, components: int
) -> PriorDraws | None:
    """Return draws from the prior of several responses; variables are those of whitened responses.

    The mixture is in the units of the responses.
    """
    d = units.centre.size
    rows, columns = np.tril_indices(d, -1)

    def draw(rng: np.random.Generator, count: int) -> tuple[dict[str, Array], Array]:
        alpha = (prior.alpha_shape, prior.alpha_rate)
        found, shares = _weights(rng, count, components, alpha, prior.dirichlet)
        each = (count, components)
        centre = np.sqrt(prior.centre_variance) * rng.standard_normal((count, d))
        rate = rng.gamma(prior.rate_shape, 1.0 / prior.rate_rate, count)
        precision = rng.gamma(prior.precision_shape, 1.0 / prior.precision_rate, count)
        own = rng.standard_gamma(prior.scale_shape, each) / rate[:, None]
        # Bartlett's triangle C of a Wishart matrix; F = sqrt(2 r) C'^-1, F^-1 = C' / sqrt(2 r)
        triangle = np.zeros((*each, d, d))
        free = prior.degrees - np.arange(d)
        triangle[..., np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(free, (*each, d)))
        triangle[..., rows, columns] = rng.standard_normal((*each, rows.size))
        scale = np.sqrt(2.0 * own)[..., None, None]
        whiten = np.swapaxes(triangle, -1, -2) / scale
        noise = rng.standard_normal((*each, d)) / np.sqrt(precision)[:, None, None]
        found |= {
            "centre": centre,
            "rate": rate,
            "precision": precision,
            "weights": shares,
            "locations": centre[:, None] + noise,
            "roots": np.linalg.inv(whiten),
        }
        return found, -0.5 * prior.least * (whiten**2).sum(axis=(1, 2, 3))

    variables = _kept(draw, settings)
    if variables is None:
        return None
    found = gibbs_dataset(variables)
    return PriorDraws(found, normal_mixture(found).in_units(units))


def upper_roots(covariances: Array) -> Array:
    """Return the upper triangles F of covariances F F', shape (..., d, d), diagonals above zero.

    Cholesky's algorithm from the last row on; what rounding leaves of a pivot is above zero.

    Examples
    --------
    >>> upper_roots(np.array([[5.0, 2.0], [2.0, 1.0]])).tolist()
    [[1.0, 2.0], [0.0, 1.0]]
    """
    root = np.zeros_like(covariances)
    for b in range(covariances.shape[-1] - 1, -1, -1):
        behind = root[..., b, b + 1 :]
        pivot = covariances[..., b, b] - (behind**2).sum(axis=-1)
        least = np.finfo(np.float64).eps * covariances[..., b, b]
        root[..., b, b] = np.sqrt(np.maximum(pivot, least))
        for a in range(b):
            rest = covariances[..., a, b] - (root[..., a, b + 1 :] * behind).sum(axis=-1)
            root[..., a, b] = rest / root[..., b, b]
    return root


def _weights(
    rng: np.random.Generator,
    count: int,
    components: int,
    concentration: tuple[float, float],
    dirichlet: float,
) -> tuple[dict[str, Array], Array]:
    """Return the concentration, where there is one, and weights (count, component)."""
    if dirichlet > 0.0:
        return {}, rng.dirichlet(np.full(components, dirichlet), count)
    shape, rate = concentration
    alpha = rng.gamma(shape, 1.0 / rate, count)
    sticks = rng.beta(1.0, np.maximum(alpha, np.finfo(float).tiny)[:, None], (count, components))
    sticks[:, -1] = 1.0
    left = np.cumprod(1.0 - sticks[:, :-1], axis=1)
    weights = sticks * np.concatenate([np.ones((count, 1)), left], axis=1)
    return {"concentration": alpha}, weights


def _kept(
    draw: Callable[[np.random.Generator, int], tuple[dict[str, Array], Array]],
    settings: SamplerSettings,
) -> dict[str, Array] | None:
    """Return up to 500 draws of variables as one chain, without those that the floor rejects.

    `draw` takes a generator and a number, and returns variables and the log of the probability to
    keep each. None where fewer than 200 of 50,000 are kept, or one is not finite.
    """
    rng = settings.generator("prior")
    parts: list[dict[str, Array]] = []
    held, tried = 0, 0
    while held < DRAWS and tried < MOST:
        # as many as are likely to be enough
        count = DRAWS if not tried else min(MOST - tried, _more(held, tried))
        found, weight = draw(rng, count)
        kept = np.log(rng.random(count)) < weight
        parts.append({name: values[kept] for name, values in found.items()})
        held, tried = held + int(kept.sum()), tried + count
    joined = {name: np.concatenate([p[name] for p in parts])[:DRAWS][None] for name in parts[0]}
    if held < FEWEST or not all(np.isfinite(values).all() for values in joined.values()):
        return None
    return joined


def _more(held: int, tried: int) -> int:
    """Return how many draws more are likely to be enough."""
    return int(1.2 * (DRAWS - held) * tried / max(held, 1)) + 1
