"""What the databases themselves show of a risk, with no smoothness: for the upper limits.

A fitted density is as smooth as so many databases let it be, and a spike or an edge may be taken
for less than it is. Where the mean densities with and without an individual tell much, the
databases are asked themselves. For the set A of answers that are more than exp(kappa) times
likelier under one of the two, the Bayesian bootstrap (Rubin 1981) of the pairs (y_j, y_ij) gives
draws of

    P(A) - exp(epsilon) P_i(A) <= delta_i(epsilon),

and the same with P and P_i exchanged. A is chosen by the fitted densities, not by how often the
databases are in it. An upper limit of this lower bound may lie above that of the model: then the
model's limit rests on smoothness that the databases do not show, and the larger one is claimed.

Kappa is at least 0.5, whatever epsilon: where densities differ little everywhere, their smoothness
is what makes narrow limits possible, and a handful of databases in A says less than it does.

Where a mixture finds no narrow places at all, the sets that it chooses miss them. So there are sets
of a second choice: those of kernel estimates, of the bandwidth that predicts each answer best from
all others (`edp_bayes.distributions.kernel_estimates`). Under a normal density they are wide and
change few limits.

A density never ends, and answers may: an amount is at least zero. Beyond the least or the largest
answer with an individual there are one or two answers without them where densities are smooth.
Where there are more, the answers beyond it are a set, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edp_bayes.auditing.lower_bounds import MeanMasses, Pairs, noisy
from edp_bayes.coupling.atoms import AtomCoupling
from edp_bayes.coupling.views.published import ReleasedCoupling
from edp_bayes.coupling.views.unseen_past import PastCoupling
from edp_bayes.distributions.kernel_estimates import MOST_ANSWERS, KernelEstimate, best_estimate
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.responses import Responses

__all__ = ["CONTRASTS", "Answers", "Bootstrap", "Resampled", "no_more"]

# By which factor exp(kappa) one density is above the other in A. Of 0.35 to 1, these left the limit
# below the truth least often under a density of a sharp edge, at the same price under a normal one.
CONTRASTS = (0.5, 0.75, 1.0)
EDGE = 4  # answers beyond all others that say that there is an edge
SAMPLES = 500


@dataclass(frozen=True, eq=False)
class Resampled:
    """Draws of what the databases themselves show of delta_i and delta, by the bootstrap.

    Attributes
    ----------
    individual_delta : ndarray
        Shape (sample, individual, epsilon).
    delta : ndarray
        Shape (sample, epsilon): the largest of these individuals.
    """

    individual_delta: Array
    delta: Array

    def of_less(self, posterior: xr.Dataset, resampled: xr.Dataset | None) -> Resampled:
        """Return the same of an answer from which no more can be learned than from another.

        No quantile is above those of the other answer, of the draws of its risks and of what its
        databases show. So is no limit: processing an answer raises no risk.
        """
        found = []
        for name in ("individual_delta", "delta"):
            dims = ("individual", "epsilon") if name == "individual_delta" else ("epsilon",)
            drawn = posterior[name].transpose("chain", "draw", *dims).to_numpy()
            whole = None if resampled is None else resampled[name].transpose("sample", *dims)
            found.append(
                no_more(
                    getattr(self, name),
                    drawn.reshape(-1, *drawn.shape[2:]),
                    None if whole is None else whole.to_numpy(),
                )
            )
        return Resampled(*found)

    def dataset(self, individuals: NDArray[Any], epsilon: Array) -> xr.Dataset:
        """Return them as a group of an audit."""
        import xarray as xr

        return xr.Dataset(
            {
                "individual_delta": (("sample", "individual", "epsilon"), self.individual_delta),
                "delta": (("sample", "epsilon"), self.delta),
            },
            coords={"individual": individuals, "epsilon": epsilon},
        )


def no_more(shown: Array, draws: Array, whole: Array | None) -> Array:
    """Return draws no quantile of which, at their own ranks, is above those of both others."""
    count = len(shown)
    ranks = np.arange(1.0, count + 1.0) / (count + 1.0)
    most = np.quantile(draws, ranks, axis=0, method="weibull")
    if whole is not None:
        most = np.maximum(most, np.quantile(whole, ranks, axis=0, method="weibull"))
    order = np.argsort(shown, axis=0, kind="stable")
    capped = np.minimum(np.take_along_axis(shown, order, axis=0), most)
    found = np.empty_like(shown)
    np.put_along_axis(found, order, capped, axis=0)
    return found


class Answers(NamedTuple):
    """The answers of all databases with and without one individual, as densities model them.

    Attributes
    ----------
    whole, without : ndarray
        Shape (n * samples,): y_j and y_ij.
    noise : GaussianNoise, LaplaceNoise or None
        What is known to be added to them.
    """

    whole: Array
    without: Array
    noise: GaussianNoise | LaplaceNoise | None


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The Bayesian bootstrap of the databases, the same weights for everybody.

    Parameters
    ----------
    answers : callable
        Takes an individual, and returns their `Answers`.
    n_databases, samples : int
        How many databases there are, and answers of each.
    settings : SamplerSettings
        Of the audit: the weights have a random stream of their own.
    databases : int, optional
        How many there are with those whose answer is an atom, which are in no set; n if not given.
    residuals : bool
        Whether answers are fitted, given what an adversary knows: a kernel estimate of residuals
        predicts them too well and is too narrow, so that none chooses sets then.
    in_part : bool
        Answers are published in part, as those of a released coupling always are.

    References
    ----------
    Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9, 130-134.
    """

    answers: Callable[[int], Answers]
    n_databases: int
    samples: int
    settings: SamplerSettings
    databases: int | None = None
    residuals: bool = False
    in_part: bool = False

    @classmethod
    def of(
        cls,
        responses: Responses,
        settings: SamplerSettings,
        databases: int | None = None,
        *,
        residuals: bool = False,
    ) -> Bootstrap:
        """Return that of the responses to one query."""

        def answers(individual: int) -> Answers:
            y, given = responses.response, responses.collected[:, [individual]]
            return Answers(y, y - given.toarray()[:, 0], responses.noise)

        return cls(
            answers, responses.n_databases, responses.samples, settings, databases, residuals
        )

    def draws(
        self, coupling: Pairs, individuals: Index, means: Sequence[MeanMasses], epsilon: Array
    ) -> Resampled | None:
        """Return draws for some individuals; None where answers are mixed over unknown pasts.

        Parameters
        ----------
        coupling : Coupling
            Of the densities, for which answers are moved where draws are.
        individuals : ndarray of int
            Whose.
        means : sequence of MeanMasses
            By individual, what tests are chosen by.
        epsilon : ndarray
            Shape (epsilon,).
        """
        if _mixed(coupling):
            return None
        moved = coupling.shift if isinstance(coupling, ReleasedCoupling) else None
        shift = 0.0 if moved is None else float(moved.mean())
        # neither an edge nor a narrow place within a bin is seen
        within = self.in_part or isinstance(coupling, ReleasedCoupling)
        weights = self._weights()
        own = np.zeros((SAMPLES, len(individuals), epsilon.size))
        last, estimate = None, None  # everybody's answers to one query have one estimate
        for k, (person, mean) in enumerate(zip(individuals, means, strict=True)):
            given = self.answers(int(person))
            fine = not within and given.noise is None
            if fine and given.whole is not last:
                last, estimate = given.whole, self._estimate(given.whole)
            sets = _Sets(mean, estimate if fine else None, edges=fine)
            test = _Test.of(given, self.samples, sets, epsilon, shift)
            own[:, k] = test.best(weights @ test.value)
        return Resampled(own, own.max(axis=1, initial=0.0))

    def _estimate(self, answers: Array) -> KernelEstimate | None:
        """Return a kernel estimate, where one answer does not follow from the others."""
        alike = self.residuals or self.samples > 1 or np.ptp(answers) == 0.0
        return None if alike or answers.size > MOST_ANSWERS else best_estimate(answers)

    def _weights(self) -> Array:
        """Return draws of the weights of databases, Dirichlet(1, ..., 1), (sample, database)."""
        rng = self.settings.generator("resampled")
        weights = rng.standard_exponential((SAMPLES, self.n_databases))
        others = (self.databases or self.n_databases) - self.n_databases
        rest = rng.standard_gamma(others, SAMPLES) if others else 0.0
        return np.asarray(weights / (weights.sum(axis=1) + rest)[:, None])


def _mixed(coupling: Pairs) -> bool:
    """Return whether answers are mixed over what the past may have been; responses are not."""
    if isinstance(coupling, AtomCoupling):
        return _mixed(coupling.density)
    if isinstance(coupling, ReleasedCoupling):
        return _mixed(coupling.finer)
    return isinstance(coupling, PastCoupling)


class _Sets(NamedTuple):
    """What sets of answers are chosen by: mean densities, a kernel estimate, edges."""

    means: MeanMasses
    estimate: KernelEstimate | None
    edges: bool


# What every answer, by (y_j, y_ij), has of the sets where one density is some times the other.
type Choice = Callable[[int, int, Array], list[Array]]


@dataclass(frozen=True, eq=False)
class _Test:
    """Tests of one individual: what every database adds to what each reaches.

    Attributes
    ----------
    value : ndarray
        Shape (database, test): 1[y_j in A] - exp(epsilon) 1[y_ij in A], or the two exchanged; of
        noisy answers probabilities in place of the indicators.
    place : ndarray of int
        Shape (test,): position of the epsilon of each.
    size : int
        Number of epsilons.
    """

    value: Array
    place: Index
    size: int

    @classmethod
    def of(cls, answers: Answers, samples: int, sets: _Sets, epsilon: Array, shift: float) -> _Test:
        both = answers.whole + shift, answers.without + shift
        values, places = [np.zeros((both[0].size // samples, 0))], [np.zeros(0, dtype=np.int64)]
        kappa = np.maximum(epsilon[:, None], CONTRASTS)
        contrast, place = np.unique(kappa, return_inverse=True)
        choices = [_of_means(both, sets.means, answers.noise)]
        if sets.estimate is not None:
            choices.append(_of_estimates(both, sets.estimate))
        each = np.arange(epsilon.size).repeat(len(CONTRASTS))
        for one, other in ((0, 1), (1, 0)):
            for choose in choices:
                chances = [_by_database(c, samples) for c in choose(one, other, np.exp(contrast))]
                some = chances[one].any(axis=0)[place.ravel()]
                which, at = place.ravel()[some], each[some]
                values.append(
                    chances[one][:, which] - np.exp(epsilon)[at] * chances[other][:, which]
                )
                places.append(at)
        if sets.edges:
            for beyond in _beyond(*both):
                share = _by_database(beyond[:, None].astype(np.float64), samples)
                if share.sum() >= EDGE:
                    values.append(share.repeat(epsilon.size, axis=1))
                    places.append(np.arange(epsilon.size))
        return cls(np.concatenate(values, axis=1), np.concatenate(places), epsilon.size)

    def best(self, drawn: Array) -> Array:
        """Return draws of the test with the largest limit at each epsilon, (sample, epsilon)."""
        found = np.zeros((drawn.shape[0], self.size))
        limits = np.quantile(drawn, PROB, axis=0) if drawn.shape[1] else np.zeros(0)
        for k in np.argsort(limits, kind="stable"):
            if limits[k] > 0.0:
                found[:, self.place[k]] = np.maximum(drawn[:, k], 0.0)
        return found


def _beyond(one: Array, other: Array) -> Iterator[NDArray[np.bool_]]:
    """Yield which answers with, or without, an individual lie beyond all of the others' answers."""
    for these, those in ((one, other), (other, one)):
        yield these < those.min()
        yield these > those.max()


def _of_means(
    both: tuple[Array, Array], means: MeanMasses, noise: GaussianNoise | LaplaceNoise | None
) -> Choice:
    """Choose the cells of more than some times the mean mass."""

    def chances(one: int, other: int, times: Array) -> list[Array]:
        events = means.masses[one] > times[:, None] * means.masses[other]
        member = events.T.astype(np.float64)
        if means.noise is not None:
            member = means.noise @ member
        if noise is None:
            return [np.asarray(member[np.searchsorted(means.edges, points)]) for points in both]
        return [np.asarray(noisy(points, noise).masses(means.edges) @ member) for points in both]

    return chances


def _of_estimates(both: tuple[Array, Array], estimate: KernelEstimate) -> Choice:
    """Choose the answers of more than some times the density of a kernel estimate."""
    density = np.array(
        [[estimate.density(points, answers) for answers in both] for points in both]
    )  # of points of one in the second axis, by the answers of the other

    def chances(one: int, other: int, times: Array) -> list[Array]:
        return [
            (at[one][:, None] > times * at[other][:, None]).astype(np.float64) for at in density
        ]

    return chances


def _by_database(values: Array, samples: int) -> Array:
    """Return the mean over the samples of every database."""
    return np.asarray(values.reshape(-1, samples, values.shape[-1]).mean(axis=1))
