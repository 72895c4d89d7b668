"""Densities of the response with and without an individual, and what tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.plots.drawing import (
    Canvas,
    Visuals,
    nearest_epsilon,
    require,
)
from edp_bayes.plots.style import BLUE, GREEN, VERMILION, styled
from edp_bayes.responses.dependence import combination
from edp_bayes.results import bands
from edp_bayes.results.query import Audit
from edp_bayes.results.summaries import by_risk, log_ratio
from edp_bayes.utils import labels
from edp_bayes.utils.defaults import default_probability
from edp_bayes.utils.formatting import percent

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["one_individual", "plot_density"]

COLORS = {"with": BLUE, "without": VERMILION}
LINES = {"with": "-", "without": "--"}
RATIO_COLOR = GREEN
ROOM = 0.2  # around a median, for its band
VISUALS = (
    *("band_with", "band_without", "median_with", "median_without", "responses"),
    *("band_ratio", "median_ratio", "epsilon", "minus_epsilon"),
    *("title", "xlabel", "ylabel", "ticks", "xlim", "ylim", "legend"),
)


@styled
def plot_density(
    audit: Audit,
    *,
    individual: Any = None,
    epsilon: float | None = None,
    ci_prob: float | None = None,
    plot_collection: PlotCollection | None = None,
    backend: str | None = None,
    visuals: Visuals = None,
    **pc_kwargs: Any,
) -> PlotCollection:
    """Plot the densities with and without an individual, and the logarithm of their ratio.

    Above, p and p_i with a pointwise band each and the responses as marks. Below, log(p / p_i),
    taken draw by draw, with its pointwise band: the individual is exposed by the responses at
    which it leaves the strip between -epsilon and epsilon. Both reach over all responses, with and
    without those whose draws were kept; a band that is wider by far than its median is cut.

    Parameters
    ----------
    audit : Audit
        What to plot.
    individual : label, optional
        One of those whose draws were kept; the riskiest at `epsilon` if not given, as in
        `plot_individuals`.
    epsilon : float, optional
        Edge of the strip, to the nearest value of the grid; the first one if not given.
    ci_prob : float, optional
        Probability of the bands; ArviZ's ``stats.ci_prob`` if not given.
    plot_collection, backend, **pc_kwargs
        As for `plot_delta`.
    visuals : mapping of {str : mapping or bool}, optional
        Keyword arguments for, or False to leave out: band_with, band_without, median_with,
        median_without, responses, band_ratio, median_ratio, epsilon, minus_epsilon, title,
        xlabel, ylabel, ticks, xlim, ylim, legend.

    Returns
    -------
    PlotCollection

    Raises
    ------
    InvalidInputError
        If the result is no Audit, the individual's draws were not kept, a visual is unknown or
        the probability is none.

    See Also
    --------
    edp_bayes.Audit.plot_density : the same from an audit
    plot_individuals : the riskiest individuals
    edp_bayes.Mixture : a mixture density

    References
    ----------
    Burchard, Daoud and Dotterrer (2020), Figure 5.

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
    >>> type(plot_density(audit, individual=1, backend="none")).__name__
    'PlotCollection'
    """
    require(audit, Audit, "plot_density", "an Audit")
    prob = default_probability(ci_prob, "ci_prob")
    edge = nearest_epsilon(audit.epsilon, epsilon)
    draws = one_individual(audit, individual, edge)
    canvas = Canvas(
        draws[["density", "ratio"]],
        visuals=VISUALS,
        chosen=visuals,
        plot_collection=plot_collection,
        backend=backend,
        height=1.4,
        **pc_kwargs,
    )
    name = str(draws["individual"].values)
    for distribution in COLORS:
        _distribution(canvas, draws[f"density_{distribution}"], distribution, name, prob)
    _responses(canvas, audit, draws)
    ends = _ratio(canvas, draws["ratio"], edge, prob)
    _dress(canvas, audit, name, draws, ends)
    canvas.legend()
    return canvas.pc


def _found(individual: Any, kept: NDArray[Any]) -> tuple[str, NDArray[np.int64]]:
    """Return a label as text and where it stands among those kept, which are text or dates."""
    label = tuple(individual) if isinstance(individual, list) else individual
    name = labels.as_text(label)
    if kept.dtype.kind in "Mm":
        return name, np.flatnonzero(
            labels.as_objects(kept.tolist()) == labels.lookup_key(label, kept)
        )
    # labels whose text is the same are kept as they are written in code
    written = repr(label)
    text = [str(label) for label in kept]
    return name, np.flatnonzero([t == (written if written in text else name) for t in text])


def one_individual(audit: Audit, individual: Any, epsilon: float) -> xr.Dataset:
    """Return the densities of one individual, and their log ratio."""
    group = audit.tree["densities"].to_dataset()
    kept = group["individual"].to_numpy()
    name, wanted = _found(individual, kept)
    if individual is not None and wanted.size == 0:
        shown = "; ".join(repr(str(label)) for label in kept[:10])
        raise InvalidInputError(
            f"the draws of individual {name!r} were not kept; there are {shown}. "
            "Name it in individuals= when auditing, if the data hold it"
        )
    position = int(by_risk(audit, epsilon)[0] if individual is None else wanted[0])
    draws = group.isel(individual=position).astype(np.float64)
    draws["ratio"] = log_ratio(draws)
    draws["density"] = draws["density_with"]
    if audit.joint:
        draws["direction"] = audit.tree["direction"]["direction"].isel(individual=position)
    return draws


def _distribution(
    canvas: Canvas, draws: xr.DataArray, distribution: str, name: str, prob: float
) -> None:
    middle, lower, upper = _band(draws, prob, "density")
    look: dict[str, Any] = {"color": COLORS[distribution]}
    label = f"{distribution} {name}: {_label(prob)}"
    canvas.band(f"band_{distribution}", lower, upper, alpha=0.25, **look)
    canvas.line(
        f"median_{distribution}", middle, label, width=1.6, linestyle=LINES[distribution], **look
    )


def _responses(canvas: Canvas, audit: Audit, draws: xr.Dataset) -> None:
    from arviz_plots import visuals as vis

    style = canvas.style(
        "responses", {"color": "black", "marker": "|", "size": 60, "alpha": 0.6, "width": 0.8}
    )
    if style is None:
        return
    # of several queries, along the combination that exposes this individual
    held = draws if audit.joint else audit.tree["observed_data"]
    observed = held["response"].to_numpy().ravel()
    marks = xr.DataArray(observed, dims="mark", name="density")
    canvas.pc.map(
        vis.scatter_xy,
        "responses",
        data=marks,
        x=marks,
        y=xr.zeros_like(marks),
        ignore_aes="all",
        **style,
    )


def _ratio(canvas: Canvas, draws: xr.DataArray, epsilon: float, prob: float) -> tuple[float, float]:
    """Draw the ratio with its strip; return from where to where the axis reaches."""
    middle, lower, upper = _band(draws.dropna("x"), prob, "ratio")
    canvas.band("band_ratio", lower, upper, alpha=0.25, color=RATIO_COLOR)
    label = f"log ratio: {_label(prob)}"
    canvas.line("median_ratio", middle, label, color=RATIO_COLOR, width=1.6)
    strip: dict[str, Any] = {"color": "black", "width": 0.9, "linestyle": ":"}
    edge = xr.full_like(middle, epsilon)
    canvas.line("epsilon", edge, f"plus and minus epsilon = {epsilon:.4g}", **strip)
    canvas.line("minus_epsilon", -edge, **strip)
    # in the far tails the band may be endless
    low, high = min(-epsilon, float(middle.min())), max(epsilon, float(middle.max()))
    room = ROOM * (high - low)
    return low - room, high + room


def _label(prob: float) -> str:
    return f"median, {percent(prob)} pointwise band"


def _band(
    draws: xr.DataArray, prob: float, name: str
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    values: NDArray[np.float64] = draws.transpose("chain", "draw", "x").to_numpy()
    flat = values.reshape(-1, values.shape[-1])
    curves = (np.median(flat, axis=0), *bands.pointwise(flat, prob))
    middle, lower, upper = (
        xr.DataArray(curve, {"x": draws["x"]}, ("x",), name=name) for curve in curves
    )
    return middle, lower, upper


def _dress(
    canvas: Canvas, audit: Audit, name: str, draws: xr.Dataset, ends: tuple[float, float]
) -> None:
    query = audit.named
    canvas.title("density", f"Distribution of {query} with and without {name}")
    canvas.words("density", y="density per unit")
    # those below are the same
    canvas.each("ticks", "set_ticklabel_visibility", "density", axis="x", visible=False)
    # the marks under an adversary are residuals about what was expected of the database in question
    adjusted = ", adjusted to the database in question" if audit.against else ""
    words = audit.scaled(audit.axis) + adjusted
    if audit.joint:
        said = combination(draws["direction"].to_numpy(), tuple(audit.settings["queries"]))
        words = f"{said}, in standard deviations"
    canvas.words("ratio", x=words, y="log(with / without)")
    x = draws["x"].to_numpy()
    for variable in ("density", "ratio"):
        canvas.each("xlim", "set_xlim", variable, limits=(float(x[0]), float(x[-1])))
    canvas.each("ylim", "set_ylim", "ratio", limits=ends)
