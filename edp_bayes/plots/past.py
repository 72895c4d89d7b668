"""What an adversary has seen, what they expected each time, and the database in question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.plots.densities import COLORS, LINES, one_individual
from edp_bayes.plots.drawing import SIZE, Canvas, Visuals, nearest_epsilon, require
from edp_bayes.plots.style import BLUE, GREEN, styled
from edp_bayes.results.past import INNER, Past, density_in_question, past_of, query_shown, written
from edp_bayes.results.query import Audit
from edp_bayes.utils.defaults import default_probability
from edp_bayes.utils.formatting import percent
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["plot_past"]

BAND_COLOR, AT_HAND_COLOR = BLUE, GREEN
TICKS = 6  # of dates
ROOM = 0.04  # above and below
LEAST = 0.01  # of the highest density, to be seen
VISUALS = (
    *("outer_band", "inner_band", "median", "responses", "in_question"),
    *("density_with", "density_without"),
    *("title", "xlabel", "ylabel", "ticks", "ylim", "legend"),
)


@styled
def plot_past(
    audit: Audit,
    *,
    individual: Any = None,
    query: str | None = None,
    epsilon: float | None = None,
    ci_prob: float | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot the responses an adversary has seen, and what they expected of each.

    On the left, the responses with the predictive distribution of each database given what was
    known: its median, and the intervals of 50% and `ci_prob`. The database in question has no
    response yet, unless it is one of those seen. On the right, on the same axis of responses, its
    predictive density with and without the riskiest individual, averaged over the draws;
    `plot_density` shows their bands. The first databases serve as lags only and have no band.

    Parameters
    ----------
    audit : Audit
        Made with an adversary, or loaded.
    individual : label, optional
        One of those whose draws were kept; the riskiest at `epsilon` if not given.
    query : str, optional
        Which of several queries that were audited together; the first if not given.
    epsilon : float, optional
        Where the riskiest is looked for, to the nearest value of the grid; the first one if not
        given.
    ci_prob : float, optional
        Probability of the outer interval; ArviZ's ``stats.ci_prob`` if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_delta`.
    visuals : mapping of {str : mapping or bool}, optional
        Keyword arguments for, or False to leave out: outer_band, inner_band, median, responses,
        in_question, density_with, density_without, title, xlabel, ylabel, ticks, ylim, legend.

    Returns
    -------
    PlotCollection
        With axes for "series" and "density".

    Raises
    ------
    InvalidInputError
        If the result is no Audit or was made without an adversary, the individual's draws were not
        kept, the query or a visual is unknown or the probability is none.

    See Also
    --------
    edp_bayes.Audit.plot_past : the same from an audit
    edp_bayes.Adversary : what is known beside the releases
    plot_leakage : delta over what is known

    Notes
    -----
    The bands are those of a fit to all databases, not forecasts of one made before.
    What insiders contributed to a sum is subtracted from every response, as the adversary does.
    Known noise is in the densities alone.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.2, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1], adversary=edp.Adversary(past=1), draws=50, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> type(plot_past(audit, backend="none")).__name__
    'PlotCollection'
    """
    require(audit, Audit, "plot_past", "an Audit")
    outer = default_probability(ci_prob, "ci_prob")
    inner = INNER if outer > INNER else INNER * outer
    past = past_of(audit, (inner, outer), query)
    chosen = one_individual(audit, individual, nearest_epsilon(audit.epsilon, epsilon))
    densities = density_in_question(audit, chosen, query)
    canvas = Canvas(
        xr.Dataset({"series": past.seen, "density": densities["density_with"]}),
        visuals=VISUALS,
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        **_side_by_side(pc_kwargs),
    )
    for name, prob, alpha in (("outer_band", outer, 0.18), ("inner_band", inner, 0.3)):
        lower, upper = (end.rename("series") for end in past.interval(prob))
        label = f"expected: {percent(prob)} interval"
        canvas.band(name, lower, upper, label, color=BAND_COLOR, alpha=alpha)
    middle = past.median.rename("series")
    canvas.line("median", middle, "expected: median", color=BAND_COLOR, width=1.4)
    _in_question(canvas, past, past.interval(outer))
    _responses(canvas, past)
    name = str(chosen["individual"].values)
    for distribution, color in COLORS.items():
        look = {"color": color, "width": 1.6, "linestyle": LINES[distribution]}
        curve = densities[f"density_{distribution}"].rename("density")
        label = f"{distribution} {name}"
        canvas.line(f"density_{distribution}", curve, label, upright=True, **look)
    shown = query_shown(audit, query)
    y = audit.scaled(f"response of {shown}" if audit.joint else audit.axis)
    _dress(canvas, y, past, densities)
    canvas.legend()
    return canvas.pc


def _side_by_side(options: dict[str, Any]) -> dict[str, Any]:
    figure = {"figsize": (1.3 * SIZE[0], SIZE[1]), "figsize_units": "dots"}
    figure |= {"width_ratios": [3, 1], **options.get("figure_kwargs", {})}
    return {"col_wrap": 2, **options, "figure_kwargs": figure}


def _in_question(canvas: Canvas, past: Past, ends: tuple[xr.DataArray, xr.DataArray]) -> None:
    """Draw the outer interval of the database in question as an upright line."""
    both = xr.concat([end.isel(place=past.at) for end in ends], "end").drop_vars("place")
    upright = both.rename("series").assign_coords(end=both.to_numpy())
    place = xr.full_like(upright, 0).astype(past.seen["place"].dtype)
    place[:] = past.expected["place"][past.at].to_numpy()
    look = {"color": AT_HAND_COLOR, "width": 2.4}
    canvas.line("in_question", place, f"in question: {past.label}", upright=True, **look)


def _responses(canvas: Canvas, past: Past) -> None:
    from arviz_plots import visuals as vis

    style = canvas.style("responses", {"color": "black", "marker": "o", "size": 14, "width": 0})
    if style is None:
        return
    marks = past.seen.rename("series")
    canvas.pc.map(
        vis.scatter_xy,
        "responses",
        data=marks,
        x=marks["place"],
        y=marks,
        ignore_aes="all",
        **style,
    )


def _dress(canvas: Canvas, y: str, past: Past, densities: xr.Dataset) -> None:
    less = ", less what insiders contributed" if past.less else ""
    canvas.title("series", f"Answers and what was expected of them{less}")
    canvas.title("density", past.label[:1].upper() + past.label[1:])
    numbered = past.seen["place"].to_numpy()[0] == 1
    canvas.words("series", x="database, in their order" if numbered else "database", y=y)
    canvas.words("density", x="density")
    # their size says nothing here, and its digits would touch each other
    canvas.each("ticks", "set_ticklabel_visibility", "density", axis="x", visible=False)
    canvas.each("ticks", "set_ticklabel_visibility", "density", axis="y", visible=False)
    places = past.expected["place"].to_numpy()
    if places.dtype.kind == "M":
        shown = spread_evenly(places.size, TICKS)
        text = [written(places)[k] for k in shown]
        canvas.each("ticks", "set_xticks", "series", values=places[shown], labels=text)
    x = densities["x"].to_numpy()
    everything = np.concatenate(
        [past.seen, past.expected.to_numpy().ravel(), x[_visible(densities)]]
    )
    low, high = float(everything.min()), float(everything.max())
    room = ROOM * (high - low)
    for variable in ("series", "density"):
        canvas.each("ylim", "set_ylim", variable, limits=(low - room, high + room))


def _visible(densities: xr.Dataset) -> Any:
    """Return where the densities are not too small to be seen."""
    highest = np.maximum(*(densities[name].to_numpy() for name in densities.data_vars))
    return highest > LEAST * highest.max()
