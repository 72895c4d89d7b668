"""A mixture of property queries: one of them, drawn at random, is answered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InputTypeError
from edp_bayes.statistical_privacy import arguments
from edp_bayes.statistical_privacy.losses import checked_weights
from edp_bayes.statistical_privacy.property_query import PropertyQuery
from edp_bayes.utils.arrays import Array

__all__ = ["mixture_delta"]


def mixture_delta(
    queries: Sequence[PropertyQuery], weights: ArrayLike, *, epsilon: ArrayLike
) -> Array | float:
    """Return an upper bound of delta(epsilon) of a mixture of queries: the mean of their deltas.

    One query, drawn with its weight and without a look at the database, is answered. By joint
    convexity no pair of values of the critical entry tells more than the weighted mean of what
    each query tells at worst (the paper's Lemma 1 is about such mixtures; its wording was not
    available). The bound is attained where the drawn query is revealed and one pair of values is
    worst for all: one property, say, with a sample of random size and one worst direction.

    Parameters
    ----------
    queries : sequence of PropertyQuery
        What may be answered.
    weights : array_like, shape (query,)
        Probabilities of the queries, of sum 1.
    epsilon : array_like
        Non-negative, any shape; as the queries take it.

    Returns
    -------
    ndarray or float
        Shape of epsilon.

    Raises
    ------
    InputTypeError, InvalidInputError
        If something else than property queries is found, the weights are not probabilities of
        sum 1, or epsilon is out of range.

    See Also
    --------
    delta : delta of a property query
    beta_binomial_delta : delta where entries depend on each other

    Examples
    --------
    A coin decides between the whole database and a tenth of it:

    >>> from edp_bayes.statistical_privacy import PropertyQuery, Subsampling
    >>> queries = [PropertyQuery(100, 0.1, Subsampling(rate=rate)) for rate in (1.0, 0.1)]
    >>> round(mixture_delta(queries, [0.5, 0.5], epsilon=0.5), 4)
    0.0113
    """
    for query in queries:
        if not isinstance(query, PropertyQuery):
            raise InputTypeError(f"queries must be PropertyQuery, found {query!r}")
    eps = arguments.epsilons(epsilon)
    shares = checked_weights(weights, len(queries))
    found = sum(
        (
            w * np.asarray(query.delta(epsilon=eps))
            for w, query in zip(shares, queries, strict=True)
        ),
        np.zeros(eps.shape),
    )
    found = np.minimum(found, 1.0)
    return found if eps.shape else float(found)
