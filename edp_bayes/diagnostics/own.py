"""Whether the worst of all individuals who know their own contribution is the same everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.diagnostics.checks import Checks, threshold
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.formatting import risk_limit
from edp_bayes.utils.sentences import Sentence, name_of

if TYPE_CHECKING:
    from edp_bayes.responses.responses import Responses

__all__ = ["check_own"]

# Ratio of upper limits that is more than their Monte Carlo error, and the least that matters.
MOST_RATIO, LEAST = 1.1, 1e-3


def check_own(
    responses: Responses, tellers: tuple[Any, ...], *, epsilon: Array, upper: Array, other: Array
) -> Checks:
    """Compare the upper limit of delta with that against another who knows their contribution.

    Two individuals can be the worst: whoever tells most of the response for all others, and whoever
    tells next most for them. The check fails where the one that is not audited gives a limit more
    than a tenth higher at some epsilon.

    Parameters
    ----------
    responses : Responses
        Of all individuals.
    tellers : tuple
        Labels of who knows their contribution, and of the other of the two.
    epsilon, upper, other : ndarray
        Shape (epsilon,): the grid, and the upper limits of delta against the one and the other.

    Returns
    -------
    Checks
        The check `own contribution`; its statistic is the largest ratio of the limits, those below
        a thousandth taken for that.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> data = edp.Responses.from_arrays(
    ...     np.arange(20.0), contribution=np.ones((20, 2)), individual=["ann", "bob"]
    ... )
    >>> grid, upper = np.array([0.1, 0.5]), np.array([0.05, 0.02])
    >>> check_own(data, ("ann", "bob"), epsilon=grid, upper=upper, other=0.9 * upper).passed
    True
    >>> check_own(data, ("ann", "bob"), epsilon=grid, upper=upper, other=2.0 * upper).passed
    False
    """
    ratio = np.maximum(other, LEAST) / np.maximum(upper, LEAST)
    most = int(ratio.argmax())
    one, two = (name_of(responses.individual, responses.index_of(name)) for name in tellers)
    here, there = risk_limit(float(upper[most])), risk_limit(float(other[most]))
    passed = float(ratio[most]) <= MOST_RATIO
    known = Sentence("Known is what individual ", one, " contributed themselves; ")
    text = Sentence(known, "against ", two, ", who knows theirs, no risk is larger")
    if not passed:
        text = Sentence(
            known,
            f"at epsilon {epsilon[most]:.4g} the risk is larger against ",
            two,
            f", who knows theirs: the upper limit of delta is {there} rather than {here}",
        )
    advice = Sentence("Audit with ", two, " as an insider, too.")
    check = threshold("own contribution", float(ratio[most]), passed, text, advice)
    return Checks((check,), 0.0)
