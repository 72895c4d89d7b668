"""Posterior draws of a query's true answer, for the audit of an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.distributions.choice import choose
from edp_bayes.distributions.kernels import mean_decay
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import INDEPENDENT_DRAWS

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.responses.responses import Responses

__all__ = ["answer_from_data", "answer_from_mixture", "answer_from_release"]

# How many noise scales hold the likelihood up to 1e-16 of its peak.
REACH = {LaplaceNoise: 37.0, GaussianNoise: 8.6}
PRIOR_TAIL = 1e-12
LARGEST_GRID = 2**22
NODES = 2**10  # to begin with, of each kind
BENT = 1e-4  # of a log density that counts as linear
ROUNDS = 200
HALVINGS = 60
LOWEST = 745.0  # below the largest log density, where exp underflows
NEGLIGIBLE = 40.0  # of a log mass below the largest
LEFT_OUT = 20.0  # of what counts may be missed, likewise
BLOCK = 2**22


def answer_from_release(
    released: float,
    noise: LaplaceNoise | GaussianNoise,
    *,
    prior: Any = None,
    low: float | None = None,
    high: float | None = None,
    discrete: bool = True,
    draws: int = INDEPENDENT_DRAWS,
    chains: int = 4,
    random_seed: int | None = None,
) -> xr.DataArray:
    """Return draws of a true answer of which a noisy version was released.

    The posterior is computed on a grid: exactly over the integers for counts, otherwise with a
    log density that is linear between nodes. The draws are independent.

    Parameters
    ----------
    released : float
        The noisy answer.
    noise : LaplaceNoise or GaussianNoise
        The noise that it carries.
    prior : optional
        Flat from `low` to `high` if not given; otherwise a frozen distribution of SciPy, with
        ``logpmf`` for counts and ``logpdf`` for others, which `low` and `high` cut off.
    low, high : float, optional
        Range of the true answer. By default a count is 1 or above, for an interval relative to a
        count of zero is empty, and any other answer without limits.
    discrete : bool
        Whether the answer is a count.
    draws, chains : int
        Number of draws per chain, and of chains.
    random_seed : int, optional
        Seed of the draws.

    Returns
    -------
    DataArray
        Dims (chain, draw).

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument cannot be used, the prior leaves nothing between `low` and `high`, or a
        count's posterior spreads over more than four million counts.

    See Also
    --------
    answer_from_data : the true answer from several databases
    answer_from_mixture : the true answer from draws of its distribution
    posterior : epsilon, level or width with a posterior

    Examples
    --------
    >>> from edp_bayes import LaplaceNoise
    >>> draws = answer_from_release(103.4, LaplaceNoise(2.0), random_seed=1)
    >>> draws.dims, float(draws.median())
    (('chain', 'draw'), 103.0)
    """
    value = validate.number(released, "released")
    if not isinstance(noise, LaplaceNoise | GaussianNoise):
        raise InputTypeError(
            f"noise must be LaplaceNoise or GaussianNoise, found {type(noise).__name__}"
        )
    log_prior = _log_prior(prior, discrete)
    ends = _range(low, high, prior, discrete)

    def log_likelihood(answer: Array) -> Array:
        gap = (answer - value) / noise.scale
        return -np.abs(gap) if isinstance(noise, LaplaceNoise) else -0.5 * np.square(gap)

    def log_density(answer: Array) -> Array:
        return np.asarray(
            log_likelihood(answer) + (0.0 if log_prior is None else log_prior(answer))
        )

    centre, reach = min(max(value, ends[0]), ends[1]), REACH[type(noise)] * noise.scale
    if discrete:
        grid, log_posterior = _counts(centre, reach, prior, ends, log_likelihood, log_density)
    else:
        grid, log_posterior = _nodes(centre, reach, prior, ends, log_density)
    if np.isnan(log_posterior).any() or not (log_posterior > -np.inf).any():
        raise InvalidInputError(
            f"the prior leaves nothing between {ends[0]:g} and {ends[1]:g}, "
            "or is not a number there"
        )
    shape = _shape(chains, draws)
    uniform = np.random.default_rng(validate.seed(random_seed)).random(shape)
    pick = _pick_count if discrete else _pick_between
    return _as_draws(pick(grid, log_posterior - log_posterior.max(), uniform), random_seed)


def answer_from_data(
    responses: ArrayLike | Responses,
    *,
    draws: int = INDEPENDENT_DRAWS,
    chains: int = 4,
    random_seed: int | None = None,
) -> xr.DataArray:
    """Return draws of the median response, given the responses of several databases.

    The prior is on the distribution of databases, as in the main audit: the Bayesian bootstrap, so
    every draw is the median of the responses under Dirichlet(1, ..., 1) weights. Samples of a
    randomised response share the weight of their database.

    Parameters
    ----------
    responses : array_like or Responses
        One response a database, shape (database,), or Responses; at least two databases.
    draws, chains, random_seed
        As for `answer_from_release`.

    Returns
    -------
    DataArray
        Dims (chain, draw).

    Raises
    ------
    InvalidInputError, InputTypeError
        If there are fewer than two databases or a response is not a finite number.

    See Also
    --------
    answer_from_mixture : the true answer from draws of its distribution
    answer_from_release : the true answer from a noisy one
    posterior : epsilon, level or width with a posterior

    References
    ----------
    Rubin (1981), The Bayesian bootstrap.

    Examples
    --------
    >>> draws = answer_from_data([98, 103, 99, 110, 101], random_seed=1)
    >>> float(draws.median())
    101.0
    """
    given: Any = responses
    values = validate.finite_array(getattr(given, "response", given), "responses", ndim=1)
    cluster = np.asarray(getattr(given, "cluster", np.arange(values.size)))
    order = np.argsort(values, kind="stable")
    # Weights go to databases by their least response, whatever the order of the data.
    _, least, code = np.unique(cluster[order], return_index=True, return_inverse=True)
    if least.size < 2:
        raise InvalidInputError(f"at least two databases are needed, found {least.size}")
    values, cluster = values[order], np.argsort(np.argsort(least))[code]
    shape = _shape(chains, draws)
    rng = np.random.default_rng(validate.seed(random_seed))
    out = np.empty(shape[0] * shape[1])
    step = max(1, BLOCK // values.size)
    for first in range(0, out.size, step):
        block = out[first : first + step]
        weights = rng.standard_exponential((block.size, least.size))
        heaped = np.cumsum(weights[:, cluster], axis=1)
        block[:] = values[np.argmax(heaped >= 0.5 * heaped[:, -1:], axis=1)]
    return _as_draws(out.reshape(shape), random_seed)


def answer_from_mixture(mixture: Mixture) -> xr.DataArray:
    """Return draws of the median response, from draws of its distribution.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component), such as ``audit.mixture``; noise that the query adds is
        part of it.

    Returns
    -------
    DataArray
        Dims (chain, draw), in the order of the mixture's own draws.

    See Also
    --------
    answer_from_data : the true answer from several databases
    answer_from_release : the true answer from a noisy one
    posterior : epsilon, level or width with a posterior

    Examples
    --------
    >>> from edp_bayes import Mixture
    >>> draws = answer_from_mixture(Mixture([[[0.5, 0.5]]], [[[1.0, 3.0]]], 1.0))
    >>> draws.dims, round(draws.item(), 6)
    (('chain', 'draw'), 2.0)
    """
    low, high = mixture.locations.min(axis=-1), mixture.locations.max(axis=-1)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        moved = Mixture(
            mixture.weights,
            mixture.locations - middle[..., None],
            mixture.scales,
            kernel=mixture.kernel,
            noise=mixture.noise,
        )
        below = moved.cdf(0.0) < 0.5
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return _as_draws(0.5 * (low + high), None)


def _range(low: Any, high: Any, prior: Any, discrete: bool) -> tuple[float, float]:
    first = 1.0 if discrete else -np.inf
    if low is not None:
        first = validate.number(low, "low")
    last = np.inf if high is None else validate.number(high, "high")
    if not first < last:
        raise InvalidInputError(f"low must be below high, found {first:g} and {last:g}")
    held = prior.support() if hasattr(prior, "support") else (-np.inf, np.inf)
    ends = max(first, float(held[0])), min(last, float(held[1]))
    if ends[0] > ends[1] or (ends[0] == ends[1] and not discrete):
        raise InvalidInputError(f"the prior leaves nothing between {first:g} and {last:g}")
    return ends


def _log_prior(prior: Any, discrete: bool) -> Any:
    """Return the log prior as a function, None where it is flat."""
    if prior is None:
        return None
    name = "logpmf" if discrete else "logpdf"
    if not (hasattr(prior, name) and hasattr(prior, "ppf")):
        raise InputTypeError(
            f"the prior of a {'count' if discrete else 'number'} must be a frozen distribution "
            f"with {name} and ppf, found {type(prior).__name__}"
        )
    return getattr(prior, name)


def _counts(
    centre: float,
    reach: float,
    prior: Any,
    ends: tuple[float, float],
    log_likelihood: Callable[[Array], Array],
    log_density: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """Return the counts that hold the posterior, around the release or where the prior is.

    The second array is their log density.
    """
    window = max(centre - reach, ends[0]), min(centre + reach, ends[1])
    while prior is not None and window[1] - window[0] < LARGEST_GRID:
        grid = _whole_numbers(window, centre, ends)
        # Outside lies at most the whole prior, times the likelihood at the nearer edge.
        edges = [edge for edge, end in zip(window, ends, strict=True) if edge != end]
        outside = log_likelihood(np.array(edges)).max(initial=-np.inf)
        height = log_density(grid)
        if np.logaddexp.reduce(height) > outside + LEFT_OUT:
            return grid, height
        if not edges:
            break
        reach *= 2.0
        window = max(centre - reach, ends[0]), min(centre + reach, ends[1])
    if prior is not None:
        first, last = np.clip(prior.ppf([PRIOR_TAIL, 1.0 - PRIOR_TAIL]), *ends)
        grid = _whole_numbers((first, last), first, ends)
        # Outside lies next to nothing of the prior, times the likelihood at its peak.
        outside = log_likelihood(np.array(centre)) + np.log(2.0 * PRIOR_TAIL)
        height = log_density(grid)
        if np.logaddexp.reduce(height) > outside + LEFT_OUT:
            return grid, height
        window = min(first, centre), max(last, centre)
    grid = _whole_numbers(window, centre, ends)
    return grid, log_density(grid)


def _whole_numbers(window: tuple[float, float], centre: float, ends: tuple[float, float]) -> Array:
    """Return the counts in a window and the two beside its centre, within the ends."""
    first = np.ceil(max(min(window[0], np.floor(centre)), ends[0]))
    last = np.floor(min(max(window[1], np.ceil(centre)), ends[1]))
    if last - first + 1 > LARGEST_GRID:
        raise InvalidInputError(
            f"the posterior spreads over {last - first + 1:.3g} counts, more than "
            f"{LARGEST_GRID:,}; pass discrete=False with a prior that has a density"
        )
    if last < first:
        raise InvalidInputError(f"there is no count between {ends[0]:.15g} and {ends[1]:.15g}")
    return np.arange(first, last + 1)


def _nodes(
    centre: float,
    reach: float,
    prior: Any,
    ends: tuple[float, float],
    log_density: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """Return nodes between which the log density is straight wherever there is mass, and it."""
    parts = [np.linspace(centre - reach, centre + reach, NODES), np.array([centre])]
    if prior is not None:
        tail = np.geomspace(PRIOR_TAIL, 0.5, NODES // 4)
        # The posterior lies between likelihood and prior, so what is between belongs to it too.
        parts.append(prior.ppf(np.concatenate([tail, 1.0 - tail])))
    nodes: Array = np.clip(np.concatenate(parts), *ends)
    nodes = np.unique(nodes[np.isfinite(nodes)])
    height = log_density(nodes)
    nodes, height = nodes[height != np.inf], height[height != np.inf]
    for _ in range(ROUNDS):
        middle = 0.5 * nodes[:-1] + 0.5 * nodes[1:]
        at, left, right = log_density(middle), height[:-1], height[1:]
        with np.errstate(divide="ignore"):
            mass = np.log(np.diff(nodes)) + np.maximum(np.maximum(left, right), at)
        if nodes.size > LARGEST_GRID or not np.isfinite(mass.max(initial=-np.inf)):
            break
        floor = max(height.max(), at.max()) - LOWEST
        bent = np.abs(
            np.maximum(at, floor) - 0.5 * (np.maximum(left, floor) + np.maximum(right, floor))
        )
        split = (mass > mass.max() - NEGLIGIBLE) & (bent > BENT)
        split &= (nodes[:-1] < middle) & (middle < nodes[1:])
        if not split.any():
            break
        after = np.flatnonzero(split) + 1
        nodes = np.insert(nodes, after, middle[split])
        height = np.insert(height, after, at[split])
    return nodes, height


def _pick_count(grid: Array, log_mass: Array, uniform: Array) -> Array:
    return np.asarray(grid[choose(np.exp(log_mass), uniform)])


def _pick_between(grid: Array, log_density: Array, uniform: Array) -> Array:
    """Return the inverse distribution function of a density that is exponential in each cell."""
    floor = np.maximum(log_density, -LOWEST)
    step, rise = np.diff(grid), np.diff(floor)
    # From the higher end of every cell, so that nothing overflows.
    mass = step * np.exp(np.maximum(floor[:-1], floor[1:])) * mean_decay(np.abs(rise))
    heaped = np.append(0.0, np.cumsum(mass))
    target = uniform * heaped[-1]
    cell = np.minimum(np.searchsorted(heaped, target, side="right") - 1, step.size - 1)
    share = np.divide(
        target - heaped[cell], mass[cell], out=np.zeros_like(target), where=mass[cell] > 0.0
    )
    falls, drop = rise[cell] <= 0.0, np.abs(rise[cell])
    share = np.where(falls, share, 1.0 - share)  # seen from the higher end
    safe = np.where(drop > 1e-9, drop, 1.0)
    with np.errstate(divide="ignore"):
        distance = np.where(drop > 1e-9, -np.log1p(share * np.expm1(-safe)) / safe, share)
    distance = np.clip(distance, 0.0, 1.0)
    position = np.where(falls, distance, 1.0 - distance)
    return np.asarray(grid[cell] + step[cell] * position)


def _shape(chains: Any, draws: Any) -> tuple[int, int]:
    return validate.positive_integer(chains, "chains"), validate.positive_integer(draws, "draws")


def _as_draws(values: Array, random_seed: int | None) -> xr.DataArray:
    import xarray as xr

    coords = {"chain": np.arange(values.shape[0]), "draw": np.arange(values.shape[1])}
    seed = {} if random_seed is None else {"random_seed": int(random_seed)}
    return xr.DataArray(values, coords, ("chain", "draw"), name="answer", attrs=seed)
