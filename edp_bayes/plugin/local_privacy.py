"""The published estimator of local differential privacy: Askin, Kutta and Dette's MPL."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.plugin import rows
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB

__all__ = ["MplEstimate", "mpl"]

Sampler = Callable[[Any, int, np.random.Generator], Any]

KINDS = ("auto", "continuous", "discrete")
# Epanechnikov kernel: its integral of squares, and the normal reference rule's constant.
ROUGHNESS, REFERENCE = 0.6, 2.345
# The rule's order, and one that undersmooths even where a density is no more than Lipschitz.
ORDER, UNDERSMOOTHING = 0.2, 0.4
QUARTILES = 1.349
TIES = 0.01


@dataclass(frozen=True)
class _Place:
    """Where the estimate of a pair is largest, and whether any distribution exceeds the floor."""

    estimate: float
    location: Any
    reached: bool

    @property
    def promise(self) -> float:
        """What pairs are compared by."""
        return self.estimate


@dataclass(frozen=True)
class MplEstimate:
    """What `mpl` found: a point estimate, and a lower bound at the outcome that gave it.

    Attributes
    ----------
    epsilon : float
        Largest estimated eps_{x,x'}(tau) of all pairs, from the first stage. It is a maximum of
        noisy log ratios, so it errs upwards; the bound does not. Of several columns smoothing
        lowers it, too: it may then lie below the truth.
    lower : float
        One-sided lower confidence bound on the largest eps_{x,x'}(tau), from the second stage.
    prob : float
    pair : int
        Position of the pair that gave the estimate.
    location : object
        The outcome t* at which its log ratio was largest; of several continuous columns the one at
        which the second stage promised the largest bound.
    log_ratio : float
        Absolute log ratio at t*, from the second stage alone.
    standard_error : float
        sigma / c_N of that log ratio.
    pair_epsilon : tuple of float
        First-stage estimate of every pair.
    kind : {"continuous", "discrete"}
    tau : float
        The floor. Of several continuous columns it is a share of the largest density, and at
        least what the second stage can see.
    first_size, second_size : int
        Outputs drawn per database in each stage.
    bandwidth : float or None
        Of the second stage; None for discrete outcomes. Of several columns it is in units of the
        spread of a column, once they are uncorrelated.

    See Also
    --------
    mpl : the published estimate of the local epsilon
    edp_bayes.MechanismAudit.local_epsilon_interval : the interval of the local epsilon

    References
    ----------
    Askin, Kutta and Dette (2022), Statistical quantification of differential privacy: a local
    approach.

    Examples
    --------
    >>> from edp_bayes.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(1.0)
    >>> found = mpl(mechanism, [mechanism.pair], second_size=10_000, random_seed=1)
    >>> found.lower < found.log_ratio
    True
    """

    epsilon: float
    lower: float
    prob: float
    pair: int
    location: Hashable
    log_ratio: float
    standard_error: float
    pair_epsilon: tuple[float, ...]
    kind: str
    tau: float
    first_size: int
    second_size: int
    bandwidth: float | None


def mpl(
    mechanism: Sampler,
    pairs: Sequence[tuple[Any, Any]],
    *,
    first_size: int = 10_000,
    second_size: int = 100_000,
    tau: float = 0.01,
    prob: float = PROB,
    kind: str = "auto",
    points: int = 1000,
    smoothness: float = 2.0,
    random_seed: int | None = None,
) -> MplEstimate:
    """Return the published estimate of the largest local epsilon over pairs of databases.

    The first stage draws `first_size` outputs a side of every pair, estimates both distributions,
    floors them at tau and takes the largest abs(log f - log f') over a grid; the pair and the
    outcome t* that attain it go to the second stage. There `second_size` fresh outputs a side give
    the log ratio at t* alone, l*, and the lower bound l* + Phi^{-1}(1 - prob) sigma / c_N.
    Continuous distributions are estimated by Epanechnikov kernels with one bandwidth a pair, h, of
    order n^(-1/5) in the first stage and N^(-2/5) in the second, which undersmooths; c_N = sqrt(N
    h) and sigma^2 = int K^2 (1/f + 1/f'). Discrete ones are relative frequencies; c_N = sqrt(N) and
    sigma^2 = 1/p + 1/p' - 2. Outputs of 2 to 5 continuous columns have product kernels, of order
    n^(-1/(2 smoothness + d)) in d columns in both stages.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(database, size, rng)`` returns outputs of shape (size,) or (size, column);
        continuous outputs have at most 5 columns.
    pairs : sequence of pairs
        Neighbouring databases.
    first_size, second_size : int
        Outputs per database in each stage; at least 100.
    tau : float
        Floor of densities (in units of one over the output) or probabilities, as published: a
        distribution below tau counts as tau. Of several continuous columns tau is relative to the
        largest density of the pair, as the audit's is, and is raised to what 30 outputs of the
        second stage show.
    prob : float
        Of the one-sided bound, between 0 and 1.
    kind : {"auto", "continuous", "discrete"}
        Auto takes floats as continuous and all else as discrete.
    points : int
        Number of grid points between the smallest and the largest output of a pair; of several
        columns number of outputs of the first stage at which the log ratio is estimated.
    smoothness : float
        Of several continuous columns: how smooth their densities are taken to be, the beta of a
        Hölder condition, above 0 and at most 2. It decides how tight the bound is, not whether it
        holds.
    random_seed : int, optional
        Seed; every pair, side and stage has a stream of its own.

    Returns
    -------
    MplEstimate

    Raises
    ------
    InvalidInputError, InputTypeError
        If the mechanism raises or returns something of the wrong shape, kind or not finite (the
        message says for which pair), continuous outputs have more than 5 columns or columns
        without a joint density, or an argument is out of range.

    Warns
    -----
    EdpBayesWarning
        If continuous outputs repeat themselves: atoms have no density. If nothing reaches the
        floor, or it was raised: what is found may then be far below the truth.

    See Also
    --------
    MplEstimate : the estimate and its lower bound
    edp_bayes.audit_mechanisms : a mechanism on many pairs
    edp_bayes.MechanismAudit.local_epsilon_interval : the interval of the local epsilon

    Notes
    -----
    What follows is how this project carries the method to several columns; the rule for t*, the
    map and the relative floor are its own.

    Of several columns the plain largest ratio is mostly that of a place with few outputs, at which
    the second stage sees nothing. t* is therefore where the estimate less three standard errors,
    of both stages together, is largest; no output counts where its own ratio is estimated. The
    columns are first made uncorrelated on each side, which changes no log ratio. The standard
    error of the second stage is that of the kernel values themselves, which the formula above
    approaches as h shrinks.

    The bound needs no undersmoothing there. A density smoothed by a kernel is that of the output
    plus independent noise. Both sides have the same kernel, so the smoothed log ratio is at most
    the largest true one: post-processing. Flooring both at one number lowers it, too. With
    c_N = sqrt(N h^d) the bound comes nearer the smoothed log ratio at rate
    N^(-smoothness / (2 smoothness + d)): N^(-1/3) in 2 columns, N^(-2/9) in 5.

    References
    ----------
    Askin, Kutta and Dette (2022), Statistical quantification of differential privacy: a local
    approach.

    Examples
    --------
    >>> from edp_bayes.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(1.0)
    >>> found = mpl(mechanism, [mechanism.pair], second_size=10_000, random_seed=1)
    >>> found.kind, found.lower < 1.0
    ('discrete', True)

    Three counts with Laplace noise, at once:

    >>> from edp_bayes.mechanisms import NoisyHistogram
    >>> counts = NoisyHistogram(1.0)
    >>> found = mpl(counts, [counts.pair], tau=0.1, second_size=20_000, random_seed=1)
    >>> len(found.location), 0.5 < found.lower < counts.epsilon()
    (3, True)
    """
    if not callable(mechanism):
        raise InputTypeError(f"mechanism must be callable, found {type(mechanism).__name__}")
    sides = _checked_pairs(pairs)
    first, second = (_size(first_size, "first_size"), _size(second_size, "second_size"))
    floor, level = validate.probability(tau, "tau"), validate.probability(prob, "prob")
    validate.choice(kind, KINDS, "kind")
    count = validate.positive_integer(points, "points")
    smooth = _smoothness(smoothness)
    streams = iter(np.random.SeedSequence(validate.seed(random_seed)).spawn(2 * len(sides) + 2))

    def draw(index: int, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        a, b = (
            _outputs(mechanism, database, size, next(streams), index) for database in sides[index]
        )
        return a, b

    kinds: set[str] = set()
    best: list[_Place | rows.Place] = []
    for index in range(len(sides)):
        outputs = draw(index, first)
        kinds.add(_kind(outputs, kind, index))
        if len(kinds) > 1:
            raise InvalidInputError(
                f"all pairs must have outputs of one kind; those of pair {index} are not "
                "of the kind of the pairs before it"
            )
        if kinds == {"discrete"}:
            best.append(_search_frequency(*outputs, floor))
        elif outputs[0].ndim == 1:
            best.append(_search_density(*outputs, floor, count))
        else:
            best.append(_search_rows(outputs, index, floor, count, second, smooth))
    chosen = int(np.argmax([tried.promise for tried in best]))
    place, outputs, found = best[chosen], draw(chosen, second), kinds.pop()
    _warn_of_floor(best, place)
    width: float | None = None
    if isinstance(place, rows.Place):
        (ratio, error), width = rows.measure(*outputs, place), place.bandwidth
    elif found == "continuous":
        ratio, error, width = _density_at(*outputs, place.location, floor)
    else:
        ratio, error = _frequency_at(*outputs, place.location, floor)
    return MplEstimate(
        epsilon=max(tried.estimate for tried in best),
        lower=max(0.0, ratio + NormalDist().inv_cdf(1.0 - level) * error),
        prob=level,
        pair=chosen,
        location=place.location,
        log_ratio=ratio,
        standard_error=error,
        pair_epsilon=tuple(tried.estimate for tried in best),
        kind=found,
        tau=place.tau if isinstance(place, rows.Place) else floor,
        first_size=first,
        second_size=second,
        bandwidth=width,
    )


def _warn_of_floor(best: Sequence[_Place | rows.Place], place: _Place | rows.Place) -> None:
    """Say where the floor hides what there may be."""
    said = ""
    if isinstance(place, rows.Place):
        if place.raised:
            said = (
                f"the floor is {place.tau:.3g} of the largest density rather than the tau given: "
                "lower densities are not seen by the second stage. What is found may be far below "
                "the truth; a larger second_size lowers the floor"
            )
    elif not any(tried.reached for tried in best if isinstance(tried, _Place)):
        said = (
            "no distribution of any pair exceeds tau, so everything counts as tau: an estimate of "
            "0 says nothing. Densities are in units of one over the output; give a smaller tau"
        )
    if said:
        warnings.warn(said, EdpBayesWarning, stacklevel=3)


def _search_density(a: Array, b: Array, tau: float, points: int) -> _Place:
    """Return the largest floored log ratio on a grid, and where it is."""
    grid = np.linspace(min(a.min(), b.min()), max(a.max(), b.max()), points)
    width = _bandwidth(a, b, ORDER)
    f, g = _kernel(a, grid, width), _kernel(b, grid, width)
    ratio = np.abs(_log_ratio(f, g, tau))
    at = int(np.argmax(ratio))
    return _Place(float(ratio[at]), float(grid[at]), bool(max(f.max(), g.max()) > tau))


def _search_frequency(a: NDArray[Any], b: NDArray[Any], tau: float) -> _Place:
    """Return the largest floored log ratio of relative frequencies, and its outcome."""
    p, q = _frequencies(a), _frequencies(b)
    outcomes = list(dict.fromkeys([*p, *q]))
    first, second = (
        np.array([counts[outcome] for outcome in outcomes]) / len(sample)
        for counts, sample in ((p, a), (q, b))
    )
    ratio = np.abs(_log_ratio(first, second, tau))
    at = int(np.argmax(ratio))
    return _Place(float(ratio[at]), outcomes[at], bool(max(first.max(), second.max()) > tau))


def _search_rows(
    outputs: tuple[Array, Array],
    index: int,
    tau: float,
    points: int,
    second: int,
    smoothness: float,
) -> rows.Place:
    """Return the place of a pair of several columns; a failure names the pair."""
    try:
        return rows.search(*outputs, tau=tau, points=points, second=second, smoothness=smoothness)
    except InvalidInputError as error:
        raise InvalidInputError(f"outputs of pair {index} cannot be used: {error}") from None


def _density_at(a: Array, b: Array, location: Any, tau: float) -> tuple[float, float, float]:
    """Return the log ratio at a point, its standard error and the bandwidth."""
    width, at = _bandwidth(a, b, UNDERSMOOTHING), np.array([location])
    f, g = (np.maximum(_kernel(sample, at, width), tau) for sample in (a, b))
    error = math.sqrt(ROUGHNESS * float(1.0 / f[0] + 1.0 / g[0]) / (len(a) * width))
    return abs(float(_log_ratio(f, g, tau)[0])), error, width


def _frequency_at(
    a: NDArray[Any], b: NDArray[Any], location: Any, tau: float
) -> tuple[float, float]:
    """Return the log ratio of an outcome, and its standard error."""
    p, q = (max(_frequencies(s)[location] / len(s), tau) for s in (a, b))
    error = math.sqrt(max(1.0 / p + 1.0 / q - 2.0, 0.0) / len(a))
    return abs(math.log(p / q)), error


def _log_ratio(f: Array, g: Array, tau: float) -> Array:
    return np.asarray(np.log(np.maximum(f, tau)) - np.log(np.maximum(g, tau)))


def _kernel(sample: Array, points: Array, width: float) -> Array:
    """Return the Epanechnikov estimate at points; each sums over its neighbours only."""
    ordered = np.sort(sample)
    low = np.searchsorted(ordered, points - width)
    high = np.searchsorted(ordered, points + width)
    sums = [
        np.sum(1.0 - np.square((ordered[i:j] - t) / width))
        for i, j, t in zip(low, high, points, strict=True)
    ]
    return 0.75 * np.array(sums) / (sample.size * width)


def _bandwidth(a: Array, b: Array, order: float) -> float:
    """Return the smaller of both sides' normal reference bandwidths."""
    spreads = []
    for sample in (a, b):
        low, high = np.quantile(sample, [0.25, 0.75])
        spread = min(float(np.std(sample)), float(high - low) / QUARTILES)
        spreads.append(spread if spread > 0.0 else float(np.std(sample)))
    if min(spreads) == 0.0:
        raise InvalidInputError(
            "the outputs for one database are all equal: they have no density; pass "
            "kind='discrete' if they are outcomes"
        )
    return float(REFERENCE * min(spreads) * len(a) ** -order)


def _frequencies(sample: NDArray[Any]) -> Counter[Hashable]:
    rows = sample.tolist()
    return Counter(map(tuple, rows) if sample.ndim == 2 else rows)


def _outputs(
    mechanism: Sampler, database: Any, size: int, seed: np.random.SeedSequence, index: int
) -> NDArray[Any]:
    """Return the outputs of one call, checked."""
    try:
        sample = np.asarray(mechanism(database, size, np.random.default_rng(seed)))
    except Exception as error:
        raise InvalidInputError(
            f"the mechanism failed for pair {index}: {type(error).__name__}: {error}"
        ) from error
    if sample.ndim not in (1, 2) or len(sample) != size:
        raise InvalidInputError(
            f"the mechanism must return {size} outputs, shape ({size},) or ({size}, column); "
            f"for pair {index} it returned shape {sample.shape}"
        )
    if sample.ndim == 2 and sample.shape[1] == 1:
        sample = sample[:, 0]
    if sample.dtype.kind in "fc" and not np.isfinite(sample).all():
        raise InvalidInputError(f"outputs must be finite; those of pair {index} are not")
    return sample


def _kind(outputs: tuple[NDArray[Any], NDArray[Any]], kind: str, index: int) -> str:
    """Return the kind of a pair's outputs; both sides must agree."""
    floats = [sample.dtype.kind == "f" for sample in outputs]
    if floats[0] != floats[1] or outputs[0].shape[1:] != outputs[1].shape[1:]:
        raise InvalidInputError(
            f"both databases of pair {index} must give outputs of one kind and shape, found "
            + " and ".join(f"{s.dtype} of shape {s.shape}" for s in outputs)
        )
    if kind == "auto":
        kind = "continuous" if floats[0] else "discrete"
    if kind == "continuous":
        if outputs[0].dtype.kind not in "iuf":
            raise InvalidInputError(
                f"continuous outputs must be numbers; those of pair {index} are {outputs[0].dtype}"
            )
        columns = 1 if outputs[0].ndim == 1 else outputs[0].shape[1]
        if columns > rows.MOST_COLUMNS:
            raise InvalidInputError(
                f"continuous outputs must have at most {rows.MOST_COLUMNS} columns; those of pair "
                f"{index} have {columns}, in which a kernel smooths away most of the loss. Bound a "
                "function of fewer columns instead, which loses no more than the outputs do, or "
                "call audit_mechanism, which learns one"
            )
        values = [s[:, None] if columns == 1 else s for s in outputs]
        repeated = 1.0 - min(np.unique(c).size / c.size for v in values for c in v.T)
        if repeated > TIES:
            warnings.warn(
                f"{repeated:.0%} of the continuous outputs of pair {index} repeat others: atoms "
                "have no density, and the published method does not handle them",
                EdpBayesWarning,
                stacklevel=3,
            )
    return kind


def _checked_pairs(pairs: Any) -> list[tuple[Any, Any]]:
    try:
        sides = [tuple(pair) for pair in pairs]
    except TypeError:
        raise InputTypeError("pairs must be a sequence of pairs of databases") from None
    if not sides or any(len(pair) != 2 for pair in sides):
        raise InvalidInputError("pairs must hold at least one pair, each of two databases")
    return [(first, second) for first, second in sides]


def _size(value: Any, name: str) -> int:
    size = validate.positive_integer(value, name)
    if size < 100:
        raise InvalidInputError(f"{name} must be at least 100, found {size}")
    return size


def _smoothness(value: Any) -> float:
    found = validate.positive_number(value, "smoothness")
    if found > 2.0:
        raise InvalidInputError(
            f"smoothness must be at most 2, beyond which the kernel gains nothing, found {found:g}"
        )
    return found
