"""The learned base measure shared by the mixture models, in units of the response's spread."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.base import ShortRepr
from edp_bayes.models.priors import NONNEGATIVE, REAL, UNIT, Priors, Support
from edp_bayes.utils import labels, validate

if TYPE_CHECKING:
    from edp_bayes.models.conditional import Conditional
    from edp_bayes.models.mixture_model import MixtureModel
    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.responses import Responses

__all__ = [
    "BaseMeasure",
    "Standardisation",
    "add_response",
    "assumed",
    "coordinates",
    "least_of",
    "narrowest_of",
    "narrowest_spread",
    "observe",
    "priors_of",
    "regress",
    "spread_within_ties",
    "units_of",
]

WINDOW = 4  # databases
FLOORS = 0.5  # squares of the narrowest spread in the scale of every component
NARROWEST = "narrowest"  # name of what keeps components from being finer
ROUNDED = "rounded_response"  # name of a likelihood of what was rounded
# Priors of what a component is itself, in units of the response, take the place of those by which
# the base measure makes it.
MADE_OF = {
    "locations": ("centre", "precision", "offset"),
    "scales": ("rate", "variance_share", "unit_variance"),
}
NONE = Priors()
# Names of what a PyMC model holds of the data, in units of the response; see docs/models/your_own.
RESPONSE, REGRESSORS, POSITION = "response_data", "regressors", "position"
OF_STEP = 0.15  # steps of a grid: all but 0.1% of a component as narrow can be in one bin


@dataclass(frozen=True, repr=False)
class BaseMeasure(ShortRepr):
    """Distribution of a component, its parameters learned from the data.

    For a response standardised to mean 0 and standard deviation 1, component k has variance
    ``v_k ~ InverseGamma(shape, r_k)`` and location ``mu_k ~ Normal(m, 1 / precision)``, with a
    rate of its own ``r_k ~ Gamma(scale_shape, rate)``, ``rate ~ Gamma(rate_shape, rate_rate)``,
    ``precision ~ Gamma(precision_shape, precision_rate)`` and ``m ~ Normal(0, location_scale)``.
    So ``rate v_k`` follows a beta prime distribution, whose tails on both sides leave room for
    components of very different scales. The density of every v_k is multiplied by a smooth factor
    that leaves little to components much narrower than a standard deviation, by default the
    narrowest that the responses can show; see `least_of`.

    Parameters
    ----------
    shape : float
        Shape of the components' variances; larger means fewer wide ones.
    rate_shape, rate_rate : float
        Gamma prior of the common rate.
    precision_shape, precision_rate : float
        Gamma prior of the precision of the components' locations, which do not depend on their
        variances: so a narrow component may lie far out.
    location_scale : float
        Prior standard deviation of the centre of the locations.
    scale_shape : float, optional
        Shape of the components' own rates. The smaller, the more their scales differ: safer where
        the distribution has spikes, wider bands where it is smooth. None for one rate that all
        components share, which leaves them nearly one variance.
    narrowest : float, optional
        Standard deviation, in units of the answer as it is modelled, of the narrowest components.
        The prior density of those of half of it is 0.37 times what it would be, of a fifth 0.002
        times. A wider one says that the distribution is smooth, and makes limits smaller: they rest
        on that. By default what the responses can show; see `narrowest_spread`.

    Raises
    ------
    InvalidInputError
        If a parameter is not a finite number above zero.

    See Also
    --------
    DirichletProcessMixture : the default model of an audit
    FiniteMixture : a fixed number of components

    Examples
    --------
    >>> BaseMeasure(shape=5.0).precision_rate
    4.0
    """

    shape: float = 2.0
    rate_shape: float = 1.0
    rate_rate: float = 1.0
    precision_shape: float = 2.0
    precision_rate: float = 4.0
    location_scale: float = 1.0
    scale_shape: float | None = 0.5
    narrowest: float | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            if getattr(self, item.name) is None:
                continue
            validate.positive_number(getattr(self, item.name), f"base measure {item.name}")

    @property
    def parameters(self) -> dict[str, Support]:
        """What values the variables may have whose prior may be given.

        Examples
        --------
        >>> list(BaseMeasure().parameters)
        ['centre', 'rate', 'precision', 'variance_share', 'offset', 'locations', 'scales']
        """
        own = ("variance_share", UNIT) if self.scale_shape else ("unit_variance", NONNEGATIVE)
        return {
            "centre": REAL,
            "rate": NONNEGATIVE,
            "precision": NONNEGATIVE,
            own[0]: own[1],
            "offset": REAL,
            "locations": REAL,
            "scales": NONNEGATIVE,
        }

    def taking(self, priors: Priors) -> tuple[BaseMeasure, Priors]:
        """Return the base measure with those priors that are of its own families, and all others.

        Raises
        ------
        InvalidInputError
            If one has no effect, because components do not depend on it any more.

        Examples
        --------
        >>> import pymc as pm
        >>> given = Priors({"rate": pm.Gamma.dist(3.0, 1.0)}, BaseMeasure().parameters)
        >>> BaseMeasure().taking(given)
        (BaseMeasure(rate_shape=3.0), {})
        """
        for whole, parts in MADE_OF.items():
            for part in parts:
                if whole in priors and part in priors:
                    raise InvalidInputError(
                        f"{whole} with a prior of their own do not depend on {part}: leave one of "
                        "the two priors out"
                    )
        changes: dict[str, float] = {}
        for name in ("rate", "precision"):
            if (gamma := priors.parameters(name, "gamma")) is not None:
                changes |= {f"{name}_shape": float(gamma[0]), f"{name}_rate": float(gamma[1])}
        if (normal := priors.parameters("centre", "normal")) is not None and normal[0] == 0.0:
            changes["location_scale"] = float(normal[1])
        if (beta := priors.parameters("variance_share", "beta")) is not None:
            changes |= {"scale_shape": float(beta[0]), "shape": float(beta[1])}
        inverse = priors.parameters("unit_variance", "invgamma")
        if inverse is not None and inverse[1] == 1.0:
            changes["shape"] = float(inverse[0])
        taken = {
            "rate_shape": "rate",
            "precision_shape": "precision",
            "location_scale": "centre",
            "scale_shape": "variance_share",
            "shape": "unit_variance",
        }
        rest = priors.without(*(taken[name] for name in changes if name in taken))
        return (replace(self, **changes) if changes else self), rest

    def build(
        self,
        standardisation: Standardisation,
        narrowest: float,
        kernel: str,
        priors: Priors = NONE,
    ) -> Any:
        """Add the components to the current PyMC model; return (locations, scales).

        As many as its coordinate ``component`` has, see `coordinates`. Priors take the place of
        those of this base measure.

        Locations are non-centred, the geometry that sampled best. Both are named deterministics
        in the units of the response. The potential `narrowest` leaves next to no density to
        components whose standard deviation is far below that; see `least_of`.
        """
        import pymc as pm
        import pytensor.tensor as pt

        located, scaled = "locations" not in priors, "scales" not in priors
        of_each = partial(priors.add, dims="component")
        to_scale = standardisation.spread * scale_of_unit_spread(kernel)
        if located:
            centre = priors.add("centre", partial(pm.Normal, mu=0.0, sigma=self.location_scale))
        if scaled:
            rate = priors.add("rate", partial(pm.Gamma, alpha=self.rate_shape, beta=self.rate_rate))
        if located:
            shape, by = self.precision_shape, self.precision_rate
            precision = priors.add("precision", partial(pm.Gamma, alpha=shape, beta=by))
        if not scaled:
            scales = of_each("scales")
            variance = (scales / to_scale) ** 2
        elif self.scale_shape is None:
            unit = partial(pm.InverseGamma, alpha=self.shape, beta=1.0)
            variance = rate * of_each("unit_variance", unit)
        else:
            beta = partial(pm.Beta, alpha=self.scale_shape, beta=self.shape)
            share = of_each("variance_share", beta)
            variance = share / (1.0 - share) / rate
        if located:
            offset = of_each("offset", partial(pm.Normal, mu=0.0, sigma=1.0))
            location = centre + offset / pt.sqrt(precision)
            locations = pm.Deterministic(
                "locations",
                standardisation.centre + standardisation.spread * location,
                dims="component",
            )
        else:
            locations = of_each("locations")
        least = least_of(narrowest / standardisation.spread)
        pm.Potential(NARROWEST, -0.5 * least * (1.0 / variance).sum())
        if scaled:
            scales = pm.Deterministic("scales", pt.sqrt(variance) * to_scale, dims="component")
        return locations, scales


def coordinates(responses: Responses, components: int) -> dict[str, NDArray[Any]]:
    """Return the coordinates of a PyMC model: components, and databases by their labels."""
    return {
        "component": np.arange(components),
        "database": labels.as_coordinate(responses.database),
    }


@dataclass(frozen=True)
class Standardisation:
    """Mean and standard deviation of the responses, the units of every prior."""

    centre: float
    spread: float

    @classmethod
    def of(cls, response: NDArray[np.float64]) -> Standardisation:
        """Standardise by the sample mean and standard deviation of responses."""
        return cls(float(response.mean()), float(response.std(ddof=1)))


def narrowest_spread(sample: NDArray[np.float64]) -> float:
    """Return the standard deviation of the narrowest component that responses could show.

    A quarter of the smallest window that holds the responses of four databases, ties counted once:
    a normal component as narrow has 95% of its mass inside. What is finer is between the points,
    where no data can tell.

    Parameters
    ----------
    sample : ndarray
        Shape (n, samples): the responses of each database, of which the mean counts.

    Examples
    --------
    >>> narrowest_spread(np.array([[0.0], [1.0], [2.0], [4.0], [8.0], [16.0]]))
    1.0
    """
    order, held = np.unique(sample.mean(axis=1)), WINDOW - 1
    if order.size <= held:
        return 0.0
    return float((order[held:] - order[:-held]).min()) / WINDOW


def spread_within_ties(column: NDArray[np.float64]) -> float:
    """Return the standard deviation of a component that holds one of the values that occur twice.

    A small part of the smallest step between different values, so that any probabilities of them
    are those of such components; 0 where all values differ.

    Parameters
    ----------
    column : ndarray
        Shape (n,): responses.

    Examples
    --------
    >>> spread_within_ties(np.array([0.0, 1.0, 1.0, 0.0, 3.0]))
    0.15
    """
    order = np.unique(column)
    return OF_STEP * float(np.diff(order).min()) if 1 < order.size < column.size else 0.0


def least_of(narrowest: float) -> float:
    """Return by how much a narrowest spread raises the scale of every component.

    The prior density of each variance v is multiplied by exp(-least / (2 v)), so that an inverse
    gamma distribution remains one, its rate larger by half of it. That is a smooth floor, the same
    for Gibbs sampling and NUTS: the factor is near 1 at twice the narrowest standard deviation, and
    next to nothing at a fifth.

    Examples
    --------
    >>> sd = np.array([0.2, 0.5, 1.0, 2.0])
    >>> np.exp(-least_of(1.0) / (2.0 * sd**2)).round(4).tolist()
    [0.0019, 0.3679, 0.7788, 0.9394]
    """
    return FLOORS * narrowest**2


def narrowest_of(
    base: BaseMeasure,
    sample: NDArray[np.float64],
    half: NDArray[np.float64] | None,
    regression: Regression | None = None,
) -> float:
    """Return the standard deviation of the narrowest components, of residuals given a regression.

    It is the one that the base measure states, or else what the responses can show.

    Parameters
    ----------
    base : BaseMeasure
        Prior of the components.
    sample : ndarray
        Shape (n, samples): responses, or those of a regression in its units.
    half : ndarray or None
        Shape (n,): half the widths of the bins of rounded responses.
    regression : Regression, optional
        What explains them.

    Raises
    ------
    InvalidInputError
        If what is stated is wider than the responses or their residuals are spread.
    """
    unit = 1.0
    if regression is not None:
        sample, unit = regression.residuals(*regression.mode), regression.units.spread
        if half is not None:
            half = half / np.exp(regression.mode[1] * regression.position)
    if base.narrowest is None:
        return _shown(sample, half)
    spread = unit * float(sample.std())
    if base.narrowest > spread:
        what = "answers" if regression is None else "answers, less what is known,"
        raise InvalidInputError(
            f"narrowest must not be wider than the {what} are spread, a standard deviation of "
            f"{spread:g}; found {base.narrowest:g}"
        )
    return max(base.narrowest / unit, 0.0 if half is None else _of_bins(half))


def _shown(sample: NDArray[np.float64], half: NDArray[np.float64] | None) -> float:
    """Return the narrowest standard deviation that responses can show.

    Of rounded responses, half the width of the bin of each given, ties are no accident: where four
    databases share a bin a component may be a small part of it, so that any probabilities of bins
    are those of such components at their middles.
    """
    if half is None:
        return narrowest_spread(sample)
    order, held = np.sort(sample.mean(axis=1)), WINDOW - 1
    window = float((order[held:] - order[:-held]).min())
    return max(window / WINDOW, _of_bins(half))


def _of_bins(half: NDArray[np.float64]) -> float:
    return 2.0 * OF_STEP * float(half.min())


def units_of(
    base: BaseMeasure, responses: Responses, regression: Regression | None = None
) -> tuple[Standardisation, float]:
    """Return the units of the components and the narrowest of them, of residuals if given any."""
    sample = responses.response_by_database
    if regression is None:
        return (
            Standardisation.of(responses.response),
            narrowest_of(base, sample, responses.half_step),
        )
    return Standardisation(0.0, 1.0), narrowest_of(base, sample, regression.half_step, regression)


def assumed(base: BaseMeasure, data: Responses | Regression) -> dict[str, float | bool]:
    """Return what to record of the narrowest components, in units of the answer.

    That is their width, and whether it is the one that was stated.
    """
    from edp_bayes.models.base import parts_of

    responses, regression = parts_of(data)
    unit = 1.0 if regression is None else regression.units.spread
    width = unit * units_of(base, responses, regression)[1]
    # where answers are rounded it may be wider than stated
    stated = base.narrowest is not None and math.isclose(width, base.narrowest)
    return {"narrowest": width, "narrowest_stated": stated}


def priors_of(model: MixtureModel, regression: Regression | None) -> Priors:
    """Return the priors given to a model, and refuse those in units that residuals do not have."""
    priors = model.priors
    assert isinstance(priors, Priors)
    found = [name for name in MADE_OF if name in priors]
    if regression is not None and found:
        raise InvalidInputError(
            f"a prior of {' and '.join(found)} is in units of the response, and what is modelled "
            "are residuals from what the adversary knows: give priors of centre, rate or others, "
            "or leave adversary= out"
        )
    return priors


def scale_of_unit_spread(kernel: str) -> float:
    """Scale parameter of a kernel of standard deviation one."""
    return 1.0 if kernel == "gaussian" else float(np.sqrt(0.5))


def observe(
    responses: Responses,
    weights: Any,
    locations: Any,
    scales: Any,
    kernel: str,
    regression: Regression | None = None,
) -> None:
    """Add the responses to the current PyMC model, the component of each summed out.

    Samples of a randomised query come from one component and share the weight of one database.
    Given a regression the components are those of its residuals, and the responses are of the
    databases that it explains. Of rounded responses it is what was rounded that is distributed so:
    the probability of their bins counts. Responses, half the widths of their bins and regressors
    are ``pm.Data``.
    """
    import pymc as pm
    import pytensor.tensor as pt

    if regression is not None:
        units, (fitted, scale) = regression.units, regress(regression)
        locations = units.centre + units.spread * (fitted[:, None] + scale[:, None] * locations)
        scales = units.spread * scale[:, None] * scales
    y, half = add_response(responses), responses.half_step
    if half is not None:
        width = pm.Data("half_step", half, dims="database")
        each = log_bins(y[:, None], width[:, None], locations, scales, kernel)
        pm.Potential(ROUNDED, pt.logsumexp(pt.log(weights) + each, axis=1).sum())
        return
    if responses.samples == 1:
        family = pm.Normal if kernel == "gaussian" else pm.Laplace
        parameters = {"sigma" if kernel == "gaussian" else "b": scales}
        pm.Mixture(
            "response",
            w=weights,
            comp_dists=family.dist(mu=locations, **parameters),
            observed=y,
            dims="database",
        )
        return
    if regression is not None:
        locations, scales = locations[:, None, :], scales[:, None, :]
    u = (y[..., None] - locations) / scales
    log_kernel = (
        -0.5 * u**2 - 0.5 * np.log(2 * np.pi) if kernel == "gaussian" else -pt.abs(u) - np.log(2.0)
    )
    component = (log_kernel - pt.log(scales)).mean(axis=1)
    pm.Potential("response", pt.logsumexp(pt.log(weights) + component, axis=1).sum())


def add_response(responses: Responses) -> Any:
    """Return the responses as data of the current PyMC model, added to it if they are not there.

    Shape (database,), or (database, sample) of a randomised query.
    """
    import pymc as pm

    model = pm.modelcontext(None)
    if RESPONSE in model.named_vars:
        return model[RESPONSE]
    if responses.samples == 1:
        return pm.Data(RESPONSE, responses.response, dims="database")
    model.add_coord("sample", np.arange(responses.samples))
    return pm.Data(RESPONSE, responses.response_by_database, dims=("database", "sample"))


def log_bins(
    y: NDArray[np.float64], half: NDArray[np.float64], locations: Any, scales: Any, kernel: str
) -> Any:
    """Return the log of the probability of bins over their widths, under each component.

    As the difference of the probabilities beyond both ends, seen from the nearer side.
    """
    import pytensor.tensor as pt

    near = -pt.abs(y - locations)
    low, high = (_log_cdf((near + end) / scales, kernel) for end in (-half, half))
    return high + pt.log1p(-pt.exp(low - high)) - np.log(2.0 * half)


def _log_cdf(x: Any, kernel: str) -> Any:
    import pytensor.tensor as pt
    from pymc.distributions.dist_math import normal_lcdf

    if kernel == "gaussian":
        return normal_lcdf(0.0, 1.0, x)
    away = -pt.abs(x)
    return pt.switch(x < 0.0, away - np.log(2.0), pt.log1p(-0.5 * pt.exp(away)))


def regress(regression: Conditional, *others: str) -> tuple[Any, Any]:
    """Add coefficients and growth to the current model; return x_t' beta and exp(gamma z_t).

    Coefficients have the dim term, and others of the model, along which the prior is the same.
    Shapes (database, ...) and (database,).
    """
    import pymc as pm
    import pytensor.tensor as pt

    model = pm.modelcontext(None)
    model.add_coord("term", regression.terms)
    x = pm.Data(REGRESSORS, regression.design, dims=("database", "term"))
    # for predictions: no variable depends on them
    pm.Data(f"{REGRESSORS}_next", regression.target, dims="term")
    beta = pt.zeros((0, *(model.dim_lengths[dim] for dim in others)))
    if regression.deviation.size:
        deviation = regression.deviation.reshape(-1, *(1 for _ in others))
        beta = pm.Normal("coefficients", 0.0, deviation, dims=("term", *others))
    fitted = pt.dot(x, beta)
    if not regression.scaled:
        return fitted, pt.ones_like(x.sum(axis=1))
    position = pm.Data(POSITION, regression.position, dims="database")
    pm.Data(f"{POSITION}_next", regression.known.target_position)
    gamma = pm.Normal("growth", 0.0, regression.growth_deviation)
    return fitted, pt.exp(gamma * position)
