"""How closely an answer tells the amount of an individual."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.results.summaries import contributions_shown
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    from edp_bayes.distributions.mixtures import Mixture
    from edp_bayes.results.query import Audit

__all__ = ["KNOWN_TO", "SHARE", "amount_errors"]

# An amount that is known to within this share of itself is taken to be learned: the customary p of
# the p% rule.
SHARE = 0.1
# Beforehand an adversary knows the amount to within so many times itself, on either side.
KNOWN_TO = 10.0
MOST_DRAWS, MOST_CENTRES = 100, 12
# Cells on either side of a centre grow by a sixth, so that any scale is resolved to a few percent.
FINEST, CELLS = 1e-7, 100


def amount_errors(audit: Audit, prob: float) -> Array | None:
    """Return draws of half the length of the amounts that an answer leaves, over the largest one.

    An adversary who sees an answer knows an amount as well as they expect the answer without it.
    They know that amount to within `KNOWN_TO` times itself beforehand, so that of an answer with
    modes far apart they know the mode. What is left are the amounts of highest density that hold
    this probability; around the component of the answer that tells most.

    Parameters
    ----------
    audit : Audit
        Of one query.
    prob : float
        Probability of the amounts that are left.

    Returns
    -------
    ndarray or None
        Shape (draw,), in amounts, of at most 100 draws; None where contributions or intervals are
        not known in units of the answer, or nobody contributes.
    """
    if audit.joint or not audit.intervals_known or audit.transform:
        return None
    contribution, name = contributions_shown(audit)
    sizes = np.abs(contribution.to_numpy())
    if not name.startswith("largest") or sizes.size == 0 or float(sizes.max()) == 0.0:
        return None
    position, amount = int(np.argmax(sizes)), float(sizes.max())
    mixture = audit.without.get(position)  # of who makes up most of the answer
    if mixture is None:
        mixture = _without(audit, position, amount)
    lead = mixture.weights.shape[:-1]
    some = mixture[np.unravel_index(spread_evenly(math.prod(lead), MOST_DRAWS), lead)]
    order = np.argsort(-some.weights, axis=1)[:, :MOST_CENTRES]
    centres = np.take_along_axis(some.locations, order, axis=1)
    half = np.geomspace(FINEST, 1.0, CELLS) * KNOWN_TO * amount
    offsets = np.concatenate([-half[::-1], [0.0], half])
    left = [_left(some[k], row, offsets, prob) for k, row in enumerate(centres)]
    return np.asarray(left) / (2.0 * amount)


def _without(audit: Audit, position: int, amount: float) -> Mixture:
    """Return the answers at least as narrow as without an individual.

    A component of standard deviation s, less contributions of standard deviation t, has one of at
    least abs(s - t).
    """
    about, whole = audit.individuals, audit.mixture
    # amounts between 0 and the largest have at most half of it, by Popoviciu
    spread = 0.5 * amount
    if "contribution_spread" in about:
        spread = float(about["contribution_spread"][position])
    factor = np.sqrt(2.0) if whole.kernel == "laplace" else 1.0
    scales = np.maximum(np.abs(whole.scales - spread / factor), FINEST * amount)
    return type(whole)(
        whole.weights, whole.locations, scales, kernel=whole.kernel, noise=whole.noise
    )


def _left(mixture: Mixture, centres: Array, offsets: Array, prob: float) -> float:
    """Return the least length of the values that hold a share of what is about a centre.

    Of the cells in a window about it, the densest are taken, the last of them in part.
    """
    edges = np.unique(centres[:, None] + offsets)
    mass, width = mixture.masses(edges)[1:-1], np.diff(edges)
    order = np.argsort(-mass / width)
    middle = (0.5 * (edges[1:] + edges[:-1]))[order]
    mass, width = mass[order], width[order]
    least = np.inf
    for centre in centres:
        inside = np.abs(middle - centre) <= offsets[-1]
        held = np.append(0.0, np.cumsum(mass[inside]))
        lengths = np.append(0.0, np.cumsum(width[inside]))
        least = min(least, float(np.interp(prob * held[-1], held, lengths)))
    return least
