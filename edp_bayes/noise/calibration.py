"""`edp.noise.calibrate`: the noise that a query needs, and no more."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.exposure import raw_exposure
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
from edp_bayes.noise.least.optimal import optimal_noise
from edp_bayes.noise.least.program import SolverError
from edp_bayes.noise.posterior import Posterior, posterior_of
from edp_bayes.noise.scales import exposed, largest_risk, protected_share, smallest_scale
from edp_bayes.results.bands import upper_limit
from edp_bayes.utils import validate
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from edp_bayes.models.base import FittedModel
    from edp_bayes.records.responses import Responses
    from edp_bayes.results.query import Audit

__all__ = ["METHODS", "calibrate"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

METHODS = ("optimal", "bottleneck", "partial", "laplace", "gaussian", "hausdorff")
PURE_ONLY = ("bottleneck", "partial", "hausdorff")
LEAST_DELTA = 1e-9
WIDER = 1.05
MOST_STEPS = 10_000  # of a lattice of noise across the responses
STANDS_OUT = 2.0  # times the next largest contribution


def calibrate(
    source: Responses | Audit | FittedModel | Posterior,
    *,
    epsilon: float,
    delta: float = 0.0,
    method: str = "optimal",
    prob: float = PROB,
    objective: str = "absolute",
    symmetric: bool = True,
    spacing: float | None = None,
    responses: Responses | None = None,
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
    method : {"optimal", "bottleneck", "partial", "laplace", "gaussian", "hausdorff"}
        "optimal" looks for the distribution of any shape with the least expected absolute noise, by
        a linear program, and takes Laplace noise where no other shape gains; "laplace" and
        "gaussian" look for the smallest scale; "bottleneck" is Laplace noise of scale
        max_i W_inf(p, p_i) / epsilon, "partial" the same with an atom at zero, for Laplace
        kernels. "hausdorff" is the published construction, which guarantees nothing.
    prob : float
        Share of the posterior draws, between 0 and 1, in which the target must hold for every
        individual.
    objective : {"absolute", "variance"}
        What "optimal" makes small: expected absolute noise, or its second moment.
    symmetric : bool
        Whether "optimal" noise has to be symmetric about zero. Without it the noise is smaller,
        but has a mean other than zero.
    spacing : float, optional
        Spacing of the lattice of "optimal", in the units of the response.
    responses : Responses, optional
        The data of an audit or a fitted model.
    **fit_options
        model, draws, tune, chains, random_seed, progressbar, ... of `edp_bayes.audit`.

    Returns
    -------
    NoiseDistribution
        Its `record` says what it was found for and what was reached: the share of draws in which
        the target holds, certified by a bound on the noisy densities or proved for the method
        (`proved`); for "optimal" and delta = 0 also the lower bound that no distribution of noise
        (no symmetric one, if it has to be symmetric) can beat in the draws in which this one was
        made to hold. Where the target is met already it is no noise, and the record says so.

    Raises
    ------
    InvalidInputError
        If a target is out of range or cannot be reached by the method, if no noise would be
        enough although the contributions of an individual contradict that, or if epsilon is so
        large that the lattice of "optimal" had more than 10,000 points across the responses.
    SolverError
        If the linear program has no solution; the message holds the solver's status.

    Warns
    -----
    EdpBayesWarning
        If the noise is larger than the spread of the estimated distribution of the response, and
        always for "hausdorff".

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
    posterior = posterior_of(source, responses=responses, **fit_options)
    record: dict[str, Any] = {
        "method": method,
        "epsilon": target,
        "delta": slack,
        "prob": share,
        "draws": posterior.n_draws,
        "individuals": posterior.n_individuals,
        "fingerprint": posterior.fingerprint,
    }
    met, people, largest = _without_noise(posterior, target, slack, share)
    if met is not None and method != "hausdorff":
        _refuse_exposed(posterior, target, slack, share, largest)
        record |= {"reached": met, "message": _met_already(target, slack, met)}
        return NoiseDistribution((NoNoise(),), record=record)
    noise, details = _find(
        posterior,
        target,
        slack,
        people=people,
        method=method,
        prob=share,
        objective=objective,
        symmetric=symmetric,
        spacing=spacing,
    )
    # A bound on the log ratio may be too large for noise that is proved to be enough.
    certified = protected_share(posterior, noise, target, slack, people)
    record |= {"reached": max(certified, details.get("proved", 0.0)), **details}
    record["message"] = _message(posterior, noise, record)
    return NoiseDistribution(noise.components, noise.weights, record)


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
            f"{method} noise is made for delta = 0; use method='optimal', 'laplace' or 'gaussian' "
            f"for delta = {slack:g}"
        )
    if slack == 0.0 and method == "gaussian":
        raise InvalidInputError(
            "Gaussian noise is made for delta above 0: the tails of normal distributions fall so "
            "fast that the log ratio of two shifted ones has no bound; give a delta or use "
            "Laplace noise"
        )
    return target, slack, share


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
            "Calibrate with model=SmoothedBootstrap(), which pools nobody"
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
        return closed_forms.hausdorff(posterior, epsilon), {}
    scales = closed_forms.laplace_scales(posterior, epsilon)
    sound = closed_forms.bottleneck(scales, prob)
    size = sound.mean_absolute
    if method == "bottleneck":
        return sound, {"proved": float((scales <= size).mean())}
    if method == "partial":
        noise, share = closed_forms.partial(posterior, scales, prob)
        return noise, {"proved": share}
    if not math.isfinite(size):
        size = float(np.sqrt(posterior.coupling.mixture.variance()).max()) / epsilon
    search: dict[str, Any] = {"prob": prob, "start": size, "people": people}
    if method == "gaussian":
        return smallest_scale(posterior, method, epsilon, delta, **search), {}
    laplace = smallest_scale(posterior, "laplace", epsilon, delta, **search)
    # Far from epsilon = 1 certificates are coarser than what is proved in closed form.
    proved: dict[str, float] = {}
    if delta == 0.0 and sound.mean_absolute < laplace.mean_absolute:
        laplace, proved = sound, {"proved": float((scales <= sound.mean_absolute).mean())}
    if method == "laplace":
        return laplace, proved
    shape = {"objective": objective, "symmetric": symmetric}
    if delta == 0.0 and _uncertain_tails(posterior):
        return laplace, {**shape, **proved, "lower_bound": None, "margin": 0.0}
    near = laplace.mean_absolute
    # tails as wide as those of Laplace noise that is enough are no obstacle, unless these only just
    # meet the target: a lower one, for what lies between the points, needs wider ones
    widths = [near] if delta > 0.0 else [max(size, near), WIDER * max(size, near)]
    step = _spacing(posterior, near) if spacing is None else spacing
    step = validate.positive_number(step, "spacing")
    _refuse_too_fine(posterior, step)
    if delta > 0.0:
        half = NoiseDistribution((LaplaceNoise(0.5 * near),))
        hardness = largest_risk(posterior, half, epsilon, people=people)
    else:
        hardness = certified_log_ratios(posterior, laplace, epsilon).largest
    for width in widths:
        try:
            best = optimal_noise(
                posterior,
                epsilon,
                delta,
                prob=prob,
                scale=width,
                near=near,
                spacing=step,
                hardness=hardness,
                people=people,
                objective=objective,
                symmetric=symmetric,
            )
            break
        except SolverError:
            if width == widths[-1]:
                raise
    # Where nothing is to be gained a lattice may lose a little against the distribution it stands
    # for.
    coarse = _size(laplace, objective) < _size(best.noise, objective)
    bounded = delta == 0.0 and (best.active.all() or not coarse)
    return laplace if coarse else best.noise, {
        **shape,
        **(proved if coarse else {}),
        "lower_bound": best.lower if bounded else None,
        "margin": 0.0 if coarse else best.margin,
    }


def _uncertain_tails(posterior: Posterior) -> bool:
    """Return whether only Laplace noise is certified far out: Laplace kernels of many scales."""
    if posterior.kernel == "gaussian":
        return False
    return bool(several_scales(*posterior.pair(int(np.argmax(posterior.largest_move)))).any())


def _size(noise: NoiseDistribution, objective: str) -> float:
    """Return what an objective makes small."""
    return noise.mean_absolute if objective == "absolute" else noise.variance + noise.mean**2


def _spacing(posterior: Posterior, scale: float) -> float:
    """Return a spacing that resolves kernels and noise, with a bounded number of weights."""
    kernel = float(np.quantile(posterior.base[..., 2].min(axis=1), 0.25))
    return float(np.clip(kernel / 15.0, scale / 30.0, scale / 10.0))


def _refuse_too_fine(posterior: Posterior, spacing: float) -> None:
    width = float(np.ptp(posterior.base[..., 1]) + posterior.base[..., 2].max())
    if width > MOST_STEPS * spacing:
        raise InvalidInputError(
            f"noise on a lattice of spacing {spacing:.3g} is too fine beside responses that are "
            f"{width:.3g} wide; use method='laplace', a smaller epsilon or a larger spacing"
        )


def _delta(value: float) -> float:
    number = float(validate.finite_array(value, "delta", ndim=0))
    if not (number == 0.0 or LEAST_DELTA <= number < 1.0):
        raise InvalidInputError(
            f"delta must be 0, or at least {LEAST_DELTA:g} and below 1, found {number:g}: smaller "
            "risks are not told from zero"
        )
    return number


def _met_already(epsilon: float, delta: float, share: float) -> Sentence:
    return Sentence(
        f"No noise is needed: the query is private at epsilon = {epsilon:g}, delta = {delta:g} "
        f"in {share:.1%} of the posterior draws."
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


def _message(posterior: Posterior, noise: NoiseDistribution, record: Mapping[str, Any]) -> Sentence:
    """Return what was reached in words; warn where noise is larger than what it is added to."""
    text = (
        f"Expected absolute noise {noise.mean_absolute:.6g}; the target holds in "
        f"{record['reached']:.1%} of the posterior draws."
    )
    if record["method"] == "hausdorff":
        text += " The published construction guarantees nothing; prefer another method."
    spread = float(np.sqrt(posterior.coupling.mixture.variance()).mean())
    if noise.mean_absolute <= spread:
        return Sentence(text)
    doubt = Sentence(
        f"the expected noise, {noise.mean_absolute:.4g}, is larger than the spread of the "
        f"estimated distribution of the response, {spread:.4g}"
    )
    if record["method"] in PURE_ONLY:
        doubt = Sentence(doubt, "; method='optimal' or 'laplace' may need far less")
    elif posterior.responses is not None:
        largest = posterior.responses.largest_contribution
        doubt = Sentence(doubt, ". ", _largest_contributions(largest, posterior))
    warnings.warn(doubt, EdpBayesWarning, stacklevel=3)
    return Sentence(f"{text} But ", doubt, ".")
