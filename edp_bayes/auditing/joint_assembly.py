"""Put the draws, the summaries and every diagnostic of a joint audit into one tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes import diagnostics
from edp_bayes.adversary.known import explained
from edp_bayes.auditing.assembly import checked, common_record, groups_of_fit, new_ones, observed
from edp_bayes.auditing.drawn_groups import drawn_groups
from edp_bayes.auditing.joint_knowledge import answers_in_question, known_group
from edp_bayes.auditing.lower_bounds import lower_bounds
from edp_bayes.auditing.resampled import Answers, Bootstrap
from edp_bayes.coupling.curves.direction import most_exposing
from edp_bayes.diagnostics.joint import (
    check_joint_databases,
    check_joint_grid,
    joint_predictive_check,
)
from edp_bayes.diagnostics.truncation import check_truncation
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise
from edp_bayes.responses.joined import JointResponses
from edp_bayes.responses.last_seen import last_seen
from edp_bayes.results.bands import upper_limit
from edp_bayes.results.joint import JointAudit
from edp_bayes.results.recording import recorded
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    from edp_bayes.auditing.evaluation import Risks
    from edp_bayes.coupling.joint import JointCoupling
    from edp_bayes.models.joint import FittedJoint
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.dependence import Dependence

__all__ = ["assemble_joint"]

DENSITY_POINTS, DENSITY_DRAWS, DENSITY_REACH = 201, 500, 1.0
LEAD = ("chain", "draw")


def assemble_joint(
    *,
    responses: JointResponses,
    released: JointResponses,
    regression: JointRegression | None,
    fitted: FittedJoint,
    epsilon: Array,
    risks: Risks,
    kept: Index,
    settings: SamplerSettings,
    appear_once: bool = False,
    keep_parameters: bool = True,
) -> JointAudit:
    """Return the audit; `responses` are those of all queries, also of redundant ones.

    Given a regression they are those that it explains, `released` all of them as they were.
    """
    shape = (settings.chains, settings.draws)
    names, coupling = labels.as_coordinate(responses.individual), fitted.coupling
    curves = coupling.curves(kept, epsilon)
    lines = _Lines.of(coupling, kept, shape)
    least = risks.least_delta, risks.least_total_risk
    below = np.maximum(curves.value - curves.error, 0.0)
    everybody = np.arange(kept.size)
    tested = lower_bounds(lines, everybody, below, *least, epsilon)
    n, residuals = coupling.responses.n_databases, regression is not None
    bootstrap = Bootstrap(lines.answers, n, 1, settings, residuals=residuals)
    shown = bootstrap.draws(lines, everybody, tested.means, epsilon)
    chains = {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}
    coords = {**chains, "epsilon": epsilon, "individual": names[kept]}

    def dataset(individual: Array, others: dict[str, Array]) -> xr.Dataset:
        found: dict[str, Any] = {
            "individual_delta": (
                (*LEAD, "individual", "epsilon"),
                individual.reshape(*shape, kept.size, -1),
            )
        }
        for name, values in others.items():
            found[name] = ((*LEAD, "epsilon"), values.reshape(*shape, -1))
        return xr.Dataset(found, coords=coords)

    quantities = ("delta", "total_risk", "total_risk_bound")
    found = {name: getattr(risks, name) for name in quantities}
    posterior = dataset(curves.value, found)
    raised = {name: risks.safe(name) - found[name] for name in quantities}
    tests = tested.individual_delta, tested.delta, tested.total_risk
    # of those revealed exactly the bound is their risk itself
    revealed = np.isin(kept, list(coupling.revealed))
    exact = curves.value.reshape(*shape, kept.size, -1)[:, :: tested.step]
    certain = np.where(revealed[:, None], exact, 0.0).max(axis=2)
    groups: dict[str, xr.Dataset] = {
        "posterior": posterior,
        "integration_error": dataset(curves.error, raised),
        "lower_bounds": xr.Dataset(
            {
                "individual_delta": (
                    (*LEAD, "individual", "epsilon"),
                    np.where(revealed[:, None], exact, tests[0]),
                ),
                "delta": ((*LEAD, "epsilon"), np.maximum(tests[1], certain)),
                "total_risk": ((*LEAD, "epsilon"), np.maximum(tests[2], certain)),
            },
            coords=posterior.coords.to_dataset().isel(draw=slice(None, None, tested.step)).coords,
        ),
        **({} if shown is None else {"resampled": shown.dataset(names[kept], epsilon)}),
        "individuals": _individuals(responses, coupling, risks, names, epsilon),
        "densities": lines.densities(names[kept], shape),
        "direction": xr.Dataset(
            {
                "direction": (
                    ("individual", "query"),
                    lines.in_all(responses, fitted.dependence, kept),
                )
            },
            coords={"individual": names[kept], "query": list(responses.names)},
        ),
        "mixture": _mixture(fitted, responses, chains),
        "observed_data": observed(responses if fitted.in_question is None else fitted.responses),
        **groups_of_fit(fitted, responses.database, chains),
        **(
            drawn_groups(fitted, fitted.responses, observed(fitted.responses), settings)
            if keep_parameters
            else {}
        ),
    }
    if regression is not None and fitted.in_question is not None:
        group = known_group(regression, fitted.in_question, released, chains)
        groups["known"] = group
        groups["in_question"] = answers_in_question(
            coupling,
            fitted.in_question.shift,
            kept,
            names[kept],
            group["query"].to_numpy().tolist(),
        )
    insiders = () if regression is None else regression.known.insiders
    checks, warnings = _checks(
        responses, fitted, posterior, settings, regression, released, insiders, appear_once
    )
    record = {
        "query": responses.query,
        "queries": list(responses.names),
        "redundant": [n for k, n in enumerate(responses.names) if k not in fitted.dependence.kept],
        "databases": released.n_databases,
        "individuals": responses.n_individuals,
        "samples": 1,
        "fingerprint": released.fingerprint,
        **common_record(released, settings, regression, fitted, epsilon, risks),
    }
    noises = [
        {"query": name, "distribution": type(part.noise).__name__, "scale": part.noise.scale}
        for name, part in zip(responses.names, responses.parts, strict=True)
        if part.noise is not None
    ]
    tree = recorded(groups, settings=record, checks=checks, warnings=warnings, noise=noises or None)
    return JointAudit(tree, fit=coupling)


@dataclass(frozen=True, eq=False)
class _Lines:
    """The distributions with and without some individuals, along the direction that exposes each.

    A combination of the answers tells no more than the answers do, so that risks along it are lower
    bounds. It is measured in standard deviations of that combination of the responses.
    """

    pairs: list[tuple[Mixture, Mixture]]
    directions: Array
    coupling: JointCoupling
    kept: Index

    @classmethod
    def of(cls, coupling: JointCoupling, kept: Index, shape: tuple[int, int]) -> _Lines:
        pairs, directions = [], []
        for person in kept:
            p, q = coupling.pair(int(person))
            direction = most_exposing(p, q, coupling.noise)
            directions.append(direction)
            pairs.append(
                tuple(_shaped(part.along(direction, coupling.noise), shape) for part in (p, q))
            )
        return cls(pairs, np.array(directions), coupling, kept)  # type: ignore[arg-type]

    @property
    def mixture(self) -> Mixture:
        """Any of the distributions: only its chains and draws are asked for."""
        return self.pairs[0][0]

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return self.coupling.n_draws

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return those with and without the individual in this place."""
        return self.pairs[individual]

    def answers(self, individual: int) -> Answers:
        """Return the answers with and without the individual in this place, along the direction."""
        direction, units = self.directions[individual], self.coupling.units
        entries, noise = self.coupling.responses.entries, self.coupling.noise
        own = entries.owner == self.kept[individual]
        whole = units.whiten(self.coupling.responses.response) @ direction
        without = whole.copy()
        without[entries.database[own]] -= units.shrink(entries.value[own]) @ direction
        variance = float(direction @ noise @ direction)
        return Answers(whole, without, GaussianNoise(np.sqrt(variance)) if variance else None)

    def in_all(self, responses: JointResponses, dependence: Dependence, kept: Index) -> Array:
        """Return unit directions in the units of all queries, shape (individual, query).

        Of those revealed exactly, the combination that reveals them.
        """
        raw = self.directions @ np.linalg.inv(self.coupling.units.factor)
        out = np.zeros((len(raw), responses.n_queries))
        out[:, list(dependence.kept)] = raw
        for one in dependence.revealed:
            out[kept == one.individual] = one.combination
        return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True))

    def densities(self, names: NDArray[Any], shape: tuple[int, int]) -> xr.Dataset:
        """Return densities on a grid, of at most 500 draws, and where the responses lie on it."""
        z = self.coupling.units.whiten(self.coupling.responses.response)
        observed = self.directions @ z.T
        low, high = observed.min() - DENSITY_REACH, observed.max() + DENSITY_REACH
        for _, q in self.pairs:
            middle, spread = q.mean().mean(), np.sqrt(q.variance()).mean()
            low, high = min(low, middle - 2.0 * spread), max(high, middle + 2.0 * spread)
        x = np.linspace(low, high, DENSITY_POINTS)
        step = -(-shape[0] * shape[1] // DENSITY_DRAWS)
        logs = np.array([[part[:, ::step].logpdf(x) for part in pair] for pair in self.pairs])
        logs = np.moveaxis(logs, (0, 1), (3, 0))
        dims, values = (*LEAD, "individual", "x"), np.exp(logs).astype(np.float32)
        return xr.Dataset(
            {
                "density_with": (dims, values[0]),
                "density_without": (dims, values[1]),
                "log_ratio": (dims, (logs[0] - logs[1]).astype(np.float32)),
                "response": (("individual", "database"), observed),
            },
            coords={
                "chain": np.arange(shape[0]),
                "draw": np.arange(shape[1])[::step],
                "individual": names,
                "x": x,
            },
        )


def _shaped(mixture: Mixture, shape: tuple[int, int]) -> Mixture:
    parts = (mixture.weights, mixture.locations, mixture.scales)
    return Mixture(*(part.reshape(*shape, -1) for part in parts))


def _individuals(
    responses: JointResponses,
    coupling: JointCoupling,
    risks: Risks,
    names: NDArray[Any],
    epsilon: Array,
) -> xr.Dataset:
    """Return what is known of everybody.

    Contributions are in standard deviations of all answers together, and adjusted to the database
    in question where there is an adversary.
    """
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
        coords={"individual": names, "epsilon": epsilon},
    )


def _mixture(fitted: FittedJoint, responses: JointResponses, chains: dict[str, Any]) -> xr.Dataset:
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
        coords={**chains, "query": kept, "other_query": kept},
        attrs={"kernel": "gaussian"},
    )


def _checks(
    responses: JointResponses,
    fitted: FittedJoint,
    posterior: xr.Dataset,
    settings: SamplerSettings,
    regression: JointRegression | None,
    released: JointResponses,
    insiders: tuple[Any, ...],
    appear_once: bool,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return every check as a row, and the sentences of those that failed."""
    kept, one = fitted.responses, fitted.in_question
    delta = posterior["delta"].to_numpy().reshape(-1, posterior.sizes["epsilon"])
    grid, limit = posterior["epsilon"].to_numpy(), upper_limit(delta, PROB)
    raw = explained(released, np.arange(released.n_databases), insiders)
    tests: list[diagnostics.Checks] = [
        diagnostics.check_individuals(kept, epsilon=grid, upper=limit, pooled=fitted.pooled),
        diagnostics.check_identifier(released, appear_once=appear_once),
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
