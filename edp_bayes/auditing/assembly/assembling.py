"""One tree of an audit, of one query and of several alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.adversary.known import explained
from edp_bayes.adversary.usual import usual_adversary
from edp_bayes.auditing.assembly.groups import LEAD, by_epsilon, groups_of_fit, observed
from edp_bayes.auditing.drawn_groups import drawn_groups
from edp_bayes.auditing.lower_bounds import LowerBounds, Pairs, lower_bounds
from edp_bayes.results.recording import recorded
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.auditing.evaluation import Risks
    from edp_bayes.auditing.other_answers import AuditedAgain
    from edp_bayes.auditing.resampled import Bootstrap
    from edp_bayes.diagnostics.checks import Checks
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.results.query import Audit

__all__ = ["Given", "Parts", "assemble"]

TOTALS = ("delta", "total_risk", "total_risk_bound")


@dataclass(frozen=True, eq=False, kw_only=True)
class Given[ResponsesT: Any, RegressionT: Any, FittedT: Any]:
    """What was audited, and what was found.

    Parameters
    ----------
    responses : Responses or JointResponses
        Those of the database in question; of all queries, also of redundant ones.
    released : Responses or JointResponses
        The same as they were.
    regression : Regression or JointRegression or None
        On what an adversary knows.
    fitted : FittedModel or FittedJoint
        The fit.
    epsilon : ndarray
        Shape (epsilon,).
    risks : Risks
        Of everybody.
    kept : ndarray of int
        The individuals whose draws are kept.
    settings : SamplerSettings
        Of the fit.
    more : sequence of Checks
        Checks that were made before.
    appear_once : bool
        Individuals are persons who come once.
    new_individual : bool
        The risk of one who is not in the sample is drawn.
    for_verdict : bool
        What a verdict does not need is left out: draws of the model, densities on a grid, the fit's
        own groups, and checks that advise.
    keep_parameters : bool
        Draws of the model and what they predict are kept.
    again : AuditedAgain, optional
        How other answers of the same data are audited.
    """

    responses: ResponsesT
    released: ResponsesT
    regression: RegressionT | None
    fitted: FittedT
    epsilon: Array
    risks: Risks
    kept: Index
    settings: SamplerSettings
    more: Sequence[Checks] = ()
    appear_once: bool = False
    new_individual: bool = True
    for_verdict: bool = False
    keep_parameters: bool = True
    again: AuditedAgain | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws."""
        return self.settings.chains, self.settings.draws

    @cached_property
    def names(self) -> NDArray[Any]:
        """Labels of all individuals, as coordinates."""
        return labels.as_coordinate(self.responses.individual)

    @cached_property
    def chains(self) -> Mapping[str, Any]:
        """The coordinates of chains and draws."""
        return {name: np.arange(size) for name, size in zip(LEAD, self.shape, strict=True)}

    @cached_property
    def raw(self) -> ResponsesT:
        """The responses of all databases as they were, without individuals who are insiders."""
        if self.regression is None:
            return self.released
        everything = np.arange(self.released.n_databases)
        insiders = self.regression.known.insiders
        return cast("ResponsesT", explained(self.released, everything, insiders))

    def curves(self, individual: Array, totals: Mapping[str, Array]) -> xr.Dataset:
        """Return curves of those who are kept, and of all together, with all coordinates."""
        shape, size = self.shape, self.kept.size
        found: dict[str, Any] = {
            # First: ArviZ's tables stack values in the order of the data set's dimensions, but
            # label each variable in its own.
            "individual_delta": (
                (*LEAD, "individual", "epsilon"),
                individual.reshape(*shape, size, self.epsilon.size),
            )
        }
        for name, values in totals.items():
            found[name] = ((*LEAD, "epsilon"), values.reshape(*shape, -1))
        coords = {**self.chains, "epsilon": self.epsilon, "individual": self.names[self.kept]}
        return xr.Dataset(found, coords=coords)


class Parts[ResponsesT: Any, RegressionT: Any, FittedT: Any](ABC):
    """What of a tree depends on whether there is one query, or several."""

    given: Given[ResponsesT, RegressionT, FittedT]

    @property
    @abstractmethod
    def pairs(self) -> Pairs:
        """The distributions with and without each of those who are kept, on a line."""

    @property
    @abstractmethod
    def places(self) -> Index:
        """Where in `pairs` they are."""

    @property
    @abstractmethod
    def individual_delta(self) -> Array:
        """Their delta_i, shape (row, individual, epsilon)."""

    @property
    @abstractmethod
    def least_individual_delta(self) -> Array:
        """The same, less what integrals may be wrong by."""

    @property
    @abstractmethod
    def revealed(self) -> NDArray[np.bool_]:
        """Which of them the answers reveal exactly, shape (individual,)."""

    @property
    @abstractmethod
    def bootstrap(self) -> Bootstrap:
        """The databases, resampled."""

    @property
    @abstractmethod
    def observed(self) -> ResponsesT:
        """The responses that stand in the tree as observed."""

    @property
    @abstractmethod
    def modelled(self) -> ResponsesT:
        """Those that the fit is of."""

    @abstractmethod
    def individuals(self) -> xr.Dataset:
        """Return what is known of everybody."""

    @abstractmethod
    def mixture(self) -> xr.Dataset:
        """Return the distribution of the response in the database in question."""

    @abstractmethod
    def more_groups(self) -> dict[str, xr.Dataset]:
        """Return the groups that only one of both has, or that differ."""

    @abstractmethod
    def checks(self, posterior: xr.Dataset) -> tuple[list[dict[str, Any]], list[str]]:
        """Return every check as a row, and the sentences of those that failed."""

    @property
    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What stands in the settings of one of both alone, or differs."""

    @property
    @abstractmethod
    def noise(self) -> Any:
        """The noise that is known to be in the answers, None where there is none."""

    @abstractmethod
    def audit(self, tree: xr.DataTree) -> Audit:
        """Return the result that holds a tree."""


def assemble(parts: Parts[Any, Any, Any]) -> Audit:
    """Return the audit; nothing is sampled here but replicates for the predictive check."""
    given, risks = parts.given, parts.given.risks
    fitted, epsilon = given.fitted, given.epsilon
    totals = {name: getattr(risks, name) for name in TOTALS}
    posterior = given.curves(parts.individual_delta, totals)
    least = risks.least_delta, risks.least_total_risk
    tested = lower_bounds(parts.pairs, parts.places, parts.least_individual_delta, *least, epsilon)
    shown = parts.bootstrap.draws(parts.pairs, parts.places, tested.means, epsilon)
    checks, warnings = parts.checks(posterior)
    groups: dict[str, xr.Dataset] = {
        "posterior": posterior,
        "lower_bounds": _lower_bounds(parts, tested, posterior),
        **({} if shown is None else {"resampled": shown.dataset(given.names[given.kept], epsilon)}),
        "individuals": parts.individuals(),
        "mixture": parts.mixture(),
        "observed_data": observed(parts.observed),
        **(
            {}
            if given.for_verdict
            else groups_of_fit(fitted, given.responses.database, given.chains)
        ),
        **(
            drawn_groups(fitted, parts.modelled, observed(parts.modelled), given.settings)
            if given.keep_parameters
            else {}
        ),
        **parts.more_groups(),
    }
    tree = recorded(
        groups,
        settings={**parts.record, **_record(given)},
        checks=checks,
        warnings=warnings,
        noise=parts.noise,
    )
    return parts.audit(tree)


def _lower_bounds(
    parts: Parts[Any, Any, Any], tested: LowerBounds, posterior: xr.Dataset
) -> xr.Dataset:
    """Return the group of lower bounds; of those revealed exactly their risk is one."""
    individual, totals = tested.individual_delta, [tested.delta, tested.total_risk]
    if parts.revealed.any():
        known = posterior["individual_delta"].to_numpy()[:, :: tested.step]
        individual = np.where(parts.revealed[:, None], known, individual)
        certain = np.where(parts.revealed[:, None], known, 0.0).max(axis=2)
        totals = [np.maximum(one, certain) for one in totals]
    return xr.Dataset(
        {
            "individual_delta": ((*LEAD, "individual", "epsilon"), individual),
            "delta": ((*LEAD, "epsilon"), totals[0]),
            "total_risk": ((*LEAD, "epsilon"), totals[1]),
        },
        coords=posterior.coords.to_dataset().isel(draw=slice(None, None, tested.step)).coords,
    )


def _record(given: Given[Any, Any, Any]) -> dict[str, Any]:
    """Return what stands in the settings of an audit of one query and of several."""
    released, risks, epsilon = given.released, given.risks, given.epsilon
    partial = released.parts[0].partial
    bounded = np.any(risks.floor if risks.errors is None else risks.bounded)
    return {
        "query": given.responses.query,
        "databases": released.n_databases,
        "individuals": given.responses.n_individuals,
        "fingerprint": released.fingerprint,
        **({"read_as": released.read_as} if released.read_as else {}),
        **({} if partial is None else {"partial": partial.words}),
        **given.settings.record,
        **(_not_assumed(released) if given.regression is None else given.regression.record),
        "screened_out": by_epsilon(epsilon, risks.screened_bound),
        **({"bounded": by_epsilon(epsilon, risks.bounded.max(axis=0))} if bounded else {}),
        **given.fitted.attributes,
    }


def _not_assumed(released: Any) -> dict[str, str]:
    """Return whom the command line would assume where nobody was given, if anybody."""
    usual = usual_adversary(released.database)
    return {} if usual is None else {"not_assumed": usual.words}
