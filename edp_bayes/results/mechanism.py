"""What an audit of a mechanism comes back as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.bands import simultaneous
from edp_bayes.results.base import PrivacyCurves
from edp_bayes.results.summaries import interval
from edp_bayes.utils.defaults import PROB, default_probability

__all__ = ["MechanismAudit"]

# Stands for infinity where draws are put in order.
HUGE = 1e300


@dataclass(frozen=True, eq=False, repr=False)
class MechanismAudit(PrivacyCurves):
    """Posterior draws of the privacy of a mechanism that is only there as a sampler.

    Made by `audit_mechanism`, `audit_mechanisms` and `edp_bayes.load`.

    Parameters
    ----------
    tree : xarray.DataTree
        Group posterior with delta (chain, draw, epsilon) and local_epsilon (chain, draw), and of
        several pairs also pair_delta, pair_local_epsilon and database_local_epsilon; settings,
        seed, tau, adjacency, unit, kind, versions, checks and a fingerprint of the samples stand
        in the attributes.

    See Also
    --------
    audit_mechanism : a mechanism on one pair of databases
    audit_mechanisms : a mechanism on many pairs
    edp_bayes.load : load a saved result
    mechanism_guarantee : a band that holds for any mechanism

    Examples
    --------
    Randomised response that tells the truth three times in four: epsilon is log 3.

    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> answers = [rng.random(2000) < share for share in (0.75, 0.25)]
    >>> audit = edp.audit_mechanism(*answers, epsilon=[0.5], random_seed=1, progressbar=False)
    >>> audit.kind, audit.lower_bound, audit.infinite_probability
    ('discrete', False, 0.0)
    >>> low, high = audit.local_epsilon_interval(0.95)
    >>> bool(low < np.log(3) < high)
    True
    """

    risk: ClassVar[str] = "difference of the outputs of two neighbouring databases"

    @property
    def local_epsilon(self) -> xr.DataArray:
        """The sup of abs(log p - log q) over outcomes with max(p, q) >= tau, dims (chain, draw).

        Draws are infinite with the posterior probability that an outcome has no probability
        under one of the databases. Take quantiles of them with ``method="inverted_cdf"``, as
        `local_epsilon_interval` does.
        """
        return self._posterior["local_epsilon"]

    @property
    def pair_local_epsilon(self) -> xr.DataArray:
        """The local epsilon of every pair, dims (chain, draw, pair)."""
        return self._of_pairs("pair_local_epsilon")

    @property
    def pair_delta(self) -> xr.DataArray:
        """delta(epsilon) of every pair, dims (chain, draw, pair, epsilon)."""
        return self._of_pairs("pair_delta")

    @property
    def database_local_epsilon(self) -> xr.DataArray:
        """The largest local epsilon over the neighbours of each x, (chain, draw, database)."""
        return self._of_pairs("database_local_epsilon")

    def data_centric(self, database: str | None = None, *, prob: float | None = None) -> xr.Dataset:
        """Return the data-centric privacy level of a database, and which neighbour attains it.

        The level is the largest local epsilon over the neighbours of the database that were
        audited. It is a lower bound if there are others.

        Parameters
        ----------
        database : str, optional
            A name in ``database_local_epsilon.database``; needed if pairs of several were audited.
        prob : float, optional
            ArviZ's ``stats.ci_prob`` if not given.

        Returns
        -------
        Dataset
            ``lower``, ``median`` and ``upper`` of the level, without dims. For every neighbour, dim
            pair: ``pair_lower``, ``pair_median`` and ``pair_upper``, a band that holds the local
            epsilon of all these neighbours at once with the probability; and ``worst``, the
            posterior probability that no other has a larger one. These add up to more than one
            where several are equal. The likeliest to be the worst comes first. Ends may be
            infinite.

        Raises
        ------
        InvalidInputError
            If the audit is not of pairs, there is no such database, or none is named of several.

        See Also
        --------
        local_epsilon_interval : the interval of the local epsilon
        audit_mechanisms : a mechanism on many pairs

        References
        ----------
        Askin, Kutta and Dette (2022), Statistical quantification of differential privacy: a local
        approach, for the data-centric privacy level.

        Examples
        --------
        Of a noisy sum, each neighbour lacks one person; the one who adds most is exposed most.

        >>> import edp_bayes as edp
        >>> def noisy_sum(database, size, rng):
        ...     return sum(database) + rng.laplace(size=size)
        >>> people = {"Ann": 0.2, "Bob": 1.0}
        >>> everybody = tuple(people.values())
        >>> without = {
        ...     f"without {name}": (everybody, tuple(v for n, v in people.items() if n != name))
        ...     for name in people
        ... }
        >>> audit = edp.audit_mechanisms(
        ...     noisy_sum, without, epsilon=[0.5], size=5000, draws=100, tune=100, random_seed=1,
        ...     progressbar=False,
        ... )
        >>> level = audit.data_centric(prob=0.95)
        >>> str(level["pair"].to_numpy()[0]), bool(level["lower"] < 1.0 < level["upper"])
        ('without Bob', True)
        """
        prob, pairs = default_probability(prob), self._neighbours(database)
        draws = pairs.to_numpy().reshape(-1, pairs.sizes["pair"])
        largest = draws.max(axis=1, keepdims=True)
        worst = (draws == largest).mean(axis=0)
        each = np.array([interval(column, prob)[1] for column in draws.T])
        below, above = _whole_band(draws, prob)
        lower, median, upper = interval(largest, prob)
        found = xr.Dataset(
            {
                "lower": lower,
                "median": median,
                "upper": upper,
                "pair_lower": ("pair", below),
                "pair_median": ("pair", each),
                "pair_upper": ("pair", above),
                "worst": ("pair", worst),
            },
            coords={"pair": pairs["pair"].to_numpy()},
            attrs={"prob": prob, "tau": self.tau},
        )
        return found.isel(pair=np.lexsort((-each, -worst)))

    def _neighbours(self, database: str | None) -> xr.DataArray:
        """Return the local epsilon of the pairs of one database, (chain, draw, pair)."""
        pairs = self.pair_local_epsilon
        names = self.database_local_epsilon["database"].to_numpy().tolist()
        if database is None and len(names) > 1:
            raise InvalidInputError(
                f"database must be named where pairs of several were audited, one of {names}"
            )
        if database is not None and database not in names:
            raise InvalidInputError(f"database must be one of {names}, found {database!r}")
        if len(names) == 1:
            return pairs
        if "of_database" not in pairs.coords:
            raise InvalidInputError(
                "an audit of several databases must say whose neighbour each pair holds, found one "
                "saved before it did: audit again"
            )
        return pairs.isel(pair=np.flatnonzero(pairs["of_database"] == database))

    @property
    def subject(self) -> tuple[str, str]:
        """What is audited, and on how much data, in words."""
        sizes = np.atleast_2d(self.settings["samples"])
        pairs = f"{len(sizes):,} pairs, " if len(sizes) > 1 else ""
        return f"a mechanism of {self.kind} outcomes", f"{pairs}samples of at least {sizes.min():,}"

    @property
    def against_whom(self) -> str:
        """Against whom the risk is, in words."""
        return "a person who knows both databases of a pair"

    @property
    def opponent(self) -> str:
        """What is compared, and what the unit of privacy is, in a sentence."""
        return (
            f"Compared are a database and a neighbour, by {self.settings['adjacency']}; the unit "
            f"of privacy is {self.settings['unit']}."
        )

    @property
    def kind(self) -> str:
        """Kind of outcomes: continuous, discrete or mixed."""
        return str(self.settings["kind"])

    @property
    def tau(self) -> float:
        """Outcomes with max(p, q) >= tau count towards the local epsilon."""
        return float(self.settings["tau"])

    @property
    def lower_bound(self) -> bool:
        """Whether outcomes were reduced, counted together or not all tried: a lower bound."""
        return bool(self.settings["lower_bound"])

    @property
    def infinite_probability(self) -> float:
        """Posterior probability that the local epsilon is infinite."""
        return float(np.isinf(self.local_epsilon).mean())

    def local_epsilon_interval(self, prob: float | None = None) -> tuple[float, float]:
        """Return the equal-tailed interval of the local epsilon; its upper end may be infinite.

        Parameters
        ----------
        prob : float, optional
            ArviZ's ``stats.ci_prob`` if not given.

        Raises
        ------
        InvalidInputError
            If the probability is outside (0, 1).

        See Also
        --------
        data_centric : the level of one database
        edp_bayes.plugin.local_privacy.mpl : the published estimate of the local epsilon
        """
        low, _, high = interval(self.local_epsilon, default_probability(prob))
        return low, high

    def band(
        self,
        quantity: str = "delta",
        *,
        kind: str = "simultaneous",
        prob: float | None = None,
    ) -> xr.Dataset:
        """Return a credible band over epsilon, whose upper end leaves room for the unseen.

        Parameters
        ----------
        quantity : {"delta", "pair_delta"}
            Of several pairs also the delta of each.
        kind, prob
            As for `edp_bayes.Audit.band`.

        Returns
        -------
        Dataset
            As for `edp_bayes.Audit.band`.

        See Also
        --------
        upper : a one-sided limit
        edp_bayes.results.bands.band : a band of any kind, from draws

        Notes
        -----
        An outcome that is possible under one database only may not have come up yet. The upper
        end is therefore never below 1 - ((1 - prob) / 2)^(1 / n), the upper limit of Clopper and
        Pearson (1934) for the probability of what did not occur in the smaller sample of n.

        Raises
        ------
        InvalidInputError
            If there is no such quantity or kind, or the probability is not between 0 and 1.

        Examples
        --------
        >>> import edp_bayes as edp
        >>> same = edp.audit_mechanism([0] * 100, [0] * 100, epsilon=[1.0], progressbar=False)
        >>> round(float(same.band(prob=0.95)["upper"][0]), 3)
        0.036
        """
        found = super().band(quantity, kind=kind, prob=prob)
        return found.assign(upper=self._raised(found["upper"], 0.5 * (1.0 - found.attrs["prob"])))

    def upper(
        self, quantity: str = "delta", *, prob: float = PROB, kind: str = "pointwise"
    ) -> xr.DataArray:
        """Return the one-sided upper limit, which leaves room for the unseen as `band` does.

        Parameters
        ----------
        quantity : {"delta", "pair_delta"}
            Of several pairs also the delta of each.
        prob : float
            Posterior probability of the claim.
        kind : {"pointwise", "simultaneous"}
            As for `PrivacyCurves.upper`.

        Returns
        -------
        DataArray
            Dims epsilon, and pair for "pair_delta"; never below 1 - (1 - prob)^(1 / n).

        Raises
        ------
        InvalidInputError
            If there is no such quantity or kind, or the probability is not between 0 and 1.

        See Also
        --------
        band : a credible band
        verdict : whether a target is met

        Examples
        --------
        >>> import edp_bayes as edp
        >>> same = edp.audit_mechanism([0] * 100, [0] * 100, epsilon=[1.0], progressbar=False)
        >>> round(float(same.upper()[0]), 3)
        0.03
        """
        found = super().upper(quantity, prob=prob, kind=kind)
        return self._raised(found, 1.0 - prob)

    def _raised(self, upper: xr.DataArray, tail: float) -> xr.DataArray:
        """Return an upper end, nowhere below what can have been missed in the samples."""
        sizes = np.atleast_2d(self.settings["samples"]).min(axis=1)
        smallest = xr.DataArray(sizes, dims="pair") if "pair" in upper.dims else sizes.min()
        raised: xr.DataArray = upper.clip(min=-np.expm1(np.log(tail) / smallest))
        return raised

    @property
    def _safe_curves(self) -> NDArray[np.float64]:
        sizes = np.atleast_2d(self.settings["samples"]).min(axis=1)
        unseen = -np.expm1(np.log(1.0 - PROB) / sizes.min())
        return np.asarray(np.maximum(self._curves("delta"), unseen))

    @property
    def _convex(self) -> bool:
        # joint draws of several pairs are pooled epsilon by epsilon
        return "pair_delta" not in self._posterior

    def _of_pairs(self, name: str) -> xr.DataArray:
        if name not in self._posterior:
            raise InvalidInputError(f"{name} is there for an audit of several pairs only")
        return self._posterior[name]


def _whole_band(
    draws: NDArray[np.float64], prob: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the band that holds whole rows of draws, some of them infinite."""
    finite = np.isfinite(draws)
    largest = draws[finite].max(initial=0.0)
    lower, upper = simultaneous(np.where(finite, draws, HUGE), prob)
    # next to an infinite draw a quantile is infinite, too
    return np.where(lower > largest, np.inf, lower), np.where(upper > largest, np.inf, upper)
