"""Noise in closed form: bottleneck, partial and, as published, Hausdorff."""

from __future__ import annotations

import math
import warnings

import numpy as np

from edp_bayes.distributions.noise import LaplaceNoise, NoNoise
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.noise.certificates.log_lipschitz import movement_bound
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import Posterior
from edp_bayes.noise.search import check_time
from edp_bayes.utils.arrays import Array

__all__ = ["bottleneck", "hausdorff", "laplace_scales", "partial"]

STEPS = 60
# Where many draws meet epsilon exactly, rounding must not put them above it.
ROUNDED_UP = 1.0 + 1e-12


def laplace_scales(posterior: Posterior, epsilon: float) -> Array:
    """Return, for each draw, a scale of Laplace noise that is enough for epsilon, shape (draw,).

    With a common scale of the kernels it is max_i W_inf(p, p_i) / epsilon for the weighted
    samples. Otherwise the components are compared one by one, which is sound and larger.
    """
    scales = np.zeros(posterior.n_draws)
    screen = posterior.screen(epsilon)
    for person in posterior.hardest_first(epsilon):
        check_time()
        if posterior.common_scale is not None:
            moves = posterior.moves(person)
            if np.abs(moves).max() > epsilon * scales.min():
                scales = np.maximum(scales, _distances(posterior, moves) / epsilon)
        elif screen is None or (screen.enough(epsilon, person) > scales).any():
            scales = np.maximum(scales, _by_components(posterior, person, epsilon, scales))
    return scales


def _distances(posterior: Posterior, moves: Array) -> Array:
    from edp_bayes.noise.transport import paired_distances

    base = posterior.base
    return paired_distances(base[0, :, 1], moves, np.ascontiguousarray(base[..., 0]))


def _by_components(posterior: Posterior, person: int, epsilon: float, known: Array) -> Array:
    """Bisect for the scale at which `movement_bound` meets epsilon, in draws above the known."""
    p, q = posterior.pair(person)
    kernel = posterior.kernel
    with np.errstate(divide="ignore"):
        rows = np.flatnonzero(movement_bound(p, q, kernel, 1.0 / known) > epsilon)
    result = known.copy()
    if rows.size == 0:
        return result
    p, q = p[rows], q[rows]
    high = np.maximum(known[rows], 1e-12 * p[..., 2].max(axis=1))
    for _ in range(4 * STEPS):
        bad = ~(movement_bound(p, q, kernel, 1.0 / high) <= epsilon)
        if not bad.any():
            break
        high[bad] *= 2.0
    else:
        high[bad] = np.inf
    low = np.maximum(known[rows], 0.0)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            good = movement_bound(p, q, kernel, 1.0 / middle) <= epsilon
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    result[rows] = high
    return result


def bottleneck(scales: Array, prob: float) -> NoiseDistribution:
    """Return Laplace noise that is enough in the required share of the draws."""
    return NoiseDistribution((LaplaceNoise(_upper_quantile(scales, prob) * ROUNDED_UP),))


def partial(posterior: Posterior, scales: Array, prob: float) -> tuple[NoiseDistribution, float]:
    """Return the least noise of the form: nothing with probability (s / b)^2, else Laplace(b).

    Beside it stands the share of draws for which it is proved to be enough.

    Such noise turns a Laplace kernel of scale s <= b into one of scale b, and any wider Laplace
    kernel into a wider one, so it is enough in every draw whose kernel is at least s and whose
    scale is at most b.

    Raises
    ------
    InvalidInputError
        If the kernels are not Laplace kernels of one scale in each draw.
    """
    kernels = posterior.common_scale
    if posterior.kernel != "laplace" or kernels is None:
        raise InvalidInputError(
            "partial noise needs Laplace kernels of one scale in each draw, as those of "
            "SmoothedBootstrap(kernel='laplace')"
        )
    needed = _needed(kernels.size, prob)
    best: tuple[float, float, float] | None = None
    for s in np.unique(kernels):
        members = scales[kernels >= s]
        if members.size < needed:
            break
        b = float(np.partition(members, needed - 1)[needed - 1]) * ROUNDED_UP
        cost = b - s * s / b if b > s else 0.0
        if best is None or cost < best[0]:
            best = (cost, float(s), b)
    assert best is not None
    cost, s, b = best
    proved = float(((kernels >= s) & (scales <= b)).mean())
    if cost == 0.0:
        return NoiseDistribution((NoNoise(),)), proved
    atom = (s / b) ** 2
    return NoiseDistribution((NoNoise(), LaplaceNoise(b)), (atom, 1.0 - atom)), proved


def hausdorff(posterior: Posterior, epsilon: float) -> NoiseDistribution:
    """Return Laplace noise of the published Proposition 1, which does not guarantee epsilon.

    Warns
    -----
    EdpBayesWarning
        Always: the proposition is false.
    """
    from edp_bayes.plugin import hausdorff_epsilon

    if posterior.shifted is None or posterior.responses is None:
        raise InvalidInputError(
            "the published Hausdorff construction compares the responses themselves: it needs a "
            "SmoothedBootstrap and its responses"
        )
    warnings.warn(
        "the Hausdorff construction of the published Proposition 1 does not guarantee epsilon; "
        "see the counterexample in docs/noise/closed_forms.md, and use method='bottleneck' for a "
        "guarantee",
        EdpBayesWarning,
        stacklevel=3,
    )
    y = posterior.responses.response
    distance = max(
        hausdorff_epsilon(y, y - posterior.moves(person), 1.0)
        for person in range(posterior.n_individuals)
    )
    if distance == 0.0:
        return NoiseDistribution((NoNoise(),))
    return NoiseDistribution((LaplaceNoise(distance / epsilon),))


def _needed(draws: int, prob: float) -> int:
    """Return how many draws make up the required share."""
    return max(1, math.ceil(prob * draws - 1e-9))


def _upper_quantile(values: Array, prob: float) -> float:
    rank = _needed(values.size, prob) - 1
    return float(np.partition(values, rank)[rank])
