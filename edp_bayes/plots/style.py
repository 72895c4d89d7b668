"""The one style of every figure: colours that differ for all eyes, words at lines, plain numbers.

Colours are those of Okabe and Ito (2008), which people with a colour deficiency tell apart; each
comes with a line style, for prints in grey. The style holds while a figure is drawn: the user's own
settings of matplotlib stay as they are. `COLOURS`, `LINES` and `DOTS` are the colours and their
line styles, full and dotted, in one order: names such as "C1" mean the user's own colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.lines import Line2D

__all__ = ["context", "label_lines", "plain_ticks"]

# Okabe and Ito (2008), without the yellow, which is pale on paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES = ("-", "--", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
DOTS = (":", (0, (1, 3)), (0, (1, 5)), (0, (2, 5)))  # of lines that belong to those
BLUE, VERMILION, GREEN = COLOURS[:3]

TITLE_SIZE, LABEL_SIZE, TICK_SIZE, LEGEND_SIZE, TEXT_SIZE = 12.0, 11.0, 9.5, 9.5, 8.5  # points
_SPACING = 1.35  # of their size from one label to the next
_TICKS = 6  # intervals on a horizontal axis, whose numbers stand side by side
_EDGE = 1e-3  # of the axis, beyond which a line has left it
_FAR = 0.12  # of the axis, from a line to words that are no longer at it

# A style sheet of matplotlib, beside this file.
_SHEET = "edp_bayes.plots.figures"


@contextmanager
def context() -> Iterator[None]:
    """Draw in the style of this library, and as before afterwards.

    Returns
    -------
    context manager
        Figures that are made within its ``with`` statement have the style.

    See Also
    --------
    label_lines : words at the ends of lines
    plain_ticks : numbers in full

    Notes
    -----
    ``plt.style.use("edp_bayes.plots.figures")`` sets it for a whole notebook.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> before = mpl.rcParams["axes.grid"]
    >>> with context():
    ...     inside = mpl.rcParams["axes.prop_cycle"].by_key()["color"][0]
    >>> inside, mpl.rcParams["axes.grid"] == before
    ('#0072B2', True)
    """
    import matplotlib as mpl
    import matplotlib.style

    with matplotlib.style.context(_SHEET):
        try:
            yield
        finally:
            shown = mpl.is_interactive()
    # The first figure of a notebook chooses the backend, which turns this on.
    mpl.interactive(shown)


def styled[**P, R](draw: Callable[P, R]) -> Callable[P, R]:
    """Let a function draw in the style of this library."""

    @wraps(draw)
    def within(*args: P.args, **kwargs: P.kwargs) -> R:
        with context():
            return draw(*args, **kwargs)

    return within


def plain_ticks(ax: Axes) -> None:
    """Write the numbers of both linear axes in full: none is read with an offset in a corner.

    Parameters
    ----------
    ax : matplotlib Axes
        Whose ticks are meant. From a million on, and below a thousandth, each tick says its own
        power of ten.

    See Also
    --------
    context : draw in the style of this library
    label_lines : words at the ends of lines

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> _ = ax.plot([1e7, 2e7], [12_000, 13_000])
    >>> plain_ticks(ax)
    >>> ax.yaxis.get_major_formatter().format_ticks([12_000, 12_500])
    ['12,000', '12,500']
    >>> ax.xaxis.get_major_formatter().format_ticks([1e7, 1.5e7])
    ['10×10⁶', '15×10⁶']
    """
    from matplotlib.ticker import MaxNLocator

    from edp_bayes.plots.ticks import PlainFormatter

    if _is_numeric(ax.yaxis):
        ax.yaxis.set_major_formatter(PlainFormatter())
    if _is_numeric(ax.xaxis):
        ax.xaxis.set_major_formatter(PlainFormatter())
        ax.xaxis.set_major_locator(MaxNLocator(nbins=_TICKS, steps=[1, 2, 2.5, 5, 10]))
    # ticks that are made later follow these, not the settings of that time
    ax.tick_params(which="both", labelsize=TICK_SIZE, color="#404040", labelcolor="black")


def _is_numeric(axis: Axis) -> bool:
    """Return whether ticks are made by the scale, not set by hand, by dates or by categories."""
    from matplotlib.ticker import AutoLocator, ScalarFormatter

    usual = isinstance(axis.get_major_formatter(), ScalarFormatter)
    return usual and isinstance(axis.get_major_locator(), AutoLocator)


def label_lines(ax: Axes) -> None:
    """Put the words of all labelled lines at their right ends, in the colours of the lines.

    Where a line leaves the axes before, or too many end at one place, the words stand below as a
    legend, outside of the axes.

    Parameters
    ----------
    ax : matplotlib Axes
        Whose lines have labels, and whose limits stay as they are.

    See Also
    --------
    context : draw in the style of this library
    plain_ticks : numbers in full

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> _ = ax.plot([0, 1], [1, 2], label="rising"), ax.plot([0, 1], [1, 0.5], label="falling")
    >>> label_lines(ax)
    >>> [text.get_text() for text in ax.texts]
    ['rising', 'falling']
    """
    lines = [one for one in ax.get_lines() if not str(one.get_label()).startswith("_")]
    if not lines:
        return
    ax.autoscale_view()  # the limits, on which places depend, are else found when it is drawn
    ends = np.array([_end(ax, one) for one in lines])
    figure = ax.get_figure()
    assert figure is not None
    height = 72.0 * ax.get_position().height * figure.bbox.height / figure.dpi
    seen = bool((np.isfinite(ends) & (np.abs(ends - 0.5) <= 0.5 + _EDGE)).all())
    places = _apart(ends[:, 1], _SPACING * TEXT_SIZE / height) if seen else ends[:, 1]
    if not seen or (np.abs(places - ends[:, 1]) > _FAR).any():
        _legend_below(ax, lines)
        return
    for line, end, place in zip(lines, ends, places, strict=True):
        ax.annotate(
            str(line.get_label()),
            (float(end[0]), float(end[1])),
            (1.035, float(place)),
            xycoords="axes fraction",
            textcoords="axes fraction",
            fontsize=TEXT_SIZE,
            color=line.get_color(),
            va="center",
            arrowprops={"arrowstyle": "-", "color": line.get_color(), "lw": 0.6, "shrinkA": 0},
            annotation_clip=False,
        )


def _legend_below(ax: Axes, lines: list[Line2D]) -> None:
    ax.legend(
        handles=lines,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=2,
        fontsize=TEXT_SIZE,
        frameon=False,
        handlelength=3.2,
    )


def _end(ax: Axes, line: Line2D) -> tuple[float, float]:
    """Return where a line ends, as shares of both axes; of a logarithm of zero, no number."""
    point = [[float(np.asarray(values)[-1]) for values in line.get_data()]]
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = (ax.transData + ax.transAxes.inverted()).transform(point)[0]
    return float(x), float(y)


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
