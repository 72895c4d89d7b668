"""What of a tree is of several queries together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes import diagnostics
from edp_bayes.auditing.assembly.assembling import TOTALS, Given, Parts
from edp_bayes.auditing.assembly.checks import checked, new_ones
from edp_bayes.auditing.assembly.groups import LEAD
from edp_bayes.auditing.assembly.lines import Lines
from edp_bayes.auditing.joint_knowledge import answers_in_question, known_group
from edp_bayes.auditing.resampled import Bootstrap
from edp_bayes.diagnostics.joint import (
    check_joint_databases,
    check_joint_grid,
    joint_predictive_check,
)
from edp_bayes.diagnostics.truncation import check_truncation
from edp_bayes.models.joint import FittedJoint
from edp_bayes.models.joint_regression import JointRegression
from edp_bayes.responses.joined import JointResponses
from edp_bayes.responses.last_seen import last_seen
from edp_bayes.results.bands import upper_limit
from edp_bayes.results.joint import JointAudit
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    from edp_bayes.coupling.joint import JointCurves

__all__ = ["SeveralQueries"]


@dataclass(frozen=True, eq=False)
class SeveralQueries(Parts[JointResponses, JointRegression, FittedJoint]):
    """The parts of several queries.

    A combination of the answers tells no more than the answers do, so that lower bounds and the
    databases themselves are asked along the direction that exposes each individual.
    """

    given: Given[JointResponses, JointRegression, FittedJoint]

    @cached_property
    def pairs(self) -> Lines:
        """Along the direction that exposes each."""
        given = self.given
        return Lines.of(given.fitted.coupling, given.kept, given.shape)

    @property
    def places(self) -> Index:
        """All who are kept, and nobody else."""
        return np.arange(self.given.kept.size)

    @cached_property
    def _curves(self) -> JointCurves:
        return self.given.fitted.coupling.curves(self.given.kept, self.given.epsilon)

    @property
    def individual_delta(self) -> Array:
        """By quasi-Monte-Carlo integrals."""
        return self._curves.value

    @property
    def least_individual_delta(self) -> Array:
        """The same, less the errors of these."""
        return np.maximum(self._curves.value - self._curves.error, 0.0)

    @property
    def revealed(self) -> NDArray[np.bool_]:
        """Those whom a combination of the answers reveals."""
        return np.isin(self.given.kept, list(self.given.fitted.coupling.revealed))

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Of the answers along the direction of each."""
        given = self.given
        n, residuals = given.fitted.coupling.responses.n_databases, given.regression is not None
        return Bootstrap(self.pairs.answers, n, 1, given.settings, residuals=residuals)

    @property
    def observed(self) -> JointResponses:
        """Of all queries, or adjusted to the database in question."""
        given = self.given
        return given.responses if given.fitted.in_question is None else given.fitted.responses

    @property
    def modelled(self) -> JointResponses:
        """Of the queries that do not follow from others."""
        return self.given.fitted.responses

    def mixture(self) -> xr.Dataset:
        """Return weights, locations and covariances of answers that do not follow from others."""
        fitted, responses = self.given.fitted, self.given.responses
        dependence = fitted.dependence
        kept = [responses.names[k] for k in dependence.kept]
        mixture = fitted.mixture
        if fitted.in_question is not None:
            mixture = fitted.in_question.next_response(mixture)
        w, mu, covariances = mixture
        noise = np.diag(responses.noise_variance[list(dependence.kept)])
        dims = (*LEAD, "component")
        whole = np.broadcast_to(covariances + noise, (*mu.shape, len(kept)))
        return xr.Dataset(
            {
                "weights": (dims, w),
                "locations": ((*dims, "query"), mu),
                "covariances": ((*dims, "query", "other_query"), whole),
            },
            coords={**self.given.chains, "query": kept, "other_query": kept},
            attrs={"kernel": "gaussian"},
        )

    def individuals(self) -> xr.Dataset:
        """Return what is known of everybody.

        Contributions are in standard deviations of all answers together, and adjusted to the
        database in question where there is an adversary.
        """
        given, coupling, risks = self.given, self.given.fitted.coupling, self.given.risks
        responses = given.responses
        assert risks.errors is not None
        found = coupling.responses.entries
        length = np.sqrt((coupling.units.shrink(found.value) ** 2).sum(axis=1))
        largest = np.zeros(responses.n_individuals)
        np.maximum.at(largest, found.owner, length)
        return xr.Dataset(
            {
                "mean": (("individual", "epsilon"), risks.mean),
                "sd": (("individual", "epsilon"), risks.deviation),
                "median": (("individual", "epsilon"), risks.median),
                "integration_error": (("individual", "epsilon"), risks.errors.individual),
                "presence": ("individual", responses.presence),
                "last_seen": ("individual", last_seen(*responses.parts)),
                "adjusted_contribution": ("individual", largest),
            },
            coords={"individual": given.names, "epsilon": given.epsilon},
        )

    def more_groups(self) -> dict[str, xr.Dataset]:
        """Return errors of integrals, densities along directions, and what is known."""
        given, risks, fitted = self.given, self.given.risks, self.given.fitted
        names, kept, chains = given.names, given.kept, given.chains
        raised = {name: risks.safe(name) - getattr(risks, name) for name in TOTALS}
        found = {
            "integration_error": given.curves(self._curves.error, raised),
            "densities": self.pairs.densities(names[kept], given.shape),
            "direction": xr.Dataset(
                {
                    "direction": (
                        ("individual", "query"),
                        self.pairs.in_all(given.responses, fitted.dependence, kept),
                    )
                },
                coords={"individual": names[kept], "query": list(given.responses.names)},
            ),
        }
        regression, one = given.regression, fitted.in_question
        if regression is not None and one is not None:
            group = known_group(regression, one, given.released, chains)
            found["known"] = group
            found["in_question"] = answers_in_question(
                fitted.coupling, one.shift, kept, names[kept], group["query"].to_numpy().tolist()
            )
        return found

    def checks(self, posterior: xr.Dataset) -> tuple[list[dict[str, Any]], list[str]]:
        """Return every check as a row, and the sentences of those that failed."""
        given, responses, released = self.given, self.given.responses, self.given.released
        fitted, regression, settings = given.fitted, given.regression, given.settings
        kept, one = fitted.responses, fitted.in_question
        delta = posterior["delta"].to_numpy().reshape(-1, posterior.sizes["epsilon"])
        grid, limit = posterior["epsilon"].to_numpy(), upper_limit(delta, PROB)
        raw = given.raw
        tests: list[diagnostics.Checks] = [
            diagnostics.check_individuals(kept, epsilon=grid, upper=limit, pooled=fitted.pooled),
            diagnostics.check_identifier(released, appear_once=given.appear_once),
            diagnostics.check_slopes(0 if one is None else one.slopes_known, kept.n_individuals),
            check_joint_grid(raw, epsilon=grid, upper=limit),
            *new_ones(kept, raw, None if regression is None else regression.known, grid, limit),
            check_joint_databases(
                kept,
                scores=None if one is None else one.scores,
                past=0 if regression is None else regression.known.past,
                regressors=0 if regression is None else len(regression.known.regressors),
                records=released,
                least=float(limit.min()),
            ),
            check_truncation(fitted.truncated, epsilon=grid, upper=limit),
        ]
        if settings.chains * settings.draws >= diagnostics.MIN_REPLICATES:
            tests.append(
                joint_predictive_check(
                    fitted.mixture, kept, settings.generator("replicates"), advice=fitted.remedy
                )
            )
        known = () if regression is None else regression.known.warnings
        doubts = [*responses.warnings, *fitted.dependence.warnings, *known, *fitted.warnings]
        return checked(tests, posterior, kept, fitted, doubts)

    @property
    def record(self) -> dict[str, Any]:
        """All queries, and those that follow from others."""
        names, known = self.given.responses.names, self.given.fitted.dependence.kept
        return {
            "queries": list(names),
            "redundant": [name for k, name in enumerate(names) if k not in known],
            "samples": 1,
        }

    @property
    def noise(self) -> Any:
        """That of every query that has some."""
        responses = self.given.responses
        found = [
            {"query": name, "distribution": type(part.noise).__name__, "scale": part.noise.scale}
            for name, part in zip(responses.names, responses.parts, strict=True)
            if part.noise is not None
        ]
        return found or None

    def audit(self, tree: xr.DataTree) -> JointAudit:
        """Return the result with its fit."""
        return JointAudit(tree, fit=self.given.fitted.coupling)
