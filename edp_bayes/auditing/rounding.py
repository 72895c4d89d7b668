"""What rounding would leave of the largest risk, by the draws of an audit's fit.

It is found in some of the draws, for the riskiest individuals. Rounding never raises a risk, so
that of everybody else in the full answer bounds what is left of it, draw by draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from edp_bayes.auditing.epsilon_at import CoupledCurves
from edp_bayes.auditing.evaluation import Risks, riskiest
from edp_bayes.auditing.lower_bounds import mean_masses
from edp_bayes.auditing.released import released_coupling
from edp_bayes.auditing.resampled import no_more
from edp_bayes.coupling.base import FLOOR
from edp_bayes.coupling.views.published import ReleasedCoupling, components, grid_of
from edp_bayes.coupling.views.some_draws import pick
from edp_bayes.distributions.published import Published
from edp_bayes.divergence.released.curves import released_curves
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.responses.rounding import moved_by, rounding_steps
from edp_bayes.results.summaries import answers_of
from edp_bayes.results.verdict import EPSILON
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["rounding_of"]

# Draws, and the riskiest individuals, that are evaluated: whose contributions take longest to draw.
DRAWS, PEOPLE = 250, 10


def rounding_of(audit: Audit) -> xr.Dataset | None:
    """Return what rounding would leave; see `edp_bayes.Audit.rounding`."""
    source = audit.source
    if not isinstance(source, CoupledCurves):
        return None
    if not source.rounding:
        source.rounding.append(_rounding(audit, source))
    return source.rounding[0]


def _rounding(audit: Audit, source: CoupledCurves) -> xr.Dataset | None:
    answers = answers_of(audit)
    steps = list(rounding_steps(float(answers.std()), audit.settings.get("step")))
    people, rows = _chosen(source)
    full = source.risks.delta[rows]
    try:
        whole = [released_coupling(audit, Published.of(rounded_to=step)) for step in steps]
        picked = [pick(coupling, rows) for coupling in whole]
        left = _left(picked, people, source.epsilon)
    except (InvalidInputError, InputTypeError):
        # `released` refuses the audit, or draws of a coupling of the user's cannot be picked
        return None
    least = np.minimum(left, full)
    drawn = ("rounded_to", "sample", "epsilon")
    shown = [_shown(audit, coupling, people, source) for coupling in picked]
    return xr.Dataset(
        {
            "delta": (drawn, np.maximum(least, _others(source.risks, people, rows))),
            "least": (drawn, least),
            "resampled": (("rounded_to", "resample", "epsilon"), np.stack(shown)),
            "moves": ("rounded_to", [moved_by(answers, step) for step in steps]),
        },
        coords={"rounded_to": np.array(steps), "epsilon": source.epsilon},
    )


def _shown(audit: Audit, coupling: ReleasedCoupling, people: Index, source: CoupledCurves) -> Array:
    """Return what the databases themselves show of what is published, (resample, epsilon)."""
    means = mean_masses(coupling, people)
    found = source.bootstrap.draws(coupling, people, means, source.epsilon)
    if found is None:
        return np.zeros((1, source.epsilon.size))
    return no_more(found.delta, source.risks.delta, audit.resampled_curves)


def _chosen(source: CoupledCurves) -> tuple[Index, Index]:
    """Return the riskiest individuals, and draws spread evenly in the order of their delta.

    So a limit of the full answer in these draws is that in all of them, or nearly.
    """
    risks = source.risks
    people = np.sort(riskiest(risks.mean, PEOPLE))
    at = np.abs(source.epsilon - EPSILON).argmin()
    order = np.argsort(risks.delta[:, at], kind="stable")
    return people, np.sort(order[spread_evenly(order.size, DRAWS)])


def _left(steps: Sequence[ReleasedCoupling], people: Index, epsilon: Array) -> Array:
    """Return the largest rounded risk of some individuals, shape (step, draw, epsilon)."""
    size = steps[0].n_draws
    rows, columns = np.tile(np.arange(size), people.size), np.repeat(np.arange(people.size), size)
    # contributions are drawn once for all steps
    p, q, centre = components(steps[0].full, people, rows, columns)
    levels = np.broadcast_to(epsilon, (rows.size, epsilon.size))
    found = []
    for coupling in steps:
        at = centre if coupling.shift is None else centre + coupling.shift[rows]
        risks = released_curves(p, q, levels, grid_of(coupling.published), at, floor=FLOOR)
        found.append(risks.reshape(people.size, size, epsilon.size).max(axis=0))
    return np.stack(found)


def _others(risks: Risks, people: Index, rows: Index) -> Array:
    """Return a bound of the largest full risk of all others, shape (row, epsilon)."""
    rest = np.delete(risks.highest, people, axis=0)
    if rest.size == 0:
        return np.zeros((rows.size, risks.highest.shape[1]))
    top, who = risks.top[rows], risks.who[rows]
    # those beyond the list are no riskier than its last
    known = np.where(np.isin(who, people), 0.0, top).max(axis=-1)
    return np.asarray(np.minimum(np.maximum(known, top[..., -1]), rest.max(axis=0)))
