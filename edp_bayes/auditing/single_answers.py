"""What the answers of a published row tell one by one: for lower ends, and for upper limits.

Where the row tells what is published of an answer, no test of that alone does better than the best
test of the row. So its risks under a test that is chosen once are lower bounds, and so is what the
databases themselves show of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edp_bayes.auditing.lower_bounds import MOST_DRAWS, tested_risks
from edp_bayes.auditing.resampled import SAMPLES, Answers, Bootstrap, Resampled
from edp_bayes.coupling.views.published_row import RowCoupling
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.distributions.published import Published
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import PROB

__all__ = ["single_answers"]


@dataclass(frozen=True, eq=False)
class _Answer:
    """One answer, as it is published, in the units of the responses.

    Parameters
    ----------
    row : RowCoupling
        Of all answers.
    query : int
        Which it is.
    shape : tuple of int
        Chains and draws.
    """

    row: RowCoupling
    query: int
    shape: tuple[int, int]

    @property
    def published(self) -> Published | None:
        """What is published of it."""
        return self.row.published.rules[self.query]

    @property
    def noise(self) -> GaussianNoise | LaplaceNoise | None:
        """What is added to it."""
        noises = self.row.published.noises
        return noises[self.query] if noises else None

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return self.row.n_draws

    @property
    def mixture(self) -> Mixture:
        """Its distribution, with known noise."""
        return self._of(self.row.full.mixture)

    def pair(self, individual: int) -> tuple[Mixture, Mixture]:
        """Return its distributions with and without one individual, with known noise."""
        p, q = self.row.full.pair(individual)
        return self._of(p), self._of(q)

    def answers(self, individual: int) -> Answers:
        """Return it in all databases, with and without one individual."""
        responses, k = self.row.full.responses, self.query
        whole = responses.response[:, k].copy()
        if self.row.shift is not None:
            whole += self.row.shift[:, k].mean()
        without = whole.copy()
        database, value = responses.entries.of(individual)
        without[database] -= value[:, k]
        variance = float(responses.noise_variance[k])
        before = GaussianNoise(np.sqrt(variance)) if variance else None
        return Answers(whole, without, self.noise or before)

    def bootstrap(self) -> Bootstrap:
        """Return that of the databases; weights are those of every other answer."""
        settings = SamplerSettings(random_seed=self.row.full.seed)
        return Bootstrap(
            self.answers,
            self.row.full.responses.n_databases,
            samples=1,
            settings=settings,
            residuals=self.row.shift is not None,
            in_part=self.published is not None,
        )

    def _of(self, mixture: NormalMixture) -> Mixture:
        units, shift = self.row.full.units, self.row.shift
        one = mixture.along(units.factor[self.query], self.row.full.noise)
        place = units.centre[self.query] + (0.0 if shift is None else shift[:, [self.query]])
        parts = np.broadcast_arrays(one.weights, one.locations + place, one.scales)
        return Mixture(*(part.reshape(*self.shape, -1) for part in parts), noise=self.noise)


def single_answers(
    row: RowCoupling, shape: tuple[int, int], individuals: Index, curves: Array, epsilon: Array
) -> tuple[Array, Resampled]:
    """Return what tests of single answers reach, and what the databases show of these.

    Parameters
    ----------
    row : RowCoupling
        Of all answers.
    shape : tuple of int
        Chains and draws.
    individuals : ndarray of int
        Whose.
    curves : ndarray
        Shape (chain * draw, individual, epsilon): at most their delta_i.
    epsilon : ndarray
        Shape (epsilon,).

    Returns
    -------
    ndarray
        Shape (chain, draw, individual, epsilon), of every so many draws of each chain: of the
        answer whose test reaches most on average. Zeros where the row tells no answer by itself.
    Resampled
        Of the answer of the largest limit.
    """
    step = -(-row.n_draws // MOST_DRAWS)
    taken = curves.reshape(*shape, *curves.shape[1:])[:, ::step]
    tested, shown = [np.zeros_like(taken)], [np.zeros((SAMPLES, *curves.shape[1:]))]
    for k in range(len(row.published.names)):
        if row.published.alone(k):
            one = _Answer(row, k, shape)
            reached, means = tested_risks(one, individuals, curves, epsilon)
            found = one.bootstrap().draws(one, individuals, means, epsilon)
            assert found is not None
            tested.append(reached)
            shown.append(found.individual_delta)
    best = np.mean(tested, axis=(1, 2)).argmax(axis=0)  # by individual and epsilon
    limit = np.quantile(shown, PROB, axis=1).argmax(axis=0)
    own = np.take_along_axis(np.stack(shown), limit[None, None], axis=0)[0]
    lower = np.take_along_axis(np.stack(tested), best[None, None, None], axis=0)[0]
    return lower, Resampled(own, own.max(axis=1))
