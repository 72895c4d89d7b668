"""Privacy curves of an audit at epsilons beside its grid, from the individuals who matter there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.auditing.evaluation import Risks, largest_at
from edp_bayes.coupling.base import FLOOR, Coupling
from edp_bayes.exceptions import InputTypeError
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.auditing.other_answers import AuditedAgain
    from edp_bayes.auditing.resampled import Bootstrap
    from edp_bayes.responses.responses import Responses

__all__ = ["CoupledCurves"]


@dataclass(frozen=True, eq=False)
class CoupledCurves:
    """Evaluates the riskiest of every draw at new epsilons; whether they are, everybody tells.

    An individual's risk never rises with epsilon, so who is below the target at the value of the
    grid to the left is so further right. Of every draw the riskiest are known at every value of the
    grid, and how risky all others are at most, which also bounds how risky they are left of the
    grid. Where others may be above the target, all who may in any draw are evaluated at the upper
    end of the bracket. Who is above the target there joins the riskiest.

    Parameters
    ----------
    coupling : Coupling
        The fit.
    epsilon : ndarray
        Shape (epsilon,): the grid of the audit.
    risks : Risks
        What was found there.
    bootstrap : Bootstrap
        Of the databases, for what limits rest on beside the fit.
    responses : Responses, optional
        Those of the audit, as they were released.
    again : AuditedAgain, optional
        How other answers of the same data are audited.
    """

    coupling: Coupling
    epsilon: Array
    risks: Risks
    bootstrap: Bootstrap
    responses: Responses | None = None
    again: AuditedAgain | None = None
    shared = False

    def between(self, epsilon: Array, left: int, target: float, rows: Index) -> tuple[Array, Array]:
        """Return delta of the riskiest, twice; see `edp_bayes.results.epsilon_at`."""
        found = np.zeros_like(epsilon)
        for drawn, p, q in self._pairs_of(left, target, rows):
            _, here, there = np.intersect1d(drawn, rows, assume_unique=True, return_indices=True)
            if here.size:
                risk = self._risks(p[here], q[here], epsilon[there])
                found[there] = np.maximum(found[there], risk)
        return found, found

    def holds(self, epsilon: Array, left: int, target: float, rows: Index) -> NDArray[np.bool_]:
        """Return whether nobody else is above the target; see `edp_bayes.results.epsilon_at`."""
        at = max(left, 0)
        rise = self._rise(epsilon) if left < 0 else np.zeros(rows.size)
        held = _raised(self.risks.top[rows, at, -1], rise) <= target
        held |= [(row, left, target) in self._settled for row in rows.tolist()]
        if held.all():
            return held
        asked = np.flatnonzero(~held)
        highest = _raised(self.risks.highest[:, at], float(rise[asked].max()))
        people = np.flatnonzero(highest > target)
        try:
            top, who = largest_at(self.coupling, people, rows[asked], epsilon[asked])
        except InputTypeError:  # a coupling of the user's whose draws cannot be picked
            return held
        for k, risks, riskiest in zip(asked.tolist(), top, who, strict=True):
            key = (int(rows[k]), left, target)
            above = set(riskiest[risks > target].tolist())
            held[k] = above <= self._people(*key)
            self._joined[key] = self._joined.get(key, set()) | above
            if risks[-1] <= target:
                self._settled.add(key)
        return held

    def end(self, instead: str) -> Array:
        """Return the epsilon of every draw beyond which delta is zero, or say why there is none."""
        from edp_bayes.coupling.curves.ratios import largest_log_ratio

        return largest_log_ratio(self.coupling, instead)

    def _risks(self, p: Array, q: Array, epsilon: Array) -> Array:
        """Return delta_i at epsilons of each draw, shape (row, epsilon)."""
        from edp_bayes.divergence.any_pair import curves as any_pair

        return any_pair.curves(p, q[:, None], epsilon, floor=FLOOR)[:, 0]

    def _rise(self, epsilon: Array) -> Array:
        """Return by how much at most a risk of zero at the grid's first value rises to its left.

        Kairouz, Oh and Viswanath (2017): a risk d at epsilon' is at most d + (1 - d) r at epsilon
        below, r = (exp(epsilon') - exp(epsilon)) / (1 + exp(epsilon')).
        """
        end = np.exp(self.epsilon[0])
        return np.asarray((end - np.exp(epsilon)) / (1.0 + end))

    def _people(self, row: int, left: int, target: float) -> set[int]:
        """Return who may be the riskiest of a draw, as far as is known."""
        at, least = (left, target) if left >= 0 else (0, 0.0)
        top, who = self.risks.top[row, at], self.risks.who[row, at]
        return set(who[top > least].tolist()) | self._joined.get((row, left, target), set())

    def _pairs_of(self, left: int, target: float, rows: Index) -> list[tuple[Index, Array, Array]]:
        """Return the draws of everybody who matters, and the components with and without them."""
        people = {row: self._people(row, left, target) for row in rows.tolist()}
        if not all(self._held.get((row, left, target)) == who for row, who in people.items()):
            self._held.clear()
            self._pairs.clear()
            for person in sorted(set().union(*people.values())):
                drawn = np.array([row for row, who in people.items() if person in who])
                self._pairs.append((drawn, *_components(self.coupling, person, drawn)))
            self._held.update({(row, left, target): who for row, who in people.items()})
        return self._pairs

    @cached_property
    def rounding(self) -> list[xr.Dataset | None]:
        """What rounding would leave, once it was found, see `edp_bayes.auditing.rounding`."""
        return []

    @cached_property
    def other_answers(self) -> list[xr.Dataset | None]:
        """What other answers would leave, once found, see `edp_bayes.auditing.other_answers`."""
        return []

    @cached_property
    def _joined(self) -> dict[tuple[int, int, float], set[int]]:
        """Who was found to be above the target besides those known from the grid."""
        return {}

    @cached_property
    def _settled(self) -> set[tuple[int, int, float]]:
        """Where all who are above the target are known."""
        return set()

    @cached_property
    def _held(self) -> dict[tuple[int, int, float], set[int]]:
        """Whose components are held."""
        return {}

    @cached_property
    def _pairs(self) -> list[tuple[Index, Array, Array]]:
        return []


def _raised(risk: Array, rise: Array | float) -> Array:
    return risk + (1.0 - risk) * rise


def _components(coupling: Coupling, person: int, rows: Index) -> tuple[Array, Array]:
    """Return the components (row, component, 5) with and without an individual in some draws."""
    from edp_bayes.divergence.integral import component_rows

    found = []
    for mixture in coupling.pair(person):
        lead = mixture.weights.shape[:-1]
        some = mixture[np.unravel_index(rows, lead)]
        found.append(
            component_rows(some.weights, some.locations, some.scales, some.kernel, some.noise)
        )
    return found[0], found[1]
