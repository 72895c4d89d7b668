"""What tests chosen once reach over several databases, for the lower ends of bands.

As for one database (`edp_bayes.auditing.lower_bounds`), the test is that for the posterior means of
the densities: the sum over all answers of the logarithm of their ratio in the cell of the answer,
against a threshold. Of published answers cells are unions of what is published. In every draw what
it reaches is a lower bound of the individual's risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.auditing.lower_bounds import Cells, cell_masses
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.releases.composing import Source

__all__ = ["tested_risks"]

STEPS = 24.0  # of the grid of the statistic in its spread for one database
MOST_PLACES = 4096  # of one answer's statistic, on either side


def tested_risks(sources: Sequence[Source], people: Index, epsilon: Array) -> Array:
    """Return lower bounds of delta_i of some individuals, shape (draw, individual, epsilon)."""
    found = [_tested(sources, person, epsilon) for person in people.tolist()]
    return np.stack(found, axis=1)


def _tested(sources: Sequence[Source], person: int, epsilon: Array) -> Array:
    from edp_bayes.divergence.composition.convolution import folded_draws, slack

    parts, counts = [], []
    for source in sources:
        line = source.line(person)
        if line is not None:
            p, q = line
            cells = Cells.of(p, source.published)
            masses = (cells.masses, cell_masses(q, cells.edges, cells.noise))
            parts.append([mass.reshape(-1, mass.shape[-1])[source.order] for mass in masses])
            counts.append(source.count)
    if not parts:
        return np.zeros((sources[0].order.size, epsilon.size))
    ratios = [_log_ratio(p.mean(axis=0), q.mean(axis=0)) for p, q in parts]
    variance = sum(
        k * float((p.mean(axis=0) * np.minimum(ratio, 1.0) ** 2).sum())
        for (p, _), ratio, k in zip(parts, ratios, counts, strict=True)
    )
    step = max(np.sqrt(variance / sum(counts)) / STEPS, 1e-9)
    places = [
        np.clip(np.rint(ratio / step), -MOST_PLACES, MOST_PLACES).astype(np.int64)
        for ratio in ratios
    ]
    under_p, under_q, lost = folded_draws(places, parts, counts)
    growth = np.exp(epsilon)
    both: list[Array] = []
    for one, other in ((under_p, under_q), (under_q[:, ::-1], under_p[:, ::-1])):
        above, beside = (np.cumsum(mass[:, ::-1], axis=1) for mass in (one, other))
        best = (above.mean(axis=0) - growth[:, None] * beside.mean(axis=0)).argmax(axis=1)
        both.append(above[:, best] - growth * beside[:, best])
    forwards = both[0].mean(axis=0) >= both[1].mean(axis=0)
    reached = np.where(forwards, *both) - slack(epsilon, lost)
    return np.asarray(np.clip(reached, 0.0, 1.0 - 1e-12))


def _log_ratio(p: Array, q: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(p) - np.log(q)
    return np.asarray(np.nan_to_num(ratio, nan=0.0, posinf=600.0, neginf=-600.0))
