"""Whether the answers look as if they were better modelled on another scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.diagnostics.checks import Checks, threshold
from edp_bayes.diagnostics.predictive import skewness
from edp_bayes.responses.transforms import NAMES, Transform, named

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["check_scale"]

NAME = "scale"
SKEWED = 1.0  # skewness from which on answers are strongly skewed
LESS = 0.5  # of it, at most, is left on a scale that helps
LIKELIER = 10.0  # log likelihood that a normal distribution gains there


def check_scale(responses: Responses) -> Checks:
    """Look for a scale on which strongly skewed answers are near symmetric.

    Risks are the same on any scale, bands are not: what an individual contributes to a skewed
    answer often grows with it, and is near constant beside its logarithm, or beside the log odds of
    a share. A transform is advised where the skewness of the answers is at least 1, half of it or
    more is gone on the scale, a normal distribution there is at least exp(10) times as likely as on
    the answers' own scale, and all answers, with and without every individual, have a value on it.

    Parameters
    ----------
    responses : Responses
        As they were answered.

    Returns
    -------
    Checks
        The check `scale`, failed, where a transform is advised, with the gain in log likelihood as
        its statistic; no check where none is, or where responses have one, are rounded, carry
        noise or lack contributions.

    See Also
    --------
    check_grid : whether answers lie on a grid
    edp_bayes.Responses.on_scale : the responses on their scale
    withheld : why there is no verdict

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> y = np.exp(np.random.default_rng(1).normal(size=60))
    >>> check_scale(edp.Responses.from_arrays(y, contribution=0.1 * y))["scale"].sentence[-45:]
    "audit with transform='log' (--transform log)."
    >>> check_scale(edp.Responses.from_arrays(np.log(y), contribution=0.1 * y)).checks
    ()
    """
    y = responses.response
    own = abs(float(skewness(y)))
    kept = (responses.scale, responses.step, responses.noise, responses.remainder)
    if own < SKEWED or any(part is not None for part in kept):
        return Checks((), 0.0)
    found = [scale for scale in map(named, NAMES) if scale is not None and scale.inside(y).all()]
    gains = {scale: _gain(scale, y, own) for scale in found}
    best = max(gains, key=lambda scale: gains[scale], default=None)
    if best is None or gains[best] < LIKELIER or not _fits(best, responses):
        return Checks((), 0.0)
    left = float(skewness(best.forward(y)))
    text = (
        f"The answers are strongly skewed, {float(skewness(y)):.1f}, and {best.of('them')} is less "
        f"so, {left:.1f}: there a normal distribution is exp({gains[best]:.0f}) times as likely"
    )
    advice = (
        "Risks are the same on any scale, and where contributions grow with the answer their bands "
        f"are narrower on this one: see edp.compare(responses, transforms=[None, {best.name!r}]), "
        f"and audit with transform={best.name!r} (--transform {best.name})."
    )
    return Checks((threshold(NAME, gains[best], False, text, advice),), 0.0)


def _gain(scale: Transform, y: NDArray[np.float64], own: float) -> float:
    """Return how much likelier a normal distribution is on a scale, in logs; none if as skewed."""
    x, slope = scale.forward(y), scale.log_slope(y)
    if not np.isfinite(slope).all() or abs(float(skewness(x))) > LESS * own:
        return -np.inf
    return float(y.size * np.log(y.std() / x.std()) + slope.sum())


def _fits(scale: Transform, responses: Responses) -> bool:
    """Return whether answers without every individual have a value on a scale."""
    c = responses.collected
    return bool(scale.inside(responses.response[c.indices] - c.data).all())
