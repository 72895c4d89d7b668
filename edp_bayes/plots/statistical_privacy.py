"""Eight pictures of the theory, one function each; every one returns matplotlib axes.

They show the curve and its dependence on n and on the probability, each mechanism, and the
comparison with differential privacy at equal utility. The figures of Breutigam and Reischuk are in
`edp_bayes.plots.breutigam_reischuk`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.plots.lines import draw
from edp_bayes.statistical_privacy import (
    GaussianNoise,
    LaplaceNoise,
    Subsampling,
    delta,
    delta_minus,
    delta_plus,
    differential_privacy_delta,
    matching_scale,
    utility_loss,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "curves_by_probability",
    "delta_by_probability",
    "delta_by_size",
    "equal_utility",
    "gaussian_noise",
    "laplace_noise",
    "subsampling",
    "utility_and_privacy",
]

_N = 1000
_PROBS = (0.01, 0.1, 0.3, 0.5)
# Below this a risk is drawn as none, on logarithmic axes that would fall for ever.
_LEAST_SHOWN = 1e-8


def curves_by_probability(
    n: int = _N, probs: Sequence[float] = _PROBS, *, ax: Axes | None = None
) -> Axes:
    """Plot delta over epsilon without a mechanism, for several probabilities.

    Parameters
    ----------
    n : int
        Entries of the database.
    probs : sequence of float
        Probabilities that an entry has the property, a curve each.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range or of another type.

    See Also
    --------
    delta_by_probability : over the probability
    edp_bayes.statistical_privacy.delta : delta of a property query

    Examples
    --------
    >>> curves_by_probability().get_title()
    'No mechanism, n = 1,000'
    """
    epsilon = np.linspace(0.0, 0.5, 251)
    lines = {f"probability {p:g}": delta(n, p, epsilon=epsilon) for p in probs}
    title = f"No mechanism, n = {n:,}"
    return draw(epsilon, lines, "epsilon", "delta", title, ax=ax, log=True, lowest=_LEAST_SHOWN)


def delta_by_probability(
    n: int = _N, epsilons: Sequence[float] = (0.0, 0.1, 0.2), *, ax: Axes | None = None
) -> Axes:
    """Plot delta_plus (full) and delta_minus (dotted) over the probability.

    Parameters
    ----------
    n : int
        Entries of the database.
    epsilons : sequence of float
        A pair of curves each.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range or of another type.

    See Also
    --------
    curves_by_probability : over epsilon
    edp_bayes.statistical_privacy.delta_plus : the direction drawn in full
    edp_bayes.statistical_privacy.delta_minus : the dotted one

    Examples
    --------
    >>> delta_by_probability().get_title()
    'Both directions, n = 1,000'
    """
    prob = np.linspace(0.005, 0.995, 397)
    lines: dict[str, ArrayLike] = {}
    for e in epsilons:
        lines[f"delta_plus, epsilon {e:g}"] = delta_plus(n, prob, epsilon=e)
        lines[f"delta_minus, epsilon {e:g}"] = delta_minus(n, prob, epsilon=e)
    dotted = [label for label in lines if label.startswith("delta_minus")]
    title = f"Both directions, n = {n:,}"
    return draw(prob, lines, "probability", "delta", title, ax=ax, log=True, dotted=dotted)


def delta_by_size(
    *, epsilon: float = 0.1, probs: Sequence[float] = _PROBS, ax: Axes | None = None
) -> Axes:
    """Plot delta over the number of entries, for several probabilities.

    Parameters
    ----------
    epsilon : float
        Where the curves are read.
    probs : sequence of float
        Probabilities that an entry has the property, a curve each.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range or of another type.

    See Also
    --------
    curves_by_probability : over epsilon
    edp_bayes.statistical_privacy.normal_approximation : what it tends to

    Examples
    --------
    >>> delta_by_size().get_title()
    'No mechanism, epsilon = 0.1'
    """
    n = np.unique(np.geomspace(10, 10_000, 300).astype(int))
    lines = {f"probability {p:g}": delta(n, p, epsilon=epsilon) for p in probs}
    title = f"No mechanism, epsilon = {epsilon:g}"
    axes = draw(n.astype(float), lines, "number of entries n", "delta", title, ax=ax, log=True)
    axes.set_xscale("log")
    return axes


def subsampling(
    n: int = _N,
    prob: float = 0.1,
    rates: Sequence[float] = (1.0, 0.5, 0.2, 0.05),
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot delta over epsilon for several sampling rates.

    Parameters
    ----------
    n : int
        Entries of the database.
    prob : float
        Probability that an entry has the property.
    rates : sequence of float
        Shares of the entries that are sampled, a curve each.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range or of another type.

    See Also
    --------
    edp_bayes.statistical_privacy.Subsampling : the mechanism
    edp_bayes.plots.breutigam_reischuk.sample_and_small_database : Figure 7 of the paper

    Examples
    --------
    >>> subsampling().get_title()
    'Subsampling, n = 1,000, probability 0.1'
    """
    epsilon = np.linspace(0.0, 0.5, 251)
    lines = {
        f"rate {r:g}": delta(n, prob, epsilon=epsilon, mechanism=Subsampling(rate=r)) for r in rates
    }
    title = f"Subsampling, n = {n:,}, probability {prob:g}"
    return draw(epsilon, lines, "epsilon", "delta", title, ax=ax, log=True, lowest=_LEAST_SHOWN)


def gaussian_noise(
    n: int = _N,
    prob: float = 0.1,
    scales: Sequence[float] = (1.0, 3.0, 10.0),
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot delta with Gaussian noise of scale / n; differential privacy is dotted.

    Parameters
    ----------
    n : int
        Entries of the database.
    prob : float
        Probability that an entry has the property.
    scales : sequence of float
        Noise scales in steps of 1 / n, a pair of curves each.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range or of another type.

    See Also
    --------
    laplace_noise : the same with Laplace noise
    edp_bayes.statistical_privacy.GaussianNoise : the mechanism
    edp_bayes.plots.breutigam_reischuk.noise_by_probability : over the probability

    Examples
    --------
    >>> gaussian_noise().get_title()
    'Gaussian noise, n = 1,000, probability 0.1'
    """
    return _noise(GaussianNoise, "Gaussian", n, prob, scales, ax)


def laplace_noise(
    n: int = _N,
    prob: float = 0.1,
    scales: Sequence[float] = (1.0, 3.0, 10.0),
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plot delta with Laplace noise of scale / n; differential privacy is dotted.

    Parameters
    ----------
    n : int
        Entries of the database.
    prob : float
        Probability that an entry has the property.
    scales : sequence of float
        Noise scales in steps of 1 / n, a pair of curves each.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range or of another type.

    See Also
    --------
    gaussian_noise : the same with Gaussian noise
    edp_bayes.statistical_privacy.LaplaceNoise : the mechanism

    Examples
    --------
    >>> laplace_noise().get_title()
    'Laplace noise, n = 1,000, probability 0.1'
    """
    return _noise(LaplaceNoise, "Laplace", n, prob, scales, ax)


def equal_utility(
    n: int = _N, prob: float = 0.1, rate: float = 0.9, *, ax: Axes | None = None
) -> Axes:
    """Plot delta over epsilon of three mechanisms with one utility loss.

    Parameters
    ----------
    n : int
        Entries of the database.
    prob : float
        Probability that an entry has the property.
    rate : float
        Share of the entries that is sampled; noise gets the same utility loss.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range or of another type.

    See Also
    --------
    utility_and_privacy : over the utility loss
    edp_bayes.statistical_privacy.matching_scale : noise of one utility loss

    Examples
    --------
    >>> equal_utility().get_title()
    'Root mean squared error 0.0032, n = 1,000, probability 0.1'
    """
    epsilon = np.linspace(0.0, 0.5, 251)
    sampling = Subsampling(rate=rate)
    mechanisms = {
        f"subsampling, rate {rate:g}": sampling,
        "Gaussian noise": matching_scale(sampling, n, prob, GaussianNoise),
        "Laplace noise": matching_scale(sampling, n, prob, LaplaceNoise),
    }
    lines: dict[str, ArrayLike] = {}
    for label, mechanism in mechanisms.items():
        lines[label] = delta(n, prob, epsilon=epsilon, mechanism=mechanism)
        lines[f"{label}, differential privacy"] = differential_privacy_delta(
            n, epsilon=epsilon, mechanism=mechanism
        )
    loss = float(utility_loss(n, prob, sampling)) ** 0.5
    title = f"Root mean squared error {loss:.4f}, n = {n:,}, probability {prob:g}"
    dotted = [label for label in lines if label.endswith("privacy")]
    return draw(
        epsilon,
        lines,
        "epsilon",
        "delta",
        title,
        ax=ax,
        log=True,
        dotted=dotted,
        lowest=_LEAST_SHOWN,
    )


def utility_and_privacy(
    n: int = _N, prob: float = 0.1, *, epsilon: float = 0.1, ax: Axes | None = None
) -> Axes:
    """Plot delta at one epsilon over the root mean squared error of three mechanisms.

    Parameters
    ----------
    n : int
        Entries of the database.
    prob : float
        Probability that an entry has the property.
    epsilon : float
        Where the curves are read.
    ax : matplotlib Axes, optional
        A new figure if not given.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputTypeError, InvalidInputError
        If an argument is out of its range or of another type.

    See Also
    --------
    equal_utility : over epsilon
    edp_bayes.statistical_privacy.utility_loss : the mean squared error

    Examples
    --------
    >>> utility_and_privacy().get_title()
    'epsilon = 0.1, n = 1,000, probability 0.1'
    """
    sizes = np.unique(np.geomspace(n / 50, n - 1, 60).astype(int))[::-1]
    samples = [Subsampling(size=int(m)) for m in sizes]
    error = np.sqrt([float(utility_loss(n, prob, s)) for s in samples])
    lines: dict[str, list[float]] = {"subsampling": [], "Gaussian noise": [], "Laplace noise": []}
    known_label = "Gaussian noise, differential privacy"
    known: list[float] = []
    for sample in samples:
        gaussian = matching_scale(sample, n, prob, GaussianNoise)
        laplace = matching_scale(sample, n, prob, LaplaceNoise)
        for label, mechanism in zip(lines, (sample, gaussian, laplace), strict=True):
            lines[label].append(float(delta(n, prob, epsilon=epsilon, mechanism=mechanism)))
        known.append(float(differential_privacy_delta(n, epsilon=epsilon, mechanism=gaussian)))
    shown = {"Gaussian noise": lines["Gaussian noise"], known_label: known}
    shown |= {label: values for label, values in lines.items() if label not in shown}
    title = f"epsilon = {epsilon:g}, n = {n:,}, probability {prob:g}"
    xlabel = "root mean squared error of the answer"
    axes = draw(
        error,
        shown,
        xlabel,
        "delta",
        title,
        ax=ax,
        log=True,
        dotted=(known_label,),
        lowest=_LEAST_SHOWN,
    )
    axes.set_xscale("log")
    return axes


def _noise(
    distribution: type[GaussianNoise] | type[LaplaceNoise],
    name: str,
    n: int,
    prob: float,
    scales: Sequence[float],
    ax: Axes | None,
) -> Axes:
    epsilon = np.linspace(0.0, 0.5, 251)
    lines: dict[str, ArrayLike] = {"no noise": delta(n, prob, epsilon=epsilon)}
    for scale in scales:
        noise = distribution(scale / n)
        lines[f"scale {scale:g} / n"] = delta(n, prob, epsilon=epsilon, mechanism=noise)
        lines[f"scale {scale:g} / n, differential privacy"] = differential_privacy_delta(
            n, epsilon=epsilon, mechanism=noise
        )
    dotted = [label for label in lines if label.endswith("privacy")]
    title = f"{name} noise, n = {n:,}, probability {prob:g}"
    return draw(
        epsilon,
        lines,
        "epsilon",
        "delta",
        title,
        ax=ax,
        log=True,
        dotted=dotted,
        lowest=_LEAST_SHOWN,
    )
