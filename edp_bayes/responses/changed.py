"""Other sums of the same data: several databases in one, or contributions that are limited."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.records.remainder import require_collected
from edp_bayes.responses.responses import Responses
from edp_bayes.utils.arrays import Array

__all__ = ["CUTS", "cuts", "limited", "require_sum", "together"]

# Shares of contributions above which these are cut.
CUTS = (0.99, 0.9, 0.5)


def require_sum(responses: Responses) -> None:
    """Refuse responses of which no other sums are known."""
    require_collected(responses.remainder, "another period or limit")
    if responses.samples > 1 or not responses.additive:
        raise InvalidInputError("it is for sums and counts, one answer a database")


def together(responses: Responses, count: int) -> Responses:
    """Return the sums over so many databases each, the first of which are left out if need be."""
    from scipy.sparse import csc_array

    n = responses.n_databases // count
    start = responses.n_databases - count * n
    row = np.repeat(np.arange(n), count)
    column = start + np.arange(count * n)
    adds = csc_array((np.ones(row.size), (row, column)), (n, responses.n_databases))
    return Responses.from_arrays(
        adds @ responses.response,
        contribution=csc_array(adds @ responses.contribution),
        database=responses.database[start::count][:n],
        individual=responses.individual,
        query=f"{responses.query} over {count} databases",
        additive=True,
        step=responses.step,
        transform=responses.transform,
    )


def cuts(sizes: Array, step: float | None, shares: tuple[float, ...] = CUTS) -> Iterator[float]:
    """Yield limits of a contribution, falling, that cut some: quantiles of sizes, on the grid."""
    for share in shares:
        most = float(np.quantile(sizes[sizes > 0.0], share, method="inverted_cdf"))
        most = step * math.floor(most / step) if step else most
        if 0.0 < most < sizes.max():
            yield most


def limited(responses: Responses, most: float) -> Responses:
    """Return the answers in which no contribution is larger than this, in size."""
    from scipy.sparse import csc_array

    whole = responses.contribution
    cut = csc_array((np.clip(whole.data, -most, most), whole.indices, whole.indptr), whole.shape)
    response = responses.response - np.asarray((whole - cut).sum(axis=1)).ravel()
    return responses.replaced(response=response, contribution=cut, ask=None)
