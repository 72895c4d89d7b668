"""Random numbers of individuals: each has a stream of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from edp_bayes.utils.arrays import Index

__all__ = ["own_streams"]


def own_streams(
    seed: int, ranks: Index, counter: Sequence[int] = (0, 0, 0, 0)
) -> Iterator[np.random.Generator]:
    """Yield the generator of each individual in turn, always the same one set anew.

    To make one takes longer than to draw.

    Parameters
    ----------
    seed : int
        Seed of all.
    ranks : ndarray of int
        Place of each in the order of sorted labels, which numbers the streams.
    counter : sequence of int
        Where in a stream to start: apart from what else is drawn of an individual.

    Examples
    --------
    >>> first, second = (rng.random() for rng in own_streams(1, np.array([4, 2])))
    >>> second == np.random.Generator(np.random.Philox(key=[1, 2])).random()
    True
    """
    source = np.random.Philox(key=[seed, 0], counter=list(counter))
    rng, start = np.random.Generator(source), source.state
    for rank in ranks.tolist():
        start["state"]["key"][1] = rank
        source.state = start
        yield rng
