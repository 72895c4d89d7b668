"""By how many standard deviations each contribution moves several responses together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.coupling.exposure import CONSTANT
from edp_bayes.distributions.multivariate import Units
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from edp_bayes.records.joined import JointResponses

__all__ = ["joint_shifts"]


def joint_shifts(responses: JointResponses) -> Array:
    """Return the Mahalanobis length of every contribution, by the responses without its owner.

    Shape (entry,), in the order of ``responses.contribution``.
    """
    units, found = Units.of(responses.response), responses.contribution
    z, c = units.whiten(responses.response), units.shrink(found.value)
    inverse = np.linalg.inv(units.factor)
    noise = inverse @ np.diag(responses.noise_variance) @ inverse.T
    covariance = found.covariance_without(z, c) + noise
    values, vectors = np.linalg.eigh(covariance)
    spread = np.sqrt(np.maximum(values, CONSTANT**2))
    turned = np.einsum("eb,eba->ea", c, vectors[found.owner]) / spread[found.owner]
    return np.asarray(np.sqrt((turned**2).sum(axis=1)))
