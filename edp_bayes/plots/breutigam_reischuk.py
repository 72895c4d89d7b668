"""The eight figures of Breutigam and Reischuk, "Statistical Privacy", at the paper's parameters.

Each function draws one of the paper's figures, or several of one kind, on matplotlib axes.
Defaults are the printed parameters, so that a call without arguments is the first figure named.
Everything is exact; all eight together take about a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.exceptions import InputTypeError
from edp_bayes.plots.lines import draw
from edp_bayes.statistical_privacy import (
    GaussianNoise,
    LaplaceNoise,
    Subsampling,
    delta,
    differential_privacy_delta,
    matching_scale,
)
from edp_bayes.utils import validate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "gain_by_scale",
    "mechanisms_by_probability",
    "mechanisms_by_rate",
    "noise_by_probability",
    "sample_and_small_database",
]

NoiseType = type[GaussianNoise] | type[LaplaceNoise]

_KINDS = {GaussianNoise: "Gaussian", LaplaceNoise: "Laplace"}
_PROBABILITY = "probability of the property"
# Denser towards 0, where curves are steep; symmetric about 1/2.
_PROBS = 0.5 * np.linspace(0.02, 1.0, 50) ** 2
_SCALES = np.linspace(1.0, 10.0, 37)


def noise_by_probability(
    noise: NoiseType = GaussianNoise,
    n: int = 1000,
    scales: Sequence[float] = (1.0, 3.0),
    *,
    epsilon: float = 0.01,
    ax: Axes | None = None,
) -> Axes:
    """Plot delta against the probability of the property, with noise (Figures 1 and 3).

    Full lines are statistical privacy, whose adversary knows the probability alone. Dotted ones
    are differential privacy, whose adversary knows all other entries.

    Parameters
    ----------
    noise : type
        GaussianNoise is Figure 1, LaplaceNoise is Figure 3.
    n : int
        Entries of the database.
    scales : sequence of float
        Noise scales in steps of 1 / n, which is what one entry moves the answer by.
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
    gain_by_scale : how many times smaller delta is
    edp_bayes.statistical_privacy.delta : delta of a property query

    References
    ----------
    Breutigam and Reischuk, Statistical Privacy, Figures 1 and 3.

    Examples
    --------
    >>> ax = noise_by_probability()
    >>> line = ax.get_lines()[1]
    >>> line.get_label(), round(float(line.get_ydata()[0]), 2)
    ('scale 1, differential', 0.38)
    """
    kind = _kind(noise)
    lines: dict[str, ArrayLike] = {}
    for scale in scales:
        added = noise(scale / n)
        known = differential_privacy_delta(n, epsilon=epsilon, mechanism=added)
        lines[f"scale {scale:g}, statistical"] = delta(n, _PROBS, epsilon=epsilon, mechanism=added)
        lines[f"scale {scale:g}, differential"] = np.full(_PROBS.size, known)
    dotted = [label for label in lines if label.endswith("differential")]
    title = f"{kind} noise of scale / n, n = {n:,}"
    ylabel = f"delta at epsilon {epsilon:g}"
    return _from_zero(
        draw(_PROBS, lines, _PROBABILITY, ylabel, title, ax=ax, log=True, dotted=dotted)
    )


def gain_by_scale(
    noise: NoiseType = GaussianNoise,
    n: int = 1000,
    probs: Sequence[float] = (0.5, 0.1, 0.01),
    *,
    epsilon: float = 0.01,
    ax: Axes | None = None,
) -> Axes:
    """Plot how many times smaller delta is than under differential privacy (Figures 2, 4, 6).

    Parameters
    ----------
    noise : type
        GaussianNoise is Figure 2, and Figure 6 with n = 100; LaplaceNoise is Figure 4.
    n : int
        Entries of the database.
    probs : sequence of float
        Probabilities of the property, a line each.
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
    noise_by_probability : delta with noise, by probability
    edp_bayes.statistical_privacy.differential_privacy_delta : delta with all others known
    edp_bayes.statistical_privacy.delta : delta of a property query

    References
    ----------
    Breutigam and Reischuk, Statistical Privacy, Figures 2, 4 and 6.

    Examples
    --------
    >>> ax = gain_by_scale()
    >>> [round(float(line.get_ydata()[-1]), 2) for line in ax.get_lines()]
    [2.1, 1.45, 1.05]
    """
    kind = _kind(noise)
    shares = np.asarray(probs, dtype=float)
    ratio = np.empty((_SCALES.size, shares.size))
    for row, scale in zip(ratio, _SCALES, strict=True):
        added = noise(scale / n)
        known = differential_privacy_delta(n, epsilon=epsilon, mechanism=added)
        row[:] = known / delta(n, shares, epsilon=epsilon, mechanism=added)
    lines = {f"probability {p:g}": ratio[:, k] for k, p in enumerate(shares)}
    title = f"{kind} noise, n = {n:,}, epsilon = {epsilon:g}"
    xlabel = "noise scale, in steps of 1 / n"
    ylabel = "delta, differential over statistical"
    return draw(_SCALES, lines, xlabel, ylabel, title, ax=ax, log=True, lowest=1.0)


def mechanisms_by_probability(
    n: int = 1000, rate: float = 0.1, *, epsilon: float = 0.01, ax: Axes | None = None
) -> Axes:
    """Plot delta of three mechanisms of one utility loss against the probability (Figure 5).

    Parameters
    ----------
    n : int
        Entries of the database.
    rate : float
        Share of the entries that is drawn; noise has the squared error of this sample.
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
    mechanisms_by_rate : mechanisms of one cost, by sampling rate
    edp_bayes.statistical_privacy.least_utility_loss : the cheapest mechanism for a target

    References
    ----------
    Breutigam and Reischuk, Statistical Privacy, Figure 5.

    Examples
    --------
    >>> laplace, gaussian, _ = mechanisms_by_probability().get_lines()
    >>> round(float(laplace.get_ydata()[-1] / gaussian.get_ydata()[-1]), 2)
    1.53
    """
    rows = np.array([_at_equal_loss(n, float(p), rate, epsilon) for p in _PROBS])
    lines = {name: rows[:, k] for k, name in enumerate(_MECHANISMS)}
    title = f"Utility loss of a sample of {rate:.0%}, n = {n:,}"
    ylabel = f"delta at epsilon {epsilon:g}"
    return _from_zero(draw(_PROBS, lines, _PROBABILITY, ylabel, title, ax=ax, log=True))


def sample_and_small_database(
    n: int = 1000, prob: float = 0.5, *, epsilon: float = 0.1, ax: Axes | None = None
) -> Axes:
    """Plot a sample of a database beside a database of the sample's size (Figure 7).

    A sample of m = rate n entries is read at log(1 + rate (exp(epsilon) - 1)). Beside it stands
    rate times delta of a database of m entries at epsilon: the paper's conjecture is that the
    first never exceeds the second.

    Parameters
    ----------
    n : int
        Entries of the database.
    prob : float
        Probability of the property.
    epsilon : float
        Where the curve of the small database is read.
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
    edp_bayes.statistical_privacy.subsampling_bound : a bound from the smaller database
    edp_bayes.statistical_privacy.Subsampling : a sample drawn without replacement

    References
    ----------
    Breutigam and Reischuk, Statistical Privacy, Figure 7.

    Examples
    --------
    >>> sample, bound = (line.get_ydata() for line in sample_and_small_database().get_lines())
    >>> bool((sample <= bound * (1 + 1e-12)).all())
    True
    """
    sizes = _sizes(n)
    rates = sizes / n
    sample = [
        delta(n, prob, epsilon=np.log1p(r * np.expm1(epsilon)), mechanism=Subsampling(size=int(m)))
        for m, r in zip(sizes, rates, strict=True)
    ]
    lines = {
        "sample of n entries": np.array(sample),
        "rate x small database": rates * delta(sizes, prob, epsilon=epsilon),
    }
    title = f"n = {n:,}, probability {prob:g}, epsilon = {epsilon:g}"
    return _from_zero(draw(rates, lines, "sampling rate", "delta", title, ax=ax))


def mechanisms_by_rate(
    n: int = 1000, prob: float = 0.5, *, epsilon: float = 0.01, ax: Axes | None = None
) -> Axes:
    """Plot delta of three mechanisms of one utility loss against the sampling rate (Figure 8).

    Where so few entries are drawn that the scale of the Laplace noise reaches 1 / (epsilon n), its
    delta is exactly 0.

    Parameters
    ----------
    n : int
        Entries of the database.
    prob : float
        Probability of the property: the paper shows 0.5 and 0.1.
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
    mechanisms_by_probability : mechanisms of one cost, by probability
    edp_bayes.statistical_privacy.matching_scale : the noise that costs as much as a sample

    References
    ----------
    Breutigam and Reischuk, Statistical Privacy, Figure 8.

    Examples
    --------
    >>> [line.get_label() for line in mechanisms_by_rate().get_lines()]
    ['Laplace noise', 'Gaussian noise', 'subsampling']
    """
    sizes = _sizes(n)[:-1]  # all entries drawn lose nothing, and no noise does
    rates = sizes / n
    rows = np.array([_at_equal_loss(n, prob, float(r), epsilon) for r in rates])
    lines = {name: rows[:, k] for k, name in enumerate(_MECHANISMS)}
    title = f"n = {n:,}, probability {prob:g}"
    xlabel = "sampling rate of equal utility loss"
    ylabel = f"delta at epsilon {epsilon:g}"
    return _from_zero(draw(rates, lines, xlabel, ylabel, title, ax=ax))


_MECHANISMS = ("Laplace noise", "Gaussian noise", "subsampling")


def _at_equal_loss(n: int, prob: float, rate: float, epsilon: float) -> list[float]:
    """Return delta of noise with the squared error of a sample, and of the sample."""
    sample = Subsampling(rate=rate)
    mechanisms = [matching_scale(sample, n, prob, kind) for kind in (LaplaceNoise, GaussianNoise)]
    return [float(delta(n, prob, epsilon=epsilon, mechanism=m)) for m in (*mechanisms, sample)]


def _sizes(n: int) -> NDArray[np.int64]:
    """Return sizes of samples from 2 to all entries, denser where few are drawn."""
    validate.positive_integer(n, "n")
    return np.unique((np.linspace(np.sqrt(2.0), np.sqrt(n), 80) ** 2).round().astype(np.int64))


def _kind(noise: NoiseType) -> str:
    if noise not in _KINDS:
        raise InputTypeError(f"noise must be GaussianNoise or LaplaceNoise, found {noise!r}")
    return _KINDS[noise]


def _from_zero(ax: Axes) -> Axes:
    """Let the horizontal axis begin at 0, where curves begin a little later."""
    ax.set_xlim(left=0.0)
    return ax
