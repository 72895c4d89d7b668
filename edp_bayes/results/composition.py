"""What several releases together come back as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.base import IndividualCurves
from edp_bayes.results.effects import withheld
from edp_bayes.results.epsilon_at import small_delta
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.sentences import restored

__all__ = ["ComposedAudit"]


@dataclass(frozen=True, eq=False, repr=False)
class ComposedAudit(IndividualCurves):
    """Posterior draws of every privacy quantity of several releases, each of a fresh database.

    Made by `edp_bayes.compose`, `Audit.compose` and `edp_bayes.load`.

    Parameters
    ----------
    tree : xarray.DataTree
        Groups posterior (delta, total_risk, total_risk_bound, individual_delta), all of them upper
        bounds, and lower_bounds; part_1, part_2 and so on hold the same quantities of every part
        in all of its draws, which no upper limit lies below. Settings say how many databases there
        are of each audit, which hypotheses are compared, what is assumed of draws, and the gap to
        the lower bounds.

    See Also
    --------
    compose : the risk of several releases
    edp_bayes.load : load a saved result
    Audit : the posterior of a query

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.1, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1, 0.5], draws=20, random_seed=1, progressbar=False
    ... )
    >>> year = audit.compose(databases=12, progressbar=False)
    >>> year.databases, year.subject[0]
    (12, 'arrays in 12 fresh databases')
    """

    @property
    def databases(self) -> int:
        """How many databases there are, of all kinds."""
        return int(sum(self.settings["composed"]))

    def _end(self) -> NDArray[np.float64]:
        raise InvalidInputError(
            "delta must be above 0 here, found 0: where delta is zero is not known of several "
            f"databases together; {small_delta(*self._drawn)}"
        )

    @property
    def individual_delta(self) -> xr.DataArray:
        """delta_i(epsilon) of the riskiest, (chain, draw, individual, epsilon)."""
        return self._posterior["individual_delta"]

    @property
    def withheld(self) -> str | None:
        """Why the result establishes nothing: a part does not; None where all do."""
        found: dict[str, list[tuple[str, str]]] = {}
        for row in self._record("checks"):
            if row["passed"] is False:
                name = str(row.get("part", ""))
                found.setdefault(name, []).append((row["check"], restored(row["sentence"])))
        reasons = {name: withheld(rows) for name, rows in found.items()}
        whole = {name: reason for name, reason in reasons.items() if reason is not None}
        if not whole:
            return None
        first, *others = whole
        also = f" Withheld as well: {'; '.join(others)}." if others else ""
        return f"{whole[first]}{also}"

    def upper(
        self, quantity: str = "delta", *, prob: float = PROB, kind: str = "pointwise"
    ) -> xr.DataArray:
        """Return the one-sided upper limit, as `Audit.upper`; at least that of every part.

        Of a part in all of its draws: those of the composition are some of them.
        """
        found = super().upper(quantity, prob=prob, kind=kind)
        for part in self.parts:
            found = _larger(found, part.upper(quantity, prob=prob, kind=kind))
        return found

    def band(
        self, quantity: str = "delta", *, kind: str = "simultaneous", prob: float | None = None
    ) -> xr.Dataset:
        """Return a credible band over epsilon, as `Audit.band`.

        Its upper end is at least that of every part, in all draws of the part.
        """
        found = super().band(quantity, kind=kind, prob=prob)
        for part in self.parts:
            above = part.band(quantity, kind=kind, prob=prob)["upper"]
            found = found.assign(upper=_larger(found["upper"], above))
        return found

    def tradeoff(
        self,
        levels: ArrayLike | None = None,
        *,
        kind: str = "simultaneous",
        prob: float | None = None,
    ) -> xr.Dataset:
        """Return the power of the best test, as `Audit.tradeoff`; the upper end as for `band`."""
        found = super().tradeoff(levels, kind=kind, prob=prob)
        for part in self.parts:
            above = part.tradeoff(levels, kind=kind, prob=prob)["upper"]
            found = found.assign(upper=_larger(found["upper"], above))
        return found

    @cached_property
    def parts(self) -> Sequence[IndividualCurves]:
        """What every part says on its own in all of its draws; none of one release of one audit."""
        return [
            IndividualCurves(xr.DataTree.from_dict({"posterior": node.to_dataset()}))
            for name, node in self.tree.children.items()
            if name.startswith("part_")
        ]

    @property
    def hypotheses(self) -> str:
        """Which two hypotheses are compared, in a sentence."""
        return str(self.settings["hypotheses"])

    @property
    def against(self) -> str:
        """Against whom, in words; empty where no adversary was given."""
        return str(self.settings.get("against", ""))

    @property
    def opponent(self) -> str:
        """Against whom the risk is, and which hypotheses are compared, in sentences."""
        return f"{super().opponent} {self.hypotheses}"

    @property
    def subject(self) -> tuple[str, str]:
        """What is audited, and on how much data, in words."""
        query, size = super().subject
        several = "s" if self.databases > 1 else ""
        return f"{query} in {self.databases:,} fresh database{several}", size

    @property
    def _subject(self) -> str:
        return f"{self.subject[0]}, "


def _larger(one: xr.DataArray, other: xr.DataArray) -> xr.DataArray:
    """Return the larger of two limits; everybody has the same place in both."""
    return one.copy(data=np.maximum(one.to_numpy(), other.transpose(*one.dims).to_numpy()))
