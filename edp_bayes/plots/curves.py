"""Privacy curves: delta and delta* over epsilon, with credible bands."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import xarray as xr

from edp_bayes.plots.drawing import Canvas, Visuals, require
from edp_bayes.plots.style import BLUE, styled
from edp_bayes.results.base import BAND_KINDS, IndividualCurves, PrivacyCurves
from edp_bayes.results.summaries import most_total
from edp_bayes.utils import validate
from edp_bayes.utils.defaults import default_probability
from edp_bayes.utils.formatting import percent

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["plot_delta", "plot_total_risk"]

COLOR = BLUE
OPACITY = {"simultaneous": 0.25, "pointwise": 0.5}
VISUALS = (
    *(f"{kind}_band" for kind in BAND_KINDS),
    "median",
    *("lower_bound", "upper_bound"),
    *("title", "xlabel", "ylabel", "ticks", "xlim", "ylim", "yscale", "legend"),
)
# On a logarithmic axis nothing further below the top than this is shown.
DECADES = 8
# Half the length, relative to epsilon, at which a single epsilon is drawn.
POINT = 0.02
TITLE_WIDTH = 62  # characters


@styled
def plot_delta(
    audit: PrivacyCurves,
    *,
    kind: str | None = None,
    ci_prob: float | None = None,
    log: bool = False,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot delta(epsilon) with its bands: of a query, the largest risk of any individual.

    Parameters
    ----------
    audit : Audit, PropertyAudit, MechanismAudit or Verification
        What to plot.
    kind : {"simultaneous", "pointwise"}, optional
        Which band; both if not given. The simultaneous one holds the whole curve with the
        probability stated, the pointwise one its value at each single epsilon.
    ci_prob : float, optional
        Probability of the bands; ArviZ's ``stats.ci_prob`` if not given.
    log : bool
        Logarithmic axis of delta.
    plot_collection : PlotCollection, optional
        Where to draw, a new figure if not given.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        ArviZ's ``plot.backend`` if not given.
    visuals : mapping of {str : mapping or bool}, optional
        Keyword arguments for, or False to leave out: simultaneous_band, pointwise_band, median,
        title, xlabel, ylabel, ticks, xlim, ylim, yscale, legend.
    **pc_kwargs
        Passed to ``PlotCollection.wrap``.

    Returns
    -------
    PlotCollection

    Raises
    ------
    InvalidInputError
        If the result is another, the kind or a visual is unknown, or the probability is none.

    See Also
    --------
    edp_bayes.Audit.band : the numbers that are drawn
    edp_bayes.Audit.plot_delta : the same from an audit
    plot_total_risk : the total risk with its bands
    plot_power : the power of the best test

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.2, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1, 0.5], model=edp.SmoothedBootstrap(), draws=50, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> type(plot_delta(audit, backend="none")).__name__
    'PlotCollection'
    """
    needed = "an Audit, PropertyAudit, MechanismAudit or Verification"
    require(audit, PrivacyCurves, "plot_delta", needed)
    canvas = _curve(
        audit,
        "delta",
        f"delta: {audit.risk}",
        "Privacy curve",
        kind=kind,
        ci_prob=ci_prob,
        log=log,
        plot_collection=plot_collection,
        backend=backend,
        visuals=visuals,
        **pc_kwargs,
    )
    canvas.legend()
    return canvas.pc


@styled
def plot_total_risk(
    audit: IndividualCurves,
    *,
    kind: str | None = None,
    ci_prob: float | None = None,
    log: bool = False,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot the total risk delta*(epsilon) = 1 - prod_i (1 - delta_i), with its bands.

    The product assumes that individuals are exposed independently. Whatever the dependence, the
    total risk lies between max_i delta_i and min(1, sum_i delta_i): thin lines show the lower end
    of the first's simultaneous band, and the upper end of the second's.

    Parameters
    ----------
    audit : Audit or Verification
        What to plot.
    kind, ci_prob, log, plot_collection, backend, **pc_kwargs
        As for `plot_delta`.
    visuals : mapping of {str : mapping or bool}, optional
        As for `plot_delta`, and lower_bound and upper_bound.

    Returns
    -------
    PlotCollection

    Raises
    ------
    InvalidInputError
        If the result is another, the kind or a visual is unknown, or the probability is none.

    See Also
    --------
    edp_bayes.Audit.plot_total_risk : the same from an audit
    plot_delta : the privacy curve with its bands
    plot_individuals : the riskiest individuals

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.2, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1, 0.5], model=edp.SmoothedBootstrap(), draws=50, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> type(plot_total_risk(audit, backend="none")).__name__
    'PlotCollection'
    """
    require(audit, IndividualCurves, "plot_total_risk", "an Audit or Verification")
    prob = default_probability(ci_prob)
    most, least = most_total(audit, prob), audit.band("delta", prob=prob)["lower"]
    canvas = _curve(
        audit,
        "total_risk",
        "delta*: risk that anybody is exposed",
        "Total risk",
        highest=float(most.max()),
        kind=kind,
        ci_prob=ci_prob,
        log=log,
        plot_collection=plot_collection,
        backend=backend,
        visuals=visuals,
        **pc_kwargs,
    )
    thin: dict[str, Any] = {"color": "black", "width": 0.9}
    share = percent(prob)
    for visual, curve, label, dash in (
        ("upper_bound", most, f"min(1, sum of risks), upper end of {share} band", "--"),
        ("lower_bound", least, f"largest risk, lower end of {share} band", ":"),
    ):
        shown = _visible(curve.rename("total_risk").to_dataset())["total_risk"]
        canvas.line(visual, shown, label, **thin, linestyle=dash)
    canvas.legend()
    return canvas.pc


def _curve(
    audit: PrivacyCurves,
    quantity: str,
    label: str,
    title: str,
    *,
    highest: float = 0.0,
    kind: str | None,
    ci_prob: float | None,
    log: bool,
    plot_collection: PlotCollection | None,
    backend: str | None,
    visuals: Visuals,
    **pc_kwargs: Any,
) -> Canvas:
    kinds = BAND_KINDS if kind is None else (validate.choice(kind, BAND_KINDS, "kind"),)
    bands = {name: audit.band(quantity, kind=name, prob=ci_prob) for name in kinds}
    bands = {name: _visible(band) for name, band in bands.items()}
    canvas = Canvas(
        xr.Dataset({quantity: getattr(audit, quantity)}),
        visuals=VISUALS,
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        **pc_kwargs,
    )
    for name, band in bands.items():
        canvas.band(
            f"{name}_band",
            band["lower"].rename(quantity),
            band["upper"],
            f"{percent(band.attrs['prob'])} {name} band",
            color=COLOR,
            alpha=OPACITY[name],
        )
    middle = next(iter(bands.values()))["median"].rename(quantity)
    canvas.line("median", middle, "posterior median", color=COLOR, width=2)
    _dress(canvas, audit, quantity, label, title)
    top = max(highest, *(float(band["upper"].max()) for band in bands.values()))
    _limit(canvas, quantity, middle, top, log)
    return canvas


def _visible(band: xr.Dataset) -> xr.Dataset:
    """Return the band, a short level one where there is only one epsilon."""
    if band.sizes["epsilon"] > 1:
        return band
    low = float(band["epsilon"][0])
    half = POINT * (low or 1.0)
    wide = xr.concat(
        [band.assign_coords(epsilon=[x]) for x in (max(low - half, 0.0), low + half)], "epsilon"
    )
    return wide.assign_attrs(band.attrs)


def _dress(canvas: Canvas, audit: PrivacyCurves, quantity: str, label: str, title: str) -> None:
    what, size = audit.subject
    against = getattr(audit, "against", "")
    parts = [f"{title} of {what}", f"{size}, against {against}" if against else size]
    said = [line for part in parts for line in textwrap.wrap(part, TITLE_WIDTH)]
    canvas.title(quantity, "\n".join(said))
    canvas.words(quantity, x="epsilon", y=label)


def _limit(canvas: Canvas, quantity: str, middle: xr.DataArray, top: float, log: bool) -> None:
    """Limit the axes to the grid and to what can be seen; a risk is never above one."""
    grid = middle["epsilon"].to_numpy()
    if grid.size > 1:
        canvas.each("xlim", "set_xlim", quantity, limits=(float(grid[0]), float(grid[-1])))
    if top <= 0:
        return
    if log:
        least = float(middle.where(middle > 0).min())
        bottom = max(least / 3, top * 10.0**-DECADES) if least > 0 else top * 10.0**-DECADES
        canvas.each("yscale", "set_yscale", quantity, scale="log")
        canvas.each("ylim", "set_ylim", quantity, limits=(bottom, min(2 * top, 1.05)))
    else:
        canvas.each("ylim", "set_ylim", quantity, limits=(0.0, min(1.05 * top, 1.02)))
