"""The Bayesian bootstrap smoothed by a kernel: the bridge to the published kernel estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edp_bayes.coupling.shift import ShiftCoupling
from edp_bayes.distributions import kernels
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.neighbours import neighbour_distances
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.atoms import add_atoms
from edp_bayes.models.base import (
    LAPLACE,
    NAMES,
    FittedModel,
    OfRounded,
    ShortRepr,
    log_kernel,
    mixture_from,
)
from edp_bayes.models.base_measure import Standardisation, coordinates, scale_of_unit_spread
from edp_bayes.models.bootstrap_model import CENTRES, observe_others
from edp_bayes.models.coupled import CoupledMixture, drawn_from, with_atoms
from edp_bayes.models.log_prior import gather
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.responses.responses import Responses

__all__ = ["Bandwidth", "SmoothedBootstrap", "invert"]

GRID = 400
NEIGHBOURS = 0.3
FAINT = 1e-200  # sums below are taken again in logarithms
BLOCK_NUMBERS = 15_000  # of memory that is used again, not asked of the system each time


@dataclass(frozen=True, repr=False)
class SmoothedBootstrap(ShortRepr, OfRounded):
    """Dirichlet process posterior with vanishing concentration, smoothed by a kernel.

    p = sum_j w_j k_h(x - y_j) with w ~ Dirichlet(1, ..., 1) over the databases, and every p_i the
    same with y_ij. The bandwidth h has a posterior: a log-normal prior about the rule of thumb
    n^(-1/5), times the leave-one-out likelihood, the criterion of Burchard, Daoud and Dotterrer
    (2020), Section 4: a generalised posterior, drawn on a fine grid. At a fixed bandwidth the
    posterior mean is their estimate.

    Parameters
    ----------
    kernel : {"laplace", "gaussian"}
        Family of the kernel.
    variable : bool
        Bandwidths in proportion to the distance to the nearest neighbours, after Breiman, Meisel
        and Purcell (1977). A database left out is no neighbour of those that score it.
    bandwidth_spread : float
        Standard deviation of the log-normal prior of the bandwidth.

    See Also
    --------
    edp_bayes.noise.FixedBandwidth : the published kernel estimate as a model
    DirichletProcessMixture : the default model of an audit
    edp_bayes.plugin.empirical_privacy : the published point estimates

    Notes
    -----
    Where answers are rounded the bandwidth is that under which all others predict the bin of each
    best, and what is published is the rounding of a value from a kernel about one of the rounded
    answers. So ties do no harm: with a bandwidth far below the step the model is the Bayesian
    bootstrap of the rounded answers themselves.

    Of several responses together the kernel is Gaussian with a matrix bandwidth, h^2 times their
    sample covariance, and the rule of thumb is n^(-1 / (d + 4)).

    Raises
    ------
    InvalidInputError
        If the kernel is unknown or the spread is not above zero.

    Examples
    --------
    >>> from edp_bayes import SmoothedBootstrap
    >>> SmoothedBootstrap().kernel
    'laplace'
    """

    kernel: str = LAPLACE
    variable: bool = False
    bandwidth_spread: float = 0.7

    def __post_init__(self) -> None:
        validate.choice(self.kernel, validate.KERNELS, "kernel")
        validate.positive_number(self.bandwidth_spread, "bandwidth_spread")

    def build(self, responses: Responses, *, adversary: Adversary | None = None) -> Any:
        """Return the PyMC model of weights and bandwidth, for inspection and extension.

        The observed variable ``response`` has the density of each database given all others, by
        which the bandwidth is learned; see docs/models/your_own.md. Of rounded answers and several
        samples it is a potential.

        Parameters
        ----------
        responses : Responses
            The query's responses with and without each individual.
        adversary : Adversary, optional
            Who knows nothing. Kernels lie at the responses that were observed, and given what
            they know at residuals, which move with the coefficients.

        Returns
        -------
        pymc.Model
            Every variable names its dims, and data are ``pm.Data``. Predictions of ``response`` for
            a row of zeros in ``others``, as ``others_next`` is, are draws from p.

        Raises
        ------
        InvalidInputError
            If an adversary knows something.
        """
        if adversary is not None and not adversary.nothing:
            raise InvalidInputError(
                "SmoothedBootstrap has no PyMC model given what an adversary knows, as its kernels "
                "would lie at residuals: build DirichletProcessMixture or FiniteMixture, or audit "
                "with it"
            )
        import pymc as pm
        import pytensor.tensor as pt

        whole, responses = responses, responses.on_scale
        n, samples = responses.n_databases, responses.samples
        middle, relative = self._scale(responses)
        coords = coordinates(responses, n * samples)
        # a database that is predicted has no kernel
        coords["kernel_database"] = coords["database"]
        with pm.Model(coords=coords) as model:
            weights = pm.Dirichlet("database_weights", np.ones(n), dims="kernel_database")
            bandwidth = pm.LogNormal("bandwidth", np.log(middle), self.bandwidth_spread)
            centres = pm.Data(CENTRES, responses.response, dims="component")
            share = pt.repeat(weights / samples, samples)
            share = pm.Deterministic("weights", share, dims="component")
            pm.Deterministic("locations", centres + 0.0, dims="component")
            pm.Deterministic("scales", bandwidth * pt.as_tensor(relative), dims="component")
            observe_others(
                responses,
                share,
                bandwidth,
                centres,
                kernel=self.kernel,
                different=_different(responses),
                ratios=self._held_out(responses) if self.variable else None,
                ratios_next=relative,
            )
        add_atoms(model, whole)
        return model

    def to_mixture(
        self, draws: Any, responses: Responses, *, random_seed: int | None = None
    ) -> CoupledMixture:
        """Return p and every p_i of draws of the PyMC model that `build` returns.

        Every database keeps its weight and moves by what the individual contributed to it.

        Parameters
        ----------
        draws : DataTree, InferenceData or Dataset
            With a group posterior of dims chain and draw, or that group itself.
        responses : Responses
            What `build` was given.
        random_seed : int, optional
            Of who turns atoms into other answers. No pair depends on it.

        Raises
        ------
        InvalidInputError, InputTypeError
            If the draws are not of such a model, or say that they are of other responses.

        See Also
        --------
        edp_bayes.models.CoupledMixture : what is returned
        """
        whole, responses = responses, responses.on_scale
        tree = drawn_from(draws, responses)
        mixture = mixture_from(tree, self.kernel, NAMES)
        if mixture.weights.shape[-1] != responses.response.size:
            raise InvalidInputError(
                f"draws of a smoothed bootstrap have one component for each of the "
                f"{responses.response.size} responses, found {mixture.weights.shape[-1]}"
            )
        return with_atoms(
            _coupled(mixture, responses), whole, tree, validate.seed(random_seed) or 0
        )

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Draw exactly: Dirichlet weights, bandwidth by inversion of its distribution."""
        responses = responses.on_scale
        n, samples = responses.n_databases, responses.samples
        shape = (settings.chains, settings.draws)
        known = self._bandwidth(responses)
        weights, bandwidth = np.empty((*shape, n)), np.empty(shape)
        for chain in range(settings.chains):
            rng = settings.generator("weights", chain)
            weights[chain] = rng.dirichlet(np.ones(n), settings.draws)
            bandwidth[chain] = invert(known.grid, known.probability, rng.random(settings.draws))
        _, relative = self._scale(responses)
        mixture = Mixture(
            np.repeat(weights / samples, samples, axis=-1),
            responses.response,
            bandwidth[..., None] * relative,
            kernel=self.kernel,
        )
        drawn = _coupled(mixture, responses)
        index = np.searchsorted(known.grid, bandwidth).clip(0, GRID - 1)
        variable = "" if self.variable else ", variable=True"
        return FittedModel(
            mixture=drawn.mixture,
            coupling=drawn.coupling,
            log_likelihood=known.scores[index],
            predictive=known.predictive(),
            log_prior=gather({"bandwidth": self._log_prior(bandwidth, responses)}),
            attributes={"model": repr(self), "sampler": "exact"},
            remedy=f"try another kernel (kernel=, --kernel){variable} or a transform of the "
            "responses",
        )

    def _log_prior(self, bandwidth: Array, responses: Responses) -> Array:
        from scipy.stats import lognorm

        middle, _ = self._scale(responses)
        return np.asarray(lognorm.logpdf(bandwidth, self.bandwidth_spread, scale=middle))

    def _scale(self, responses: Responses) -> tuple[float, Array]:
        """Return the prior median of the bandwidth and the relative bandwidths (n * samples,)."""
        unit = self._unit(responses)
        middle = unit * responses.n_databases ** (-0.2)
        return middle, self._relative(responses.response, responses.samples, unit)

    def _unit(self, responses: Responses) -> float:
        return Standardisation.of(responses.response).spread * scale_of_unit_spread(self.kernel)

    def _relative(self, response: Array, samples: int, unit: float) -> Array:
        """Return the relative bandwidth of every response."""
        if not self.variable:
            return np.ones(response.size)
        nearest = max(1, round(NEIGHBOURS * (response.size // samples)))
        typical = np.maximum(neighbour_distances(response, nearest * samples), 1e-3 * unit)
        return np.asarray(typical / np.exp(np.log(typical).mean()))

    def _held_out(self, responses: Responses) -> Array:
        """Return the relative bandwidths made without the database of each response (row).

        Of shape (row, row), or (1, row) where they are all equal. Those of the row's own database
        are one.
        """
        y, samples = responses.response, responses.samples
        if not self.variable:
            return np.ones((1, y.size))
        ratios, unit = np.ones((y.size, y.size)), self._unit(responses)
        for others, row in zip(_different(responses), ratios, strict=True):
            row[others] = self._relative(y[others], samples, unit)
        return ratios

    def _bandwidth(self, responses: Responses) -> Bandwidth:
        """Return what is known of the bandwidth, on a grid."""
        middle, _ = self._scale(responses)
        relative = self._held_out(responses)
        spread = self.bandwidth_spread
        grid = middle * np.exp(np.linspace(-4.0 * spread, 4.0 * spread, GRID))
        n, samples = responses.n_databases, responses.samples
        kernel = log_kernel(self.kernel)
        total, kept = np.empty((GRID, n * samples)), np.zeros((GRID, n))
        block = max(1, BLOCK_NUMBERS // (n * samples))
        for start in range(0, n * samples, block):
            rows = slice(start, start + block)
            distance, same = _distances(responses, rows), ~_different(responses, rows)
            ratios = relative[rows] if self.variable else relative
            log_ratios = np.log(ratios)
            half = None if responses.half_step is None else responses.half_step[rows, None]
            for g, h in enumerate(grid):
                if half is None:
                    terms = kernel(distance / (h * ratios)) - log_ratios - np.log(h)
                else:
                    terms = _log_bins(distance, half, h * ratios, self.kernel)
                terms[same] = -np.inf
                total[g, rows], part = _left_out(terms, samples)
                kept[g] += part
        total = total.reshape(GRID, n, samples).mean(axis=2)
        scores = total - np.log(samples * (n - 1))
        others = total.sum(axis=1, keepdims=True) - total + kept / samples
        others -= (n - 1) * np.log(samples * (n - 2))
        log_prior = -0.5 * (np.log(grid / middle) / spread) ** 2
        log_posterior = scores.sum(1) + log_prior
        posterior = np.exp(log_posterior - log_posterior.max())
        return Bandwidth(grid, posterior / posterior.sum(), scores, others + log_prior[:, None])


@dataclass(frozen=True, eq=False)
class Bandwidth:
    """A grid of bandwidths, its posterior, and what is left of it without each database.

    Attributes
    ----------
    grid, probability : ndarray
        Shape (grid,).
    scores : ndarray
        Shape (grid, database): log density of each database, estimated from all others.
    log_without : ndarray
        Shape (grid, database): log posterior without each database, up to a constant.
    """

    grid: Array
    probability: Array
    scores: Array
    log_without: Array

    def predictive(self) -> Array:
        """Return the log predictive density of each database left out, shape (database,)."""
        from scipy.special import logsumexp

        joint = logsumexp(self.log_without + self.scores, axis=0)
        return np.asarray(joint - logsumexp(self.log_without, axis=0))


def _coupled(mixture: Mixture, responses: Responses) -> CoupledMixture:
    return CoupledMixture(mixture, ShiftCoupling.fit(mixture, responses), responses)


def _left_out(terms: Array, samples: int) -> tuple[Array, Array]:
    """Return the log density at each response, and the log share of all that each database leaves.

    The terms are the log kernels of some responses (rows) at all responses of other databases, and
    minus infinity at those of their own; of shape (row,) is the log sum of each row, of shape
    (database,) the sum over the rows of the log share left without the database.
    """
    from scipy.special import logsumexp

    rows = np.arange(terms.shape[0])
    if samples > 1:
        terms = logsumexp(terms.reshape(rows.size, -1, samples), axis=2)
    nearest = terms.argmax(axis=1)
    top = terms[rows, nearest]
    relative = terms - top[:, None]
    mass = np.exp(relative)
    # The nearest database may be nearly all there is: its own share is taken from no sum.
    mass[rows, nearest] = 0.0
    rest = mass.sum(axis=1)
    faint = rest < FAINT
    log_rest = np.log(np.where(faint, 1.0, rest))
    if faint.any():
        relative[rows, nearest] = -np.inf
        log_rest[faint] = logsumexp(relative[faint], axis=1)
    log_all = np.log1p(rest)
    log_kept = np.bincount(nearest, log_rest - log_all, terms.shape[1])
    # All others leave at least half: the product over the rows of a block is never too small.
    log_kept += np.log((1.0 - mass / (1.0 + rest)[:, None]).prod(axis=0))
    return top + log_all, log_kept


def _log_bins(distance: Array, half: Array, scale: Array, kernel: str) -> Array:
    """Return the log of the probability of bins about some distances over their widths.

    Where it is too small for a number the log density is taken.
    """
    near = -np.abs(distance)
    if kernel == "gaussian":
        low, high = (kernels.gaussian_tail(near + end, scale) for end in (-half, half))
    else:
        low, high = (kernels.laplace(near + end, scale)[1] for end in (-half, half))
    mass = high - low
    with np.errstate(divide="ignore"):
        found = np.log(mass / (2.0 * half))
    if (mass > 0.0).all():
        return found
    return np.where(mass > 0.0, found, log_kernel(kernel)(distance / scale) - np.log(scale))


def _distances(responses: Responses, rows: slice = slice(None)) -> Array:
    y = responses.response
    return np.asarray(y[rows, None] - y)


def _different(responses: Responses, rows: slice = slice(None)) -> NDArray[np.bool_]:
    """Whether two responses are of different databases, shape (row, row)."""
    return np.asarray(responses.cluster[rows, None] != responses.cluster)


def invert(grid: Array, probability: Array, u: Array) -> Array:
    """Draw from a density known on a logarithmic grid, linear in between."""
    log_grid = np.log(grid)
    middle = np.concatenate([[log_grid[0]], 0.5 * (log_grid[1:] + log_grid[:-1]), [log_grid[-1]]])
    return np.asarray(np.exp(np.interp(u, np.concatenate([[0.0], probability.cumsum()]), middle)))
