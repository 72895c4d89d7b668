"""What every audit comes back as: a tree of draws of a privacy curve."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results import bands, tabling
from edp_bayes.results.effects import WITHHOLDS, effect_of, withheld
from edp_bayes.results.epsilon_at import CurveSource, bracket, small_delta
from edp_bayes.results.release import Release
from edp_bayes.results.summaries import finite_draws, summary_table
from edp_bayes.utils import files, validate
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.defaults import PROB, default_probability
from edp_bayes.utils.sentences import restored
from edp_bayes.utils.thinning import spread_evenly

if TYPE_CHECKING:
    import pandas as pd
    from arviz_plots import PlotCollection

    from edp_bayes.results.verdict import Verdict

__all__ = [
    "BAND_KINDS",
    "TARGETS",
    "IndividualCurves",
    "PrivacyCurves",
]

TARGETS = (1e-2, 1e-3)
NAMES = ("labels", "pseudonyms")
SHOWN = 6  # values of epsilon in a notebook
# Against whom, where no adversary was given.
NOBODY_KNOWN = "a person who knows the distribution of the answers, and no database"
BAND_KINDS = bands.KINDS


class Outcome(NamedTuple):
    """The outcome of a check: passed is None where it could not be made.

    `effect` says whether a failure withholds the verdict or advises.
    """

    check: str
    passed: bool | None
    sentence: str
    effect: str


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyCurves:
    """Posterior draws of a privacy curve, with bands, a summary and a file.

    Parameters
    ----------
    tree : xarray.DataTree
        Group posterior with delta (chain, draw, epsilon) and further quantities; settings,
        checks, warnings and versions stand in the attributes.
    source : CurveSource, optional
        What evaluates the curves beside the grid, see `epsilon_at`. It is not saved.

    Notes
    -----
    What describes the posterior, a band or an interval, has ArviZ's ``stats.ci_prob`` by default,
    0.89. What promises something, such as an upper limit, a verdict or noise that must hold, has
    0.95 (`edp_bayes.utils.defaults.PROB`), whatever ArviZ is set to. Where both stand on a page, in
    a report or on the command line, all have the probability of the promise.
    """

    tree: xr.DataTree
    source: CurveSource | None = None

    # What delta is, in words.
    risk: ClassVar[str] = "largest risk of an individual"

    @property
    def delta(self) -> xr.DataArray:
        """The privacy curve delta(epsilon), dims (chain, draw, epsilon)."""
        return self._posterior["delta"]

    @property
    def epsilon(self) -> xr.DataArray:
        """The grid of epsilon."""
        return self._posterior["epsilon"]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful about this audit, in plain words."""
        return tuple(map(restored, self._record("warnings")))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Model, sampler, seed, versions, query and fingerprint of the data."""
        return dict(self._record("settings"))

    @property
    def checks(self) -> pd.DataFrame:
        """Every check made: of the databases, of the fit and of the draws.

        The column `effect` says what a failure does: it "withholds" the verdict or it "advises".
        """
        import pandas as pd

        rows = [
            row | {"effect": effect_of(row["check"]), "sentence": restored(row["sentence"])}
            for row in self._record("checks")
        ]
        return pd.DataFrame(rows or {"check": []}).set_index("check")

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Every check, and every doubt that no check's sentence holds, in the order made."""
        rows = [
            Outcome(row["check"], row["passed"], restored(row["sentence"]), effect_of(row["check"]))
            for row in self._record("checks")
        ]
        said = " ".join(str(row.sentence) for row in rows if row.passed is False)
        beside = [one for one in dict.fromkeys(self.warnings) if str(one) not in said]
        return (*(Outcome("data", False, one, effect_of("data")) for one in beside), *rows)

    @property
    def withheld(self) -> str | None:
        """Why the result establishes nothing, None where it does; see `diagnostics.withheld`."""
        return withheld((one.check, one.sentence) for one in self.outcomes if one.passed is False)

    @property
    def withheld_by(self) -> tuple[str, ...]:
        """Names of the checks that failed and withhold the verdict."""
        failed = (one for one in self.outcomes if one.passed is False)
        return tuple(dict.fromkeys(one.check for one in failed if one.effect == WITHHOLDS))

    @property
    def failures(self) -> str:
        """How many checks failed, in words."""
        failed = sum(one.passed is False for one in self.outcomes)
        return f"{failed} of {len(self.outcomes)} checks failed" if failed else "no check failed"

    @property
    def exact_zeros(self) -> bool:
        """Whether a risk of zero is that, rather than a number too small to be known."""
        return False

    @property
    def parts(self) -> Sequence[PrivacyCurves]:
        """What it is put together from, below whose limits no limit of it lies; mostly nothing."""
        return ()

    def verdict(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        prob: float = PROB,
        kind: str = "pointwise",
        plan: Any = None,
    ) -> Verdict:
        """Return the answer to a target: met, not met, undecided or not established.

        Parameters
        ----------
        epsilon : float, optional
            Of the target; 0.1 if not given. Where it is not in the grid, the upper limit is that at
            the next smaller value and the lower end that at the next larger one: safe, since delta
            never rises with epsilon.
        delta : float, optional
            Of the target: delta(epsilon) is to be at most this. One over the number of individuals
            if not given, 0.1 for fewer than ten, 0.01 where none are counted.
        prob : float
            Probability of the upper limit, and of the band.
        kind : {"pointwise", "simultaneous"}
            Whether they are for this epsilon alone, chosen before looking, or for the whole curve.
        plan : Plan, optional
            What `edp_bayes.plan` returned for the delta of the target: where it is undecided, the
            verdict says how many databases would decide by these simulations, in the place of an
            estimate from the limit and the posterior median.

        Returns
        -------
        Verdict
            Its status, the limit and what it rests on; printed, it is sentences.

        Raises
        ------
        InvalidInputError, InputTypeError
            If epsilon is negative, delta does not lie in [0, 1), the probability or the kind is
            none, or the plan is of another delta.

        See Also
        --------
        upper : a one-sided upper limit
        edp_bayes.Verdict : the answer to a target
        edp_bayes.remedies : what would help where a target is not met

        Examples
        --------
        >>> import edp_bayes as edp
        >>> audit = edp.audit_property(
        ...     103, 1000, epsilon=[0.1, 0.5], random_seed=1, progressbar=False
        ... )
        >>> audit.verdict(epsilon=0.5, delta=0.01).status
        'met'
        """
        from edp_bayes.results.verdict import reach_verdict

        return reach_verdict(self, epsilon=epsilon, delta=delta, prob=prob, kind=kind, plan=plan)

    def describe(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        prob: float = PROB,
        kind: str = "pointwise",
    ) -> str:
        """Return one paragraph: what was audited, how, against whom, and what it says.

        Parameters
        ----------
        epsilon, delta, prob, kind
            Of the target, as for `verdict`.

        Returns
        -------
        str
            Query, data, adversary, model, draws and seed, the sentences of the verdict, and the
            checks that failed. It claims nothing that the verdict does not, and calls no individual
            by name.

        Raises
        ------
        InvalidInputError, InputTypeError
            As for `verdict`.

        See Also
        --------
        verdict : whether a target is met
        edp_bayes.Audit.report : a report from the result itself
        edp_bayes.report.describe : what a report says, as text

        Examples
        --------
        >>> import edp_bayes as edp
        >>> audit = edp.audit_property(
        ...     103, 1000, epsilon=[0.1, 0.5], random_seed=1, progressbar=False
        ... )
        >>> said = audit.describe(epsilon=0.5, delta=0.01)
        >>> said.startswith("Audited: the share with 'property'; on 1 database")
        True
        >>> str(audit.verdict(epsilon=0.5, delta=0.01)) in said
        True
        """
        from edp_bayes.results.describing import paragraph

        return paragraph(self, epsilon=epsilon, delta=delta, prob=prob, kind=kind)

    @staticmethod
    def epsilon_for(*, prior: float, posterior: float) -> float:
        """Return the epsilon of an answer that moves a prior of membership to `posterior`.

        Parameters
        ----------
        prior, posterior : float
            Probability of membership before and after an answer, strictly between 0 and 1.

        Returns
        -------
        float
            log odds of the posterior less those of the prior, in size: an answer that is at most
            exp(epsilon) times likelier moves the odds by no more. How many members meet one that is
            likelier still `membership_probability` bounds; that is not delta, but more.

        Raises
        ------
        InvalidInputError
            If one of them is not strictly between 0 and 1.

        See Also
        --------
        epsilon_at : the epsilon for a delta
        membership_probability : how sure an answer makes anybody

        Examples
        --------
        >>> round(PrivacyCurves.epsilon_for(prior=0.5, posterior=0.525), 3)
        0.1
        """
        before, after = (
            math.log(p / (1.0 - p))
            for p in (
                validate.probability(prior, "prior"),
                validate.probability(posterior, "posterior"),
            )
        )
        return abs(after - before)

    def epsilon_at(self, delta: ArrayLike) -> xr.DataArray:
        """Return the epsilon at which delta(epsilon) falls to a given delta.

        Parameters
        ----------
        delta : float or array_like
            Targets from 0, included, to below 1. At 0 it is the epsilon beyond which delta is
            zero, where the model has one: the largest log ratio.

        Returns
        -------
        DataArray
            Dims (chain, draw) for a number, (chain, draw, target) for an array. It errs on the safe
            side: delta is at most the target from there on. The coordinate ``lower`` is the largest
            epsilon known to be too small.

            A result that still has its fit evaluates the curve anew, down to epsilon = 0, and
            narrows this bracket to a thousandth of epsilon, left of the grid, too. Joint draws of
            several pairs of databases are known to about a hundredth. Without (loaded from a
            file), the bracket follows from the grid: chords in exp(epsilon) lie above the curve,
            their extensions below; left of the grid's first value it is from 0 to that value.

            Draws are infinite where the curve is above the target at the grid's last value;
            quantiles of them need ``quantile(..., method="inverted_cdf")``, which averages none.

        Raises
        ------
        InvalidInputError
            If a target does not lie in [0, 1), or is 0 where delta is above zero at every epsilon
            or the fit is gone; the message says which.

        See Also
        --------
        epsilon_for : the epsilon for a probability of membership
        upper : a one-sided upper limit
        """
        targets = validate.finite_array(delta, "delta")
        if targets.ndim > 1:
            raise InvalidInputError(
                f"delta must be a number or have 1 dimension, found shape {targets.shape}"
            )
        if ((targets < 0) | (targets >= 1)).any():
            raise InvalidInputError(
                f"delta must lie between 0, included, and 1, found {targets.tolist()}"
            )
        found = [self._bracket(target) for target in targets.ravel().tolist()]
        dims: tuple[str, ...] = ("chain", "draw")
        coords: dict[str, Any] = {name: self.delta[name] for name in dims}
        shape = (*(self.delta.sizes[name] for name in dims), *targets.shape)
        if targets.ndim:
            dims, coords = (*dims, "target"), {**coords, "target": targets}
        lower, upper = (
            np.stack([ends[side] for ends in found], axis=-1).reshape(shape) for side in (0, 1)
        )
        return xr.DataArray(upper, {**coords, "lower": (dims, lower)}, dims, name="epsilon_at")

    def band(
        self,
        quantity: str = "delta",
        *,
        kind: str = "simultaneous",
        prob: float | None = None,
    ) -> xr.Dataset:
        """Return a credible band over epsilon.

        Parameters
        ----------
        quantity : str
            A variable of the posterior over epsilon: "delta", and "total_risk",
            "total_risk_bound" or "individual_delta" (one band for each individual) where there
            are individuals.
        kind : {"simultaneous", "pointwise"}
            A simultaneous band holds whole curves with probability `prob` (a rank envelope); a
            pointwise one holds the value at each single epsilon with that probability.
        prob : float, optional
            ArviZ's ``stats.ci_prob`` if not given.

        Returns
        -------
        Dataset
            lower, median and upper over epsilon; kind and probability stand in the attributes.

        See Also
        --------
        upper : a one-sided upper limit
        edp_bayes.results.bands.band : a band of any kind, from draws

        Notes
        -----
        Where there are individuals, the lower end is that of what a test reaches which is chosen
        once, for the posterior means of the densities with and without each of the riskiest
        individuals, a lower bound in every draw. The lower quantiles of delta itself lie too high
        where the true densities are nearly flat: each draw has a best test of its own, which
        makes use of every wiggle. Like the curve itself, the lower end never rises with epsilon.

        Raises
        ------
        InvalidInputError
            If there is no such quantity or kind, or the probability is not between 0 and 1.

        References
        ----------
        Myllymäki and others (2017), Global envelope tests for spatial processes, JRSS B 79, for
        the rank envelope.
        """
        validate.choice(kind, BAND_KINDS, "kind")
        prob = default_probability(prob)
        sampled = [_joined(self._quantity(quantity), "sample")]
        if quantity in self._lower_bounds:
            tested = _joined(self._lower_bounds[quantity], "tested")
            sampled.append(_at(tested, sampled[0]))

        def ends(curves: Array, *below: Array) -> Array:
            found = bands.band(curves.T, prob, kind=kind, below=below[0].T if below else None)
            return np.stack(found)

        lower_upper = xr.apply_ufunc(
            ends,
            *sampled,
            input_core_dims=[["epsilon", dim] for dim in ("sample", "tested")[: len(sampled)]],
            output_core_dims=[["end", "epsilon"]],
            vectorize=True,
        )
        upper = lower_upper.isel(end=1)
        if self._resampled:
            upper = self._largest_of_both(
                quantity, lambda curves: bands.band(curves.T, prob, kind=kind)[1]
            )
        return xr.Dataset(
            {
                "lower": lower_upper.isel(end=0),
                "median": sampled[0].median("sample"),
                "upper": upper,
            },
            attrs={"quantity": quantity, "kind": kind, "prob": prob},
        )

    def upper(
        self, quantity: str = "delta", *, prob: float = PROB, kind: str = "pointwise"
    ) -> xr.DataArray:
        """Return the one-sided upper limit: the quantity is at most this, with probability `prob`.

        Verdicts and reports rest on that of the whole curve. The coverage of the pointwise one,
        which is nowhere above it, has been studied beside that of the bands.

        Parameters
        ----------
        quantity : str
            A variable of the posterior over epsilon, as for `band`.
        prob : float
            Posterior probability of the claim.
        kind : {"pointwise", "simultaneous"}
            Whether the claim is of each single epsilon, chosen before, or of the whole curve, so
            that one may look before choosing epsilon.

        Returns
        -------
        DataArray
            Dims epsilon, and individual for "individual_delta".

        Notes
        -----
        Of an audit of one query it is the larger of two limits. One is the quantile of the
        posterior draws. The other is that of the Bayesian bootstrap of the databases (Rubin 1981):
        of P(A) - exp(epsilon) P_i(A), with A the answers that are more than exp(0.5) times
        likelier under one of the mean densities with and without an individual, or exp(epsilon)
        times where that is more. No risk is less than this difference, which knows no
        smoothness. delta* is at least delta, and so are their limits.

        Raises
        ------
        InvalidInputError
            If there is no such quantity or kind, or the probability is not between 0 and 1.

        See Also
        --------
        band : credible bands over epsilon
        verdict : whether a target is met
        epsilon_at : the epsilon for a delta
        """
        validate.choice(kind, BAND_KINDS, "kind")
        prob = validate.probability(prob, "prob")
        limit = self._largest_of_both(
            quantity, lambda curves: bands.upper_limit(curves.T, prob, kind=kind)
        )
        return limit.rename("upper").assign_attrs(quantity=quantity, kind=kind, prob=prob)

    def summary(
        self,
        *,
        ci_prob: float | None = None,
        ci_kind: str | None = None,
        targets: ArrayLike = TARGETS,
    ) -> pd.DataFrame:
        """Return a table of every privacy quantity, made by ArviZ.

        Parameters
        ----------
        ci_prob : float, optional
            Probability of the intervals; ArviZ's ``stats.ci_prob`` if not given.
        ci_kind : {"eti", "hdi"}, optional
            ArviZ's ``stats.ci_kind`` if not given.
        targets : array_like
            Values of delta for which epsilon is reported, see `epsilon_at`.

        Returns
        -------
        DataFrame
            One row a quantity and epsilon, with median, interval (its kind and probability are
            in the column's name), R-hat (1 for draws that are all equal), effective sample sizes
            and Monte Carlo errors; `advantage` and, as far as the grid reaches, `gaussian_mu` among
            them. Medians and ends of intervals are infinite where they lie among infinite draws,
            such as those of an epsilon beyond the grid; what remains takes infinity for a number
            just above the largest finite draw.

        See Also
        --------
        band : credible bands over epsilon
        describe : one paragraph in words

        Notes
        -----
        The intervals are those of the draws alone. Where there are individuals, bands, whose
        coverage has been studied, reach lower (see `band`).

        Raises
        ------
        InvalidInputError
            If a target is not in [0, 1), or the kind of interval is unknown.
        """
        posterior = self.tree["posterior"].to_dataset()
        posterior["advantage"] = self.advantage()
        posterior["gaussian_mu"] = self.gaussian_mu()
        asked = np.atleast_1d(validate.finite_array(targets, "targets")).tolist()
        for target in dict.fromkeys(asked):
            posterior[f"epsilon_at[{target:.12g}]"] = self.epsilon_at(target)
        posterior, largest = finite_draws(posterior)
        table = summary_table(posterior, ci_prob, ci_kind)
        ends = [c for c in table.columns if c == "median" or c.endswith(("_lb", "_ub"))]
        for name, top in largest.items():
            rows = [r for r in table.index if r == name or str(r).startswith(f"{name}[")]
            block = table.loc[rows, ends]
            table.loc[rows, ends] = block.where(block <= top, np.inf)
        return table

    def tradeoff(
        self,
        levels: ArrayLike | None = None,
        *,
        kind: str = "simultaneous",
        prob: float | None = None,
    ) -> xr.Dataset:
        """Return the power of the best test for what the curve hides, at each level, with a band.

        The test tells from the answer whether the individual is in the data; its level is the
        probability of a false alarm. The trade-off function of f-differential privacy is one
        minus the power.

        Parameters
        ----------
        levels : array_like, optional
            Probabilities of a false alarm, increasing, from 0 to 1; 101 of them if not given.
        kind, prob
            As for `band`.

        Returns
        -------
        Dataset
            lower, median and upper over level. Between the values of the grid of epsilon the upper
            end and the median take the most that a curve can be, the lower end the least. The upper
            end is nowhere below what the databases themselves show.

        Raises
        ------
        InvalidInputError
            If levels are not increasing from 0 to 1, or as for `band`.

        See Also
        --------
        power : the most that a test detects
        plot_power : the power of the best test as a picture
        gaussian_mu : the curve as a Gaussian mechanism

        References
        ----------
        Dong, Roth and Su (2022), Gaussian differential privacy, JRSS B 84, 3-37.
        """
        from edp_bayes.results import tradeoff

        validate.choice(kind, BAND_KINDS, "kind")
        prob = default_probability(prob)
        given = np.linspace(0.0, 1.0, 101) if levels is None else levels
        at = np.atleast_1d(validate.finite_array(given, "levels"))
        if at.ndim != 1 or at.size == 0 or (np.diff(at) <= 0).any() or at[0] < 0.0 or at[-1] > 1.0:
            raise InvalidInputError(
                f"levels must be increasing probabilities from 0 to 1, found {at.tolist()}"
            )
        make = bands.simultaneous if kind == "simultaneous" else bands.pointwise
        grid = self.epsilon.to_numpy()
        power = tradeoff.most_power(self._safe_curves, grid, at)
        below = self._curves("delta")
        if "delta" in self._lower_bounds:
            lower = self._lower_bounds["delta"].transpose("chain", "draw", "epsilon").to_numpy()
            below = np.maximum(lower.reshape(-1, grid.size), 0.0)
        least = make(tradeoff.least_power(below, grid, at), prob)[0]
        upper = make(power, prob)[1]
        shown = self.resampled_curves
        if shown is not None:
            upper = np.maximum(upper, make(tradeoff.least_power(shown, grid, at), prob)[1])
        return xr.Dataset(
            {
                "lower": ("level", np.minimum(least, np.median(power, axis=0))),
                "median": ("level", np.median(power, axis=0)),
                "upper": ("level", upper),
            },
            coords={"level": at},
            attrs={"quantity": "power", "kind": kind, "prob": prob},
        )

    def power(self, level: float) -> xr.DataArray:
        """Return draws of the most that a test of one level detects, (chain, draw)."""
        from edp_bayes.results import tradeoff

        at = np.array([validate.probability(level, "level")])
        power = tradeoff.most_power(self._safe_curves, self.epsilon.to_numpy(), at)
        return self._by_draw(power[:, 0], "power")

    def gaussian_mu(self) -> xr.DataArray:
        """Return draws of the least mu whose Gaussian curve is nowhere below, (chain, draw).

        As private as a normal answer that an individual moves by mu standard deviations, as far as
        the grid of epsilon reaches: with a grid that ends further right mu may be larger, much so
        where an individual is rarely present. Infinite where none up to 100 is enough.

        See Also
        --------
        edp_bayes.Audit.tradeoff : the power of the best test at each level
        power : the most that a test detects
        """
        from edp_bayes.results import tradeoff

        return self._by_draw(
            tradeoff.gaussian_mu(self._safe_curves, self.epsilon.to_numpy(), convex=self._convex),
            "gaussian_mu",
        )

    def advantage(self) -> xr.DataArray:
        """Return draws of delta at epsilon zero, (chain, draw): the advantage of the best guess.

        It is the largest difference of the probabilities of a right and of a false alarm. On a grid
        that starts above zero it is the most that it can be.

        See Also
        --------
        power : the most that a test detects
        membership_probability : how sure an answer makes anybody
        """
        from edp_bayes.results import tradeoff

        return self._by_draw(
            tradeoff.curve_at(self._safe_curves, self.epsilon.to_numpy(), 0.0), "advantage"
        )

    def membership_probability(self, *, prior: float = 0.5) -> xr.Dataset:
        """Return how sure the answer can make anybody that an individual is in the data.

        Parameters
        ----------
        prior : float
            What they thought before: the probability of membership, strictly between 0 and 1.

        Returns
        -------
        Dataset
            posterior, dims epsilon: the probability of membership after an answer that is
            exp(epsilon) times likelier with the individual. relative_risk, dims epsilon: that over
            the prior. exceeded, dims (chain, draw, epsilon): an upper bound of the probability that
            an individual who is a member meets an answer that makes it larger still. guessed,
            dims (chain, draw): the largest probability of a right guess.

        Raises
        ------
        InvalidInputError
            If the prior is not strictly between 0 and 1.

        See Also
        --------
        epsilon_for : the epsilon for a probability of membership
        plot_membership : how sure an answer makes anybody, as a picture
        """
        from edp_bayes.results import tradeoff

        prior = validate.probability(prior, "prior")
        curves, grid = self._safe_curves, self.epsilon.to_numpy()
        guessed = tradeoff.guessing(curves, grid, prior, convex=self._convex)
        posterior = prior / (prior + (1.0 - prior) * np.exp(-grid))
        shape = tuple(self.delta.sizes[dim] for dim in ("chain", "draw", "epsilon"))
        exceeded = tradeoff.exceedance(curves, grid).reshape(shape)
        return xr.Dataset(
            {
                "posterior": ("epsilon", posterior),
                "relative_risk": ("epsilon", posterior / prior),
                "exceeded": (("chain", "draw", "epsilon"), exceeded),
                "guessed": self._by_draw(guessed, "guessed"),
            },
            coords={name: self.delta[name] for name in ("chain", "draw", "epsilon")},
            attrs={"prior": prior},
        )

    def _curves(self, quantity: str) -> Array:
        """Return the draws of a quantity, shape (chain * draw, epsilon)."""
        values = self._posterior[quantity].transpose("chain", "draw", "epsilon").to_numpy()
        return np.asarray(values.reshape(-1, values.shape[-1]))

    @property
    def _safe_curves(self) -> Array:
        """Draws of delta that claims may rest on, shape (chain * draw, epsilon)."""
        return self._curves("delta")

    def _by_draw(self, values: Array, name: str) -> xr.DataArray:
        shape = tuple(self.delta.sizes[dim] for dim in ("chain", "draw"))
        coords = {dim: self.delta[dim] for dim in ("chain", "draw")}
        return xr.DataArray(values.reshape(shape), coords, ("chain", "draw"), name=name)

    def __repr__(self) -> str:
        """Return the sizes; the tree itself is `to_datatree()`."""
        sizes = self._posterior.sizes
        grid = f"epsilon {float(self.epsilon[0]):g} to {float(self.epsilon[-1]):g}"
        return (
            f"{type(self).__name__}({self._subject}{grid} in {sizes['epsilon']} steps, "
            f"{sizes['chain']} x {sizes['draw']} draws, {self.failures})"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the verdict for the default target, and some of delta."""
        from html import escape

        from edp_bayes.utils.formatting import risk

        band, size = self.band(prob=PROB), self.epsilon.size
        rows = []
        for k in spread_evenly(size, SHOWN).tolist():
            ends = [
                risk(float(band[name][k]), exact=self.exact_zeros)
                for name in ("median", "lower", "upper")
            ]
            cells = [f"{float(self.epsilon[k]):.4g}", ends[0], f"{ends[1]} to {ends[2]}"]
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        heads = ("epsilon", "delta, median", f"{PROB:.0%} simultaneous band")
        head = "".join(f"<th>{one}</th>" for one in heads)
        return (
            f"<div>{self.verdict()._repr_html_()}<table><caption>{escape(repr(self))}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    # For maketables.ETable, which finds these names and needs no import: see `results.tabling`.

    @property
    def __maketables_coef_table__(self) -> pd.DataFrame:
        """Median, deviation, band and limit of delta, a row for each epsilon."""
        return tabling.coefficients(self)

    def __maketables_stat__(self, key: str) -> float | str | None:
        """Return what stands below the table: databases, individuals, model, draws, verdict."""
        return tabling.statistic(self, key)

    @property
    def __maketables_depvar__(self) -> str:
        """What is audited."""
        return self.subject[0]

    @property
    def __maketables_stat_labels__(self) -> dict[str, str]:
        """What stands below the table, by its label."""
        return tabling.statistic_labels(self)

    @property
    def __maketables_default_stat_keys__(self) -> list[str]:
        """What stands below the table by default."""
        return list(tabling.STATISTICS)

    @property
    def release(self) -> Release:
        """What is released, by whom and over what period, as far as `with_release` states it."""
        return Release.of(json.loads(self.tree.attrs.get("release", "{}")))

    def with_release(self, release: Release | None = None, **words: str) -> Self:
        """Return the same result with words for what is released.

        They stand in titles, on axes and on the first page of the report, and are saved with it.

        Parameters
        ----------
        release : Release, optional
            All of them, or give them by name.
        **words
            Of `Release`: title, unit, period, publisher, audience, prepared_by, next_review.

        Raises
        ------
        InvalidInputError, InputTypeError
            If one is no plain text of one line, or is unknown.

        See Also
        --------
        edp_bayes.Release : what was released, in words
        edp_bayes.Audit.report : a report from the result itself

        Examples
        --------
        >>> import edp_bayes as edp
        >>> audit = edp.audit_property(
        ...     103, 1000, epsilon=[0.5], random_seed=1, progressbar=False
        ... )
        >>> audit.with_release(title="Smokers", publisher="City").subject[0]
        'Smokers'
        """
        record = self.release.changed(release, words).record
        tree = self.tree.copy()
        tree.attrs = {**tree.attrs, "release": json.dumps(record)}
        return replace(self, tree=tree)

    @property
    def named(self) -> str:
        """What is released: its title, or else the query."""
        return self.release.title or str(self.settings["query"])

    @property
    def subject(self) -> tuple[str, str]:
        """What is audited, and on how much data, in words."""
        settings = self.settings
        counts = ((int(settings[f"{one}s"]), one) for one in ("database", "individual"))
        return self.named, ", ".join(f"{n:,} {one}{'s' * (n != 1)}" for n, one in counts)

    @property
    def against_whom(self) -> str:
        """Against whom the risk is, in words; empty where that is not said."""
        return str(self.settings.get("against") or "")

    @property
    def opponent(self) -> str:
        """Against whom the risk is, in a sentence; empty where that is not said."""
        at = f"that of {self.settings['at']}, " if self.settings.get("at") else ""
        return f"The risk is {at}against {self.against_whom}." if self.against_whom else ""

    @property
    def _subject(self) -> str:
        """What is audited, in a few words, with a comma behind."""
        return ""

    def to_datatree(self) -> xr.DataTree:
        """Return a copy of the tree, in ArviZ's conventions."""
        return self.tree.copy()

    def save(
        self, path: str | Path, *, names: str = "labels", key: bytes | str | None = None
    ) -> Path:
        """Write to NetCDF (a name ending in .nc) or Zarr (.zarr); complete or not at all.

        The file is for its owner alone (mode 0600), and holds checksums of all that is in it.

        Parameters
        ----------
        path : str or Path
            Where to.
        names : {"labels", "pseudonyms"}
            What individuals are called in the file; see `with_pseudonyms`.
        key : bytes or str, optional
            As for `with_pseudonyms`.

        Raises
        ------
        InvalidInputError, InputTypeError
            If the name ends in neither, the file cannot be written, or the key cannot be used.

        See Also
        --------
        edp_bayes.load : load a saved result
        """
        validate.choice(names, NAMES, "names")
        if names == "pseudonyms":
            return files.save_tree(self.with_pseudonyms(key=key).tree, Path(path))
        if key is not None:
            raise InvalidInputError("a key is for pseudonyms: leave it out, or names='pseudonyms'")
        return files.save_tree(self._completed(), Path(path))

    def with_pseudonyms(self, *, key: bytes | str | None = None) -> Self:
        """Return the same result with pseudonyms in the place of individuals' labels.

        They are those of a report with the same key, `edp_bayes.report.pseudonym_table` lists them.
        Individuals stand in their order, which tells nothing of the labels. All numbers stay as
        they are: who knows what individuals contributed still finds them.

        Parameters
        ----------
        key : bytes or str, optional
            Secret of at least 16 bytes. By default it is derived from the labels and from numbers
            that the result holds, so that a reader who has the result, guesses all labels, and
            knows enough of the contributions to put them in order can list the pseudonyms: give a
            key where that must not be.

        Raises
        ------
        InvalidInputError, InputTypeError
            If the key cannot be used, or names are pseudonyms already.

        See Also
        --------
        edp_bayes.report.pseudonym_table : every individual's pseudonym
        edp_bayes.Audit.report : a report from the result itself
        """
        from edp_bayes.results.pseudonyms import PSEUDONYMS, hidden, namer

        if "individuals" not in self.tree.children:
            return self
        if PSEUDONYMS in self.tree.attrs:
            raise InvalidInputError("names are pseudonyms already in this result")
        return type(self)(hidden(self._completed(), namer(self, names=False, key=key)))

    def _completed(self) -> xr.DataTree:
        """Return the tree with all that a result without its fit has to know."""
        return self.tree

    def _bracket(self, target: float) -> tuple[Array, Array]:
        """Return the epsilons of every draw between which delta falls to the target."""
        if target not in self._brackets:
            if target == 0.0:
                end = self._end()
                self._brackets[target] = end, end
            else:
                self._brackets[target] = bracket(
                    *self._drawn, target, self.source, convex=self._convex
                )
        return self._brackets[target]

    @cached_property
    def _brackets(self) -> dict[float, tuple[Array, Array]]:
        return {}

    @property
    def _convex(self) -> bool:
        """Whether every draw of delta is convex in exp(epsilon)."""
        return True

    def _end(self) -> Array:
        """Return the epsilon of every draw beyond which delta is zero."""
        instead = small_delta(*self._drawn)
        if self.source is None and {"atoms", "reduced"} & self.settings.keys():
            raise InvalidInputError(
                "delta must be above 0 here, found 0: where delta is zero is not known where risks "
                f"are bounds, as those of atoms and of contributions not collected are; {instead}"
            )
        if self.source is None:
            raise InvalidInputError(
                "delta must be above 0 here, found 0: where delta is zero is known as long as a "
                "result has its fit, and this one was loaded or made without; audit again, or "
                f"{instead}"
            )
        return self.source.end(instead)

    @property
    def _drawn(self) -> tuple[Array, Array]:
        """The grid, and the curves of all draws, shape (draw, epsilon)."""
        grid = self.epsilon.to_numpy()
        curves = self.delta.transpose("chain", "draw", "epsilon").to_numpy()
        return grid, curves.reshape(-1, grid.size)

    @cached_property
    def _posterior(self) -> xr.Dataset:
        return self.tree["posterior"].to_dataset()

    @cached_property
    def _lower_bounds(self) -> xr.Dataset:
        """Draws of lower bounds of some quantities, see `edp_bayes.auditing.lower_bounds`."""
        group = self.tree.get("lower_bounds")
        return xr.Dataset() if group is None else group.to_dataset()

    @cached_property
    def _resampled(self) -> xr.Dataset:
        """What the databases themselves show of some risks, see `edp_bayes.auditing.resampled`."""
        group = self.tree.get("resampled")
        return xr.Dataset() if group is None else group.to_dataset()

    def _largest_of_both(self, quantity: str, end: Callable[[Array], Array]) -> xr.DataArray:
        """Return the larger end of the posterior's draws and of the resampled databases'."""
        posterior = _end(_joined(self._quantity(quantity), "sample"), end)
        above = self.resampled_end(quantity, end)
        if above is None:
            return posterior
        values = above.transpose(*map(str, posterior.dims)).to_numpy()
        return posterior.copy(data=np.maximum(posterior.to_numpy(), values))

    def resampled_end(self, quantity: str, end: Callable[[Array], Array]) -> xr.DataArray | None:
        """Return an end of what the databases themselves show of a quantity, if that is known.

        See `edp_bayes.auditing.resampled`; delta* and what bounds it are at least delta.
        """
        name = "delta" if quantity in ("total_risk", "total_risk_bound") else quantity
        if name not in self._resampled:
            return None
        found = _end(_at(self._resampled[name], self._quantity(quantity)), end)
        return found.copy(data=bands.never_rising(found.to_numpy()))

    @property
    def resampled_curves(self) -> Array | None:
        """What the databases themselves show of delta, shape (sample, epsilon), never rising.

        Delta is at least that; see `edp_bayes.auditing.resampled`. None where that is not known.
        """
        if "delta" not in self._resampled:
            return None
        found = _at(self._resampled["delta"], self._quantity("delta"))
        return bands.never_rising(found.transpose("sample", "epsilon").to_numpy())

    def _quantity(self, name: str) -> xr.DataArray:
        curves = [str(k) for k, curve in self._posterior.items() if "epsilon" in curve.dims]
        return self._posterior[validate.choice(name, curves, "quantity")]

    def _record(self, name: str) -> Any:
        return json.loads(self.tree.attrs[name])

    def plot_delta(self, **options: Any) -> PlotCollection:
        """Plot delta(epsilon) with its bands; see `edp_bayes.plots.plot_delta`."""
        from edp_bayes import plots

        return plots.plot_delta(self, **options)

    def plot_power(self, **options: Any) -> PlotCollection:
        """Plot the power of the best test over its level; see `edp_bayes.plots.plot_power`."""
        from edp_bayes import plots

        return plots.plot_power(self, **options)

    def plot_membership(self, **options: Any) -> PlotCollection:
        """Plot how sure an answer makes anybody; see `edp_bayes.plots.plot_membership`."""
        from edp_bayes import plots

        return plots.plot_membership(self, **options)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one HTML file to hand on; see `edp_bayes.report.write_report`."""
        from edp_bayes.report import write_report

        return write_report(self, path, **options)


@dataclass(frozen=True, eq=False, repr=False)
class IndividualCurves(PrivacyCurves):
    """Posterior draws of the privacy curve of a query, and of the total risk of its individuals.

    Parameters
    ----------
    tree : xarray.DataTree
        As for `PrivacyCurves`, with total_risk and total_risk_bound (chain, draw, epsilon).
    """

    @property
    def total_risk(self) -> xr.DataArray:
        """delta*(epsilon) = 1 - prod_i (1 - delta_i), dims (chain, draw, epsilon).

        The product assumes that individuals are exposed independently; whatever the dependence,
        the probability lies between `delta` and `total_risk_bound`.
        """
        return self._posterior["total_risk"]

    @property
    def total_risk_bound(self) -> xr.DataArray:
        """min(1, sum_i delta_i), dims (chain, draw, epsilon)."""
        return self._posterior["total_risk_bound"]

    @property
    def against_whom(self) -> str:
        """Against whom the risk is, in words, also where no adversary was given."""
        return super().against_whom or NOBODY_KNOWN

    def plot_total_risk(self, **options: Any) -> PlotCollection:
        """Plot delta*(epsilon) with its bands; see `edp_bayes.plots.plot_total_risk`."""
        from edp_bayes import plots

        return plots.plot_total_risk(self, **options)


def _at(draws: xr.DataArray, here: xr.DataArray) -> xr.DataArray:
    """Return draws at the coordinates of others: a part of the tree may have been taken."""
    for dim in (dim for dim in draws.dims if dim in here.dims):
        known, wanted = (values[dim].to_numpy().tolist() for values in (draws, here))
        if known != wanted:  # by place: not every label is a text that an index can hold
            place = {label: k for k, label in enumerate(known)}
            draws = draws.isel({dim: [place[label] for label in wanted]})
    return draws


def _end(draws: xr.DataArray, end: Callable[[Array], Array]) -> xr.DataArray:
    """Return an end of draws over epsilon, of the dim sample."""
    found: xr.DataArray = xr.apply_ufunc(
        end,
        draws,
        input_core_dims=[["epsilon", "sample"]],
        output_core_dims=[["epsilon"]],
        vectorize=True,
    )
    return found


def _joined(draws: xr.DataArray, name: str) -> xr.DataArray:
    """Join chains and draws to one dimension without coordinates."""
    joined = draws.stack({name: ("chain", "draw")}, create_index=False)
    return joined.drop_vars(("chain", "draw"))
