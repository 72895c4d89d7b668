"""Forest of the riskiest individuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.plots.drawing import SIZE, Visuals, nearest_epsilon, plain, require
from edp_bayes.plots.style import LABEL_SIZE, TICK_SIZE, TITLE_SIZE, plain_ticks, styled
from edp_bayes.results.query import Audit
from edp_bayes.results.summaries import CI_KINDS, riskiest
from edp_bayes.utils import validate
from edp_bayes.utils.defaults import default_probability
from edp_bayes.utils.formatting import percent

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["plot_individuals"]

INNER = 0.5
ROOM = 0.6  # of a row, above and below
DIGITS = 9  # of risks that are the same
NAMES = {"eti": "equal-tailed", "hdi": "highest-density"}
OWN_VISUALS = ("title", "xlabel", "ticks", "xlim")


@styled
def plot_individuals(
    audit: Audit,
    *,
    epsilon: float | None = None,
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot delta_i of the individuals whose draws were kept, the riskiest on top.

    Drawn by ArviZ's ``plot_forest``: a point for the posterior median, a thick line for the inner
    interval of probability 50% and a thin one for the whole interval. Individuals whose risk is
    the same in every draw share a row, which says how many they are.

    Parameters
    ----------
    audit : Audit
        What to plot.
    epsilon : float, optional
        Where, to the nearest value of the grid; the first one if not given.
    ci_prob : float, optional
        Probability of the thin intervals; ArviZ's ``stats.ci_prob`` if not given.
    ci_kind : {"eti", "hdi"}, optional
        ArviZ's ``stats.ci_kind`` if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_delta`, passed to ``plot_forest``.
    visuals : mapping of {str : mapping or bool}, optional
        As for ``plot_forest``, and title, xlabel, ticks and xlim.

    Returns
    -------
    PlotCollection
        Its intervals stand in the axes of column "forest".

    Raises
    ------
    InvalidInputError
        If the result is no Audit, epsilon lies outside of the grid or the probability is none.

    See Also
    --------
    edp_bayes.Audit.plot_individuals : the riskiest individuals of an audit
    plot_density : the densities with and without an individual
    plot_total_risk : the total risk with its bands

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
    >>> type(plot_individuals(audit, epsilon=0.1, backend="none")).__name__
    'PlotCollection'
    """
    from arviz_base import rcParams
    from arviz_plots import plot_forest

    require(audit, Audit, "plot_individuals", "an Audit")
    prob = default_probability(ci_prob, "ci_prob")
    kind = validate.choice(ci_kind or rcParams["stats.ci_kind"], CI_KINDS, "ci_kind")
    inner = INNER if prob > INNER else INNER * prob
    at = nearest_epsilon(audit.epsilon, epsilon)
    risk = _without_ties(riskiest(audit, at))
    chosen = dict(visuals or {})
    own = {name: chosen.pop(name, True) for name in OWN_VISUALS}
    figure: dict[str, Any] = {
        "figsize": (SIZE[0], 150 + 34 * risk.sizes["individual"]),
        "figsize_units": "dots",
    }
    figure |= {"width_ratios": [1, 4], "sharey": True, **pc_kwargs.pop("figure_kwargs", {})}
    drawn_by = backend or rcParams["plot.backend"]
    if drawn_by == "matplotlib":
        figure.setdefault("layout", "constrained")
    shown = [plain(str(label), drawn_by) for label in risk["individual"].to_numpy()]
    risk = risk.assign_coords(individual=shown)
    pc = plot_forest(
        xr.DataTree.from_dict({"posterior": xr.Dataset({"delta_i": risk})}),
        combined=True,
        point_estimate="median",
        ci_kind=kind,
        ci_probs=(inner, prob),
        labels=["individual"],
        plot_collection=plot_collection,
        backend=backend,
        visuals={"ticklabels": {"size": TICK_SIZE}, **chosen},
        figure_kwargs=figure,
        **pc_kwargs,
    )
    intervals = f"median, {percent(inner)} and {percent(prob)} {NAMES[kind]} intervals"
    top = float(risk.quantile(0.5 + 0.5 * prob, ("chain", "draw")).max())
    _dress(pc, own, f"Riskiest individuals at epsilon = {at:.4g}", intervals, top)
    if plot_collection is None and drawn_by == "matplotlib":
        labels, forest = pc.get_viz("figure").axes
        labels.grid(visible=False)
        low, high = forest.dataLim.intervaly
        room = ROOM * (high - low) / max(risk.sizes["individual"] - 1, 1) or 1.0
        forest.set_ylim(low - room, high + room)
        plain_ticks(forest)
    return pc


def _without_ties(risk: xr.DataArray) -> xr.DataArray:
    """Leave the first of the individuals whose risk is the same in every draw, and their number."""
    draws = risk.transpose("individual", ...).to_numpy().reshape(risk.sizes["individual"], -1)
    _, first, row = np.unique(draws.round(DIGITS), axis=0, return_index=True, return_inverse=True)
    alike = np.bincount(row.ravel()) - 1
    order = np.argsort(first)
    names = risk["individual"].to_numpy()[first[order]]
    said = [
        f"{name}\nand {more:,} alike" if more else str(name)
        for name, more in zip(names, alike[order], strict=True)
    ]
    return risk.isel(individual=first[order]).assign_coords(individual=said)


def _dress(
    pc: PlotCollection, chosen: Mapping[str, Any], title: str, intervals: str, top: float
) -> None:
    from arviz_plots import visuals as vis

    forest = {"column": "forest"}
    for name, function, words in (
        ("title", vis.labelled_title, {"text": title, "size": TITLE_SIZE}),
        ("xlabel", vis.labelled_x, {"text": f"delta_i: {intervals}", "size": LABEL_SIZE}),
        ("ticks", vis.ticklabel_props, {"axis": "x", "size": TICK_SIZE}),
        ("xlim", vis.set_xlim, {"limits": (0.0, 1.05 * top)}),
    ):
        style = chosen[name]
        if style is not False:
            style = {**words, **(style if isinstance(style, Mapping) else {})}
            stored = "text" in style
            pc.map(function, name, coords=forest, ignore_aes="all", store_artist=stored, **style)
