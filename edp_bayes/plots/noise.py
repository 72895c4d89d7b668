"""Plots of noise: its density, and what it buys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.noise.choosing import Tradeoff
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.plots.drawing import Canvas, Visuals, require
from edp_bayes.plots.style import BLUE, styled
from edp_bayes.utils.defaults import default_probability
from edp_bayes.utils.formatting import percent

if TYPE_CHECKING:
    from arviz_plots import PlotCollection


__all__ = ["plot_noise", "plot_tradeoff"]

WORDS = ("title", "xlabel", "ylabel", "ticks", "xlim", "ylim", "legend")
POINTS = 801
TAIL = 1e-3  # probability left out on either side of a plot of the density


@styled
def plot_noise(
    noise: NoiseDistribution,
    *,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot the density of noise; the title holds the atom at zero and the expected size.

    Parameters
    ----------
    noise : NoiseDistribution
        What to plot.
    plot_collection : PlotCollection, optional
        Where to draw, a new figure if not given.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        ArviZ's ``plot.backend`` if not given.
    visuals : mapping of {str : mapping or bool}, optional
        Keyword arguments for, or False to leave out: density, title, xlabel, ylabel, ticks,
        xlim, ylim, legend.
    **pc_kwargs
        Passed to ``PlotCollection.wrap``.

    Returns
    -------
    PlotCollection

    Raises
    ------
    InvalidInputError
        If it is something else or a visual is unknown.
    """
    require(noise, NoiseDistribution, "plot_noise", "a NoiseDistribution")
    reach = _reach(noise)
    x = np.linspace(-reach, reach, POINTS)
    curve = xr.DataArray(noise.pdf(x), {"x": x}, ("x",), name="density")
    canvas = _canvas(curve, ("density",), visuals, plot_collection, backend, pc_kwargs)
    canvas.line("density", curve, "density", color=BLUE, width=1.5)
    atom = f"none with probability {noise.atom:.3g}, " if noise.atom > 0.0 else ""
    canvas.title("density", f"Noise: {atom}expected size {noise.mean_absolute:.4g}")
    canvas.words("density", x="noise, in the unit of the answer", y="density per unit")
    canvas.each("xlim", "set_xlim", "density", limits=(-reach, reach))
    canvas.legend()
    return canvas.pc


@styled
def plot_tradeoff(
    tradeoff: Tradeoff,
    *,
    ci_prob: float | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot epsilon against the expected absolute noise that buys it.

    Parameters
    ----------
    tradeoff : Tradeoff
        What to plot.
    ci_prob : float, optional
        Probability of the pointwise band of the epsilon reached, where delta = 0; ArviZ's
        ``stats.ci_prob`` if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_noise`.
    visuals : mapping of {str : mapping or bool}, optional
        band, median, target, title, xlabel, ylabel, ticks, xlim, ylim, legend.

    Returns
    -------
    PlotCollection

    Raises
    ------
    InvalidInputError
        If it is something else, a visual is unknown or the probability is none.
    """
    require(tradeoff, Tradeoff, "plot_tradeoff", "a Tradeoff")
    prob = default_probability(ci_prob, "ci_prob")
    order = np.argsort(tradeoff.error, kind="stable")
    error = tradeoff.error[order]

    def curve(values: np.ndarray[Any, np.dtype[np.float64]]) -> xr.DataArray:
        return xr.DataArray(values[order], {"error": error}, ("error",), name="epsilon")

    target = curve(tradeoff.epsilon)
    canvas = _canvas(
        target, ("band", "median", "target"), visuals, plot_collection, backend, pc_kwargs
    )
    if tradeoff.reached.size:
        found = tradeoff.band(prob=prob)
        lower, middle, upper = (found[end].to_numpy() for end in ("lower", "median", "upper"))
        label = f"{percent(prob)} pointwise band of what is reached"
        canvas.band("band", curve(lower), curve(upper), label, color=BLUE, alpha=0.3)
        canvas.line("median", curve(middle), "posterior median", color=BLUE, width=2)
    canvas.line("target", target, "target", color="black", width=1.2, linestyle="--")
    canvas.title(
        "epsilon", f"What noise buys, method {tradeoff.method}, delta = {tradeoff.delta:g}"
    )
    canvas.words("epsilon", x="expected absolute noise, in the unit of the answer", y="epsilon")
    canvas.legend()
    return canvas.pc


def _canvas(
    curve: xr.DataArray,
    names: tuple[str, ...],
    visuals: Visuals,
    plot_collection: PlotCollection | None,
    backend: str | None,
    options: dict[str, Any],
) -> Canvas:
    return Canvas(
        xr.Dataset({str(curve.name): curve}),
        visuals=(*names, *WORDS),
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        **options,
    )


def _reach(noise: NoiseDistribution) -> float:
    """Return how far to plot: up to small tails on either side."""
    reach = max(noise.mean_absolute, abs(noise.mean), 1e-300)
    while noise.cdf(-reach) > TAIL or noise.cdf(reach) < 1.0 - TAIL:
        reach *= 1.2
    return 1.05 * reach if noise.mean_absolute > 0.0 else 1.0
