"""How the risk grows with what an adversary knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from edp_bayes.auditing.leakage import Leakage
from edp_bayes.plots.drawing import Canvas, Visuals, require
from edp_bayes.plots.style import BLUE, styled
from edp_bayes.utils import validate
from edp_bayes.utils.defaults import default_probability
from edp_bayes.utils.formatting import percent

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["plot_leakage"]

WORDS = {
    "past": ("earlier releases seen", "What earlier releases tell"),
    "insiders": (
        "share of insiders (at 1, all others are known: classical differential privacy)",
        "What insiders tell",
    ),
}
VISUALS = ("band", "median", "title", "xlabel", "ylabel", "ticks", "ylim", "legend")


@styled
def plot_leakage(
    leakage: Leakage,
    *,
    of: str | None = None,
    ci_prob: float | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot delta at one epsilon over what an adversary knows.

    Over the share of insiders the right end, where all others are known, is what classical
    differential privacy assumes.

    Parameters
    ----------
    leakage : Leakage
        What to plot.
    of : {"past", "insiders"}, optional
        Over what; both, one above the other, if not given.
    ci_prob : float, optional
        Probability of the pointwise bands; ArviZ's ``stats.ci_prob`` if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_delta`.
    visuals : mapping of {str : mapping or bool}, optional
        Keyword arguments for, or False to leave out: band, median, title, xlabel, ylabel, ticks,
        ylim, legend.

    Returns
    -------
    PlotCollection
        With axes for "past" and "insiders".

    Raises
    ------
    InvalidInputError
        If the result is no Leakage or holds nothing of what is asked for, a visual is unknown or
        the probability is none.

    See Also
    --------
    edp_bayes.leakage : delta for adversaries who know more and more
    edp_bayes.Leakage : the risk over what is known
    plot_past : what an adversary has seen and expected

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from edp_bayes.auditing.leakage import Leakage
    >>> draws = np.linspace(0.01, 0.03, 99) * np.array([[1.0], [2.0]])
    >>> group = xr.Dataset({name: (("insiders", "draw"), draws) for name in ("delta", "below")},
    ...                    {"insiders": [0.0, 0.9]})
    >>> tree = xr.DataTree.from_dict({"insiders": group})
    >>> tree.attrs["epsilon"] = 0.1
    >>> type(plot_leakage(Leakage(tree), backend="none")).__name__
    'PlotCollection'
    """
    require(leakage, Leakage, "plot_leakage", "a Leakage")
    prob = default_probability(ci_prob, "ci_prob")
    held = [name for name in WORDS if name in leakage.tree.children]
    chosen = held if of is None else [validate.choice(of, tuple(held), "of")]
    curves = {
        name: leakage.table(name, prob=prob).rename_axis("known").to_xarray() for name in chosen
    }
    canvas = Canvas(
        xr.Dataset({name: curve["median"] for name, curve in curves.items()}),
        visuals=VISUALS,
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        height=1.0 if len(chosen) == 1 else 1.6,
        **pc_kwargs,
    )
    y = f"delta at epsilon {leakage.tree.attrs['epsilon']:.4g}: largest risk"
    for name, curve in curves.items():
        middle, lower, upper = (curve[end].rename(name) for end in ("median", "lower", "upper"))
        label = f"{percent(prob)} pointwise band"
        canvas.band("band", lower, upper, label, color=BLUE, alpha=0.25)
        canvas.line("median", middle, "posterior median", color=BLUE, width=1.6)
        x, title = WORDS[name]
        canvas.title(name, title)
        canvas.words(name, x=x, y=y)
        canvas.each("ylim", "set_ylim", name, limits=(0.0, 1.05 * float(upper.max()) or 1.0))
        if name == "past":
            counts = curve["known"].to_numpy()
            canvas.each("ticks", "set_xticks", name, values=counts, labels=list(map(str, counts)))
    canvas.legend()
    return canvas.pc
