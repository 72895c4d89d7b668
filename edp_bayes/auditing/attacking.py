"""Attacks that guess from a release whether an individual is in the data: `edp.attack`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.reprs import by_shapes
from edp_bayes.utils.shares import highest_share

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.results.base import PrivacyCurves

__all__ = ["Attack", "attack"]

Score = Callable[[Array], Array]  # how much each release speaks for the individual's presence

METHODS = ("likelihood_ratio", "neighbours", "forest")
LEVELS = np.round(np.linspace(0.01, 0.99, 50), 12)
FEWEST = 20  # releases with and without, half of which are learned from
TREES, LEAF = 200, 5


@dataclass(frozen=True, eq=False)
class Attack:
    """How often an attack was right about releases that it had not learned from.

    Made by `edp_bayes.attack`.

    Attributes
    ----------
    method : str
        What it does.
    levels : ndarray
        Shape (level,): false alarms allowed, as shares of the releases without the individual.
    alarms, hits : ndarray of int
        Shape (level,): at a threshold learned from one half of the releases, how often it raised
        an alarm in the other half, of those without the individual and of those with them.
    absent, present : int
        How many of these there are.

    See Also
    --------
    attack : guess from releases who is in the data
    edp_bayes.black_box.membership.epsilon_from_membership : epsilon from the counts of an attack

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> found = edp.attack(rng.normal(3.0, 1.0, 400), rng.normal(0.0, 1.0, 400), random_seed=1)
    >>> isinstance(found, Attack), found.hits.shape == found.levels.shape
    (True, True)
    """

    method: str
    levels: Array
    alarms: NDArray[np.int64]
    hits: NDArray[np.int64]
    absent: int
    present: int

    __repr__ = by_shapes

    def table(self, *, prob: float = PROB) -> pd.DataFrame:
        """Return false alarms and hits with limits, one row for each level.

        The limits are those of Clopper and Pearson (1934): the share of false alarms is at most
        false_alarm_upper, that of hits at least power_lower, each with probability `prob`.

        See Also
        --------
        beats : whether it beats the audit
        attack : guess from releases who is in the data
        """
        import pandas as pd

        prob = validate.probability(prob, "prob")
        return pd.DataFrame(
            {
                "false_alarm": self.alarms / self.absent,
                "false_alarm_upper": highest_share(self.alarms, self.absent, prob),
                "power": self.hits / self.present,
                "power_lower": 1.0 - highest_share(self.present - self.hits, self.present, prob),
            },
            index=pd.Index(self.levels, name="level"),
        )

    @property
    def advantage(self) -> float:
        """The largest difference between the shares of hits and of false alarms."""
        table = self.table()
        return float((table["power"] - table["false_alarm"]).max())

    def beats(self, audit: PrivacyCurves, *, prob: float = PROB) -> bool:
        """Return whether it does better than the audit's trade-off allows.

        All levels are looked at together: limits hold at all of them with probability `prob`.

        Parameters
        ----------
        audit : PrivacyCurves
            Whose simultaneous band of the power is meant.
        prob : float
            Probability of that band, and of the limits of the attack.

        See Also
        --------
        Audit.tradeoff : the power of the best test at each level
        table : false alarms and hits
        """
        prob = validate.probability(prob, "prob")
        # a half for each of both limits, at every level
        own = 1.0 - (1.0 - prob) / (2.0 * self.levels.size)
        table = self.table(prob=own)
        at = np.clip(table["false_alarm_upper"].to_numpy(), 0.0, 1.0)
        places, back = np.unique(at, return_inverse=True)
        allowed = audit.tradeoff(places, prob=prob)["upper"].to_numpy()[back]
        return bool((table["power_lower"].to_numpy() > allowed).any())


def attack(
    present: ArrayLike,
    absent: ArrayLike,
    *,
    method: str = "likelihood_ratio",
    densities: tuple[Mixture, Mixture] | None = None,
    random_seed: int | None = None,
) -> Attack:
    """Guess from releases whether an individual is in the data, and count how often that is right.

    One half of the releases is learned from, the other one is guessed.

    Parameters
    ----------
    present, absent : array_like
        Releases with and without the individual, simulated or held out, shape (release,) or
        (release, answer) for several answers at once; at least 20 of each.
    method : {"likelihood_ratio", "neighbours", "forest"}
        The ratio of both densities, the share of releases with the individual among the nearest
        ones, or a random forest of scikit-learn, which must be installed then.
    densities : tuple of Mixture, optional
        For the likelihood ratio of one answer: the densities with and without the individual, as
        a person knows them who knows all but that. If not given they are learned by
        kernels.
    random_seed : int, optional
        For which releases are learned from, and for the forest.

    Returns
    -------
    Attack

    Raises
    ------
    InvalidInputError, InputTypeError
        If releases are too few, of different width or not finite, an argument cannot be used, or
        scikit-learn is missing.

    See Also
    --------
    Attack : how often an attack was right
    audit : audit a query
    edp_bayes.black_box.membership.epsilon_from_membership : epsilon from the counts of an attack

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> found = attack(rng.normal(1.0, 1.0, 2000), rng.normal(0.0, 1.0, 2000), random_seed=1)
    >>> bool(abs(found.advantage - 0.383) < 0.05)
    True
    """
    validate.choice(method, METHODS, "method")
    there, without = _releases(present, "present"), _releases(absent, "absent")
    if there.shape[1] != without.shape[1]:
        raise InvalidInputError(
            "present and absent must have as many answers, found "
            f"{there.shape[1]} and {without.shape[1]}"
        )
    if densities is not None and (method != "likelihood_ratio" or there.shape[1] > 1):
        raise InvalidInputError("densities are for the likelihood ratio of one answer")
    rng = validate.generator(validate.seed(random_seed))
    learned, guessed = zip(*(_halves(part, rng) for part in (there, without)), strict=True)
    if densities is not None:
        score = _known_ratio(*densities)
    elif method == "likelihood_ratio":
        score = _kernel_ratio(learned[0], learned[1])
    elif method == "neighbours":
        score = _neighbours(learned[0], learned[1])
    else:
        score = _forest(learned[0], learned[1], rng)
    hits, alarms = (score(part) for part in guessed)
    thresholds = np.quantile(score(learned[1]), 1.0 - LEVELS)
    count = [(values[:, None] > thresholds).sum(axis=0) for values in (alarms, hits)]
    return Attack(method, LEVELS, count[0], count[1], alarms.size, hits.size)


def _releases(values: ArrayLike, name: str) -> Array:
    """Return releases of shape (release, answer)."""
    found = validate.finite_array(values, name)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] == 0:
        raise InvalidInputError(
            f"{name} must have shape (release,) or (release, answer), found {found.shape}"
        )
    if len(found) < FEWEST:
        raise InvalidInputError(f"{name} must hold at least {FEWEST} releases, found {len(found)}")
    return found


def _halves(values: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    order = rng.permutation(len(values))
    half = len(values) // 2
    return values[order[:half]], values[order[half:]]


def _known_ratio(present: Mixture, absent: Mixture) -> Score:
    for one, name in ((present, "present"), (absent, "absent")):
        if not isinstance(one, Mixture):
            raise InputTypeError(f"densities must be two Mixtures, found {type(one).__name__}")
        if one.weights.ndim > 1:
            raise InvalidInputError(
                f"the density {name} must be one mixture, found draws {one.weights.shape[:-1]}"
            )
    return lambda values: present.logpdf(values[:, 0]) - absent.logpdf(values[:, 0])


def _kernel_ratio(present: Array, absent: Array) -> Score:
    from scipy.stats import gaussian_kde

    try:
        first, second = (gaussian_kde(part.T) for part in (present, absent))
    except np.linalg.LinAlgError:
        raise InvalidInputError(
            "releases must vary in every direction for the likelihood ratio: leave out answers "
            "that follow from others, or take method='neighbours'"
        ) from None
    return lambda values: np.asarray(first.logpdf(values.T) - second.logpdf(values.T))


def _neighbours(present: Array, absent: Array) -> Score:
    from scipy.spatial import cKDTree

    scale = np.concatenate([present, absent]).std(axis=0)
    scale[scale == 0.0] = 1.0
    count = max(5, int(np.sqrt(min(len(present), len(absent)))))
    trees = [cKDTree(part / scale) for part in (present, absent)]

    def score(values: Array) -> Array:
        # the radius that holds as many of each: small where they are dense
        away = [np.asarray(tree.query(values / scale, k=[count])[0])[:, 0] for tree in trees]
        return np.log(away[1] + 1e-300) - np.log(away[0] + 1e-300)

    return score


def _forest(present: Array, absent: Array, rng: np.random.Generator) -> Score:
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise InvalidInputError(
            "method='forest' needs scikit-learn: pip install scikit-learn, or take 'neighbours'"
        ) from None
    forest = RandomForestClassifier(
        TREES, min_samples_leaf=LEAF, random_state=int(rng.integers(2**31))
    )
    labels = np.repeat([1, 0], [len(present), len(absent)])
    forest.fit(np.concatenate([present, absent]), labels)
    return lambda values: np.asarray(forest.predict_proba(values)[:, 1])
