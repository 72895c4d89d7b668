"""Plots of an audit, on every backend of ArviZ.

Each function returns the PlotCollection it drew on, whose axes `get_viz("plot", ...)` gives, and
takes `plot_collection`, `backend` and `visuals` as the plots of ArviZ do. The kind and the
probability of every band stand in the legend.

The pictures of property queries are drawn on matplotlib axes: `edp_bayes.plots.statistical_privacy`
shows the theory, `edp_bayes.plots.breutigam_reischuk` the figures of the paper.
"""

from edp_bayes.plots.curves import plot_delta, plot_total_risk
from edp_bayes.plots.densities import plot_density
from edp_bayes.plots.forest import plot_individuals
from edp_bayes.plots.interval import (
    plot_count_curves,
    plot_interval_level,
    plot_iso_curves,
    plot_level_curves,
    plot_width_curves,
)
from edp_bayes.plots.leakage import plot_leakage
from edp_bayes.plots.past import plot_past
from edp_bayes.plots.power import plot_membership, plot_power

__all__ = [
    "plot_count_curves",
    "plot_delta",
    "plot_density",
    "plot_individuals",
    "plot_interval_level",
    "plot_iso_curves",
    "plot_leakage",
    "plot_level_curves",
    "plot_membership",
    "plot_past",
    "plot_power",
    "plot_total_risk",
    "plot_width_curves",
]
