"""Mixtures of multivariate normals in PyMC: the posterior of `edp_bayes.models.joint_gibbs`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.distributions.multivariate import Units
from edp_bayes.models.base_measure import NARROWEST, NONE, RESPONSE, regress
from edp_bayes.models.conditional import given_of
from edp_bayes.models.joint_gibbs import ByNuts, JointDraws, Weights, hyperparameters, within_ties
from edp_bayes.models.prior_draws import normal_mixture
from edp_bayes.models.sampling import sample_nuts
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.models.base_measure import BaseMeasure
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.priors import Priors
    from edp_bayes.models.sampling import SamplerSettings

__all__ = ["build_joint", "draw_joint_nuts"]


def build_joint(
    y: Array,
    units: Units,
    base: BaseMeasure,
    weights: Weights,
    regression: JointRegression | None = None,
    *,
    priors: Priors = NONE,
    coords: Mapping[str, Any] | None = None,
) -> Any:
    """Return the PyMC model of responses (n, d), whitened by their units, or of their residuals.

    With Bartlett's triangle C of the inverse Wishart distribution a root of Sigma_k is
    F = sqrt(2 r_k) C'^-1, so that Sigma_k = F F'. Locations are non-centred. The named
    deterministics weights, locations and roots are those of whitened responses, or of a
    regression's residuals; the observed variable `response` is in the units of the responses.

    Parameters
    ----------
    y : ndarray
        Shape (n, d).
    units : Units
        Those of the responses, or of the regression.
    base, weights : BaseMeasure, Weights
        The prior.
    regression : JointRegression, optional
        What explains the responses.
    priors : Priors
        In the place of those of the base measure and of the concentration or share.
    coords : mapping, optional
        Labels of ``database`` and ``query``; by default their numbers.
    """
    import pymc as pm
    import pytensor.tensor as pt

    z = units.whiten(y)
    seen = z if regression is None else regression.residuals(*regression.mode)
    prior = hyperparameters(seen, base, weights, at_least=within_ties(y, units))
    size, (n, d) = weights.components, y.shape
    numbers = {"database": np.arange(n), "query": np.arange(d)}
    axes = {"axis": np.arange(d), "other_axis": np.arange(d)}
    own_coords = {"component": np.arange(size), **numbers, **(coords or {}), **axes}
    with pm.Model(coords=own_coords) as model:
        observed = pm.Data(RESPONSE, y, dims=("database", "query"))
        share = pm.Deterministic("weights", _share(weights, priors), dims="component")
        normal = partial(pm.Normal, mu=0.0, sigma=np.sqrt(prior.centre_variance))
        centre = priors.add("centre", normal, dims="axis")
        rate = priors.add("rate", partial(pm.Gamma, alpha=prior.rate_shape, beta=prior.rate_rate))
        alpha, beta = prior.precision_shape, prior.precision_rate
        precision = priors.add("precision", partial(pm.Gamma, alpha=alpha, beta=beta))
        own = pm.Gamma("scale", prior.scale_shape, 1.0, dims="component") / rate
        inner = _triangles("covariance", prior.degrees, size, d)
        offset = pm.Normal("offset", 0.0, 1.0, dims=("component", "axis"))
        eye, roots, sharp = pt.eye(d), [], []
        for k in range(size):
            scale = pt.sqrt(2.0 * own[k])
            sharp.append(inner[k].T / scale)  # F^-1
            roots.append(scale * pt.linalg.solve_triangular(inner[k], eye, lower=True).T)
        whiten = pt.stack(sharp)
        # components narrower than the responses can show have next to no density
        pm.Potential(NARROWEST, -0.5 * prior.least * (whiten**2).sum())
        locations = pm.Deterministic(
            "locations", centre + offset / pt.sqrt(precision), dims=("component", "axis")
        )
        root = pm.Deterministic("roots", pt.stack(roots), dims=("component", "axis", "other_axis"))
        if regression is None:
            fitted, growth = pt.zeros_like(observed), pt.ones_like(observed[:, 0])
        else:
            fitted, growth = regress(regression, "axis")
        # Of the database j that is in component k: y = c + L (x' B + s (mu_k + F_k e)), with units
        # c and L, s = exp(gamma z_j) and e standard normal
        pm.CustomDist(
            "response",
            *(share, locations, root, whiten, fitted, growth),
            dist=partial(_random, units),
            logp=partial(_log_density, units),
            signature="(k),(k,a),(k,a,a),(k,a,a),(a),()->(a)",
            class_name="MixtureOfNormals",
            observed=observed,
            dims=("database", "query"),
        )
    return model


def _share(weights: Weights, priors: Priors) -> Any:
    """Add the variables of the weights to the current model, and return the weights."""
    import pymc as pm
    import pytensor.tensor as pt

    size = weights.components
    if weights.dirichlet > 0.0:
        if size == 1:
            return pt.ones(1)
        even = np.full(size, weights.dirichlet)
        return priors.add("share", partial(pm.Dirichlet, a=even), dims="component")
    alpha, beta = weights.concentration
    concentration = priors.add("concentration", partial(pm.Gamma, alpha=alpha, beta=beta))
    if size == 1:
        return pt.ones(1)
    pm.modelcontext(None).add_coord("break", np.arange(size - 1))
    stick = pm.Beta("stick", 1.0, concentration, dims="break")
    left = pt.concatenate([[1.0], pt.cumprod(1.0 - stick)])
    return pt.concatenate([stick, [1.0]]) * left


def _log_density(
    units: Units,
    y: Any,
    share: Any,
    locations: Any,
    roots: Any,
    whiten: Any,
    fitted: Any,
    growth: Any,
) -> Any:
    """Return the log density of responses (..., d) whose component is summed out, shape (...).

    log sum_k w_k |F_k|^-1 (2 pi)^(-d/2) exp(-|F_k^-1 (u - mu_k)|^2 / 2) - log |L| - d log s, with
    residuals u = (L^-1 (y - c) - x' B) / s, units c and L, and F_k^-1 the triangles of `whiten`.
    """
    import pytensor.tensor as pt

    d = units.centre.size
    shape = y.shape
    z = pt.linalg.solve_triangular(units.factor, (y - units.centre).reshape((-1, d)).T, lower=True)
    u = (z.T.reshape(shape) - fitted) / growth[..., None]
    away = u[..., None, :] - locations
    distance = ((whiten * away[..., None, :]).sum(axis=-1) ** 2).sum(axis=-1)
    height = pt.log(pt.diagonal(whiten, axis1=-2, axis2=-1)).sum(axis=-1)
    logs = pt.log(share) + height - 0.5 * d * np.log(2.0 * np.pi) - 0.5 * distance
    moved = np.log(np.diagonal(units.factor)).sum() + d * pt.log(growth)
    return pt.logsumexp(logs, axis=-1) - moved


def _random(
    units: Units,
    share: Any,
    locations: Any,
    roots: Any,
    whiten: Any,
    fitted: Any,
    growth: Any,
    size: Any,
) -> Any:
    """Return random responses, shape (*size, d)."""
    import pymc as pm
    import pytensor.tensor as pt
    from pymc.distributions.shape_utils import rv_size_is_none

    shape = growth.shape if rv_size_is_none(size) else size
    component = pm.Categorical.dist(p=share, size=shape)
    normal = pm.Normal.dist(size=(*shape, units.centre.size))
    u = locations[component] + (roots[component] * normal[..., None, :]).sum(axis=-1)
    return units.centre + pt.dot(fitted + growth[..., None] * u, units.factor.T)


def draw_joint_nuts(
    y: Array,
    units: Units,
    *,
    base: BaseMeasure,
    weights: Weights,
    settings: SamplerSettings,
    stream: str = "",
    regression: JointRegression | None = None,
    priors: Priors = NONE,
    coords: Mapping[str, Any] | None = None,
) -> JointDraws:
    """Draw by NUTS; as `edp_bayes.models.joint_gibbs.draw_joint`."""
    model = build_joint(y, units, base, weights, regression, priors=priors, coords=coords)
    tree = sample_nuts(model, settings.of_stream(stream))
    posterior = tree["posterior"].to_dataset()

    def of(name: str) -> Array:
        return np.asarray(posterior[name].transpose("chain", "draw", ...).to_numpy())

    mixture = normal_mixture(posterior)
    empty = mixture.weights.shape[:2]
    concentration = of("concentration") if not weights.dirichlet else np.ones(empty)
    start = given_of(regression, *y.shape).start
    return JointDraws(
        mixture,
        concentration,
        of("rate"),
        of("precision"),
        of("coefficients") if start.size else np.empty((*empty, *start.shape)),
        of("growth") if "growth" in posterior else np.zeros(empty),
        of("centre"),
        by_nuts=ByNuts(model, tree),
    )


def _triangles(name: str, degrees: float, size: int, d: int) -> list[Any]:
    """Return one of Bartlett's lower triangles for each component."""
    import pymc as pm
    import pytensor.tensor as pt

    free = degrees - np.arange(d)
    squares = pm.ChiSquared(f"{name}_squares", nu=free, dims=("component", "axis"))
    rows, columns = np.tril_indices(d, -1)
    normal = None
    if rows.size:
        below = [f"{row}, {column}" for row, column in zip(rows, columns, strict=True)]
        pm.modelcontext(None).add_coord("below_diagonal", below)
        dims = ("component", "below_diagonal")
        normal = pm.Normal(f"{name}_normals", 0.0, 1.0, dims=dims)
    found = []
    for k in range(size):
        triangle = pt.diag(pt.sqrt(squares[k]))
        if normal is not None:
            triangle = pt.set_subtensor(triangle[rows, columns], normal[k])
        found.append(triangle)
    return found
