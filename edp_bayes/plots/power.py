"""A privacy curve as what can be tested and believed: trade-off and membership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.plots.drawing import Canvas, Visuals, require
from edp_bayes.plots.style import BLUE, VERMILION, styled
from edp_bayes.results.base import BAND_KINDS, PrivacyCurves
from edp_bayes.utils.formatting import percent

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

    from edp_bayes.auditing.attacking import Attack

__all__ = ["plot_membership", "plot_power"]

COLOR, ATTACK = BLUE, VERMILION
VISUALS = (
    *(f"{kind}_band" for kind in BAND_KINDS),
    *("median", "chance", "attack"),
    *("title", "xlabel", "ylabel", "ticks", "xlim", "ylim", "legend"),
)


@styled
def plot_power(
    audit: PrivacyCurves,
    *,
    kind: str = "simultaneous",
    ci_prob: float | None = None,
    attack: Attack | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot the power of the best test for an individual's presence over its level, with a band.

    Parameters
    ----------
    audit : PrivacyCurves
        What to plot.
    kind : {"simultaneous", "pointwise"}
        Which band.
    ci_prob : float, optional
        Its probability; ArviZ's ``stats.ci_prob`` if not given.
    attack : Attack, optional
        Whose hits over false alarms are drawn, too.
    plot_collection, backend, **pc_kwargs
        As for `plot_delta`.
    visuals : mapping of {str : mapping or bool}, optional
        Keyword arguments for, or False to leave out: simultaneous_band or pointwise_band, median,
        chance, attack, title, xlabel, ylabel, ticks, xlim, ylim, legend.

    Returns
    -------
    PlotCollection

    Raises
    ------
    InvalidInputError
        If the result is another, the kind or a visual is unknown, or the probability is none.

    See Also
    --------
    edp_bayes.Audit.plot_power : the same from an audit
    edp_bayes.Audit.power : the most that a test detects
    plot_membership : how sure an answer makes anybody

    Examples
    --------
    >>> import edp_bayes as edp
    >>> audit = edp.audit_property(103, 1000, epsilon=[0.0, 0.1], random_seed=1, progressbar=False)
    >>> type(plot_power(audit, backend="none")).__name__
    'PlotCollection'
    """
    require(audit, PrivacyCurves, "plot_power", "an audit of any kind")
    band = audit.tradeoff(kind=kind, prob=ci_prob)
    middle = band["median"].rename("power")
    canvas = Canvas(
        xr.Dataset({"power": middle.expand_dims(chain=1, draw=1)}),
        visuals=VISUALS,
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        **pc_kwargs,
    )
    words = f"{percent(band.attrs['prob'])} {kind} band"
    lower = band["lower"].rename("power")
    canvas.band(f"{kind}_band", lower, band["upper"], words, color=COLOR, alpha=0.3)
    canvas.line("median", middle, "posterior median", color=COLOR, width=2)
    chance = middle.copy(data=middle["level"].to_numpy())
    canvas.line("chance", chance, "chance", color="black", width=0.9, linestyle=":")
    if attack is not None:
        table = attack.table()
        reached = table.groupby("false_alarm")["power"].max()
        curve = xr.DataArray(
            reached.to_numpy(), {"level": reached.index.to_numpy()}, ("level",), name="power"
        )
        label = f"attack: {attack.method}"
        canvas.line("attack", curve, label, color=ATTACK, width=2, linestyle="--")
    what, size = audit.subject
    canvas.title("power", f"Best test for an individual in {what}\n{size}")
    canvas.words("power", x="level: probability of a false alarm", y="power: probability of a hit")
    canvas.each("xlim", "set_xlim", "power", limits=(0.0, 1.0))
    canvas.each("ylim", "set_ylim", "power", limits=(0.0, 1.02))
    canvas.legend()
    return canvas.pc


@styled
def plot_membership(
    audit: PrivacyCurves,
    *,
    prior: float = 0.5,
    ci_prob: float | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot how likely a member meets an answer that makes their membership so probable or more.

    Parameters
    ----------
    audit : PrivacyCurves
        What to plot.
    prior : float
        Probability of membership before the answer.
    ci_prob : float, optional
        Probability of the pointwise band; ArviZ's ``stats.ci_prob`` if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_delta`.
    visuals : mapping of {str : mapping or bool}, optional
        Keyword arguments for, or False to leave out: pointwise_band, median, title, xlabel,
        ylabel, ticks, xlim, ylim, legend.

    Returns
    -------
    PlotCollection

    Raises
    ------
    InvalidInputError
        If the result is another, a visual is unknown, or a probability is none.

    See Also
    --------
    edp_bayes.Audit.plot_membership : the same from an audit
    edp_bayes.Audit.membership_probability : how sure an answer makes anybody
    plot_power : the power of the best test

    Examples
    --------
    >>> import edp_bayes as edp
    >>> audit = edp.audit_property(103, 1000, epsilon=[0.0, 0.1], random_seed=1, progressbar=False)
    >>> type(plot_membership(audit, backend="none")).__name__
    'PlotCollection'
    """
    from edp_bayes.results import bands
    from edp_bayes.utils.defaults import default_probability

    require(audit, PrivacyCurves, "plot_membership", "an audit of any kind")
    prob = default_probability(ci_prob)
    found = audit.membership_probability(prior=prior)
    draws = found["exceeded"].transpose("chain", "draw", "epsilon").to_numpy()
    flat = draws.reshape(-1, draws.shape[-1])
    over = {"posterior": found["posterior"].to_numpy()}
    ends = bands.pointwise(flat, prob)
    if (shown := audit.resampled_curves) is not None:
        # the log ratio exceeds an epsilon with a probability of at least delta there
        ends = ends[0], np.maximum(ends[1], bands.pointwise(shown, prob)[1])
    lower, upper = (xr.DataArray(end, over, ("posterior",), name="exceeded") for end in ends)
    middle = lower.copy(data=np.median(flat, axis=0))
    canvas = Canvas(
        xr.Dataset({"exceeded": middle.expand_dims(chain=1, draw=1)}),
        visuals=VISUALS,
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        **pc_kwargs,
    )
    canvas.band(
        "pointwise_band", lower, upper, f"{percent(prob)} pointwise band", color=COLOR, alpha=0.3
    )
    canvas.line("median", middle, "posterior median", color=COLOR, width=2)
    what, size = audit.subject
    canvas.title("exceeded", f"Membership in {what}, {percent(prior)} before\n{size}")
    canvas.words(
        "exceeded",
        x="probability of membership after an answer",
        y="at most so many members exceed it",
    )
    canvas.each("ylim", "set_ylim", "exceeded", limits=(0.0, 1.02))
    canvas.legend()
    return canvas.pc
