"""Subsampling a symmetric query is never worse than the paper's closing conjecture says.

docs/mathematics/subsampling.md has the proof. Here all databases and all samples are enumerated,
for all symmetric queries that answer without chance, and for random ones that do not.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exact_sums import exact_sum

EPSILON = np.array([0.0, 0.05, 0.3, 1.0, 2.5])

CASES = [(2, 1, 2), (3, 2, 2), (4, 3, 2), (6, 4, 2), (6, 2, 2), (2, 1, 3), (3, 2, 3), (4, 2, 3)]


def multisets(size, values):
    return list(itertools.combinations_with_replacement(range(values), size))


def fixed(probs, n, drawn, value):
    """Masses of the sampled multiset when the first of n entries has a value, by the definition."""
    places = {multiset: k for k, multiset in enumerate(multisets(drawn, len(probs)))}
    found = np.zeros(len(places))
    samples = list(itertools.combinations(range(n), drawn))
    for others in itertools.product(range(len(probs)), repeat=n - 1):
        database, weight = (value, *others), np.prod([probs[v] for v in others])
        for sample in samples:
            multiset = tuple(sorted(database[k] for k in sample))
            found[places[multiset]] += weight / len(samples)
    return found


def partitions(size):
    """Every way to give answers to so many multisets, up to the names of the answers."""
    labels = [[0]]
    for _ in range(size - 1):
        labels = [[*one, k] for one in labels for k in range(max(one) + 2)]
    return [np.eye(size)[one] for one in labels]


def check(probs, n, drawn, kernels):
    """Compare samples with the smaller database under every kernel from multisets to answers."""
    values = range(len(probs))
    rate, growth = drawn / n, np.exp(EPSILON)
    eta = np.log1p(rate * np.expm1(EPSILON))
    beta = np.exp(eta) / growth
    sampled = [fixed(probs, n, drawn, v) for v in values]
    smaller = [fixed(probs, drawn, drawn, v) for v in values]
    for kernel in kernels:
        p, mu = ([side @ kernel for side in sides] for sides in (sampled, smaller))
        inner = np.array([[exact_sum(mu[a], mu[b], EPSILON) for b in values] for a in values])
        delta = inner.max(axis=(0, 1))
        for a, b in itertools.product(values, repeat=2):
            found = exact_sum(p[a], p[b], eta)
            proved = rate * ((1 - beta) * np.tensordot(probs, inner[a], 1) + beta * inner[a, b])
            assert (found <= proved + 1e-14).all()
            assert (proved <= rate * delta + 1e-14).all()
            assert found[0] == pytest.approx(rate * inner[a, b, 0], abs=1e-14)


@pytest.mark.parametrize(("n", "drawn", "values"), CASES)
def test_every_symmetric_query_without_chance(n, drawn, values):
    kernels = partitions(len(multisets(drawn, values)))
    for probs in ((0.5, 0.5), (0.1, 0.9)) if values == 2 else ((0.2, 0.3, 0.5), (0.01, 0.04, 0.95)):
        check(np.array(probs), n, drawn, kernels)


def test_the_number_of_queries_is_that_of_partitions():
    assert [len(partitions(k)) for k in (1, 2, 3, 4, 5, 6)] == [1, 2, 5, 15, 52, 203]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(case=st.sampled_from(CASES), seed=st.integers(0, 10**6))
def test_symmetric_queries_that_answer_by_chance(case, seed):
    n, drawn, values = case
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.full(3, 0.3), len(multisets(drawn, values)))
    check(rng.dirichlet(np.ones(values)), n, drawn, [kernel])
