"""Reference mechanisms: vectorised samplers whose privacy is known exactly.

Each is a frozen dataclass that is called as ``mechanism(database, size, rng)``; `epsilon()`,
`delta(epsilon)` and `local_epsilon(tau)` give the truth for its `pair` of neighbouring inputs.
"""

from edp_bayes.mechanisms.additive import Gaussian, Laplace, RestrictedLaplace
from edp_bayes.mechanisms.base import DiscreteMechanism, Mechanism
from edp_bayes.mechanisms.counts import Geometric, TruncatedGeometric
from edp_bayes.mechanisms.exponential import ExponentialMechanism
from edp_bayes.mechanisms.local import OneTimeRappor, RandomizedResponse, Rappor
from edp_bayes.mechanisms.noisy_max import NoisyMaxIndex, NoisyMaxValue
from edp_bayes.mechanisms.sparse_vector import SparseVector
from edp_bayes.mechanisms.sparse_vector_answers import (
    NumericalSparseVector,
    SparseVectorWithAnswers,
)
from edp_bayes.mechanisms.vectors import NoisyHistogram, PrefixSum

__all__ = [
    "DiscreteMechanism",
    "ExponentialMechanism",
    "Gaussian",
    "Geometric",
    "Laplace",
    "Mechanism",
    "NoisyHistogram",
    "NoisyMaxIndex",
    "NoisyMaxValue",
    "NumericalSparseVector",
    "OneTimeRappor",
    "PrefixSum",
    "RandomizedResponse",
    "Rappor",
    "RestrictedLaplace",
    "SparseVector",
    "SparseVectorWithAnswers",
    "TruncatedGeometric",
    "suite",
]


def suite() -> tuple[Mechanism, ...]:
    """Return every reference mechanism with its default settings, or a wrong one as published.

    Returns
    -------
    tuple of Mechanism

    See Also
    --------
    Mechanism : what every reference mechanism offers
    edp_bayes.audit_mechanism : a mechanism on one pair of databases
    edp_bayes.mechanism_guarantee : a band that holds for any mechanism

    Examples
    --------
    >>> [mechanism.name for mechanism in suite()][:3]
    ['Laplace', 'Gaussian', 'restricted Laplace']
    """
    return (
        Laplace(),
        Gaussian(),
        RestrictedLaplace(),
        Geometric(),
        TruncatedGeometric(),
        RandomizedResponse(),
        Rappor(),
        OneTimeRappor(),
        NoisyHistogram(0.5),
        NoisyHistogram(0.5, right_scale=False),
        PrefixSum(0.5),
        NoisyMaxIndex(),
        NoisyMaxIndex(noise="exponential"),
        NoisyMaxValue(),
        NoisyMaxValue(noise="exponential"),
        SparseVector(1),
        SparseVector(2),
        SparseVectorWithAnswers(),
        SparseVector(4),
        SparseVector(5),
        SparseVector(6),
        NumericalSparseVector(),
        ExponentialMechanism(),
    )
