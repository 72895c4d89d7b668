"""Densities by which earlier databases choose sets of answers to bet on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edp_bayes.auditing.rounded import modelled_step
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError, SamplingError
from edp_bayes.models.base import DensityModel, fit_as_asked
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.responses.responses import Responses
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.coupling.base import Coupling

__all__ = ["FIRST", "MODELLED", "Densities", "earlier_densities", "fitted_at"]

FIRST = 8  # databases that only choose sets
GROWTH = 1.25  # of the number of databases, from one fit to the next
MODELLED = 64  # individuals of every fit
# Of a fit: few, because any set is fair and the mean of these is hardly better of more.
DRAWS, WARM_UP = 100, 200
ROOT = np.sqrt(2.0 * np.pi)
NOISE = 1  # stream of random numbers of known noise


class Densities(NamedTuple):
    """Densities at the answers of every database, known before it.

    Attributes
    ----------
    with_at_with, without_at_with : ndarray
        Shape (database, individual): p and p_i at the answer.
    with_at_without, without_at_without : ndarray
        Shape (database, individual): p and p_i at the answer without the individual. All are 0 of
        the first databases.
    """

    with_at_with: Array
    without_at_with: Array
    with_at_without: Array
    without_at_without: Array


def earlier_densities(
    responses: Responses,
    model: DensityModel,
    *,
    named: Sequence[int] = (),
    random_seed: int,
) -> Densities:
    """Return densities of each database's answers by the databases before it.

    Parameters
    ----------
    responses : Responses
        One sample a database, in order. Known noise is drawn once for each database, the same with
        an individual and without.
    model : DensityModel
        Fitted to the first 8 databases, and again each time there are a quarter more. Its posterior
        means are the densities, with p_i by the coupling of the same draws. Kernel densities are
        taken where the answers did not vary until then, or nothing finite was drawn.
    named : sequence of int
        Who is modelled for sure. So are those who contributed most to the databases of a fit, 64 in
        all; of all others p_i and p are kernel densities of the earlier answers.
    random_seed : int
        Of the fits and of the noise.

    Returns
    -------
    Densities
        Of every database and individual.
    """
    modelled = _plain(responses)
    y = modelled.response
    without = y[:, None] - modelled.contribution.toarray()
    if responses.noise is not None:
        rng = np.random.default_rng([random_seed, NOISE])
        noise = responses.noise.sample(y.size, rng)
        y, without = y + noise, without + noise[:, None]
    found = _kernel_densities(y, without)
    starts = fitted_at(y.size)
    for start, stop in zip(starts, [*starts[1:], y.size], strict=True):
        seen = _seen(modelled, start)
        if seen is None:
            continue
        coupling = _coupling(model, seen, random_seed)
        if coupling is None:
            continue
        for i in _modelled(seen, named).tolist():
            _fill(found, coupling, i, slice(start, stop), y, without)
    return found


def fitted_at(databases: int) -> list[int]:
    """Return after how many databases a model is fitted, out of so many.

    Examples
    --------
    >>> fitted_at(41)
    [8, 10, 13, 17, 22, 28, 35]
    """
    found, size = [], FIRST
    while size < databases:
        found.append(size)
        size = int(np.ceil(GROWTH * size))
    return found


def _plain(responses: Responses) -> Responses:
    """Return all databases on the scale that is modelled, without what is known of their ties."""
    everything = responses.replaced(atoms=None, step=None)
    return everything.on_scale


def _seen(responses: Responses, count: int) -> Responses | None:
    """Return the first databases alone, None where their answers do not vary."""
    contribution = responses.contribution[:count]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdpBayesWarning)
            return Responses.from_arrays(
                responses.response[:count],
                contribution=contribution,
                individual=responses.individual,
                noise=responses.noise,
            )
    except InvalidInputError:
        return None


def _coupling(model: DensityModel, seen: Responses, random_seed: int) -> Coupling | None:
    """Return the coupling of a posterior, None where it could not be drawn."""
    settings = SamplerSettings(
        draws=DRAWS, tune=WARM_UP, chains=1, random_seed=random_seed, progressbar=False
    )
    modelled, _ = modelled_step(seen, model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdpBayesWarning)
            return fit_as_asked(model, modelled, settings).coupling
    except SamplingError:
        return None


def _modelled(seen: Responses, named: Sequence[int]) -> Index:
    """Return who is modelled: those named and those who contributed most, of all who did."""
    size = seen.largest_contribution
    first = np.zeros(size.size, dtype=bool)
    first[list(named)] = True
    order = np.lexsort((-size, ~first))[: max(MODELLED, int(first.sum()))]
    return np.sort(order[size[order] > 0.0])


def _fill(
    found: Densities, coupling: Coupling, i: int, rows: slice, y: Array, without: Array
) -> None:
    """Put the posterior means of both densities of an individual in their place."""
    places = np.concatenate([y[rows], without[rows, i]])
    p, q = (
        distribution.pdf(places).mean(axis=(0, 1)).reshape(2, -1)
        for distribution in coupling.pair(i)
    )
    for target, values in zip(found, (p[0], q[0], p[1], q[1]), strict=True):
        target[rows, i] = values


def _kernel_densities(y: Array, without: Array) -> Densities:
    """Return kernel densities of the earlier answers, with everybody and without each one."""
    found = Densities(*np.zeros((4, *without.shape)))
    for j in range(FIRST, y.size):
        width, widths = _bandwidth(y[:j]), _bandwidth(without[:j])
        found.with_at_with[j] = _density(y[:j], width, y[j])
        found.without_at_with[j] = _density(without[:j], widths, y[j])
        found.with_at_without[j] = _density(y[:j, None], width, without[j])
        found.without_at_without[j] = _density(without[:j], widths, without[j])
    return found


def _bandwidth(values: Array) -> Array:
    """Return Silverman's bandwidth of every column."""
    spread = values.std(axis=0, ddof=1)
    return np.asarray(np.maximum(0.9 * spread * values.shape[0] ** -0.2, 1e-300))


def _density(points: Array, width: Array, at: Array) -> Array:
    """Return the mean of normal kernels at one place for every column."""
    with np.errstate(over="ignore"):  # answers that did not vary before have no width
        scaled = (at - points) / width
        return np.asarray(np.exp(-0.5 * scaled**2).mean(axis=0) / (ROOT * width))
