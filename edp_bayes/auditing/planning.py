"""How many databases a band of a given width, or a given limit, needs: `edp.plan`."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.auditing.future_databases import FutureDatabases
from edp_bayes.auditing.lower_bounds import tested_risks
from edp_bayes.auditing.resampled import Bootstrap
from edp_bayes.auditing.rounded import modelled_step, rounded_coupling
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.models.base import DensityModel, fit_as_asked
from edp_bayes.models.regression import Regression
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.responses.atoms import refuse_atoms
from edp_bayes.responses.responses import Adjustment, Responses
from edp_bayes.results import bands
from edp_bayes.results.base import BAND_KINDS
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PLANNING_DRAWS, PROB, default_probability
from edp_bayes.utils.formatting import enough
from edp_bayes.utils.progress import working

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csc_array

    from edp_bayes.coupling.base import Coupling

__all__ = ["Plan", "plan"]

CHAINS = 2
TUNE = 300
# The search stops when the answer is known to this share of itself.
TOLERANCE = 0.1
# A limit of 0 is said to be at most this.
SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Plan:
    """How many databases are needed, and the simulations that say so.

    Made by `edp_bayes.plan`.

    Parameters
    ----------
    databases : int or None
        Fewest databases, those seen included, whose bands are on average no wider than asked,
        or whose upper limit is in at least half of the repetitions no larger than asked; known to
        10%. None where even the most that were tried do not suffice.
    width : float or None
        The width asked for, in units of delta; None where a limit was.
    epsilon : ndarray
        Shape (epsilon,): the grid of the band.
    kind : {"simultaneous", "pointwise"}
        Which band.
    prob : float
        Its probability.
    sizes : ndarray of int
        Shape (size,): numbers of databases that were tried, in order.
    widths : ndarray
        Shape (size, repetition): the band's largest width over epsilon.
    held : ndarray of bool
        Shape (size, repetition): whether the band held the curve it was simulated from.
    limits : ndarray
        Shape (size, repetition): the largest upper limit over epsilon.
    delta : float, optional
        The limit asked for; None where a width was.
    against : str
        Against whom, in words; empty where no adversary was given.

    See Also
    --------
    plan : how many databases are needed
    edp_bayes.smallest_delta : the smallest limit that so many databases can show

    Examples
    --------
    >>> import numpy as np
    >>> from edp_bayes.auditing.planning import Plan
    >>> widths = np.array([[0.25, 0.5], [0.125, 0.25]])
    >>> found = Plan(80, 0.2, np.array([0.1]), "pointwise", 0.9, np.array([40, 80]), widths,
    ...              np.ones((2, 2), dtype=bool), widths)
    >>> print(found)
    80 databases: their pointwise 90% bands of delta are 0.19 wide on average, 0.2 was asked for.
    """

    databases: int | None
    width: float | None
    epsilon: Array
    kind: str
    prob: float
    sizes: NDArray[np.int64]
    widths: Array
    held: NDArray[np.bool_]
    limits: Array
    delta: float | None = None
    against: str = ""

    def table(self) -> pd.DataFrame:
        """Return one row for each number of databases tried.

        Returns
        -------
        DataFrame
            Index databases; columns width (mean over repetitions) or limit (median), least and most
            (over repetitions), narrow_enough or low_enough (share of repetitions no wider, or no
            higher, than asked) and held (share whose band held the curve it was simulated from).
        """
        import pandas as pd

        name, enough_of, measured = (
            ("width", "narrow_enough", self.widths)
            if self.delta is None
            else ("limit", "low_enough", self.limits)
        )
        return pd.DataFrame(
            {
                name: _typical(measured, self.delta),
                "least": measured.min(axis=1),
                "most": measured.max(axis=1),
                enough_of: (measured <= self._asked).mean(axis=1),
                "held": self.held.mean(axis=1),
            },
            index=pd.Index(self.sizes, name="databases"),
        )

    @property
    def _asked(self) -> float:
        asked = self.width if self.delta is None else self.delta
        assert asked is not None
        return asked

    def __str__(self) -> str:
        """Return the answer as a sentence."""
        size = int(self.sizes[-1]) if self.databases is None else self.databases
        found = enough(max(float(self.table().iloc[:, 0].loc[size]), SMALLEST), 2)
        answer = f"{size} databases" if self.databases else f"{size} databases are too few"
        answer += f", against {self.against}" if self.against else ""
        asked = f"{self._asked:.2g} was asked for."
        if self.delta is None:
            return (
                f"{answer}: their {self.kind} {self.prob:.0%} bands of delta are {found} wide on "
                f"average, {asked}"
            )
        return (
            f"{answer}: in half of {self.limits.shape[1]} simulated futures their {self.kind} "
            f"{self.prob:.0%} upper limit of delta is at most {found}, {asked}"
        )


def _typical(measured: Array, delta: float | None) -> Array:
    """Return average widths, or the limits that at least half of the repetitions reach."""
    if delta is None:
        return np.asarray(measured.mean(axis=-1))
    return np.asarray(np.quantile(measured, 0.5, axis=-1, method="inverted_cdf"))


def plan(
    responses: Responses,
    *,
    width: float | None = None,
    delta: float | None = None,
    epsilon: ArrayLike,
    kind: str = "simultaneous",
    prob: float | None = None,
    model: DensityModel | None = None,
    adversary: Adversary | None = None,
    keep: int = 10,
    repetitions: int = 16,
    most: int = 2000,
    draws: int = PLANNING_DRAWS,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Plan:
    """Return how many databases a band of delta of a given width, or a given limit, needs.

    The model is fitted to the databases seen. In each repetition one of its draws is taken for
    the truth, new databases are simulated from it and added to those seen, the model is fitted
    to all of them, and the band is measured. The answer is the smallest number at which the
    average width is no larger than asked: the average length criterion of Joseph, Wolfson and du
    Berger (1995), given the data seen; or at which at least half of the repetitions have an
    upper limit no larger than asked.

    Parameters
    ----------
    responses : Responses
        The databases seen, one sample each.
    width : float, optional
        Largest width wanted, in units of delta, between 0 and 1; over a grid of epsilon it is
        the largest vertical width of the band. Give it or `delta`.
    delta : float, optional
        Largest upper limit wanted, between 0 and 1; over a grid of epsilon it is the limit at the
        smallest. Where delta itself may well be larger, no number of databases suffices.
    epsilon : array_like
        Shape (epsilon,), or one number: increasing, not negative.
    kind : {"simultaneous", "pointwise"}
        Band over epsilon; the same for a single epsilon.
    prob : float, optional
        Probability of the band, ArviZ's ``stats.ci_prob`` if not given; of the limit, 0.95.
    model : DensityModel, optional
        A mixture model with Gaussian kernels; ``DirichletProcessMixture()`` if not
        given.
    adversary : Adversary, optional
        What they know beside the response, as for `edp_bayes.audit`: bands are those of the next
        database given it, and every new database is like that one. Refused if the scale changes or
        answers are rounded (`step`).
    keep : int
        How many of the riskiest individuals are simulated; delta is the maximum over them.
    repetitions : int
        Simulated futures for each number of databases. The standard error of an average width is
        its spread over the repetitions divided by the root of their number.
    most : int
        Largest number of databases tried.
    draws : int
        Draws in each of the 2 chains of a fit; at least as many as the band needs, 20 for 0.95.
    random_seed : int, optional
        The same seed gives the same numbers.
    progressbar : bool
        Show that something goes on once it has taken two seconds.

    Returns
    -------
    Plan
        The number of databases and every simulated width and limit.

    Raises
    ------
    InvalidInputError
        If a value cannot be used, not exactly one of `width` and `delta` is given, `most` is below
        the databases seen, the query is randomised (several samples for each database), the
        model has no Gaussian mixture or the scale changes.
    InputTypeError
        If an argument has a type that cannot be used.

    See Also
    --------
    Plan : the simulations behind a plan
    edp_bayes.smallest_delta : the smallest limit that so many databases can show
    edp_bayes.Audit.verdict : whether a target is met

    Notes
    -----
    New databases are independent and follow the distribution of those seen; contributions of
    different individuals are independent given the response. Who is riskiest is decided once, by
    the databases seen. Given an adversary the databases are those of the regression's residuals,
    adjusted to the database in question; how far more databases would settle its slopes of
    contributions and presence is taken in proportion to their number.

    References
    ----------
    Joseph, Wolfson and du Berger (1995), Sample size calculations for binomial proportions via
    highest posterior density intervals, The Statistician 44, 143-154.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> from edp_bayes.auditing.planning import plan
    >>> rng = np.random.default_rng(3)
    >>> contribution = rng.normal(0.6, 0.2, 40)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40) + contribution, contribution=contribution
    ... )
    >>> found = plan(
    ...     responses, width=0.2, epsilon=0.1, prob=0.9, repetitions=4, draws=50, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> found.sizes[0] == 40, bool(found.widths[-1].mean() <= 0.2)
    (np.True_, True)
    """
    from edp_bayes.models.default import model_or_default

    if (width is None) == (delta is None):
        found = "neither" if width is None else f"width={width!r} and delta={delta!r}"
        raise InvalidInputError(f"give width= or delta=, one of them, found {found}")
    wanted = (
        validate.probability(width, "width")
        if delta is None
        else validate.probability(delta, "delta")
    )
    chosen = model_or_default(model)
    usable, unlike = modelled_step(_usable(responses), chosen)
    for sentence in unlike:
        warnings.warn(sentence, EdpBayesWarning, stacklevel=2)
    known = _known(usable, chosen, adversary, random_seed)
    lags = 0 if known is None else usable.n_databases - known.n_databases
    study = _Study(
        responses=usable.on_scale if known is None else known,
        epsilon=validate.epsilon_grid(epsilon),
        kind=validate.choice(kind, BAND_KINDS, "kind"),
        prob=default_probability(PROB if prob is None and delta is not None else prob),
        delta=None if delta is None else wanted,
        model=chosen,
        keep=validate.positive_integer(keep, "keep"),
        repetitions=validate.positive_integer(repetitions, "repetitions"),
        most=validate.positive_integer(most, "most") - lags,
        settings=simulation_settings(draws, random_seed),
        residuals=known is not None,
    )
    if study.most < study.responses.n_databases:
        raise InvalidInputError(
            f"most must be at least {responses.n_databases}, the databases seen, found {most}"
        )
    require_draws(draws, study.prob)
    with working("Planning", show=progressbar), warnings.catch_warnings():
        # The data seen gave their warnings when they were made.
        warnings.simplefilter("ignore", EdpBayesWarning)
        study.simulate()
        needed = _search(study, wanted)
    sizes = np.array(sorted(study.found))
    return Plan(
        databases=None if needed is None else needed + lags,
        width=wanted if delta is None else None,
        epsilon=study.epsilon,
        kind=study.kind,
        prob=study.prob,
        sizes=sizes + lags,
        widths=np.array([study.found[size][0] for size in sizes]),
        held=np.array([study.found[size][2] for size in sizes]),
        limits=np.array([study.found[size][1] for size in sizes]),
        delta=None if delta is None else wanted,
        against="" if adversary is None or known is None else adversary.words,
    )


def simulation_settings(draws: int, random_seed: int | None) -> SamplerSettings:
    """Return how each of many simulated data sets is fitted: two short chains."""
    return SamplerSettings(
        draws=draws, tune=TUNE, chains=CHAINS, random_seed=random_seed, progressbar=False
    )


def require_draws(draws: int, prob: float) -> None:
    """Refuse fewer draws in each of the chains of a simulation than a band of them needs."""
    least = math.ceil(bands.fewest_draws(prob) / CHAINS)
    if draws < least:
        raise InvalidInputError(
            f"draws must be at least {least}, found {draws}: the range of fewer is "
            f"narrower than a {prob:.4g} band"
        )


def _known(
    responses: Responses,
    model: DensityModel,
    adversary: Adversary | None,
    random_seed: int | None,
) -> Responses | None:
    """Return the databases adjusted to the one in question, None where nothing is known of it."""
    if adversary is None:
        return None
    if not isinstance(adversary, Adversary):
        raise InputTypeError(f"adversary must be an Adversary, found {adversary!r}")
    if adversary.nothing:
        return None
    if responses.step is not None:
        raise InvalidInputError(
            f"plan cannot be made given what an adversary knows where answers are rounded, here to "
            f"a grid of step {responses.step:g}: plan without adversary=, or with responses "
            "treated as continuous, responses.replaced(step=None)"
        )
    if adversary.changing_scale:
        raise InvalidInputError(
            "plan cannot be made where the scale changes: it would have to be known how it goes on "
            "over the new databases. Plan with the same adversary without changing_scale=True; "
            "what is not known of the scale adds to that width and does not go away"
        )
    settings = simulation_settings(PLANNING_DRAWS, random_seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        fitted = fit_as_asked(model, Regression.of(adversary.given(responses)), settings)
    assert fitted.in_question is not None
    return fitted.in_question.responses


def _usable(responses: Responses) -> Responses:
    if not isinstance(responses, Responses):
        raise InputTypeError(f"responses must be Responses, found {type(responses).__name__}")
    if responses.samples > 1:
        raise InvalidInputError(
            f"plan needs one sample for each database, found {responses.samples}: new databases "
            "of a randomised query are not simulated"
        )
    refuse_atoms(responses.atoms, "how new databases are simulated")
    return responses


@dataclass(eq=False)
class _Study:
    """Simulated futures, and the bands of as many of their databases as are asked for.

    The futures of a repetition are nested: more databases are the same ones and new ones.
    """

    responses: Responses
    epsilon: Array
    kind: str
    prob: float
    delta: float | None
    model: DensityModel
    keep: int
    repetitions: int
    most: int
    settings: SamplerSettings
    residuals: bool = False
    found: dict[int, tuple[Array, Array, NDArray[np.bool_]]] = field(default_factory=dict)

    def simulate(self) -> None:
        """Fit the databases seen and draw every future."""
        from edp_bayes.auditing.evaluation import evaluate, riskiest

        fitted = self.model.fit(self.responses, self.settings)
        # Refused before the individuals are evaluated, which may take long.
        FutureDatabases(fitted.coupling, np.arange(1))
        published = self._published(fitted.coupling)
        mean = evaluate(published, self.epsilon, progressbar=False).mean
        self.kept = riskiest(mean, self.keep)
        truths = published.curves(self.kept, self.epsilon).max(axis=1)
        rng = self.settings.generator("futures")
        chosen = rng.integers(len(truths), size=self.repetitions)
        self.truths = truths[chosen]
        distribution = FutureDatabases(fitted.coupling, self.kept)
        extra = self.most - self.responses.n_databases
        self.futures = [
            distribution.sample(int(draw), extra, self.settings.generator("future", repetition))
            for repetition, draw in enumerate(chosen)
        ]

    def _published(self, coupling: Coupling) -> Coupling:
        """Return the coupling of what is published: of rounded answers, where they are."""
        if self.responses.step is None:
            return coupling
        return rounded_coupling(coupling, self.responses)

    def measure(self, size: int) -> float:
        """Return the average width of so many databases, or the limit that half of them reach."""
        if size not in self.found:
            outcomes = [self._band(size, repetition) for repetition in range(self.repetitions)]
            widths, limits, held = (np.array(part) for part in zip(*outcomes, strict=True))
            self.found[size] = (widths, limits, held)
        widths, limits, _ = self.found[size]
        return float(_typical(widths if self.delta is None else limits, self.delta))

    def _band(self, size: int, repetition: int) -> tuple[float, float, bool]:
        """Return a band's width, its upper limit, and whether it holds what is simulated from."""
        seed = self.settings.generator("refit", size, repetition).integers(2**32)
        settings = simulation_settings(self.settings.draws, int(seed))
        databases = self._databases(size, repetition)
        fitted = self.model.fit(databases, settings)
        bootstrap = Bootstrap.of(databases, settings, residuals=self.residuals)
        lower, upper, limit = self._ends(self._published(fitted.coupling), bootstrap)
        truth = self.truths[repetition]
        held = bool(((lower <= truth) & (truth <= upper)).all())
        return float((upper - lower).max()), float(limit.max()), held

    def _ends(self, coupling: Coupling, bootstrap: Bootstrap) -> tuple[Array, Array, Array]:
        """Return delta's band and upper limit, as an audit that keeps everybody does."""
        everybody = np.arange(coupling.n_individuals)
        curves = coupling.curves(everybody, self.epsilon)
        delta = curves.max(axis=1)
        tested, means = tested_risks(coupling, everybody, curves, self.epsilon)
        below = tested.max(axis=2).reshape(-1, self.epsilon.size)
        lower, upper = bands.band(delta, self.prob, kind=self.kind, below=below)
        limit = bands.upper_limit(delta, self.prob, kind=self.kind)
        shown = bootstrap.draws(coupling, everybody, means, self.epsilon)
        if shown is not None:
            above = bands.band(shown.delta, self.prob, kind=self.kind)[1]
            upper = np.maximum(upper, bands.never_rising(above))
            above = bands.upper_limit(shown.delta, self.prob, kind=self.kind)
            limit = np.maximum(limit, bands.never_rising(above))
        return lower, upper, limit

    def _databases(self, size: int, repetition: int) -> Responses:
        """Return the databases seen and so many of a future that there are `size`."""
        from scipy.sparse import csc_array, vstack

        y, c = self.futures[repetition]
        step, at = self.responses.step, self.responses.response[0]
        if isinstance(step, float):
            y = at + step * np.round((y - at) / step)
        new = size - self.responses.n_databases
        here: csc_array[np.float64] = self.responses.contribution[:, self.kept]
        found = Responses.from_arrays(
            np.concatenate([self.responses.response, y[:new]]),
            contribution=csc_array(vstack([here, csc_array(c[:new])])),
            noise=self.responses.noise,
            step=step,
        )
        adjustment, share = self.responses.adjustment, self.responses.n_databases / size
        if adjustment is None:
            return found
        return found.replaced(
            adjustment=Adjustment(
                degrees=adjustment.degrees[self.kept],
                variance=share * adjustment.variance[self.kept],
                odds=adjustment.odds**share,
                spells=adjustment.spells[self.kept],
                recent=adjustment.recent[self.kept] ** share,
            )
        )


def _search(study: _Study, wanted: float) -> int | None:
    """Return the smallest size that measures at most what is wanted, to 10%; None if beyond.

    Doubling brackets the answer; within the bracket its logarithm is taken as linear in log size.
    """
    enough = below = study.responses.n_databases
    while study.measure(enough) > wanted:
        if enough == study.most:
            return None
        below, enough = enough, min(2 * enough, study.most)
    while enough - below > max(1.0, TOLERANCE * enough):
        high, low = math.log(study.measure(below)), math.log(max(study.measure(enough), 1e-300))
        share = (high - math.log(wanted)) / (high - low)
        guess = below * (enough / below) ** min(max(share, 0.2), 0.8)
        middle = min(max(round(guess), below + 1), enough - 1)
        if study.measure(middle) > wanted:
            below = middle
        else:
            enough = middle
    return enough
