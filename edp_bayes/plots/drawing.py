"""What every plot shares: the figure, bands with a line, words on axes, and the legend."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import xarray as xr

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.plots.style import (
    LABEL_SIZE,
    LEGEND_SIZE,
    TICK_SIZE,
    TITLE_SIZE,
    label_lines,
    plain_ticks,
)
from edp_bayes.results.base import PrivacyCurves
from edp_bayes.utils import validate

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["Canvas", "nearest_epsilon", "plain", "require"]

Visuals = Mapping[str, Mapping[str, Any] | bool] | None

SIZE = (700, 460)


class Canvas:
    """A figure with one row of axes for each variable of a dataset, and its legend.

    Parameters
    ----------
    data : Dataset
        What the axes are for.
    visuals : sequence of str
        Names that the user may style or switch off.
    chosen : mapping
        The user's keyword arguments for a visual, or False to leave it out.
    plot_collection, backend, **pc_kwargs
        As for the plots of ArviZ.

    Raises
    ------
    InvalidInputError
        If the user names a visual that this plot does not have.
    """

    def __init__(
        self,
        data: xr.Dataset,
        *,
        visuals: tuple[str, ...],
        chosen: Visuals,
        plot_collection: PlotCollection | None,
        backend: str | None,
        height: float = 1.0,
        **pc_kwargs: Any,
    ) -> None:
        self.visuals = dict(chosen or {})
        for name in self.visuals:
            validate.choice(name, visuals, "visual")
        self.own = plot_collection is None
        self.pc = plot_collection or _collection(data, backend, height, pc_kwargs)
        self.entries: list[tuple[str, dict[str, Any]]] = []

    def style(self, visual: str, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the keyword arguments of a visual, None where it is switched off."""
        chosen = self.visuals.get(visual, True)
        if chosen is False:
            return None
        return {**defaults, **(chosen if isinstance(chosen, Mapping) else {})}

    def band(
        self,
        visual: str,
        lower: xr.DataArray,
        upper: xr.DataArray,
        label: str | None = None,
        **defaults: Any,
    ) -> None:
        """Fill between two curves over their one dimension."""
        from arviz_plots import visuals as vis

        style = self.style(visual, defaults)
        if style is None:
            return
        self.pc.map(
            vis.fill_between_y,
            visual,
            data=lower,
            x=lower[lower.dims[0]],
            y_bottom=lower,
            y_top=upper,
            ignore_aes="all",
            **style,
        )
        self._enter(label, {"color": style["color"], "alpha": style["alpha"], "width": 9})

    def line(
        self,
        visual: str,
        curve: xr.DataArray,
        label: str | None = None,
        *,
        upright: bool = False,
        **defaults: Any,
    ) -> None:
        """Draw a curve over its one dimension, or beside it if it is on the upright axis."""
        from arviz_plots import visuals as vis

        style = self.style(visual, defaults)
        if style is None:
            return
        over = curve[curve.dims[0]]
        self.pc.map(
            vis.line_xy,
            visual,
            data=curve,
            x=curve if upright else over,
            y=over if upright else curve,
            ignore_aes="all",
            **style,
        )
        self._enter(label, style)

    def each(self, visual: str, function: str, variable: str, **defaults: Any) -> None:
        """Apply a visual of ArviZ that takes no data, such as a label, to one row of axes."""
        from arviz_plots import visuals as vis

        style = self.style(visual, defaults)
        if style is not None:
            one = xr.Dataset({variable: self.pc.data[variable]})
            words = function.startswith("labelled")
            self.pc.map(
                getattr(vis, function),
                visual,
                data=one,
                ignore_aes="all",
                store_artist=words,
                **style,
            )

    def legend(self) -> None:
        """Put the legend outside of the axes, below them; nothing is drawn after it."""
        for ax in self._axes():
            plain_ticks(ax)
        style = self.style("legend", {})
        if style is None or not self.entries or not (self.own or "legend" in self.visuals):
            return
        if self.pc.backend == "matplotlib":
            columns = 3 if len(self.entries) == 3 else 2
            place = {"loc": "outside lower center", "ncols": columns, "fontsize": LEGEND_SIZE}
            style = {**place, "frameon": False, **style}
        labels, looks = zip(*self.entries, strict=True)
        draw = import_module(f"arviz_plots.backend.{self.pc.backend}").legend
        draw(self.pc, list(looks), list(labels), **style)

    def names(self) -> None:
        """Put the words of the lines of one pair of axes at their ends, or else in the legend."""
        axes = self._axes() if self.visuals.get("legend", True) is True else []
        lines = axes[0].get_lines() if len(axes) == 1 else []
        if not lines or len(lines) != len(self.entries):
            self.legend()
            return
        plain_ticks(axes[0])
        for line, (label, _) in zip(lines, self.entries, strict=True):
            line.set_label(label)
        label_lines(axes[0])

    def words(self, variable: str, *, x: str | None = None, y: str | None = None) -> None:
        """Label the axes of a variable, with ticks small enough not to touch each other."""
        self.each("ticks", "ticklabel_props", variable, size=TICK_SIZE)
        for visual, function, text in (("xlabel", "labelled_x", x), ("ylabel", "labelled_y", y)):
            if text is not None:
                shown = plain(text, self.pc.backend)
                self.each(visual, function, variable, text=shown, size=LABEL_SIZE)

    def title(self, variable: str, text: str) -> None:
        """Put a title above the axes of a variable, on a figure of our own."""
        if self.own or "title" in self.visuals:
            shown = plain(text, self.pc.backend)
            self.each("title", "labelled_title", variable, text=shown, size=TITLE_SIZE)

    def _axes(self) -> list[Any]:
        """Return all axes of a figure of matplotlib that is ours."""
        ours = self.own and self.pc.backend == "matplotlib"
        return list(self.pc.get_viz("figure").axes) if ours else []

    def _enter(self, label: str | None, look: dict[str, Any]) -> None:
        if label is not None:
            shown = plain(label, self.pc.backend)
            if shown not in dict(self.entries):
                self.entries.append((shown, look))


def require(given: object, kind: type, plot: str, needed: str) -> None:
    """Raise InvalidInputError for what a plot cannot show, naming what would do."""
    if not isinstance(given, kind):
        other = "; plot_delta shows its curve" if isinstance(given, PrivacyCurves) else ""
        raise InvalidInputError(f"{plot} needs {needed}, found {type(given).__name__}{other}")


def plain(text: str, backend: str) -> str:
    """Return words that a backend shows as they are: two dollars are no formula."""
    return text.replace("$", r"\$") if backend == "matplotlib" else text


def nearest_epsilon(grid: xr.DataArray, epsilon: float | None) -> float:
    """Return the value of the grid that is meant; the first where none is given."""
    if epsilon is None:
        return float(grid[0])
    wanted = validate.number(epsilon, "epsilon")
    first, last = float(grid[0]), float(grid[-1])
    if not first <= wanted <= last:
        raise InvalidInputError(
            f"epsilon must lie on the audit's grid from {first:g} to {last:g}, found {wanted:g}"
        )
    return float(grid.sel(epsilon=wanted, method="nearest"))


def _collection(
    data: xr.Dataset, backend: str | None, height: float, options: dict[str, Any]
) -> PlotCollection:
    from arviz_base import rcParams
    from arviz_plots import PlotCollection

    chosen = backend or rcParams["plot.backend"]
    figure = dict(options.pop("figure_kwargs", {}))
    if "figsize" not in figure:
        figure |= {"figsize": (SIZE[0], SIZE[1] * height), "figsize_units": "dots"}
    if chosen == "matplotlib":
        figure.setdefault("layout", "constrained")
    options = {"cols": ["__variable__"], "col_wrap": 1, **options}
    return PlotCollection.wrap(data, backend=chosen, figure_kwargs=figure, **options)
