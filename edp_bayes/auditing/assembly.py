"""Put the draws, the summaries and every diagnostic of an audit into one tree."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes import diagnostics
from edp_bayes.adversary.known import Explained, explained
from edp_bayes.adversary.usual import usual_adversary
from edp_bayes.auditing.drawn_groups import drawn_groups
from edp_bayes.auditing.epsilon_at import CoupledCurves
from edp_bayes.auditing.lower_bounds import lower_bounds, same
from edp_bayes.auditing.released import ReleasedCurves
from edp_bayes.auditing.resampled import Bootstrap
from edp_bayes.coupling.atoms import AtomCoupling
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.coupling.views.unseen_past import PastCoupling
from edp_bayes.diagnostics.convergence import convergence
from edp_bayes.diagnostics.dominant import check_dominant
from edp_bayes.diagnostics.largest import check_largest
from edp_bayes.diagnostics.stated import stated_presence
from edp_bayes.diagnostics.truncation import check_truncation
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.models.comparing import OF_ANSWERS
from edp_bayes.models.leave_one_out import LEAST_DRAWS, doubtful, leave_one_out
from edp_bayes.responses.atoms import at_atoms
from edp_bayes.responses.last_seen import last_seen
from edp_bayes.results.bands import upper_limit
from edp_bayes.results.query import Audit
from edp_bayes.results.recording import recorded
from edp_bayes.utils import labels
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.formatting import at_most
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from edp_bayes.auditing.evaluation import Risks
    from edp_bayes.coupling.base import Coupling
    from edp_bayes.models.base import FittedModel
    from edp_bayes.models.joint import FittedJoint
    from edp_bayes.models.joint_regression import JointRegression
    from edp_bayes.models.regression import InQuestion, Regression
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.joined import JointResponses
    from edp_bayes.responses.responses import Responses

__all__ = [
    "assemble",
    "checked",
    "common_record",
    "groups_of_fit",
    "known_attributes",
    "new_ones",
    "observed",
]

# Of which values log densities are, where a transform is modelled.
ON_SCALE = "on the modelled scale"
DENSITY_POINTS = 201
DENSITY_DRAWS = 500
DENSITY_REACH = 1.0


def assemble(
    *,
    responses: Responses,
    released: Responses,
    regression: Regression | None,
    fitted: FittedModel,
    epsilon: Array,
    risks: Risks,
    kept: NDArray[np.int64],
    settings: SamplerSettings,
    more: Sequence[diagnostics.Checks] = (),
    appear_once: bool = False,
    new_individual: bool = True,
    for_verdict: bool = False,
    keep_parameters: bool = True,
) -> Audit:
    """Return the audit; nothing is sampled here but replicates for the predictive check.

    `responses` are those of the database in question, `released` as they were; `more` are checks
    that were made before, `appear_once` that individuals are persons who come once,
    `new_individual` that the risk of one who is not in the sample is drawn, `keep_parameters` that
    draws of the model and what they predict are kept, `for_verdict` that what a verdict does not
    need is left out: these draws, densities on a grid, the fit's own groups, and checks that
    advise.
    """
    shape = (settings.chains, settings.draws)
    names = labels.as_coordinate(responses.individual)
    curves = risks.curves_of(kept, fitted.coupling, epsilon)
    least = risks.least_delta, risks.least_total_risk
    tested = lower_bounds(fitted.coupling, kept, curves, *least, epsilon)
    whole = None if released.atoms is None else released.n_databases
    bootstrap = Bootstrap.of(responses, settings, whole, residuals=regression is not None)
    shown = bootstrap.draws(fitted.coupling, kept, tested.means, epsilon)
    lead = ("chain", "draw")
    chains = {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])}
    posterior = xr.Dataset(
        {
            # First: ArviZ's tables stack values in the order of the data set's dimensions, but
            # label each variable in its own.
            "individual_delta": (
                (*lead, "individual", "epsilon"),
                curves.reshape(*shape, kept.size, epsilon.size),
            ),
            "delta": ((*lead, "epsilon"), risks.delta.reshape(*shape, -1)),
            "total_risk": ((*lead, "epsilon"), risks.total_risk.reshape(*shape, -1)),
            "total_risk_bound": ((*lead, "epsilon"), risks.total_risk_bound.reshape(*shape, -1)),
        },
        coords={**chains, "epsilon": epsilon, "individual": names[kept]},
    )
    raw = _raw(released, regression)
    more = (*more, diagnostics.check_identifier(released, appear_once=appear_once))
    checks, warnings = _checks(
        responses,
        released,
        raw,
        fitted,
        posterior,
        settings,
        regression,
        more,
        advice=not for_verdict,
    )
    seen = observed(responses)
    groups: dict[str, xr.Dataset] = {
        "posterior": posterior,
        "lower_bounds": xr.Dataset(
            {
                "individual_delta": ((*lead, "individual", "epsilon"), tested.individual_delta),
                "delta": ((*lead, "epsilon"), tested.delta),
                "total_risk": ((*lead, "epsilon"), tested.total_risk),
            },
            coords=posterior.coords.to_dataset().isel(draw=slice(None, None, tested.step)).coords,
        ),
        **({} if shown is None else {"resampled": shown.dataset(names[kept], epsilon)}),
        "individuals": _individuals(
            responses, raw, risks, names, epsilon, changed=_changed(released, regression)
        ),
        **(
            {} if for_verdict else {"densities": _densities(responses, fitted, kept, names, chains)}
        ),
        "mixture": _mixture(_next_response(fitted), chains),
        "observed_data": seen,
        **({} if released.scale is None else {"answers": observed(released)}),
        **({} if for_verdict else groups_of_fit(fitted, responses.database, chains)),
        **(drawn_groups(fitted, responses, seen, settings) if keep_parameters else {}),
    }
    if new_individual:
        groups["new_individual"] = _new_individual(fitted, risks, epsilon, settings, chains)
    if without := getattr(fitted.coupling, "without", None):
        groups["without"] = _without(without, chains)
    if fitted.in_question is not None and regression is not None:
        groups["known"] = _known(regression, fitted.in_question, released, chains)
    record = {
        "query": responses.query,
        "databases": released.n_databases,
        "individuals": responses.n_individuals,
        "samples": responses.samples,
        **({} if released.step is None else {"step": released.step}),
        "fingerprint": released.fingerprint,
        **({} if released.atoms is None else {"atoms": at_atoms(released).record}),
        **_scale(released),
        **common_record(released, settings, regression, fitted, epsilon, risks),
    }
    if risks.reduced is not None:
        most = upper_limit(risks.reduced, PROB)
        record["reduced"] = {
            "individuals": int(responses.reduced.sum()),
            "each_at_most": by_epsilon(epsilon, most),
        }
        warnings.append(_of_reduced(responses, epsilon, most))
    noise = responses.noise
    known = {"distribution": type(noise).__name__, "scale": noise.scale} if noise else None
    tree = recorded(groups, settings=record, checks=checks, warnings=warnings, noise=known)
    # Between the epsilons of the grid not everybody is known, or no pair of densities says all.
    if risks.reduced is not None or released.atoms is not None:
        return Audit(tree)
    if isinstance(fitted.coupling, ReleasedCoupling):
        return Audit(tree, ReleasedCurves(fitted.coupling, epsilon, risks, bootstrap, released))
    return Audit(tree, CoupledCurves(fitted.coupling, epsilon, risks, bootstrap, released))


def common_record(
    released: Responses | JointResponses,
    settings: SamplerSettings,
    regression: Regression | JointRegression | None,
    fitted: FittedModel | FittedJoint,
    epsilon: Array,
    risks: Risks,
) -> dict[str, Any]:
    """Return what stands in the settings of an audit of one query and of several."""
    partial = released.parts[0].partial
    bounded = np.any(risks.floor if risks.errors is None else risks.bounded)
    return {
        **({"read_as": released.read_as} if released.read_as else {}),
        **({} if partial is None else {"partial": partial.words}),
        **settings.record,
        **(_not_assumed(released) if regression is None else regression.record),
        "screened_out": by_epsilon(epsilon, risks.screened_bound),
        **({"bounded": by_epsilon(epsilon, risks.bounded.max(axis=0))} if bounded else {}),
        **fitted.attributes,
    }


def _not_assumed(released: Responses | JointResponses) -> dict[str, str]:
    """Return whom the command line would assume where nobody was given, if anybody."""
    usual = usual_adversary(released.database)
    return {} if usual is None else {"not_assumed": usual.words}


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


def groups_of_fit(
    fitted: FittedModel | FittedJoint, database: NDArray[Any], chains: Mapping[str, Any]
) -> dict[str, xr.Dataset]:
    """Return ArviZ's groups of a fit: its log likelihood, and what else it has."""
    coords = {"database": labels.as_coordinate(database)}
    found = {
        "log_likelihood": xr.Dataset(
            {"response": (("chain", "draw", "database"), fitted.log_likelihood)},
            coords={**chains, **coords},
        )
    }
    if fitted.predictive is not None:
        found["log_predictive"] = xr.Dataset({"response": ("database", fitted.predictive)}, coords)
    if fitted.log_prior is not None:
        found["log_prior"] = fitted.log_prior.assign_coords(chains)
    if fitted.sample_stats is not None:
        found["sample_stats"] = fitted.sample_stats
    return found


def by_epsilon(epsilon: Array, values: Array) -> dict[str, float]:
    """Return values by their epsilon as text, for settings."""
    return dict(zip(map(str, epsilon), map(float, values), strict=True))


def _raw(released: Responses, regression: Regression | None) -> Responses:
    """Return the responses of all databases as they were, without individuals who are insiders."""
    if regression is None:
        return released
    return explained(released, np.arange(released.n_databases), regression.known.insiders)


def _individuals(
    responses: Responses,
    raw: Responses,
    risks: Risks,
    names: NDArray[Any],
    epsilon: Array,
    *,
    changed: str,
) -> xr.Dataset:
    """Return what is known of everybody; contributions as they were made, in any database.

    Beside them, under the name `changed`, those that are modelled, where these are others.
    """
    adjusted = {changed: _signed(responses)} if changed else {}
    return xr.Dataset(
        {
            "mean": (("individual", "epsilon"), risks.mean),
            "sd": (("individual", "epsilon"), risks.deviation),
            "median": (("individual", "epsilon"), risks.median),
            "presence": ("individual", (responses if raw.atoms is None else raw).presence),
            "last_seen": ("individual", last_seen(raw)),
            "largest_contribution": ("individual", raw.largest_contribution),
            "signed_contribution": ("individual", _signed(raw)),
            "contribution_spread": ("individual", _spread(raw)),
            **{name: ("individual", values) for name, values in adjusted.items()},
        },
        coords={"individual": names, "epsilon": epsilon},
    )


def _changed(released: Responses, regression: Regression | None) -> str:
    """Return what contributions are called that are modelled on another scale or adjusted."""
    if regression is not None:
        return "adjusted_contribution"
    return "" if released.scale is None else "modelled_contribution"


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


def _densities(
    responses: Responses,
    fitted: FittedModel,
    kept: NDArray[np.int64],
    names: NDArray[Any],
    chains: Mapping[str, Any],
) -> xr.Dataset:
    """Densities with and without the kept individuals on a grid, of at most 500 draws.

    The grid reaches over all responses, with and without them. Logarithms give their ratio where
    both densities are too small for numbers of single precision.
    """
    y = responses.response
    without = [y - responses.collected[:, [int(i)]].toarray()[:, 0] for i in kept]
    everything = np.concatenate([y, *without])
    margin = DENSITY_REACH * float(y.std())
    x = np.linspace(everything.min() - margin, everything.max() + margin, DENSITY_POINTS)
    step = -(-chains["chain"].size * chains["draw"].size // DENSITY_DRAWS)
    full = getattr(fitted.coupling, "full", fitted.coupling)  # of what is rounded
    values: list[tuple[Array, Array]] = []
    last: Mixture | None = None
    for i in kept:
        p, q = full.pair(int(i))
        # the distribution with an individual who is always present is that with anybody else who is
        known = last is not None and same(p, last)
        values.append((values[-1][0] if known else _logpdf(p, x, step), _logpdf(q, x, step)))
        last = p
    dims = ("chain", "draw", "individual", "x")
    logs = np.moveaxis(np.array(values), (0, 1), (3, 0))
    stacked = np.exp(logs).astype(np.float32)
    return xr.Dataset(
        {
            "density_with": (dims, stacked[0]),
            "density_without": (dims, stacked[1]),
            "log_ratio": (dims, (logs[0] - logs[1]).astype(np.float32)),
        },
        coords={
            "chain": chains["chain"],
            "draw": chains["draw"][::step],
            "individual": names[kept],
            "x": x,
        },
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


def _mixture(mixture: Mixture, chains: Mapping[str, Any]) -> xr.Dataset:
    dims = ("chain", "draw", "component")
    return xr.Dataset(
        {name: (dims, getattr(mixture, name)) for name in ("weights", "locations", "scales")},
        coords=chains,
        attrs={"kernel": mixture.kernel},
    )


def _next_response(fitted: FittedModel) -> Mixture:
    """Return the distribution of the response in the database in question."""
    return fitted.mixture if fitted.in_question is None else fitted.in_question.next_response


def known_attributes(
    regression: Regression | JointRegression, released: Responses | JointResponses
) -> dict[str, Any]:
    """Return what the group known says of the adversary and of the database in question."""
    known = regression.known
    return {
        "target_position": known.target_position,
        "row": known.row,
        "scaled": int(known.scaled),
        "past": known.past,
        "insiders": json.dumps([released.index_of(name) for name in known.insiders]),
        "own": "".join(
            name_of(released.individual, released.index_of(label)).label
            for label in known.tellers[:1]
        ),
    }


def _known(
    regression: Regression, in_question: InQuestion, released: Responses, chains: Mapping[str, Any]
) -> xr.Dataset:
    """Return what the adversary knows, its coefficients, and all responses as they were released.

    Coefficients are in residual standard deviations, see `edp_bayes.models.regression`.
    """
    known, lead = regression.known, ("chain", "draw")
    everything = np.arange(released.n_databases)
    rest = explained(released, everything, known.insiders).on_scale
    return xr.Dataset(
        {
            "design": (("database", "term"), regression.design),
            "target": ("term", regression.target),
            "position": ("database", regression.position),
            "middle": ("term", in_question.middle),
            "coefficients": ((*lead, "term"), in_question.coefficients),
            "growth": (lead, in_question.growth),
            "shift": (lead, in_question.shift),
            "score": ("database", in_question.scores),
            "released": ("release", released.on_scale.response_by_database.mean(axis=1)),
            "less_insiders": ("release", rest.response_by_database.mean(axis=1)),
        },
        coords={
            **chains,
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


def _new_individual(
    fitted: FittedModel,
    risks: Risks,
    epsilon: Array,
    settings: SamplerSettings,
    chains: Mapping[str, Any],
) -> xr.Dataset:
    """Return predictive draws of the risk of an individual not in the sample.

    By the urn of Blackwell and MacQueen of a Dirichlet process over individuals, of concentration
    one: one of the m in the sample, or with probability 1 / (m + 1) a new individual.
    """
    assert risks.copied is not None
    delta, exceeds = risks.copied.copy(), np.zeros(epsilon.size)
    new = getattr(fitted.coupling, "new_individual", None)
    if new is not None:
        chance = 1.0 / (risks.mean.shape[0] + 1.0)
        unlike = new(epsilon)
        exceeds = chance * (unlike > risks.delta).mean(axis=0)
        rows = settings.generator("unlike").random(len(delta)) < chance
        delta[rows] = unlike[rows]
    shape = (chains["chain"].size, chains["draw"].size, epsilon.size)
    return xr.Dataset(
        {
            "delta": (("chain", "draw", "epsilon"), delta.reshape(shape)),
            "exceeds": ("epsilon", exceeds),
        },
        coords={**chains, "epsilon": epsilon},
    )


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

    dims = ("position", "chain", "draw", "component")
    return xr.Dataset(
        {name: (dims, stacked(name)) for name in ("weights", "locations", "scales")},
        coords={**chains, "position": people},
    )


def observed(responses: Responses | JointResponses) -> xr.Dataset:
    """Return the group observed_data, with a dim for samples or for queries where there are any."""
    values = responses.response.reshape(responses.n_databases, -1)
    coords: dict[str, Any] = {"database": labels.as_coordinate(responses.database)}
    if responses.response.ndim > 1:
        coords["query"] = list(responses.names)
        return xr.Dataset({"response": (("database", "query"), values)}, coords)
    if responses.samples == 1:
        return xr.Dataset({"response": ("database", values[:, 0])}, coords)
    return xr.Dataset({"response": (("database", "sample"), values)}, coords)


def _checks(
    responses: Responses,
    released: Responses,
    raw: Responses,
    fitted: FittedModel,
    posterior: xr.Dataset,
    settings: SamplerSettings,
    regression: Regression | None,
    more: Sequence[diagnostics.Checks],
    *,
    advice: bool,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return every check as a row, and the sentences of those that failed.

    `released` are the responses as they were, `raw` the same less what insiders contributed.
    Without `advice` those that take long and advise alone are not made.
    """
    delta = posterior["delta"].to_numpy().reshape(-1, posterior.sizes["epsilon"])
    grid, limit = posterior["epsilon"].to_numpy(), upper_limit(delta, PROB)
    atoms = released.atoms is not None
    density = _of_density(fitted.coupling)
    tests: list[diagnostics.Checks] = [
        *more,
        diagnostics.check_individuals(
            responses,
            epsilon=grid,
            upper=limit,
            pooled=not isinstance(density, ShiftCoupling),
        ),
        diagnostics.check_grid(raw.on_scale if atoms else raw, epsilon=grid, upper=limit),
        diagnostics.check_atoms(raw, epsilon=grid, upper=limit),
        *new_ones(responses, raw, None if regression is None else regression.known, grid, limit),
        *([] if atoms or not advice else [diagnostics.check_scale(raw)]),
        diagnostics.check_slopes(
            0 if fitted.in_question is None else fitted.in_question.slopes_known,
            responses.n_individuals,
        ),
        diagnostics.check_databases(
            responses,
            scores=None if fitted.in_question is None else fitted.in_question.scores,
            past=0 if regression is None else regression.known.past,
            regressors=0 if regression is None else len(regression.known.regressors),
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
    # Kernel estimates, which alone know `predictive`, are not compared with themselves; residuals
    # were fitted, which favours a kernel estimate of them.
    if fitted.predictive is None and regression is None:
        tests.append(diagnostics.check_detail(fitted.mixture, responses))
    known = () if regression is None else regression.known.warnings
    doubts = [*responses.warnings, *known, *fitted.warnings]
    return checked(tests, posterior, responses, fitted, doubts, advice=advice)


def new_ones(
    responses: Responses | JointResponses,
    raw: Responses | JointResponses,
    given: Explained | None,
    epsilon: Array,
    upper: Array,
) -> tuple[diagnostics.Checks, ...]:
    """Return the check of newcomers; of a database that was seen presence is known."""
    if given is not None and given.at is not None:
        return ()
    found = diagnostics.check_newcomers(
        responses,
        raw,
        epsilon=epsilon,
        upper=upper,
        fewest=1 if given is not None and given.timed else 2,
        regressors=0 if given is None else len(given.regressors),
    )
    return (found,)


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


def checked(
    tests: Sequence[diagnostics.Checks],
    posterior: xr.Dataset,
    responses: Responses | JointResponses,
    fitted: FittedModel | FittedJoint,
    doubts: Sequence[str],
    *,
    advice: bool = True,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return checks, those of the draws and a score among them, as rows, and all that is doubtful.

    `doubts` is what was doubtful before. Without `advice` the draws are not checked, nor scored:
    neither withholds a verdict.
    """
    rows, failed = _of_draws(posterior, responses, fitted) if advice else ([], [])
    tables = [test.table().reset_index() for test in tests]
    found = [row for table in tables for row in json.loads(table.to_json(orient="records"))]
    said = [check.sentence for test in tests for check in test.checks]
    tested = [row | {"sentence": sentence} for row, sentence in zip(found, said, strict=True)]
    sentences = [sentence for test in tests for sentence in test.warnings]
    return [*tested, *rows], [*doubts, *sentences, *failed]


def _of_draws(
    posterior: xr.Dataset,
    responses: Responses | JointResponses,
    fitted: FittedModel | FittedJoint,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the checks of the draws and the score of the model, and those that failed."""
    checks, failed = convergence(
        posterior[["delta", "total_risk"]],
        divergences=fitted.divergences,
        independent=fitted.independent,
        diverging=fitted.diverging,
    )
    score = _score_row(responses, fitted)
    return [*checks, score], [*failed, *([] if score["passed"] else [score["sentence"]])]


def _score_row(
    responses: Responses | JointResponses, fitted: FittedModel | FittedJoint
) -> dict[str, Any]:
    """Out-of-sample log density: the model's own where it has one, by PSIS-LOO otherwise."""
    name = "out-of-sample log density"
    if fitted.predictive is not None:
        total = float(fitted.predictive.sum())
        text = f"Leave-one-out log predictive density {total:.2f}."
        return {"check": name, "statistic": total, "passed": True, "sentence": Sentence(text)}
    draws = int(np.prod(fitted.log_likelihood.shape[:2]))
    if draws < LEAST_DRAWS:
        text = f"{draws} draws are too few for PSIS-LOO, which needs at least {LEAST_DRAWS}."
        return {"check": name, "statistic": None, "passed": False, "sentence": Sentence(text)}
    found = leave_one_out(fitted.log_likelihood)
    bad = doubtful(found)
    text = f"PSIS-LOO log predictive density {float(found.elpd):.2f} (se {float(found.se):.2f})"
    if bad:
        text += (
            f"; {bad} of {responses.n_databases} databases have a Pareto k above "
            f"{float(found.good_k):.2f}, so a few databases dominate the fit."
        )
    return {
        "check": name,
        "statistic": float(found.elpd),
        "passed": bad == 0,
        "sentence": Sentence(text if bad else f"{text}."),
    }
