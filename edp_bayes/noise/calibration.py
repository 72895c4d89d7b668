"""`edp.noise.calibrate`: the noise that a query needs, and no more."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.coupling.contributions.exposure import raw_exposure
from edp_bayes.diagnostics.individuals import (
    MATERIAL,
    MOST_RATIO,
    conflict_ratios,
    conflict_sentence,
    conflicts,
)
from edp_bayes.distributions.noise import LaplaceNoise, NoNoise
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError
from edp_bayes.noise import closed_forms
from edp_bayes.noise.certificates.ratios import certified_log_ratios, several_scales
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import Posterior, posterior_of
from edp_bayes.noise.scales import (
    SmallestScale,
    exposed,
    largest_risk,
    protected_share,
    smallest_scale,
)
from edp_bayes.noise.search import (
    OutOfTimeError,
    TimeLimitError,
    more_time,
    say,
    searching,
)
from edp_bayes.responses.responses import Responses
from edp_bayes.results.bands import upper_limit
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import NOISE_METHOD, PROB
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from edp_bayes.models.base import FittedModel
    from edp_bayes.noise.optimal.lattice_noise import Optimum
    from edp_bayes.results.query import Audit

__all__ = ["METHODS", "calibrate"]

METHODS = ("laplace", "gaussian", "bottleneck", "partial", "optimal", "hausdorff")
PURE_ONLY = ("bottleneck", "partial", "hausdorff")
LEAST_DELTA = 1e-9
GAIN = 0.01  # on Laplace noise, below which no other shape is looked for
LITTLE = 0.05  # the same where Laplace noise is larger than the spread of the response
COARSE = 10.0  # points of a lattice for a scale of noise larger than the spread of the response
SEARCHES = ("laplace", "gaussian", "optimal")
DRAWS = 80  # of each chain, for these: their time is in proportion
WIDER = 1.05
MOST_STEPS = 10_000  # of a lattice of noise across the responses
STANDS_OUT = 2.0  # times the next largest contribution


def calibrate(
    source: Responses | Audit | FittedModel | Posterior,
    *,
    epsilon: float,
    delta: float = 0.0,
    method: str = NOISE_METHOD,
    prob: float = PROB,
    objective: str = "absolute",
    symmetric: bool = True,
    spacing: float | None = None,
    time_limit: float | None = None,
    responses: Responses | None = None,
    progressbar: bool = True,
    **fit_options: Any,
) -> NoiseDistribution:
    """Return the least noise that makes a query (epsilon, delta) private under the posterior.

    Parameters
    ----------
    source : Responses, Audit or FittedModel
        Responses are fitted as `edp_bayes.audit` fits them; an audit or a fitted model needs
        `responses` beside it.
    epsilon : float
        Above zero.
    delta : float
        Zero, or from 1e-9 to one.
    method : {"laplace", "gaussian", "bottleneck", "partial", "optimal", "hausdorff"}
        "laplace", the default, and "gaussian" look for the smallest scale; "bottleneck" is Laplace
        noise of scale max_i W_inf(p, p_i) / epsilon, "partial" the same with an atom at zero, for
        Laplace kernels; "optimal" looks for the distribution of any shape with the least expected
        absolute noise, by a linear program that may take minutes, and takes Laplace noise where no
        other shape gains. "hausdorff" is the published construction, which guarantees nothing.
    prob : float
        Share of the posterior draws, between 0 and 1, in which the target must hold for every
        individual.
    objective : {"absolute", "variance"}
        What "optimal" makes small: expected absolute noise, or its second moment. This and the two
        arguments that follow are for "optimal" alone, and are refused with another method.
    symmetric : bool
        Whether "optimal" noise has to be symmetric about zero. Without it the noise is smaller,
        but has a mean other than zero.
    spacing : float, optional
        Spacing of the lattice of "optimal", in the units of the response.
    time_limit : float, optional
        Seconds that the search may take once the model is fitted; no limit by default. Where it
        ends early the best noise that is known to be enough is returned, and its record says so. A
        tenth more, and a second at least, may go into the bound on the least noise.
    responses : Responses, optional
        The data of an audit or a fitted model.
    progressbar : bool
        Show progress.
    **fit_options
        model, draws, tune, chains, random_seed, ... of `edp_bayes.audit`; if not given, 80 draws of
        each chain for "laplace", "gaussian" and "optimal", which search, and 250 for the others.
        "optimal" is made for every other draw then; where it holds in too few of all of them,
        Laplace noise that does takes its place.

    Returns
    -------
    NoiseDistribution
        Its `record` says what it was found for and what was reached: the share of draws in which
        the target holds, certified by a bound on the noisy densities or proved for the method
        (`proved`); for "optimal" and delta = 0 also the lower bound that no distribution of noise
        (no symmetric one, if it has to be symmetric) can beat in the draws in which this one was
        made to hold. Where the target is met already it is no noise, and the record says so. After
        a search that `time_limit` ended, `stopped_early` is true, `lower_bound` is what no noise
        that "optimal" looks for can beat (or what could not be certified for "laplace" and
        "gaussian"), and `gap` its relative distance.

    Raises
    ------
    TimeLimitError
        If no noise was known to be enough when the time limit passed.
    InvalidInputError
        If a target is out of range or cannot be reached by the method, if an argument is not one
        of the method's, if no noise would be enough although the contributions of an individual
        contradict that, or if epsilon is so large that the lattice of "optimal" had more than
        10,000 points across the responses.
    SolverError
        If the linear program has no solution; the message holds the solver's status.

    Warns
    -----
    EdpBayesWarning
        If the noise is larger than the spread of the estimated distribution of the response, and
        always for "hausdorff".

    See Also
    --------
    verify : audit a query with noise added
    tradeoff : the noise for each of several targets
    release : one noisy answer
    edp_bayes.remedies : what would help where a target is not met

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> from edp_bayes.noise.posterior import FixedBandwidth
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (30, 4))
    >>> response = rng.normal(10.0, 1.0, 30) + contribution.sum(axis=1)
    >>> data = edp.Responses.from_arrays(response, contribution=contribution)
    >>> noise = edp.noise.calibrate(data, epsilon=0.5, method="laplace", model=FixedBandwidth(0.6))
    >>> noise.record["reached"]
    1.0
    """
    target, slack, share = check(epsilon, delta, method=method, prob=prob)
    validate.choice(objective, ("absolute", "variance"), "objective")
    shape = {"objective": objective, "symmetric": symmetric, "spacing": spacing}
    _refuse_shape(method, shape)
    limit = None if time_limit is None else validate.positive_number(time_limit, "time_limit")
    fitting = default_draws(source, method, fit_options)
    halved = method == "optimal" and len(fitting) > len(fit_options)
    posterior = posterior_of(source, responses=responses, progressbar=progressbar, **fitting)
    with searching(limit, show=progressbar):
        try:
            found = _searched(
                posterior, target, slack, method=method, prob=share, halved=halved, **shape
            )
        except OutOfTimeError:
            quicker = slack == 0.0 and method not in PURE_ONLY
            closed = ", or method='bottleneck' (--method)" if quicker else ""
            raise TimeLimitError(
                f"no noise was known to be enough when the time limit of {limit:g} s passed: give "
                "a longer time_limit (--time-limit), fewer draws (--draws) or a larger epsilon"
                f"{closed}"
            ) from None
    return found


def _searched(
    posterior: Posterior,
    target: float,
    slack: float,
    *,
    method: str,
    prob: float,
    halved: bool,
    **shape: Any,
) -> NoiseDistribution:
    """Return noise made for the posterior, or for half of its draws and then held to all of them.

    Noise of any shape is made so closely for some draws that it may hold in too few of others:
    Laplace noise takes its place then.
    """
    record: dict[str, Any] = {
        "method": method,
        "epsilon": target,
        "delta": slack,
        "prob": prob,
        "draws": posterior.n_draws,
        "individuals": posterior.n_individuals,
        "fingerprint": posterior.fingerprint,
        **{name: posterior.record[name] for name in ("against", "at") if name in posterior.record},
    }
    say("Is the query private without noise?")
    met, people, largest = _without_noise(posterior, target, slack, prob)
    if met is not None and method != "hausdorff":
        _refuse_exposed(posterior, target, slack, prob, largest)
        record |= {"reached": met, "message": _met_already(posterior, target, slack, met)}
        return NoiseDistribution((NoNoise(),), record=record)
    made_for = posterior.half if halved else posterior
    noise, details = _find(
        made_for, target, slack, people=people, method=method, prob=prob, **shape
    )
    record |= details
    if halved and not details.get("stopped_early", False):
        say("Does the noise hold in draws it was not made for?")
        if _share(posterior, noise, target, slack, people, least=prob) < prob:
            noise, details = _find(
                posterior, target, slack, people=people, method="laplace", prob=prob, **shape
            )
            record |= {**details, "lower_bound": None, "margin": 0.0}
    if not details.get("stopped_early", False):
        say("Verifying the noise")
        with more_time(), suppress(OutOfTimeError):
            certified = _share(posterior, noise, target, slack, people)
            # A bound on the log ratio may be too large for noise that is proved to be enough.
            proved = 0.0 if halved else record["reached"]
            record["reached"] = max(certified, proved)
    record["message"] = _message(posterior, noise, record)
    return NoiseDistribution(noise.components, noise.weights, record)


def _share(
    posterior: Posterior,
    noise: NoiseDistribution,
    epsilon: float,
    delta: float,
    people: Index,
    *,
    least: float = 0.0,
) -> float:
    """Return the share of draws in which noise is enough, certified or proved in closed form."""
    share = protected_share(posterior, noise, epsilon, delta, people, least=least)
    only = noise.components[0]
    if share >= max(least, 1.0) or delta > 0.0 or not isinstance(only, LaplaceNoise):
        return share
    if len(noise.components) > 1:
        return share
    return max(share, float((closed_forms.laplace_scales(posterior, epsilon) <= only.scale).mean()))


def check(epsilon: float, delta: float, *, method: str, prob: float) -> tuple[float, float, float]:
    """Return epsilon, delta and prob as numbers; refuse what no data could make right.

    Raises
    ------
    InvalidInputError
        If a number is out of range, or the method is unknown or cannot reach the target.
    """
    target = float(validate.epsilon_grid(validate.positive_number(epsilon, "epsilon"))[0])
    slack = _delta(delta)
    share = validate.probability(prob, "prob")
    validate.choice(method, METHODS, "method")
    if slack > 0.0 and method in PURE_ONLY:
        raise InvalidInputError(
            f"{method} noise is made for delta = 0; use method='laplace' (--method), 'gaussian' "
            f"or 'optimal' for delta = {slack:g}"
        )
    if slack == 0.0 and method == "gaussian":
        raise InvalidInputError(
            "Gaussian noise is made for delta above 0: the tails of normal distributions fall so "
            "fast that the log ratio of two shifted ones has no bound; give a delta or use "
            "method='laplace' (--method)"
        )
    return target, slack, share


def default_draws(source: object, method: str, fit_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a fit, with fewer draws for a search where none are asked for."""
    if isinstance(source, Responses) and method in SEARCHES and "draws" not in fit_options:
        return {**fit_options, "draws": DRAWS}
    return dict(fit_options)


def _refuse_shape(method: str, shape: Mapping[str, Any]) -> None:
    """Refuse what says how "optimal" noise is to look where another method is asked for."""
    plain = {"objective": "absolute", "symmetric": True, "spacing": None}
    given = [f"{name}={shape[name]!r}" for name in plain if shape[name] != plain[name]]
    if given and method != "optimal":
        raise InvalidInputError(
            f"{', '.join(given)} is for method='optimal', the noise of any shape, and the method "
            f"is {method!r}: ask for 'optimal', or leave it out"
        )


def _without_noise(
    posterior: Posterior, epsilon: float, delta: float, prob: float
) -> tuple[float | None, Index, Array | None]:
    """Return the share of draws protected as it is, if enough, and the individuals that matter.

    For delta above 0 also the largest risk of any individual in every draw.
    """
    if delta > 0.0:
        risk, people = exposed(posterior, epsilon, delta)
        share = float((risk <= delta).mean())
        return (share if share >= prob else None), people, risk
    nothing = NoiseDistribution((NoNoise(),))
    people = np.arange(posterior.n_individuals)
    share = protected_share(posterior, nothing, epsilon, delta, least=prob)
    return share or None, people, None


def _refuse_exposed(
    posterior: Posterior, epsilon: float, delta: float, share: float, largest: Array | None = None
) -> None:
    """Refuse to say that no noise is needed where an individual contradicts the model."""
    if posterior.responses is None:
        return
    grid = np.array([epsilon])
    exposure = raw_exposure(posterior.responses, grid)
    if exposure.max() <= max(MATERIAL, MOST_RATIO * delta):
        return
    if largest is None:
        largest, _ = exposed(posterior, epsilon, delta)
    upper = upper_limit(largest[:, None], share)
    people = conflicts(conflict_ratios(exposure, upper))
    if people.size:
        said = conflict_sentence(
            posterior.responses, people, epsilon, float(exposure[people[0], 0]), float(upper[0])
        )
        raise InvalidInputError(
            f"no noise would be enough under this model, which cannot be relied on. {said}. "
            "Calibrate with model=SmoothedBootstrap(), which pools nobody, or audit again with it "
            "(--model bootstrap)"
        )


def _find(
    posterior: Posterior,
    epsilon: float,
    delta: float,
    *,
    people: Index,
    method: str,
    prob: float,
    objective: str,
    symmetric: bool,
    spacing: float | None,
) -> tuple[NoiseDistribution, Mapping[str, Any]]:
    if method == "hausdorff":
        return closed_forms.hausdorff(posterior, epsilon), {"reached": 0.0}
    say("Noise in closed form")
    scales = closed_forms.laplace_scales(posterior, epsilon)
    sound = closed_forms.bottleneck(scales, prob)
    size = sound.mean_absolute
    proved = float((scales <= size).mean())
    if method == "bottleneck":
        return sound, {"proved": proved, "reached": proved}
    if method == "partial":
        noise, share = closed_forms.partial(posterior, scales, prob)
        return noise, {"proved": share, "reached": share}
    if not math.isfinite(size):
        size = float(np.sqrt(posterior.coupling.mixture.variance()).max()) / epsilon
    search: dict[str, Any] = {"prob": prob, "start": size, "people": people}
    if method == "gaussian":
        found = smallest_scale(posterior, method, epsilon, delta, **search)
        return found.noise, _of_scale(found)
    found = smallest_scale(posterior, "laplace", epsilon, delta, known=scales, **search)
    laplace, details = found.noise, _of_scale(found)
    # Far from epsilon = 1 certificates are coarser than what is proved in closed form.
    if delta == 0.0 and sound.mean_absolute <= laplace.mean_absolute:
        laplace, details = sound, {**details, "proved": proved, "reached": proved}
    if method == "laplace":
        return laplace, details
    shape: dict[str, Any] = {"objective": objective, "symmetric": symmetric}
    if not found.complete:
        return laplace, {**shape, **details, **_stopped(0.0, laplace, objective), "margin": 0.0}
    if delta == 0.0 and _uncertain_tails(posterior):
        return laplace, {**shape, **details, "lower_bound": None, "margin": 0.0}
    try:
        best = _optimum(
            posterior,
            epsilon,
            delta,
            prob=prob,
            sound=size,
            laplace=found,
            spacing=spacing,
            people=people,
            **shape,
        )
    except OutOfTimeError:
        return laplace, {**shape, **details, **_stopped(0.0, laplace, objective), "margin": 0.0}
    # Where nothing is to be gained a lattice may lose a little against the distribution it stands
    # for.
    noise = laplace if best.noise is None else best.noise
    coarse = noise is laplace or _size(laplace, objective) < _size(noise, objective)
    if coarse:
        noise = laplace
    else:
        details = {"reached": float(best.active.mean())}
    bounded = delta == 0.0 and (best.active.all() or not coarse)
    ended: dict[str, Any] = {"lower_bound": best.lower if bounded else None}
    if not best.complete:
        ended = _stopped(best.lower, noise, objective)
    return noise, {**shape, **details, **ended, "margin": 0.0 if coarse else best.margin}


def _of_scale(found: SmallestScale) -> dict[str, Any]:
    """Return what is known of noise of the smallest scale."""
    details: dict[str, Any] = {"reached": float(found.held.mean())}
    if not found.complete:
        details |= _stopped(found.too_little, found.noise, "absolute")
    return details


def _stopped(lower: float, noise: NoiseDistribution, objective: str) -> dict[str, Any]:
    """Return what the record says of a search that its time limit ended."""
    gap = 1.0 - lower / _size(noise, objective)
    return {"stopped_early": True, "lower_bound": lower, "gap": max(gap, 0.0)}


def _optimum(
    posterior: Posterior,
    epsilon: float,
    delta: float,
    *,
    prob: float,
    sound: float,
    laplace: SmallestScale,
    spacing: float | None,
    people: Index,
    objective: str,
    symmetric: bool,
) -> Optimum:
    """Return noise of any shape; `sound` is the size of noise that is enough in closed form."""
    # SciPy's solver of linear programs is for this method alone.
    from edp_bayes.noise.optimal.lattice_noise import optimal_noise
    from edp_bayes.noise.optimal.program import SolverError

    near = laplace.noise.mean_absolute
    # tails as wide as those of Laplace noise that is enough are no obstacle, unless these only just
    # meet the target: a lower one, for what lies between the points, needs wider ones
    widths = [near] if delta > 0.0 else [max(sound, near), WIDER * max(sound, near)]
    step = _spacing(posterior, near) if spacing is None else spacing
    step = validate.positive_number(step, "spacing")
    _refuse_too_fine(posterior, step, given=spacing is not None)
    gain = LITTLE if near > _spread(posterior) else GAIN
    say("How much noise does each draw need?")
    if delta > 0.0:
        half = NoiseDistribution((LaplaceNoise(0.5 * near),))
        hardness = largest_risk(posterior, half, epsilon, people=people)
    else:
        hardness = certified_log_ratios(posterior, laplace.noise, epsilon).largest
    for width in widths:
        try:
            return optimal_noise(
                posterior,
                epsilon,
                delta,
                prob=prob,
                scale=width,
                near=near,
                worth=(1.0 - gain) * _size(laplace.noise, objective),
                spacing=step,
                hardness=hardness,
                held=laplace.held,
                people=people,
                objective=objective,
                symmetric=symmetric,
            )
        except SolverError:
            if width == widths[-1]:
                raise
    raise AssertionError("the last width returns or raises")


def _uncertain_tails(posterior: Posterior) -> bool:
    """Return whether only Laplace noise is certified far out: Laplace kernels of many scales."""
    if posterior.kernel == "gaussian":
        return False
    return bool(several_scales(*posterior.pair(int(np.argmax(posterior.largest_move)))).any())


def _size(noise: NoiseDistribution, objective: str) -> float:
    """Return what an objective makes small."""
    return noise.mean_absolute if objective == "absolute" else noise.variance + noise.mean**2


def _spacing(posterior: Posterior, scale: float) -> float:
    """Return a spacing that resolves kernels and noise, with a bounded number of weights.

    Noise that is larger than the spread of the response is smooth beside it, and gains little by
    its shape: a coarse lattice takes a fraction of the time.
    """
    if scale > _spread(posterior):
        return scale / COARSE
    kernel = float(np.quantile(posterior.base[..., 2].min(axis=1), 0.25))
    return float(np.clip(kernel / 15.0, scale / 30.0, scale / 10.0))


def _spread(posterior: Posterior) -> float:
    """Return the standard deviation of the estimated response, in the mean of all draws."""
    return float(np.sqrt(posterior.coupling.mixture.variance()).mean())


def _refuse_too_fine(posterior: Posterior, spacing: float, *, given: bool) -> None:
    width = float(np.ptp(posterior.base[..., 1]) + posterior.base[..., 2].max())
    if width > MOST_STEPS * spacing:
        # A spacing that was given stays as it is, whatever epsilon is.
        other = " or" if given else ", a smaller epsilon or"
        raise InvalidInputError(
            f"noise on a lattice of spacing {spacing:.3g} is too fine beside responses that are "
            f"{width:.3g} wide; use method='laplace' (--method){other} a larger spacing"
        )


def _delta(value: float) -> float:
    number = validate.number(value, "delta")
    if not (number == 0.0 or LEAST_DELTA <= number < 1.0):
        raise InvalidInputError(
            f"delta must be 0, or at least {LEAST_DELTA:g} and below 1, found {number:g}: smaller "
            "risks are not distinguished from zero"
        )
    return number


def _met_already(posterior: Posterior, epsilon: float, delta: float, share: float) -> Sentence:
    return Sentence(
        f"No noise is needed: the query is private at epsilon = {epsilon:g}, delta = {delta:g} "
        f"in {share:.1%} of the posterior draws{posterior.against}."
    )


def _largest_contributions(largest: Array, posterior: Posterior) -> Sentence:
    """Say who stands out, or that nobody does."""
    order = np.argsort(-largest, kind="stable")
    worst, size = name_of(posterior.individual, order[0]), float(largest[order[0]])
    if order.size > 1 and size < STANDS_OUT * largest[order[1]]:
        return Sentence(
            f"Contributions go up to {size:.4g} (individual ",
            worst,
            "), and several are about as large; cap them, ask for a larger epsilon, or ask "
            "another question",
        )
    return Sentence(
        "Individual ",
        worst,
        f" contributes up to {size:.4g}. Noise cannot make an individual who dominates private "
        "and keep the answer useful; cap or leave out such contributions",
    )


def _stopped_early(record: Mapping[str, Any]) -> str:
    lower = f"{record['lower_bound']:.6g}"
    said = " The search stopped early, at its time limit: "
    if record["method"] != "optimal":
        return said + (
            f"{record['method'].capitalize()} noise of scale {lower} could not be certified, and "
            f"{record['gap']:.1%} of the noise at most could be saved."
        )
    if record["lower_bound"] == 0.0:
        return said + "no bound on the least noise is known yet."
    size = "expected absolute noise" if record["objective"] == "absolute" else "second moment"
    kind = "symmetric noise" if record["symmetric"] else "noise"
    return said + (
        f"no {kind} that holds in the same draws has less {size} than {lower}, and "
        f"{record['gap']:.1%} of it at most could be saved."
    )


def _message(posterior: Posterior, noise: NoiseDistribution, record: Mapping[str, Any]) -> Sentence:
    """Return what was reached in words; warn where noise is larger than what it is added to."""
    text = (
        f"Expected absolute noise {noise.mean_absolute:.6g}; the target holds in "
        f"{record['reached']:.1%} of the posterior draws{posterior.against}."
    )
    if record.get("stopped_early", False):
        text += _stopped_early(record)
    if record["method"] == "hausdorff":
        text += " The published construction guarantees nothing; prefer another method."
    spread = _spread(posterior)
    if noise.mean_absolute <= spread:
        return Sentence(text)
    doubt = Sentence(
        f"the expected noise, {noise.mean_absolute:.4g}, is larger than the spread of the "
        f"estimated distribution of the response, {spread:.4g}"
    )
    if record["method"] in PURE_ONLY:
        doubt = Sentence(doubt, "; method='laplace' (--method) or 'optimal' may need far less")
    elif (data := posterior.raw or posterior.responses) is not None:
        largest = data.largest_contribution
        doubt = Sentence(doubt, ". ", _largest_contributions(largest, posterior))
    warnings.warn(doubt, EdpBayesWarning, stacklevel=3)
    return Sentence(f"{text} But ", doubt, ".")
