"""From responses to privacy quantities with bands: `edp.audit`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes import validate
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError
from edp_bayes.models.base import DensityModel, SamplerSettings, fit_as_asked
from edp_bayes.progress import track, working
from edp_bayes.responses import Responses

if TYPE_CHECKING:
    from edp_bayes.coupling import Coupling
    from edp_bayes.result import Audit

__all__ = ["audit"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Numbers held at once of risks, or of presence by component, while individuals are evaluated block
# by block.
BLOCK_NUMBERS = 2**22


def audit(
    responses: Responses,
    *,
    epsilon: ArrayLike,
    model: DensityModel | None = None,
    individuals: Iterable[Any] = (),
    keep: int = 10,
    draws: int = 500,
    tune: int = 1000,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    sampler: str = "nutpie",
    cores: int | None = None,
    **sample_kwargs: Any,
) -> Audit:
    """Put posterior draws on delta_i, delta and delta* of a query.

    Parameters
    ----------
    responses : Responses
        The query's responses with and without each individual.
    epsilon : array_like
        Shape (epsilon,): increasing, not negative.
    model : DensityModel, optional
        Law of the response; ``models.GibbsDirichletProcessMixture()`` if not given.
    individuals : iterable
        Labels of individuals whose draws are kept whatever their risk.
    keep : int
        How many of the riskiest individuals keep their draws; all others keep the posterior mean
        and standard deviation of delta_i.
    draws, tune, chains : int
        Kept draws and warm-up draws of each chain, and the number of chains.
    random_seed : int, optional
        The same seed gives the same numbers, whatever the number of cores.
    progressbar : bool
        Show progress of sampling and of the individuals.
    sampler : {"nutpie", "pymc"}
        Implementation of NUTS for the models that need one.
    cores : int, optional
        Chains sampled at the same time.
    **sample_kwargs
        Further arguments of ``pymc.sample``, ``target_accept`` for one, for a model that samples
        by NUTS; they do nothing for others.

    Returns
    -------
    Audit
        Draws of delta(epsilon) = max_i delta_i and delta*(epsilon) = 1 - prod_i (1 - delta_i),
        of delta_i for the riskiest, and every diagnostic.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument cannot be used; the message says what would be right.
    SamplingError
        If a chain was interrupted or is not finite.

    Warns
    -----
    EdpBayesWarning
        For each failed check of the databases or of the draws; they also stand in the result.

    Notes
    -----
    delta_i = max(H_eps(p || p_i), H_eps(p_i || p)): Burchard, Daoud and Dotterrer (2020),
    Definitions 3 and 4, with p and every p_i functionals of one posterior draw.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (40, 5))
    >>> response = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
    >>> responses = edp.Responses.from_arrays(response, response[:, None] - contribution)
    >>> result = edp.audit(
    ...     responses,
    ...     epsilon=[0.1, 0.5],
    ...     model=edp.SmoothedBootstrap(),
    ...     random_seed=1,
    ...     progressbar=False,
    ... )
    >>> result.delta.dims
    ('chain', 'draw', 'epsilon')
    """
    from edp_bayes.assembly import assemble
    from edp_bayes.diagnostics.convergence import require_enough_draws
    from edp_bayes.models.default import model_or_default

    if not isinstance(responses, Responses):
        raise InputTypeError(
            f"responses must be Responses, found {type(responses).__name__}; make them by "
            "Databases.respond or Responses.from_arrays"
        )
    grid = validate.epsilon_grid(epsilon)
    keep = validate.positive_integer(keep, "keep")
    if isinstance(individuals, str) or not isinstance(individuals, Iterable):
        raise InputTypeError(f"individuals must be a list of labels, found {individuals!r}")
    named = list(dict.fromkeys(responses.index_of(label) for label in individuals))
    settings = SamplerSettings(
        draws=draws,
        tune=tune,
        chains=chains,
        random_seed=random_seed,
        progressbar=progressbar,
        sampler=sampler,
        cores=cores,
        sample_kwargs=sample_kwargs,
    )
    chosen = model_or_default(model, sample_kwargs)
    require_enough_draws(settings.chains, settings.draws)
    fitted = fit_as_asked(chosen, responses, settings)
    copies = settings.generator("copies").integers(
        0, responses.n_individuals, fitted.coupling.n_draws
    )
    risks = evaluate(fitted.coupling, grid, progressbar=progressbar, copies=copies)
    kept = riskiest(risks.mean, keep, named)
    with working("Diagnostics", show=progressbar):
        result = assemble(
            responses=responses,
            fitted=fitted,
            epsilon=grid,
            risks=risks,
            kept=kept,
            settings=settings,
        )
    for warning in result.warnings:
        if warning not in responses.warnings:
            warnings.warn(warning, EdpBayesWarning, stacklevel=2)
    return result


@dataclass(frozen=True, eq=False)
class Risks:
    """Privacy quantities of every draw, and summaries of every individual.

    Attributes
    ----------
    largest, total, upper : ndarray
        Shape (chain * draw, epsilon): delta, delta* and min(1, sum_i delta_i).
    mean, deviation : ndarray
        Shape (individual, epsilon): posterior mean and standard deviation of delta_i.
    dropped : ndarray
        Shape (epsilon,): bound on the sum of all delta_i that screening left out.
    curves : ndarray or None
        Shape (chain * draw, individual, epsilon): delta_i of everybody, of few individuals only.
    copied : ndarray or None
        Shape (chain * draw, epsilon): delta_i of the individual asked for in each draw.
    """

    largest: Array
    total: Array
    upper: Array
    mean: Array
    deviation: Array
    dropped: Array
    curves: Array | None
    copied: Array | None = None

    def curves_of(self, individuals: Index, coupling: Coupling, epsilon: Array) -> Array:
        """Return delta_i of some individuals, evaluated anew where they were too many to keep."""
        if self.curves is None:
            return coupling.curves(individuals, epsilon)
        return self.curves[:, individuals]


def evaluate(
    coupling: Coupling, epsilon: Array, *, progressbar: bool, copies: Index | None = None
) -> Risks:
    """Evaluate every individual in blocks; the result does not depend on the blocks.

    Copies name an individual for each draw, whose risk in that draw is kept.
    """
    from edp_bayes.reductions import accumulate, moments

    relevant, dropped = coupling.relevant(epsilon)
    size = coupling.n_draws
    largest, log_survival, total = np.zeros((3, size, epsilon.size))
    mean, deviation = np.zeros((2, coupling.n_individuals, epsilon.size))
    copied = None if copies is None else np.zeros((size, epsilon.size))
    widest = max(epsilon.size, coupling.mixture.weights.shape[-1])
    block = max(1, BLOCK_NUMBERS // (size * widest))
    blocks = [relevant[start : start + block] for start in range(0, relevant.size, block)]
    # One buffer for all blocks: fresh memory for each costs as much as the integrals.
    buffer = np.empty((size, min(block, relevant.size), epsilon.size))
    for members in track(blocks, "Individuals", total=len(blocks), show=progressbar):
        whole = members.size == buffer.shape[1]
        curves = coupling.curves(members, epsilon, out=buffer if whole else None)
        accumulate(curves, largest, log_survival, total)
        mean[members], deviation[members] = moments(curves)
        if copied is not None and copies is not None:
            rows = np.flatnonzero(np.isin(copies, members))
            copied[rows] = curves[rows, np.searchsorted(members, copies[rows])]
    everybody = buffer.shape[1] == coupling.n_individuals
    return Risks(
        largest=largest,
        total=np.abs(np.expm1(log_survival)),
        upper=np.minimum(total, 1.0),
        mean=mean,
        deviation=deviation,
        dropped=dropped,
        curves=buffer if everybody else None,
        copied=copied,
    )


def riskiest(mean: Array, keep: int, named: Sequence[int] = ()) -> Index:
    """Return the riskiest by mean risk over the grid, in order, then those named."""
    score = mean.sum(axis=1)
    first = np.argsort(-score, kind="stable")[:keep]
    return np.array([*first, *(i for i in named if i not in first)], dtype=np.int64)
