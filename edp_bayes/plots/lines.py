"""Labelled curves: a colour and a line style each, words at the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.plots.style import COLOURS, DOTS, LINES, label_lines, plain_ticks, styled
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "draw"]


@styled
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
    own = ax is None
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    number = -1
    for label, values in lines.items():
        second = label in dotted
        number += not second
        colour = COLOURS[max(number, 0) % len(COLOURS)]
        styles = DOTS if second else LINES
        style = styles[max(number, 0) % len(styles)]
        ax.plot(x, np.asarray(values), linestyle=style, color=colour, label=label, lw=1.7)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.set_xlim(float(x[0]), float(x[-1]))
    if log:
        ax.set_yscale("log")
    if lowest is not None or not log:
        ax.set_ylim(bottom=lowest or 0.0)
    low, high = ax.get_ylim()
    if log and high < 100.0 * low:
        _short_log_ticks(ax)
    ax.grid(alpha=0.25)
    plain_ticks(ax)
    label_lines(ax)
    if own and (figure := ax.get_figure(root=True)) is not None:
        figure.draw_without_rendering()  # the layout settles when words beside the axes are drawn
    return ax


def _short_log_ticks(ax: Axes) -> None:
    """Write the values of a short logarithmic axis as they are."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
