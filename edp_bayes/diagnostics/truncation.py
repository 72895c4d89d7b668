"""What finitely many components leave out of a Dirichlet process, against the risks reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.diagnostics.checks import Check, Checks, threshold
from edp_bayes.utils.formatting import SMALLEST, about

__all__ = ["TRUNCATION", "Truncation", "check_truncation"]

TRUNCATION = "truncation"
MOST_COMPONENTS = 1000
# Share of the least limit that is left to the components that are advised: their own posterior has
# another concentration and other limits.
ROOM = 0.1


@dataclass(frozen=True, eq=False)
class Truncation:
    """Posterior draws of the concentration of a truncated Dirichlet process.

    Parameters
    ----------
    concentration : ndarray
        Draws of the concentration.
    components : int
        Components kept.
    share : float
        Share of the draws that this process provides, below 1 in a stack.

    Examples
    --------
    >>> Truncation(np.array([1.0]), 11).mass == 0.5**10
    True
    """

    concentration: NDArray[np.float64]
    components: int
    share: float = 1.0

    @property
    def mass(self) -> float:
        """Expected probability that one response lies beyond the first K - 1 components.

        Every stick takes a Beta(1, alpha) share of what the earlier ones left, so the rest R after
        K - 1 of them has the mean (alpha / (1 + alpha))^(K - 1) given alpha. The last component
        stands in for all of that rest. By joint convexity delta of the whole process is at most
        (1 - R) times that of its first K - 1 components plus R: the rest adds at most R.
        """
        return self.mass_of(self.components)

    def mass_of(self, components: int) -> float:
        """Return the mass that another number of components would leave out."""
        rest = (self.concentration / (1.0 + self.concentration)) ** (components - 1)
        return self.share * float(rest.mean())


def check_truncation(
    truncated: Sequence[Truncation], *, epsilon: ArrayLike, upper: ArrayLike
) -> Checks:
    """Compare the mass left out for one response with the upper limit of delta at each epsilon.

    Parameters
    ----------
    truncated : sequence of Truncation
        Every truncated process of the model; without one there is nothing to check.
    epsilon, upper : array_like
        The grid and the upper limit of delta on it. Limits below 1e-6 count as 1e-6, as they are
        printed.

    Returns
    -------
    Checks
        The check ``truncation``, whose statistic is the mass.

    Examples
    --------
    >>> process = Truncation(np.array([1.0]), 11)
    >>> check_truncation([process], epsilon=[0.1, 1.0], upper=[0.1, 1e-5]).warnings[0][-17:]
    '--components 21).'
    """
    if not truncated:
        return Checks((), 0.05)
    grid, limits = np.atleast_1d(epsilon), np.maximum(np.atleast_1d(upper), SMALLEST)
    mass = sum(one.mass for one in truncated)
    exceeded = np.flatnonzero(mass > limits)
    text = f"For one response the components leave out a mass of {about(mass)}"
    if not exceeded.size:
        text += ", no more than the upper limit of delta at any epsilon"
        return Checks((threshold(TRUNCATION, mass, True, text, ""),), 0.05)
    text += (
        f", more than the upper limit of delta at {exceeded.size} of {grid.size} epsilons, from "
        f"{grid[exceeded[0]]:.4g} on: smaller risks than this mass are not resolved"
    )
    return Checks((_failed(truncated, mass, float(limits.min()), text),), 0.05)


def _failed(truncated: Sequence[Truncation], mass: float, least: float, text: str) -> Check:
    enough, most = max(one.components for one in truncated), ROOM * least
    while enough < MOST_COMPONENTS and sum(one.mass_of(enough) for one in truncated) > most:
        enough += 1
    if sum(one.mass_of(enough) for one in truncated) > most:
        advice = (
            f"No number of components up to {enough:,} resolves them: add the mass to every delta."
        )
    else:
        advice = (
            f"Take more components, at least {enough} "
            f"(DirichletProcessMixture(components={enough}), --components {enough})."
        )
    return threshold(TRUNCATION, mass, False, text, advice)
