"""What is wrong with a figure for its reader: texts that touch, foreign colours, and so on."""

from __future__ import annotations

from itertools import combinations
from unittest.mock import patch

import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from edp_bayes.plots.style import COLOURS

TOUCHING = 1.0  # pixels by which boxes of texts may overlap: they are a little larger than letters
BEYOND = 2.0  # pixels
PALETTE = {colors.to_rgb(colour) for colour in COLOURS}


def problems(figure: Figure) -> list[str]:
    """Return what a reader would object to, in words; nothing of a figure as it should be."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # a first time, for the layout
    texts: list[tuple[str, Bbox]] = []
    draw = Text.draw

    def drawn(self: Text, renderer: object) -> None:
        draw(self, renderer)
        if self.get_visible() and self.get_text().strip():
            texts.append((self.get_text(), Text.get_window_extent(self, renderer)))

    with patch.object(Text, "draw", drawn):
        canvas.draw()
    found = _overlaps(texts) + _beyond(figure, texts) + _foreign(figure) + _covered(figure)
    for ax in figure.axes:
        if ax.get_visible() and ax.axison:
            found += _unnamed(ax, {text for text, _ in texts}) + _alike(ax)
    return found


def _overlaps(texts: list[tuple[str, Bbox]]) -> list[str]:
    found = []
    for (one, a), (other, b) in combinations(texts, 2):
        shared = Bbox.intersection(a, b)
        if shared is not None and min(shared.width, shared.height) > TOUCHING:
            found.append(f"texts overlap: {one!r} and {other!r}")
    return found


def _beyond(figure: Figure, texts: list[tuple[str, Bbox]]) -> list[str]:
    whole = figure.bbox
    return [
        f"text leaves the figure: {text!r}"
        for text, box in texts
        if box.x0 < whole.x0 - BEYOND
        or box.y0 < whole.y0 - BEYOND
        or box.x1 > whole.x1 + BEYOND
        or box.y1 > whole.y1 + BEYOND
    ]


def _unnamed(ax: Axes, drawn: set[str]) -> list[str]:
    found = []
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if offset := axis.get_offset_text().get_text():
            found.append(f"offset at the {name} axis: {offset!r}")
        ticks = {label.get_text() for label in axis.get_ticklabels() if label.get_visible()} & drawn
        numbers = any(any(letter.isdigit() for letter in text) for text in ticks)
        if numbers and not axis.get_label().get_text().strip():
            found.append(f"numbers without a name at the {name} axis")
    if any(line.get_visible() for line in ax.get_lines()) and not _title(ax):
        found.append("no title")
    return found


def _title(ax: Axes) -> str:
    """Return the title of axes, or of the axes above that share theirs."""
    return next((one.get_title() for one in ax.figure.axes if one.get_title()), "")


def _foreign(figure: Figure) -> list[str]:
    found = []
    for artist in figure.findobj(lambda one: isinstance(one, Line2D | Collection | Patch | Text)):
        if not artist.get_visible():
            continue
        if isinstance(artist, Line2D | Text):
            used = [artist.get_color()]
        else:
            used = [*_rows(artist.get_facecolor()), *_rows(artist.get_edgecolor())]
        for colour in used:
            if isinstance(colour, str) and colour.startswith("C"):
                found.append(f"colour {colour!r} changes with the user's settings")
                continue
            rgba = colors.to_rgba(colour)
            if rgba[3] > 0.0 and not _is_ours(rgba[:3]):
                found.append(f"colour {colors.to_hex(rgba)} of a {type(artist).__name__}")
    return found


def _rows(colour: object) -> np.ndarray:
    return np.atleast_2d(colors.to_rgba_array(colour))


def _is_ours(rgb: tuple[float, ...]) -> bool:
    grey = max(rgb) - min(rgb) < 1e-6
    return grey or any(np.allclose(rgb, one, atol=1e-6) for one in PALETTE)


def _covered(figure: Figure) -> list[str]:
    """Return legends that lie on axes."""
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    found = []
    for legend in legends:
        box = legend.get_window_extent()
        for ax in figure.axes:
            shared = Bbox.intersection(box, ax.bbox)
            if shared is not None and min(shared.width, shared.height) > BEYOND:
                found.append(f"a legend lies on the axes of {ax.get_title()!r}")
    return found


def _alike(ax: Axes) -> list[str]:
    """Return lines that a print in grey would show alike: two colours in one style."""
    looks: dict[tuple[str, str], set[str]] = {}
    for line in ax.get_lines():
        dashes = f"{line.get_linestyle()}{line._unscaled_dash_pattern}"
        style = (dashes, f"{line.get_marker()} {line.get_linewidth():.1f}")
        if line.get_visible():
            looks.setdefault(style, set()).add(colors.to_hex(line.get_color()))
    return [
        f"lines of colours {', '.join(sorted(used))} have one style"
        for used in looks.values()
        if len(used) > 1
    ]
