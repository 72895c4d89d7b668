"""What a joint audit of several queries comes back as."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import xarray as xr
from numpy.typing import ArrayLike

from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.interval.response_intervals import WIDTHS
from edp_bayes.responses.dependence import combination
from edp_bayes.results.base import TARGETS, IndividualCurves
from edp_bayes.results.epsilon_at import small_delta
from edp_bayes.results.query import Audit
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.coupling.joint import JointCoupling
    from edp_bayes.coupling.views.published_row import RowCoupling

__all__ = ["JointAudit"]


@dataclass(frozen=True, eq=False, repr=False)
class JointAudit(Audit):
    """Posterior draws of every privacy quantity of several queries published together.

    Made by `edp_bayes.audit` from joined responses, and by `edp_bayes.load`. Integrals are by
    quasi-Monte-Carlo: their standard errors are in the group integration_error, and bands, upper
    limits, `epsilon_at`, the power of tests and what anybody may guess allow for them.

    Parameters
    ----------
    tree : xarray.DataTree
        As for `Audit`; mixture holds covariances in the place of scales, densities lie along
        `direction`. With an adversary, known holds their regressors and coefficients in the units
        of the responses, in_question the predictive density of each answer.
    fit : JointCoupling or RowCoupling, optional
        What it was made from, to compose it; nothing that was loaded from a file has it.

    See Also
    --------
    audit : audit a query
    JointResponses : the responses of several queries
    Audit : the posterior of a query

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> price = rng.gamma(2.0, 1.0, (40, 3))
    >>> count = rng.poisson(2.0, (40, 3))
    >>> total = rng.normal(50.0, 5.0, 40)
    >>> both = edp.Responses.join(
    ...     edp.Responses.from_arrays(total + price.sum(1), contribution=price, query="sum"),
    ...     edp.Responses.from_arrays(
    ...         0.3 * total + rng.normal(size=40) + count.sum(1), contribution=count, query="count"
    ...     ),
    ... )
    >>> audit = edp.audit(
    ...     both, epsilon=[0.1, 0.5], model=edp.SmoothedBootstrap(), draws=25, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> audit.direction.dims
    ('individual', 'query')
    """

    fit: JointCoupling | RowCoupling | None = None

    @property
    def direction(self) -> xr.DataArray:
        """The combination of the queries that exposes each of the riskiest most.

        Dims (individual, query), in the units of the responses: the answers are multiplied by these
        numbers and added. Every row has length one.
        """
        return self.tree["direction"].to_dataset()["direction"]

    def direction_of(self, position: int = 0) -> str:
        """Return the direction of one of the kept individuals in words, by position."""
        row = self.direction.isel(individual=position)
        return combination(row.to_numpy(), tuple(map(str, row["query"].to_numpy())))

    @property
    def integration_error(self) -> xr.Dataset:
        """Standard errors of the integrals, variables and dims of the posterior.

        That of delta is how much it rises when everybody's error is added, of delta* and the sum
        likewise: errors of individuals are not independent.
        """
        return self.tree["integration_error"].to_dataset()

    @property
    def joint_mixture(self) -> NormalMixture:
        """Draws of the distribution of the answers, (chain, draw, component), with known noise.

        Redundant queries are left out.
        """
        group = self.tree["mixture"].to_dataset()
        return NormalMixture(
            *(group[name].to_numpy() for name in ("weights", "locations", "covariances"))
        )

    def summary(
        self,
        *,
        ci_prob: float | None = None,
        ci_kind: str | None = None,
        targets: ArrayLike = TARGETS,
        width: ArrayLike = WIDTHS,
        sensitivity: float | None = None,
    ) -> pd.DataFrame:
        """Return a table of every privacy quantity, made by ArviZ, as `Audit.summary`.

        Interval levels are of single queries: width and sensitivity are not used. Its attrs also
        say which combination of the queries exposes the riskiest individual most.
        """
        table = IndividualCurves.summary(self, ci_prob=ci_prob, ci_kind=ci_kind, targets=targets)
        table.attrs = {
            "verdict": str(self.verdict()),
            "against": self.against,
            "direction": self.direction_of(),
        }
        return table

    def band(
        self, quantity: str = "delta", *, kind: str = "simultaneous", prob: float | None = None
    ) -> xr.Dataset:
        """Return a credible band over epsilon, as `Audit.band`.

        The upper end is that of the draws with the standard errors of their integrals added. The
        lower end is that of a test along `direction`, chosen once.
        """
        found = super().band(quantity, kind=kind, prob=prob)
        above = IndividualCurves.band(self._raised, quantity, kind=kind, prob=prob)
        return found.assign(upper=above["upper"])

    def upper(
        self, quantity: str = "delta", *, prob: float = PROB, kind: str = "pointwise"
    ) -> xr.DataArray:
        """Return the one-sided upper limit, as `Audit.upper`, with the integrals' errors added."""
        return IndividualCurves.upper(self._raised, quantity, prob=prob, kind=kind)

    @property
    def safe_draws(self) -> xr.Dataset:
        """The draws that upper limits are made from: with the integrals' errors added."""
        return self._raised._posterior

    @cached_property
    def _raised(self) -> IndividualCurves:
        return self._moved(1.0)

    @property
    def _safe_curves(self) -> Array:
        return self._raised._curves("delta")

    def _moved(self, sign: float) -> IndividualCurves:
        """Return the same curves with standard errors added or subtracted."""
        posterior, error = self._posterior, self.integration_error
        moved = {
            name: (posterior[name] + sign * error[name]).clip(0.0, 1.0) for name in error.data_vars
        }
        tree = self.tree.copy()
        tree["posterior"] = xr.DataTree(posterior.assign(moved))
        return IndividualCurves(tree)

    def _bracket(self, target: float) -> tuple[Array, Array]:
        if target == 0.0:
            raise InvalidInputError(
                "delta must be above 0 here, found 0: tails of the densities with and without an "
                "individual differ without bound, so delta is above zero at every epsilon; "
                f"{small_delta(*self._raised._drawn)}"
            )
        lower, upper = (self._moved(-1.0)._bracket(target)[0], self._raised._bracket(target)[1])
        return lower, upper
