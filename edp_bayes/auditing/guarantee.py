"""What holds for any distribution: a lower limit of delta by betting, an upper one by presence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from edp_bayes.auditing.betting_sets import FIRST, Densities, earlier_densities
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.base import DensityModel
from edp_bayes.models.default import model_or_default
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.responses.responses import Responses
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.shares import highest_share

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["guarantee"]

# Share of the largest stake that keeps the capital above zero.
MOST_STAKED = 0.75
STEPS = 40  # of bisection: 1e-12


def guarantee(
    responses: Responses,
    *,
    epsilon: ArrayLike,
    individuals: Iterable[Any] | None = None,
    prob: float = PROB,
    model: DensityModel | None = None,
    random_seed: int | None = 0,
) -> xr.Dataset:
    """Return limits of delta that hold for any distribution of independent databases.

    No upper limit of delta does, but that of how often an individual is present. A lower limit
    does: for a set A of answers, P(y in A) - exp(epsilon) P(y without i in A) is at most delta_i,
    and both probabilities can be observed. The posterior of the earlier databases alone chooses the
    sets, so that bets on the next one are fair, whatever the model.

    Parameters
    ----------
    responses : Responses
        One sample a database, in the order in which they came.
    epsilon : array_like
        Shape (epsilon,), or one number: increasing, not negative.
    individuals : iterable, optional
        Whose own limits are returned, too; those of the five with the largest contributions if not
        given. The limit of the largest risk is over everybody.
    prob : float
        Probability of each limit.
    model : DensityModel, optional
        Whose posterior chooses the sets, ``DirichletProcessMixture()`` if not given. A model that
        is wrong makes limits lower, never false. It is fitted to the first 8 databases and again
        each time there are a quarter more, 7 times in 41 databases and 18 times in 365.
    random_seed : int, optional
        Of these fits. It is to be chosen before the data are seen, as it is unless another one is
        given: the highest limit of several seeds is no limit.

    Returns
    -------
    Dataset
        ``lower``, dims epsilon: the largest delta_i is at least this. It may be looked at after
        every database, and the study may stop whenever one likes. ``individual_lower``, dims
        (individual, epsilon): the same of each one, if that one was chosen before. ``upper``: the
        largest risk is at most this, by how often individuals were present (Clopper and Pearson
        1934), for a number of databases fixed before; 1 where one was always there.

    Raises
    ------
    InvalidInputError
        If there are several samples for a database, contributions were not collected, there are
        fewer than 16 databases, an individual is unknown or the seed is negative.
    InputTypeError
        If responses are not those of one query, or the model is none.

    See Also
    --------
    Audit.guarantee : limits that hold for any distribution
    smallest_delta : the smallest limit that so many databases can show
    mechanism_guarantee : a band that holds for any mechanism

    Notes
    -----
    The capital of a gambler who bets on A is multiplied by 1 + s (X - d) at every database, with
    X = 1[y in A] - exp(epsilon) 1[y without i in A] and a stake s chosen before. If delta_i is at
    most d the bets are unfavourable, and the capital reaches 1 / (1 - prob) with a probability of
    at most 1 - prob, at whatever time (Ville 1939). So all d are excluded at which it did. Half of
    it is staked on either direction; over everybody it is shared in equal parts. A is where a
    kernel density of the earlier answers is above exp(epsilon) times that without i. That no
    upper limit without assumptions exists: arXiv 2503.12045; with sets of finite
    Vapnik-Chervonenkis dimension one does, arXiv 2605.10774.

    References
    ----------
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting,
    JRSS B 86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> steady = np.full(80, 3.0)
    >>> responses = edp.Responses.from_arrays(rng.normal(size=80) + steady, contribution=steady)
    >>> found = edp.guarantee(responses, epsilon=0.1)
    >>> bool(found["lower"][0] > 0.5)  # the truth is 0.86
    True
    """
    _require(responses)
    grid = validate.epsilon_grid(np.atleast_1d(np.asarray(epsilon, dtype=np.float64)))
    prob = validate.probability(prob, "prob")
    chosen = _chosen(responses, individuals)
    seed = SamplerSettings(random_seed=validate.seed(random_seed)).random_seed
    assert seed is not None
    densities = earlier_densities(
        responses,
        model_or_default(model),
        named=chosen if individuals is not None else (),
        random_seed=seed,
    )
    limits, own = [], []
    for growth in np.exp(grid).tolist():
        outcome = _outcomes(densities, growth)
        bets = outcome, _stakes(outcome, growth)
        limits.append(_lower(bets, np.arange(responses.n_individuals), prob))
        own.append([_lower(bets, np.array([i]), prob) for i in chosen])
    present = np.asarray(responses.presence, dtype=np.float64)
    level = 1.0 - (1.0 - prob) / max(present.size, 1)
    upper = float(highest_share(present, responses.n_databases, level).max(initial=0.0))
    labels = np.empty(len(chosen), dtype=object)
    labels[:] = [str(responses.individual[i]) for i in chosen]
    return xr.Dataset(
        {
            "lower": ("epsilon", np.array(limits)),
            "individual_lower": (("individual", "epsilon"), np.array(own).T.reshape(-1, grid.size)),
            "upper": ((), upper),
        },
        coords={"epsilon": grid, "individual": labels.astype(str)},
        attrs={"prob": prob, "databases": responses.n_databases},
    )


def _require(responses: Responses) -> None:
    if not isinstance(responses, Responses):
        raise InputTypeError(
            f"responses must be Responses of one query, found {type(responses).__name__}"
        )
    if responses.samples > 1:
        raise InvalidInputError(
            f"a guarantee needs one sample for each database, found {responses.samples}"
        )
    if responses.remainder is not None:
        raise InvalidInputError(
            "a guarantee needs everybody's contributions, and some were not collected: respond "
            "again without collect="
        )
    if responses.n_databases < 2 * FIRST:
        raise InvalidInputError(
            f"a guarantee needs at least {2 * FIRST} databases, found {responses.n_databases}"
        )


def _chosen(responses: Responses, individuals: Iterable[Any] | None) -> Sequence[int]:
    if individuals is not None:
        found = [responses.index_of(label) for label in individuals]
        return list(dict.fromkeys(found))
    order = np.argsort(-responses.largest_contribution, kind="stable")[:5]
    return [int(i) for i in order]


def _outcomes(densities: Densities, growth: float) -> Array:
    """Return X of every bet, shape (direction, database, individual), 0 where nothing is bet.

    X_j is known after database j, the set before.
    """
    at_with = densities.with_at_with, densities.without_at_with
    at_without = densities.with_at_without, densities.without_at_without
    pairs = (at_with, at_without)
    above = [p > growth * q for p, q in pairs]  # the answer with, and without, is in A
    below = [q > growth * p for p, q in pairs]  # the same of the set of the other direction
    return np.stack([above[0] - growth * above[1], below[1] - growth * below[0]])


def _stakes(found: Array, growth: float) -> Array:
    """Return stakes from earlier bets alone: the mean over the mean square, as Kelly's."""
    most = MOST_STAKED / (growth + 1.0)
    total = np.cumsum(found, axis=1) - found
    square = np.cumsum(found**2, axis=1) - found**2
    # half a bet lost and half a bet won are added
    mean, size = total + 0.25, square + 0.5
    return np.clip(mean / size, 0.0, most)


def _lower(bets: tuple[Array, Array], individuals: NDArray[np.int64], prob: float) -> float:
    """Return the largest d at which the capital of some individuals together reached its goal."""
    outcome, stake = (part[..., individuals] for part in bets)

    def reached(d: float) -> bool:
        with np.errstate(over="ignore"):
            capital = np.exp(
                np.cumsum(np.log1p(stake[:, FIRST:] * (outcome[:, FIRST:] - d)), axis=1)
            )
        return bool(capital.mean(axis=(0, 2)).max() >= 1.0 / (1.0 - prob))

    low, high = 0.0, 1.0
    if not reached(low):
        return 0.0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if reached(middle) else (low, middle)
    return low
