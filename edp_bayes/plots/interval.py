"""Plots of what epsilon means as an interval: the paper's two figures, and a posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.plots.drawing import Canvas, Visuals, require
from edp_bayes.plots.style import BLUE, COLOURS, styled
from edp_bayes.results import bands
from edp_bayes.utils.defaults import default_probability
from edp_bayes.utils.formatting import percent

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = [
    "plot_count_curves",
    "plot_interval_level",
    "plot_iso_curves",
    "plot_level_curves",
    "plot_width_curves",
]

WORDS = ("title", "xlabel", "ylabel", "ticks", "xscale", "yscale", "xlim", "ylim", "legend")
STYLES = ("-", "--", "-.", ":")
AXES = {
    "width": "width, relative to the count",
    "level": "level, the probability of the interval",
    "count": "true count",
    "interval_level": "level",
    "interval_epsilon": "epsilon",
}


@styled
def plot_iso_curves(
    curves: xr.DataArray | None = None,
    *,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot the level at each width, a curve an epsilon.

    Parameters
    ----------
    curves : DataArray, optional
        From `edp_bayes.interval.iso_curves`, whose defaults are taken if not given.
    plot_collection : PlotCollection, optional
        Where to draw, a new figure if not given.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        ArviZ's ``plot.backend`` if not given.
    visuals : mapping of {str : mapping or bool}, optional
        Keyword arguments, or False to leave it out, for curve_0, curve_1 and so on, title,
        xlabel, ylabel, ticks, ylim and legend.
    **pc_kwargs
        Passed to ``PlotCollection.wrap``.

    Returns
    -------
    PlotCollection

    See Also
    --------
    edp_bayes.interval.iso_curves : the numbers behind the picture
    plot_interval_level : the level of each width at one epsilon, with a band
    plot_level_curves : epsilon against the level

    References
    ----------
    Naldi and D'Acquisto (2015), equation 10, solved for the level.

    Examples
    --------
    >>> type(plot_iso_curves(backend="none")).__name__
    'PlotCollection'
    """
    from edp_bayes import interval

    data = interval.iso_curves() if curves is None else curves
    canvas = _curves(data, "epsilon", "width", visuals, plot_collection, backend, pc_kwargs)
    canvas.title("interval_level", f"Curves of equal epsilon at a count of {data.attrs['count']:g}")
    canvas.each("ylim", "set_ylim", "interval_level", limits=(0.0, 1.02))
    canvas.names()
    return canvas.pc


@styled
def plot_width_curves(
    curves: xr.DataArray | None = None,
    *,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot epsilon against the width of the interval, a curve a level.

    Parameters
    ----------
    curves : DataArray, optional
        From `edp_bayes.interval.width_curves`, whose defaults are taken if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_iso_curves`.
    visuals : mapping of {str : mapping or bool}, optional
        As for `plot_iso_curves`, with yscale.

    Returns
    -------
    PlotCollection

    See Also
    --------
    edp_bayes.interval.width_curves : the numbers behind the picture
    plot_level_curves : epsilon against the level
    plot_count_curves : epsilon against the true count

    References
    ----------
    Naldi and D'Acquisto (2015), Figure 1.

    Examples
    --------
    >>> type(plot_width_curves(backend="none")).__name__
    'PlotCollection'
    """
    from edp_bayes import interval

    data = interval.width_curves() if curves is None else curves
    canvas = _curves(data, "level", "width", visuals, plot_collection, backend, pc_kwargs)
    return _at_one_count(canvas, data)


@styled
def plot_level_curves(
    curves: xr.DataArray | None = None,
    *,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot epsilon against the level of the interval, a curve a width.

    Parameters
    ----------
    curves : DataArray, optional
        From `edp_bayes.interval.level_curves`, whose defaults are taken if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_iso_curves`.
    visuals : mapping of {str : mapping or bool}, optional
        As for `plot_iso_curves`, with yscale.

    Returns
    -------
    PlotCollection

    See Also
    --------
    edp_bayes.interval.level_curves : the numbers behind the picture
    plot_width_curves : epsilon against the width
    plot_iso_curves : the level of each width, a curve an epsilon

    References
    ----------
    Naldi and D'Acquisto (2015), Figure 2.

    Examples
    --------
    >>> type(plot_level_curves(backend="none")).__name__
    'PlotCollection'
    """
    from edp_bayes import interval

    data = interval.level_curves() if curves is None else curves
    canvas = _curves(data, "width", "level", visuals, plot_collection, backend, pc_kwargs)
    return _at_one_count(canvas, data)


@styled
def plot_count_curves(
    curves: xr.DataArray | None = None,
    *,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot epsilon against the true count, a curve a width, on logarithmic axes.

    Parameters
    ----------
    curves : DataArray, optional
        From `edp_bayes.interval.count_curves`, whose defaults are taken if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_iso_curves`.
    visuals : mapping of {str : mapping or bool}, optional
        As for `plot_iso_curves`, with xscale and yscale.

    Returns
    -------
    PlotCollection

    See Also
    --------
    edp_bayes.interval.count_curves : the numbers behind the picture
    plot_level_curves : epsilon against the level
    plot_width_curves : epsilon against the width

    References
    ----------
    Naldi and D'Acquisto (2015), equation 10.

    Examples
    --------
    >>> type(plot_count_curves(backend="none")).__name__
    'PlotCollection'
    """
    from edp_bayes import interval

    data = interval.count_curves() if curves is None else curves
    canvas = _curves(data, "width", "count", visuals, plot_collection, backend, pc_kwargs)
    canvas.title(
        "interval_epsilon", f"Epsilon that keeps the count at a level of {data.attrs['level']:g}"
    )
    for scale in ("xscale", "yscale"):
        canvas.each(scale, f"set_{scale}", "interval_epsilon", scale="log")
    canvas.names()
    return canvas.pc


@styled
def plot_interval_level(
    found: xr.Dataset,
    *,
    ci_prob: float | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot the level that one epsilon implies at each width, with its credible band.

    Parameters
    ----------
    found : Dataset
        From `edp_bayes.interval.posterior` with one epsilon and a vector of widths.
    ci_prob : float, optional
        Probability of the pointwise band; ArviZ's ``stats.ci_prob`` if not given. Every draw
        gives a curve of the same family, so the band is simultaneous too.
    plot_collection, backend, **pc_kwargs
        As for `plot_iso_curves`.
    visuals : mapping of {str : mapping or bool}, optional
        For band, median, title, xlabel, ylabel, ticks, ylim and legend.

    Returns
    -------
    PlotCollection

    Raises
    ------
    InvalidInputError
        If found holds no levels over widths, or those of several epsilons.

    See Also
    --------
    edp_bayes.Audit.interval_level : the level from an audit's draws
    edp_bayes.interval.level_from_epsilon : the level that an epsilon implies
    plot_iso_curves : the level of each width, a curve an epsilon

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes import interval
    >>> draws = np.random.default_rng(1).normal(100.0, 5.0, (4, 500))
    >>> found = interval.posterior(draws, width=[0.1, 0.2, 0.3], epsilon=0.1)
    >>> type(plot_interval_level(found, backend="none")).__name__
    'PlotCollection'
    """
    name = "interval_level"
    require(found, xr.Dataset, "plot_interval_level", "a Dataset of edp_bayes.interval.posterior")
    if name not in found or set(found[name].dims) != {"chain", "draw", "width"}:
        raise InvalidInputError(
            "found must hold interval_level with the dims chain, draw and width, "
            f"found {dict(found.sizes)} and {', '.join(map(str, found.data_vars))}"
        )
    prob = default_probability(ci_prob, "ci_prob")
    level = found[name].stack(sample=("chain", "draw")).transpose("sample", "width").sortby("width")
    lower, upper = (
        xr.DataArray(end, {"width": level["width"]}, ("width",), name=name)
        for end in bands.pointwise(level.to_numpy(), prob)
    )
    canvas = Canvas(
        found[[name]],
        visuals=("band", "median", *WORDS),
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        **pc_kwargs,
    )
    canvas.band("band", lower, upper, f"{percent(prob)} band", color=BLUE, alpha=0.35)
    middle = xr.DataArray(level.median("sample"), name=name)
    canvas.line("median", middle, "posterior median", color=BLUE, width=2)
    canvas.title(name, f"Widths and levels of epsilon {float(found['epsilon']):g}")
    canvas.words(name, x=AXES["width"], y=AXES[name])
    canvas.each("ylim", "set_ylim", name, limits=(0.0, 1.02))
    canvas.legend()
    return canvas.pc


def _at_one_count(canvas: Canvas, curves: xr.DataArray) -> PlotCollection:
    """Name the count of curves of epsilon, and show small and large epsilons alike."""
    canvas.title(
        "interval_epsilon",
        f"Epsilon of an interval at a count of {curves.attrs['count']:g}",
    )
    canvas.each("yscale", "set_yscale", "interval_epsilon", scale="log")
    canvas.names()
    return canvas.pc


def _curves(
    data: xr.DataArray,
    each: str,
    along: str,
    visuals: Visuals,
    plot_collection: PlotCollection | None,
    backend: str | None,
    options: dict[str, Any],
) -> Canvas:
    """Return a canvas with a line over one dimension for every value of another."""
    require(data, xr.DataArray, "a plot of curves", f"a DataArray over {each} and {along}")
    if set(data.dims) != {each, along}:
        raise InvalidInputError(f"curves must have the dims {each} and {along}, found {data.dims}")
    names = tuple(f"curve_{i}" for i in range(data.sizes[each]))
    canvas = Canvas(
        data.to_dataset(),
        visuals=(*names, *WORDS),
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        **options,
    )
    for i, visual in enumerate(names):
        curve = data.isel({each: i}, drop=True)
        label = f"{each} {float(data[each][i]):g}"
        color, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
        canvas.line(visual, curve, label, color=color, linestyle=style, width=2)
    canvas.words(str(data.name), x=AXES[along], y=AXES[str(data.name)])
    return canvas
