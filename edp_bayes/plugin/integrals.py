"""Individual risks of kernel estimates, block by block, from the exact hockey-stick integrals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.responses.responses import entry_columns
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csc_array


BLOCK_VALUES = 4_000_000


def individual_blocks(contribution: csc_array[np.float64], per_individual: int) -> Iterator[slice]:
    """Yield slices of individuals whose intermediate arrays stay around 32 MB.

    Parameters
    ----------
    contribution : csc_array
        Shape (row, m).
    per_individual : int
        Values one individual needs.
    """
    individuals = contribution.shape[1]
    step = max(1, BLOCK_VALUES // max(1, per_individual))
    for start in range(0, individuals, step):
        yield slice(start, min(start + step, individuals))


def kernel_risks(
    contribution: csc_array[np.float64],
    weights: Array,
    response: Array,
    scales: Array,
    kernel: str,
    epsilon: Array,
) -> Array:
    """Return the individual risks of a block: max of both hockey-stick integrals.

    Parameters
    ----------
    contribution : csc_array
        Contributions of the block's individuals, shape (row, B).
    weights : ndarray
        Shape (S, row).
    response : ndarray
        Shape (row,).
    scales : ndarray
        Kernel scales, shape (S, row).
    kernel : {"gaussian", "laplace"}
        The kernel.
    epsilon : ndarray
        Shape (E,).

    Returns
    -------
    ndarray
        Shape (S, B, E), within [0, 1].
    """
    risks = np.zeros((weights.shape[0], int(contribution.shape[1]), epsilon.size))
    active = _active(contribution, scales, kernel, epsilon)
    if active.size:
        chosen = contribution[:, active]
        risks[:, active] = np.clip(
            _integrate(chosen, weights, response, scales, kernel, epsilon), 0.0, 1.0
        )
    return risks


def _active(
    contribution: csc_array[np.float64], scales: Array, kernel: str, epsilon: Array
) -> NDArray[np.intp]:
    """Return the individuals whose risk is not known to be exactly zero.

    A Laplace kernel moved by c changes by a factor of at most exp(c / scale) anywhere, hence so
    does any mixture of them: below exp(epsilon) there is nothing to integrate.
    """
    least = 0.0 if kernel == "gaussian" else float(epsilon[0])
    narrowest = scales.min(axis=0)
    shift = np.zeros(int(contribution.shape[1]))
    size = np.abs(contribution.data) / narrowest[contribution.indices]
    np.maximum.at(shift, entry_columns(contribution), size)
    return np.flatnonzero(shift > least)


def _integrate(
    contribution: csc_array[np.float64],
    weights: Array,
    response: Array,
    scales: Array,
    kernel: str,
    epsilon: Array,
) -> Array:
    from edp_bayes.divergence import gaussian
    from edp_bayes.divergence.centring import common_location
    from edp_bayes.divergence.one_scale import curves as one_scale

    if kernel == "laplace" and (scales == scales[:, :1]).all():
        return one_scale.shift_curves(
            weights,
            response,
            scales[:, 0],
            contribution.indptr.astype(np.int64),
            contribution.indices.astype(np.int64),
            contribution.data,
            epsilon,
        )
    response = response - common_location(response)
    moved = response - contribution.toarray().T
    individual = (weights.shape[0], *moved.shape)
    arguments = (
        weights,
        np.broadcast_to(response, weights.shape),
        scales,
        np.broadcast_to(weights[:, None, :], individual),
        np.broadcast_to(moved, individual),
        np.broadcast_to(scales[:, None, :], individual),
        epsilon,
    )
    return one_scale.curves(*arguments) if kernel == "laplace" else gaussian.curves(*arguments)
