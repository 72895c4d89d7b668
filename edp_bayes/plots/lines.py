"""Labelled curves in one style: colours of Okabe and Ito, a line style each, words at the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "draw"]

Array = NDArray[np.float64]

# Okabe and Ito (2008), without the yellow, which is pale on paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_STYLES = ("-", "--", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
_TEXT = 8.5  # points
_LINE = 1.35  # of their size from one label to the next


def draw(
    x: Array,
    lines: Mapping[str, ArrayLike],
    xlabel: str,
    ylabel: str,
    title: str,
    *,
    ax: Axes | None = None,
    log: bool = False,
    dotted: Sequence[str] = (),
    lowest: float | None = None,
) -> Axes:
    """Draw labelled curves over one grid.

    Parameters
    ----------
    x : ndarray, shape (point,)
        The grid.
    lines : mapping of {str : array_like of shape (point,)}
        Curves by their labels. A dotted one has the colour of the line before it.
    xlabel, ylabel, title : str
        Words of the axes.
    ax : matplotlib Axes, optional
        A new figure if not given.
    log : bool
        Logarithmic vertical axis.
    dotted : sequence of str
        Labels of lines that belong to the one before.
    lowest : float, optional
        Lower end of the vertical axis; 0, or where a logarithmic axis happens to end.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> ax = draw(np.array([0.0, 1.0]), {"falling": [1.0, 0.5]}, "epsilon", "delta", "One line")
    >>> [text.get_text() for text in ax.texts]
    ['falling']
    """
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    number = -1
    for label, values in lines.items():
        second = label in dotted
        number += not second
        colour = COLOURS[max(number, 0) % len(COLOURS)]
        style = ":" if second else _STYLES[number % len(_STYLES)]
        ax.plot(x, np.asarray(values), linestyle=style, color=colour, label=label, lw=1.7)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.set_xlim(float(x[0]), float(x[-1]))
    if log:
        ax.set_yscale("log")
    if lowest is not None or not log:
        ax.set_ylim(bottom=lowest or 0.0)
    low, high = ax.get_ylim()
    if log and high < 100.0 * low:
        _plain_ticks(ax)
    ax.grid(alpha=0.25)
    _name(ax)
    return ax


def _name(ax: Axes) -> None:
    """Put the words at the right ends of the lines, or below where a line ends before."""
    lines = ax.get_lines()
    ends = np.array([float(np.asarray(line.get_ydata())[-1]) for line in lines])
    low, high = ax.get_ylim()
    if (ends < low).any():
        ax.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.14),
            ncols=2,
            fontsize=_TEXT,
            frameon=False,
            handlelength=3.2,
        )
        return
    shares = np.log(ends / low) / np.log(high / low) if ax.get_yscale() == "log" else ends / high
    figure = ax.get_figure()
    assert figure is not None
    height = 72.0 * ax.get_position().height * figure.bbox.height / figure.dpi
    places = _apart(shares, _LINE * _TEXT / height)
    for line, share, place in zip(lines, shares, places, strict=True):
        ax.annotate(
            str(line.get_label()),
            (1.0, share),
            (1.035, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            fontsize=_TEXT,
            color=line.get_color(),
            va="center",
            arrowprops={"arrowstyle": "-", "color": line.get_color(), "lw": 0.6, "shrinkA": 0},
            annotation_clip=False,
        )


def _apart(wanted: Array, gap: float) -> Array:
    """Return places from 0 to 1 in the wanted order, at least a gap apart, near where wanted."""
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(wanted.size)
    free = wanted[order] - steps
    # Either way each place gives way to those before it; the mean of both keeps the gaps.
    upward = np.maximum.accumulate(free)
    downward = np.minimum.accumulate(free[::-1])[::-1]
    places = np.clip((upward + downward) / 2.0, 0.0, max(1.0 - steps[-1], 0.0)) + steps
    result = np.empty_like(places)
    result[order] = places
    return result


def _plain_ticks(ax: Axes) -> None:
    """Write the values of a short logarithmic axis as they are."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
