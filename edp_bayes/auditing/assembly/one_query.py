"""What of a tree is of one query alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes import diagnostics
from edp_bayes.adversary.known import explained
from edp_bayes.auditing.assembly.assembling import Given, Parts
from edp_bayes.auditing.assembly.checks import checked, new_ones
from edp_bayes.auditing.assembly.groups import (
    DENSITY_POINTS,
    DENSITY_REACH,
    LEAD,
    by_epsilon,
    densities,
    every_few,
    known_attributes,
    observed,
)
from edp_bayes.auditing.epsilon_at import CoupledCurves
from edp_bayes.auditing.lower_bounds import same
from edp_bayes.auditing.released import ReleasedCurves
from edp_bayes.auditing.resampled import Bootstrap
from edp_bayes.coupling.atoms import AtomCoupling
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.coupling.views.unseen_past import PastCoupling
from edp_bayes.diagnostics.dominant import check_dominant
from edp_bayes.diagnostics.largest import check_largest
from edp_bayes.diagnostics.stated import stated_presence
from edp_bayes.diagnostics.truncation import check_truncation
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.models.base import FittedModel
from edp_bayes.models.comparing import OF_ANSWERS
from edp_bayes.models.regression import Regression
from edp_bayes.responses.atoms import at_atoms
from edp_bayes.responses.last_seen import last_seen
from edp_bayes.responses.responses import Responses
from edp_bayes.results.bands import upper_limit
from edp_bayes.results.query import Audit
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.formatting import at_most
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    from edp_bayes.auditing.lower_bounds import Pairs
    from edp_bayes.coupling.base import Coupling

__all__ = ["OneQuery"]

# Of which values log densities are, where a transform is modelled.
ON_SCALE = "on the modelled scale"


@dataclass(frozen=True, eq=False)
class OneQuery(Parts[Responses, Regression, FittedModel]):
    """The parts of one query."""

    given: Given[Responses, Regression, FittedModel]

    @property
    def pairs(self) -> Pairs:
        """Those of the fit itself."""
        return self.given.fitted.coupling

    @property
    def places(self) -> Index:
        """Those of everybody."""
        return self.given.kept

    @cached_property
    def individual_delta(self) -> Array:
        """As they were evaluated, or are."""
        given = self.given
        return given.risks.curves_of(given.kept, given.fitted.coupling, given.epsilon)

    @property
    def least_individual_delta(self) -> Array:
        """The same: integrals are exact to rounding."""
        return self.individual_delta

    @property
    def revealed(self) -> NDArray[np.bool_]:
        """Nobody: one answer is never a combination of others."""
        return np.zeros(self.given.kept.size, dtype=np.bool_)

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Of the responses; at an atom a database is in no set."""
        given = self.given
        whole = None if given.released.atoms is None else given.released.n_databases
        residuals = given.regression is not None
        return Bootstrap.of(given.responses, given.settings, whole, residuals=residuals)

    @property
    def observed(self) -> Responses:
        """Those of the database in question."""
        return self.given.responses

    @property
    def modelled(self) -> Responses:
        """The same."""
        return self.given.responses

    def mixture(self) -> xr.Dataset:
        """Return weights, locations and scales."""
        found = _next_response(self.given.fitted)
        return xr.Dataset(
            {
                name: ((*LEAD, "component"), getattr(found, name))
                for name in ("weights", "locations", "scales")
            },
            coords=self.given.chains,
            attrs={"kernel": found.kernel},
        )

    def individuals(self) -> xr.Dataset:
        """Return what is known of everybody; contributions as they were made, in any database.

        Beside them those that are modelled, where these are others.
        """
        given, raw = self.given, self.given.raw
        adjusted = {name: _signed(given.responses) for name in self._changed}
        return xr.Dataset(
            {
                "mean": (("individual", "epsilon"), given.risks.mean),
                "sd": (("individual", "epsilon"), given.risks.deviation),
                "median": (("individual", "epsilon"), given.risks.median),
                "presence": (
                    "individual",
                    (given.responses if raw.atoms is None else raw).presence,
                ),
                "last_seen": ("individual", last_seen(raw)),
                "largest_contribution": ("individual", raw.largest_contribution),
                "signed_contribution": ("individual", _signed(raw)),
                "contribution_spread": ("individual", _spread(raw)),
                **{name: ("individual", values) for name, values in adjusted.items()},
            },
            coords={"individual": given.names, "epsilon": given.epsilon},
        )

    @property
    def _changed(self) -> tuple[str, ...]:
        """What contributions are called that are modelled on another scale or adjusted."""
        if self.given.regression is not None:
            return ("adjusted_contribution",)
        return () if self.given.released.scale is None else ("modelled_contribution",)

    def more_groups(self) -> dict[str, xr.Dataset]:
        """Return densities, answers on their own scale, what is known, and who is new."""
        given, fitted = self.given, self.given.fitted
        found: dict[str, xr.Dataset] = {}
        if not given.for_verdict:
            found["densities"] = self._densities()
        if given.released.scale is not None:
            found["answers"] = observed(given.released)
        if given.new_individual:
            found["new_individual"] = self._new_individual()
        if without := getattr(fitted.coupling, "without", None):
            found["without"] = _without(without, given.chains)
        if fitted.in_question is not None and given.regression is not None:
            found["known"] = self._known(given.regression)
        return found

    @property
    def record(self) -> dict[str, Any]:
        """Samples, the grid, atoms, the scale, and who was bounded."""
        given, released, reduced = self.given, self.given.released, self.given.risks.reduced
        found: dict[str, Any] = {
            "samples": given.responses.samples,
            **({} if released.step is None else {"step": released.step}),
            **({} if released.atoms is None else {"atoms": at_atoms(released).record}),
            **_scale(released),
        }
        if reduced is not None:
            found["reduced"] = {
                "individuals": int(given.responses.reduced.sum()),
                "each_at_most": by_epsilon(given.epsilon, upper_limit(reduced, PROB)),
            }
        return found

    @property
    def noise(self) -> Any:
        """Its distribution and scale."""
        noise = self.given.responses.noise
        return {"distribution": type(noise).__name__, "scale": noise.scale} if noise else None

    def audit(self, tree: xr.DataTree) -> Audit:
        """Return the result with its fit, where that says all between the epsilons of the grid."""
        given, coupling = self.given, self.given.fitted.coupling
        # Between them not everybody is known, or no pair of densities says all.
        if given.risks.reduced is not None or given.released.atoms is not None:
            return Audit(tree)
        found = coupling, given.epsilon, given.risks, self.bootstrap, given.released
        if isinstance(coupling, ReleasedCoupling):
            return Audit(tree, ReleasedCurves(coupling, *found[1:]))
        return Audit(tree, CoupledCurves(*found, given.again))

    def _densities(self) -> xr.Dataset:
        """Return densities with and without the kept individuals on a grid, of at most 500 draws.

        The grid reaches over all responses, with and without them.
        """
        given, kept = self.given, self.given.kept
        responses, fitted = given.responses, given.fitted
        y = responses.response
        without = [y - responses.collected[:, [int(i)]].toarray()[:, 0] for i in kept]
        everything = np.concatenate([y, *without])
        margin = DENSITY_REACH * float(y.std())
        x = np.linspace(everything.min() - margin, everything.max() + margin, DENSITY_POINTS)
        step = every_few(given.shape)
        full = getattr(fitted.coupling, "full", fitted.coupling)  # of what is rounded
        values: list[tuple[Array, Array]] = []
        last: Mixture | None = None
        for i in kept:
            p, q = full.pair(int(i))
            # the distribution with an individual who is always present is that with any such one
            known = last is not None and same(p, last)
            values.append((values[-1][0] if known else _logpdf(p, x, step), _logpdf(q, x, step)))
            last = p
        return densities(np.array(values), x, given.names[kept], given.shape)

    def _known(self, regression: Regression) -> xr.Dataset:
        """Return what the adversary knows, its coefficients, and all responses as released.

        Coefficients are in residual standard deviations, see `edp_bayes.models.regression`.
        """
        known, released, in_question = (
            regression.known,
            self.given.released,
            self.given.fitted.in_question,
        )
        assert in_question is not None
        everything = np.arange(released.n_databases)
        rest = explained(released, everything, known.insiders).on_scale
        return xr.Dataset(
            {
                "design": (("database", "term"), regression.design),
                "target": ("term", regression.target),
                "position": ("database", regression.position),
                "middle": ("term", in_question.middle),
                "coefficients": ((*LEAD, "term"), in_question.coefficients),
                "growth": (LEAD, in_question.growth),
                "shift": (LEAD, in_question.shift),
                "score": ("database", in_question.scores),
                "released": ("release", released.on_scale.response_by_database.mean(axis=1)),
                "less_insiders": ("release", rest.response_by_database.mean(axis=1)),
            },
            coords={
                **self.given.chains,
                "term": regression.terms,
                "database": labels.as_coordinate(known.responses.database),
                "release": labels.as_coordinate(released.database),
            },
            attrs={
                "centre": regression.units.centre,
                "spread": regression.units.spread,
                **known_attributes(regression, released),
            },
        )

    def _new_individual(self) -> xr.Dataset:
        """Return predictive draws of the risk of an individual not in the sample.

        By the urn of Blackwell and MacQueen of a Dirichlet process over individuals, of
        concentration one: one of the m in the sample, or with probability 1 / (m + 1) a new one.
        """
        given, risks, epsilon = self.given, self.given.risks, self.given.epsilon
        assert risks.copied is not None
        delta, exceeds = risks.copied.copy(), np.zeros(epsilon.size)
        new = getattr(given.fitted.coupling, "new_individual", None)
        if new is not None:
            chance = 1.0 / (risks.mean.shape[0] + 1.0)
            unlike = new(epsilon)
            exceeds = chance * (unlike > risks.delta).mean(axis=0)
            rows = given.settings.generator("unlike").random(len(delta)) < chance
            delta[rows] = unlike[rows]
        shape = (*given.shape, epsilon.size)
        return xr.Dataset(
            {
                "delta": ((*LEAD, "epsilon"), delta.reshape(shape)),
                "exceeds": ("epsilon", exceeds),
            },
            coords={**given.chains, "epsilon": epsilon},
        )

    def checks(self, posterior: xr.Dataset) -> tuple[list[dict[str, Any]], list[str]]:
        """Return every check as a row, and the sentences of those that failed.

        For a verdict those that take long and advise alone are not made.
        """
        given, raw, advice = self.given, self.given.raw, not self.given.for_verdict
        responses, released, fitted = given.responses, given.released, given.fitted
        regression, settings = given.regression, given.settings
        known = None if regression is None else regression.known
        delta = posterior["delta"].to_numpy().reshape(-1, posterior.sizes["epsilon"])
        grid, limit = posterior["epsilon"].to_numpy(), upper_limit(delta, PROB)
        atoms = released.atoms is not None
        density = _of_density(fitted.coupling)
        tests: list[diagnostics.Checks] = [
            *given.more,
            diagnostics.check_identifier(released, appear_once=given.appear_once),
            diagnostics.check_individuals(
                responses,
                epsilon=grid,
                upper=limit,
                pooled=not isinstance(density, ShiftCoupling),
            ),
            diagnostics.check_grid(raw.on_scale if atoms else raw, epsilon=grid, upper=limit),
            diagnostics.check_atoms(raw, epsilon=grid, upper=limit),
            *new_ones(responses, raw, known, grid, limit),
            *([] if atoms or not advice else [diagnostics.check_scale(raw)]),
            diagnostics.check_slopes(
                0 if fitted.in_question is None else fitted.in_question.slopes_known,
                responses.n_individuals,
            ),
            diagnostics.check_databases(
                responses,
                scores=None if fitted.in_question is None else fitted.in_question.scores,
                past=0 if known is None else known.past,
                regressors=0 if known is None else len(known.regressors),
                records=released,
                least=float(limit.min()),
                expected=_expected(regression, fitted),
                # of a model of one's own
                stated=stated_presence(density, responses)
                if fitted.attributes.get("contributions") == "drawn"
                else None,
            ),
            check_truncation(fitted.truncated, epsilon=grid, upper=limit),
        ]
        if isinstance(density, RegressionCoupling):
            tests.append(check_dominant(responses, density))
        if advice and isinstance(density, RegressionCoupling):
            seed = settings.generator("largest")
            tests.append(check_largest(density.posterior, responses, seed))
        if settings.chains * settings.draws >= diagnostics.MIN_REPLICATES:
            tests.append(
                diagnostics.posterior_predictive_check(
                    fitted.mixture,
                    responses,
                    settings.generator("replicates"),
                    advice=fitted.remedy,
                    adjusted=regression is not None,
                )
            )
        # Kernel estimates, which alone know `predictive`, are not compared with themselves;
        # residuals were fitted, which favours a kernel estimate of them.
        if fitted.predictive is None and regression is None:
            tests.append(diagnostics.check_detail(fitted.mixture, responses))
        said = () if known is None else known.warnings
        doubts = [*responses.warnings, *said, *fitted.warnings]
        rows, failed = checked(tests, posterior, responses, fitted, doubts, advice=advice)
        if given.risks.reduced is not None:
            most = upper_limit(given.risks.reduced, PROB)
            failed = [*failed, _of_reduced(responses, grid, most)]
        return rows, failed


def _signed(responses: Responses) -> Array:
    """Return the contribution of largest size of every individual, with its sign."""
    highest, lowest = (
        np.asarray(end(axis=0).todense()).ravel()
        for end in (responses.collected.max, responses.collected.min)
    )
    if (others := responses.remainder) is not None:
        lowest[others.individuals], highest[others.individuals] = others.lowest, others.highest
    return np.where(-lowest > highest, lowest, highest)


def _spread(responses: Responses) -> Array:
    """Return the standard deviation of every individual's contributions, where they are there.

    Of those not collected it is at most half the distance of the largest and the smallest.
    """
    found = responses.entries
    count = np.maximum(np.diff(found.start), 1)[:, None]
    about = found.value - (found.total(found.value) / count)[found.owner]
    spread = np.sqrt(found.total(np.square(about)) / count)[:, 0]
    if (others := responses.remainder) is not None:
        spread[others.individuals] = 0.5 * (others.highest - others.lowest)
    return spread


def _scale(released: Responses) -> dict[str, str]:
    """Return the scale on which the answers are modelled, and what they are without one."""
    if released.scale is None:
        return {}
    answers = released.replaced(transform=None)
    return {
        "transform": str(released.scale),
        "fingerprint_of_answers": answers.fingerprint,
        "scores": OF_ANSWERS if np.isfinite(released.log_slope).all() else ON_SCALE,
    }


def _of_reduced(responses: Responses, epsilon: Array, most: Array) -> Sentence:
    """Return in words how many individuals were bounded, and by how much."""
    count = int(responses.reduced.sum())
    return Sentence(
        f"{count:,} individuals were bounded, not evaluated, because their contributions were not "
        f"collected: {at_most(float(most[0]))} each at epsilon = {epsilon[0]:g}; these "
        "bounds are part of delta and of the total risk, and of no lower end"
    )


def _logpdf(mixture: Mixture, x: Array, step: int) -> Array:
    thinned = Mixture(
        mixture.weights[:, ::step],
        mixture.locations[:, ::step],
        mixture.scales[:, ::step],
        kernel=mixture.kernel,
        noise=mixture.noise,
    )
    return np.asarray(thinned.logpdf(x))


def _next_response(fitted: FittedModel) -> Mixture:
    """Return the distribution of the response in the database in question."""
    return fitted.mixture if fitted.in_question is None else fitted.in_question.next_response


def _without(without: Mapping[int, Mixture], chains: Mapping[str, Any]) -> xr.Dataset:
    """Return the distributions of the response without some individuals, by position."""
    people = np.array(list(without))
    widest = max(distribution.weights.shape[-1] for distribution in without.values())

    def stacked(name: str) -> Array:
        parts = [getattr(distribution, name) for distribution in without.values()]
        missing = [widest - part.shape[-1] for part in parts]
        # components of weight zero, where others have more
        how: Any = "constant" if name == "weights" else "edge"
        pads = [((0, 0), (0, 0), (0, count)) for count in missing]
        return np.stack([np.pad(p, pad, mode=how) for p, pad in zip(parts, pads, strict=True)])

    dims = ("position", *LEAD, "component")
    return xr.Dataset(
        {name: (dims, stacked(name)) for name in ("weights", "locations", "scales")},
        coords={**chains, "position": people},
    )


def _expected(regression: Regression | None, fitted: FittedModel) -> Array | None:
    """Return what the adversary expects in every database, but for a constant."""
    if regression is None or fitted.in_question is None:
        return None
    coefficients = fitted.in_question.coefficients
    return np.asarray(regression.design @ coefficients.mean(axis=(0, 1)))


def _of_density(coupling: Coupling) -> Coupling:
    """Return the coupling of a density, without atoms and of answers as they were fitted."""
    if isinstance(coupling, AtomCoupling):
        return coupling.density
    if isinstance(coupling, ReleasedCoupling):
        return _of_density(coupling.full)
    return coupling.known if isinstance(coupling, PastCoupling) else coupling
