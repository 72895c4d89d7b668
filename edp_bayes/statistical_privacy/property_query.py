"""One property query as an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InputTypeError
from edp_bayes.statistical_privacy import arguments, curves, inversion, losses
from edp_bayes.statistical_privacy.costs import utility
from edp_bayes.statistical_privacy.mechanisms import Mechanism
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PropertyQuery"]


@dataclass(frozen=True)
class PropertyQuery:
    """The share of n entries that have a property, which each has with probability prob.

    Parameters
    ----------
    n : int
        Entries of the database, at least 2.
    prob : float
        Strictly between 0 and 1.
    mechanism : Subsampling, SamplingWithReplacement, GaussianNoise, LaplaceNoise or a sequence
        What distorts the answer, nothing if not given; scales in units of the answer.
    known : int
        How many other entries the adversary knows.
    known_positive : int, optional
        How many of those have the property; the worst case if not given.

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is not a scalar, out of its range, NaN or of another type.

    See Also
    --------
    delta : delta of a property query
    epsilon_at : the smallest epsilon for a delta
    edp_bayes.audit_property : the probability of a property from data
    edp_bayes.queries.Proportion : the share of records that satisfy a condition

    Examples
    --------
    >>> query = PropertyQuery(100, 0.1)
    >>> round(query.delta(epsilon=0.5), 6)
    0.022556
    """

    n: int
    prob: float
    mechanism: Mechanism = None
    known: int = 0
    known_positive: int | None = None

    def __post_init__(self) -> None:
        for name in ("n", "prob", "known"):
            if np.ndim(getattr(self, name)) > 0:
                raise InputTypeError(f"{name} must be a single number, found an array")
        self.delta(epsilon=0.0)  # all checks are made where the curve is computed

    def delta(self, *, epsilon: ArrayLike) -> Array | float:
        """Return max(delta_plus, delta_minus) at epsilon, any shape."""
        return self._curve(curves.delta, epsilon=epsilon)

    def delta_plus(self, *, epsilon: ArrayLike) -> Array | float:
        """Return the risk that the critical entry is seen to be positive."""
        return self._curve(curves.delta_plus, epsilon=epsilon)

    def delta_minus(self, *, epsilon: ArrayLike) -> Array | float:
        """Return the risk that the critical entry is seen to be negative."""
        return self._curve(curves.delta_minus, epsilon=epsilon)

    def epsilon_at(self, delta: ArrayLike) -> Array | float:
        """Return the smallest epsilon that reaches delta; infinite where none does."""
        return self._curve(inversion.epsilon_at, delta=delta)

    def privacy_loss(self, *, direction: str = "plus") -> losses.PrivacyLoss:
        """Return the privacy loss, see `edp_bayes.statistical_privacy.privacy_loss`."""
        return losses.privacy_loss(**vars(self), direction=direction)

    def utility_loss(self, *, kind: str = "squared") -> float:
        """Return the mean squared or absolute error of the answer."""
        return float(utility.utility_loss(self.n, self.prob, self.mechanism, kind=kind))

    def inference_loss(self, *, kind: str = "squared") -> float:
        """Return the mean squared or absolute error of the answer as an estimate of prob."""
        return float(utility.inference_loss(self.n, self.prob, self.mechanism, kind=kind))

    def plot(
        self, *, epsilon: ArrayLike | None = None, ax: Axes | None = None, log: bool = False
    ) -> Axes:
        """Plot both directions of the privacy curve.

        Parameters
        ----------
        epsilon : array_like, optional
            Increasing grid; where delta falls to a thousandth of delta(0) if not given.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        log : bool
            Logarithmic axis of delta.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInputError
            If epsilon is negative, infinite or not increasing.
        """
        from edp_bayes.plots.lines import draw

        if epsilon is None:
            end = float(self.epsilon_at(float(self.delta(epsilon=0.0)) / 1000.0))
            grid = np.linspace(0.0, end if 0.0 < end < np.inf else 1.0, 201)
        else:
            grid = validate.epsilon_grid(arguments.finite_epsilons(epsilon))
        lines = {
            "delta_plus": self.delta_plus(epsilon=grid),
            "delta_minus": self.delta_minus(epsilon=grid),
        }
        title = f"n = {self.n:,}, probability {self.prob:g}"
        return draw(grid, lines, "epsilon", "delta", title, ax=ax, log=log)

    def _curve(self, function: Callable[..., Array | float], **at: ArrayLike) -> Array | float:
        return function(**at, **vars(self))
