"""The smallest delta that a number of databases can show, under ideal data: `smallest_delta`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.auditing.planning import require_draws, simulation_settings
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.models.base import DensityModel, fit_as_asked
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.responses.responses import FEWEST_DATABASES, Responses
from edp_bayes.results import bands
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PLANNING_DRAWS, PROB
from edp_bayes.utils.progress import working

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["smallest_delta"]


def smallest_delta(
    databases: ArrayLike,
    *,
    epsilon: ArrayLike,
    contribution: ArrayLike = 0.1,
    seen: int | None = None,
    prob: float = PROB,
    model: DensityModel | None = None,
    repetitions: int = 16,
    draws: int = PLANNING_DRAWS,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Return how small a limit of delta can be that so many databases show, if all is well.

    The answers are independent and normal, there is one individual, and every contribution of
    theirs is the same. Of data of your own, which are not as kind, expect larger limits; a target
    below these is out of reach.

    Parameters
    ----------
    databases : array_like of int
        Shape (databases,), or one number: at least 8 each.
    epsilon : array_like
        Shape (epsilon,), or one number: increasing, not negative.
    contribution : array_like
        Shape (contribution,), or one number: in standard deviations of the answer without the
        individual.
    seen : int, optional
        To how many databases they contributed; to all of them if not given.
    prob : float
        Probability of the limit, at each epsilon.
    model : DensityModel, optional
        ``DirichletProcessMixture()`` if not given. What is stated in it as the narrowest component
        is in these standard deviations.
    repetitions : int
        Data sets simulated for each number of databases; the same for every contribution.
    draws : int
        Draws in each of the 2 chains of a fit; at least 20 for 0.95.
    random_seed : int, optional
        The same seed gives the same numbers.
    progressbar : bool
        Show that something goes on once it has taken two seconds.

    Returns
    -------
    Dataset
        Dims databases, contribution and epsilon. ``limit`` is the median over the repetitions of
        the upper limit, ``least`` and ``most`` its extremes; ``true`` is delta itself where they
        contribute to all databases.

    Raises
    ------
    InvalidInputError
        If a value cannot be used.

    See Also
    --------
    edp_bayes.auditing.planning.plan : how many databases are needed
    guarantee : limits that hold for any distribution
    Audit.verdict : whether a target is met

    Examples
    --------
    >>> from edp_bayes.auditing.ideal import smallest_delta
    >>> found = smallest_delta(
    ...     [20, 80], epsilon=0.5, contribution=0.4, repetitions=4, draws=50, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> limit = found["limit"].to_numpy().ravel()
    >>> bool(found["true"].item() < limit[1] < limit[0])
    True
    """
    import xarray as xr

    from edp_bayes.divergence.shifts import gaussian_shift
    from edp_bayes.models.default import model_or_default

    sizes = np.array([validate.positive_integer(n, "databases") for n in np.atleast_1d(databases)])
    moved = np.atleast_1d(validate.finite_array(contribution, "contribution"))
    grid, prob = validate.epsilon_grid(epsilon), validate.probability(prob, "prob")
    often = None if seen is None else validate.positive_integer(seen, "seen")
    chosen = model_or_default(model)
    repetitions = validate.positive_integer(repetitions, "repetitions")
    least = max(FEWEST_DATABASES, often or 0)
    if sizes.min() < least:
        raise InvalidInputError(f"databases must be at least {least}, found {sizes.min()}")
    settings = simulation_settings(draws, random_seed)
    require_draws(draws, prob)
    limits = np.empty((sizes.size, moved.size, repetitions, grid.size))
    with working("Simulating", show=progressbar), warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        for place in np.ndindex(limits.shape[:-1]):
            size, amount, repetition = sizes[place[0]], moved[place[1]], place[2]
            responses = _ideal(int(size), float(amount), often, settings, repetition)
            coupling = fit_as_asked(chosen, responses, settings).coupling
            curves = coupling.curves(np.arange(1), grid)[:, 0]
            limits[place] = bands.upper_limit(curves, prob)
    dims = ("databases", "contribution", "epsilon")
    found: dict[str, tuple[tuple[str, ...], Array]] = {
        "limit": (dims, np.median(limits, axis=2)),
        "least": (dims, limits.min(axis=2)),
        "most": (dims, limits.max(axis=2)),
    }
    if often is None:
        found["true"] = (dims[1:], gaussian_shift(moved[:, None], grid))
    coords = {"databases": sizes, "contribution": moved, "epsilon": grid}
    return xr.Dataset(found, coords=coords, attrs={"prob": prob, "model": repr(chosen)})


def _ideal(
    size: int, amount: float, seen: int | None, settings: SamplerSettings, repetition: int
) -> Responses:
    """Return normal answers to which one individual contributed the same amount."""
    rng = settings.generator("ideal", size, repetition)
    rest = rng.standard_normal(size)
    given = np.zeros(size)
    given[rng.choice(size, size if seen is None else seen, replace=False)] = amount
    return Responses.from_arrays(rest + given, contribution=given[:, None])
