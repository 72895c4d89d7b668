"""What an audit comes back as: a tree of draws that saves, loads, summarises and plots itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from edp_bayes.adversary.known import INSIDERS
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.interval.response_intervals import WIDTHS
from edp_bayes.responses.atoms import refuse_atoms
from edp_bayes.responses.transforms import described, named
from edp_bayes.results.base import BAND_KINDS, TARGETS, IndividualCurves
from edp_bayes.results.other_answers import OTHER_ANSWERS
from edp_bayes.results.pictures import Pictures
from edp_bayes.results.rounding import ROUNDING
from edp_bayes.results.summaries import contributions_shown, summary_table
from edp_bayes.results.tried import Tried
from edp_bayes.utils import validate
from edp_bayes.utils.defaults import PROB

if TYPE_CHECKING:
    import pandas as pd
    from arviz_plots import PlotCollection

    from edp_bayes.responses.responses import Responses
    from edp_bayes.responses.transforms import Transform
    from edp_bayes.results.composition import ComposedAudit

__all__ = ["Audit", "require_audit_of"]

# Groups of a trace beside the posterior.
TRACED = (
    "prior",
    "posterior_predictive",
    "prior_predictive",
    "observed_data",
    "constant_data",
    "log_likelihood",
    "log_prior",
    "sample_stats",
)
# Where a model that observes more than the response has it among its data.
ALSO_OBSERVED = {"present": "present_data", "contribution": "contribution_data"}
NOISES = {distribution.__name__: distribution for distribution in (GaussianNoise, LaplaceNoise)}


@dataclass(frozen=True, eq=False, repr=False)
class Audit(IndividualCurves):
    """Posterior draws of every privacy quantity of one query.

    Made by `edp_bayes.audit` and `edp_bayes.load`.

    Parameters
    ----------
    tree : xarray.DataTree
        Groups posterior (delta, total_risk, total_risk_bound, individual_delta), individuals (a
        summary of every individual), densities (with and without the riskiest), mixture,
        observed_data, log_likelihood, posterior_predictive, of mixtures parameters, prior and
        prior_predictive, and from NUTS constant_data and sample_stats (see `trace`). Where there is
        an adversary the densities and observed_data are of responses adjusted to the database in
        question, and the group known holds the responses as they were released. Settings, versions,
        seed, diagnostics and a fingerprint of the data stand in the attributes.

    See Also
    --------
    audit : audit a query
    edp_bayes.load : load a saved result
    JointAudit : the posterior of several queries together
    ComposedAudit : the posterior of several releases

    References
    ----------
    Burchard, Daoud and Dotterrer (2020), Definitions 2 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.1, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1, 0.5], model=edp.SmoothedBootstrap(), draws=50, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> audit.delta.dims, audit.individual_delta.dims
    (('chain', 'draw', 'epsilon'), ('chain', 'draw', 'individual', 'epsilon'))
    >>> bool((audit.delta <= audit.total_risk).all())
    True
    >>> bool((audit.total_risk <= audit.total_risk_bound).all())
    True
    """

    @property
    def _subject(self) -> str:
        sizes = self.settings
        return (
            f"{sizes['query']}, {sizes['databases']} databases, {sizes['individuals']} "
            f"individuals, {f'modelled as {self.scaled("the answer")}, ' if self.transform else ''}"
            f"{f'{self.at_atoms}, ' if self.at_atoms else ''}"
            f"{f'against {self.against}, ' if self.against else ''}"
        )

    @property
    def against(self) -> str:
        """Against whom, in words; empty where no adversary was given."""
        return str(self.settings.get("against", ""))

    @property
    def own(self) -> str:
        """Label of the individual who knows their own contribution; empty if that is nobody."""
        return str(self.tree["known"].attrs.get("own", "")) if "known" in self.tree.children else ""

    @property
    def less_insiders(self) -> bool:
        """Whether what insiders contributed is subtracted from all responses that it holds."""
        settings = self.settings
        told = any(str(name).startswith(INSIDERS) for name in settings.get("known", []))
        return bool(settings.get("insiders")) and not told

    @property
    def transform(self) -> str:
        """Scale on which the response was modelled; empty where that is its own.

        Risks are those of the response itself. Its mixture, its densities, observed_data and what
        an adversary knows are on this scale; contributions are not.
        """
        settings = json.loads(self.tree.attrs.get("settings", "{}"))
        return str(settings.get("transform", ""))

    @property
    def at_atoms(self) -> str:
        """How many answers are at each atom, in words; empty where none was named.

        The mixture and the densities are those of all other answers.
        """
        settings = json.loads(self.tree.attrs.get("settings", "{}"))
        counts = settings.get("atoms", {}).items()
        return ", ".join(f"{count} answers at the atom {value}" for value, count in counts)

    def scaled(self, what: str) -> str:
        """Return in words what something is on the scale on which the response was modelled."""
        return described(self.transform, what)

    @property
    def modelled_answer(self) -> str:
        """What was modelled, in words: the answer, or what it is on another scale."""
        if not self.transform:
            return self.release.axis("answer")
        return self.scaled(self.release.axis("the answer"))

    @property
    def axis(self) -> str:
        """Label of an axis on which answers lie: what is released and its unit, or the query."""
        release = self.release
        return release.axis(f"response of {self.settings['query']}")

    @property
    def intervals_known(self) -> bool:
        """Whether probabilities of intervals of the answer are known.

        Not of functions of a user, which a result does not keep, and not of answers with atoms.
        """
        return not self.at_atoms and (not self.transform or named(self.transform) is not None)

    @property
    def _increasing(self) -> Transform | None:
        refuse_atoms(self.at_atoms or None, "the probability of an interval of the answer")
        if not self.intervals_known:
            raise InvalidInputError(
                f"intervals around the answer are not known where it is modelled on the scale of a "
                f"{self.transform} of functions, which an audit does not keep: audit with "
                "transform= log, logit, sqrt or none"
            )
        return named(self.transform)

    @property
    def joint(self) -> bool:
        """Whether several queries were audited together."""
        return "integration_error" in self.tree.children

    @property
    def fit(self) -> Any:
        """The coupling that it was made from, to compose it; None where it is gone."""
        return getattr(self.source, "coupling", None)

    @property
    def exact_zeros(self) -> bool:
        """Whether a risk of zero is that, rather than a number too small to be known.

        It is where nobody contributes anything, and for Laplace kernels that contributions only
        move: log ratios of these are bounded. Between mixtures of normal distributions every risk
        is above zero.
        """
        people = "individuals" in self.tree.children
        if people and not contributions_shown(self)[0].any():
            return True
        settings = self.settings
        moved = str(settings.get("model")).startswith("SmoothedBootstrap(")
        scaled = "changing scale" in settings.get("known", ())
        left_out = any(settings.get("screened_out", {}).values()) or "bounded" in settings
        if not moved or scaled or left_out or self.joint or self._record("noise"):
            return False
        return str(self.tree["mixture"].attrs["kernel"]) == "laplace"

    @property
    def safe_draws(self) -> xr.Dataset:
        """The draws that upper limits are made from, variables and dims of the posterior."""
        return self._posterior

    @property
    def individual_delta(self) -> xr.DataArray:
        """delta_i(epsilon) of the riskiest and the named, (chain, draw, individual, epsilon).

        The individuals stand in the order of their mean risk over the grid.
        """
        return self._posterior["individual_delta"]

    @property
    def individuals(self) -> xr.Dataset:
        """Posterior median, mean and sd of delta_i, presence and largest contribution.

        ``last_seen`` is the label of the last database that they contributed to. Dims (individual,
        epsilon), for every individual. ``largest_contribution`` is what they contributed at most,
        in any database, ``signed_contribution`` the same with its sign. Where there is an
        adversary, ``adjusted_contribution`` is that of largest size after contributions were
        adjusted to the database in question. Of several queries there is the latter alone, in
        standard deviations of all answers together. Of an answer modelled on another scale
        ``modelled_contribution`` is the largest on that scale.
        """
        return self.tree["individuals"].to_dataset()

    @property
    def mixture(self) -> Mixture:
        """Draws of the response's distribution, (chain, draw, component), with known noise."""
        if self.joint:
            raise InvalidInputError(
                "a joint audit has no distribution of a single answer, which intervals, noise and "
                "leakage need: audit each query on its own for these; joint_mixture is the "
                "distribution of all answers"
            )
        group = self.tree["mixture"].to_dataset()
        parts = (group[name].to_numpy() for name in ("weights", "locations", "scales"))
        noise = self._record("noise")
        if noise:
            # earlier files say law
            noise = NOISES[noise["distribution"]](noise["scale"])
        return Mixture(*parts, kernel=str(group.attrs["kernel"]), noise=noise)

    @property
    def trace(self) -> xr.DataTree:
        """What the model drew, in the groups that ArviZ's functions take of any PyMC model.

        posterior holds the parameters of the model where they are kept, otherwise the weights,
        locations and scales. prior, prior_predictive, posterior_predictive, observed_data,
        constant_data, log_likelihood, log_prior and sample_stats are those that the result has. Of
        `FullPosterior` observed_data and posterior_predictive have the variables ``present`` and
        ``contribution``, too.
        Components lie along ``mixture_component``, since ArviZ has a ``component`` of its own.
        `edp_bayes.audit_trace` audits it again.

        Examples
        --------
        >>> import numpy as np
        >>> import arviz_stats
        >>> import edp_bayes as edp
        >>> responses = edp.Responses.from_arrays(
        ...     np.random.default_rng(1).normal(size=40), contribution=np.full((40, 1), 0.1)
        ... )
        >>> audit = edp.audit(responses, epsilon=[0.1], draws=50, random_seed=1, progressbar=False)
        >>> list(audit.trace.children)
        ['posterior', 'prior', 'posterior_predictive', 'prior_predictive', 'observed_data',
        'log_likelihood', 'log_prior']
        >>> arviz_stats.loo_pit(audit.trace)["response"].sizes["database"]
        40
        """
        import xarray as xr

        held = self.tree.children
        drawn = held.get("parameters", held["mixture"])
        groups = {"posterior": drawn.to_dataset()}
        groups |= {name: held[name].to_dataset() for name in TRACED if name in held}
        predicted = groups.get("posterior_predictive", xr.Dataset())
        for name, data in ALSO_OBSERVED.items():
            if name in predicted:
                # databases have the labels of the response, in the same order
                values = groups["constant_data"][data].drop_vars("database", errors="ignore")
                groups["observed_data"] = groups["observed_data"].assign({name: values})
        return xr.DataTree.from_dict(
            {
                name: group.rename({"component": "mixture_component"})
                if "component" in group.dims
                else group
                for name, group in groups.items()
            }
        )

    @property
    def without(self) -> dict[int, Mixture]:
        """Draws of the distribution of the response without those who make up most of its variance.

        By their position among the individuals; without known noise.
        """
        if "without" not in self.tree.children:
            return {}
        group, kernel = self.tree["without"].to_dataset(), self.mixture.kernel
        names = ("weights", "locations", "scales")
        return {
            int(one["position"]): Mixture(*(one[name].to_numpy() for name in names), kernel=kernel)
            for one in (group.isel(position=k) for k in range(group.sizes["position"]))
        }

    def new_individual(self) -> xr.Dataset:
        """Return the risk of an individual who is not in the sample.

        Returns
        -------
        Dataset
            delta, dims (chain, draw, epsilon): predictive draws, each the risk of one of the m
            individuals in that draw or, with probability 1 / (m + 1), of one drawn from the pooled
            distributions of presence, size and spread. exceeds, dims epsilon: the probability that
            the new individual's risk is larger than delta, that of all in the sample; it is at
            most 1 / (m + 1), as for anybody exchangeable with them.

        See Also
        --------
        individuals : what is known of each individual
        plot_individuals : the riskiest individuals of an audit

        Notes
        -----
        "Representative individuals" of Burchard, Daoud and Dotterrer (2020), Section 5, by the urn
        of Blackwell and MacQueen (1973). The smoothed bootstrap has no distribution of an
        individual new: there every draw is of the sample, and exceeds is zero.

        Raises
        ------
        InvalidInputError
            If the audit was of several queries or of the largest risk alone (`only_largest`), or
            was saved by a version that did not keep these draws.
        """
        if self.joint:
            raise InvalidInputError(
                "a joint audit does not draw an individual who is not in the sample: audit each "
                "query on its own for that"
            )
        if "new_individual" not in self.tree.children:
            raise InvalidInputError(
                "this audit holds no draws of a new individual: audit again, without only_largest"
            )
        return self.tree["new_individual"].to_dataset()

    def released(self, **options: Any) -> Audit:
        """Return the audit of what is published of the answer; see `edp.released`."""
        from edp_bayes.auditing.released import released

        return released(self, **options)

    @property
    def rounding(self) -> xr.Dataset | None:
        """What rounding the answer would leave of delta, by some draws of the fit.

        Found when it is first asked for, as by ``verdict().helps`` where a target is not met, and
        saved with the result. ``delta``, dims (rounded_to, sample, epsilon), is at least the
        largest risk of the answer rounded to each step, draw by draw: of the riskiest individuals
        what rounding leaves, of all others that of the full answer. ``least`` is at most it: the
        riskiest alone. ``moves``, dims rounded_to, is the root mean square by which rounding moves
        an answer, in standard deviations of the answers. None where that is not known: the result
        was saved without, or `edp_bayes.released` refuses it.

        See Also
        --------
        edp_bayes.released : the audit of the rounded answer
        edp_bayes.remedies : what would help where a target is not met

        Examples
        --------
        >>> import numpy as np
        >>> import edp_bayes as edp
        >>> rng = np.random.default_rng(1)
        >>> responses = edp.Responses.from_arrays(
        ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.2, (40, 3))
        ... )
        >>> audit = edp.audit(
        ...     responses, epsilon=[0.1], draws=50, random_seed=1, progressbar=False
        ... )
        >>> audit.rounding["rounded_to"].values
        array([0.2, 0.5, 1. , 2. ])
        """
        if ROUNDING in self.tree.children:
            return self.tree[ROUNDING].to_dataset()
        from edp_bayes.auditing.rounding import rounding_of

        return rounding_of(self)

    @property
    def other_answers(self) -> xr.Dataset | None:
        """What other answers of the same data would leave of delta, each by a fit of its own.

        Of up to 50 individuals and a model that is drawn in seconds; found when it is first asked
        for, as `rounding` is, and saved with the result. There are two, where there can be: two
        databases in one, and the sum if nobody counted for more than nine contributions in ten do.
        ``delta``, dims (answer, sample, epsilon), are draws of the largest risk. ``size`` is how
        many databases are one, or the limit; ``databases`` how many there are then. None where it
        is not known.

        See Also
        --------
        edp_bayes.remedies : tries more of them, of any number of individuals
        edp_bayes.audit : audit another query

        Examples
        --------
        >>> import numpy as np
        >>> import edp_bayes as edp
        >>> rng = np.random.default_rng(1)
        >>> responses = edp.Responses.from_arrays(
        ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.2, (40, 3)), additive=True
        ... )
        >>> audit = edp.audit(
        ...     responses, epsilon=[0.1], draws=50, random_seed=1, progressbar=False
        ... )
        >>> audit.other_answers["databases"].values
        array([20, 40])
        """
        if OTHER_ANSWERS in self.tree.children:
            return self.tree[OTHER_ANSWERS].to_dataset()
        from edp_bayes.auditing.other_answers import other_answers_of

        return other_answers_of(self)

    def _completed(self) -> xr.DataTree:
        """Return the tree, with what rounding and other answers would leave, if found or needed.

        It is needed where the default target is missed. From then on it is part of the result, so
        that verdicts without the fit say the same.
        """
        from edp_bayes.results.verdict import NOT_MET, UNDECIDED

        missing = [k for k in (ROUNDING, OTHER_ANSWERS) if k not in self.tree.children]
        if self.source is None or not missing:
            return self.tree
        missed = self.verdict().status in (NOT_MET, UNDECIDED)
        for name in missing:
            wanted: bool = missed or bool(getattr(self.source, name, None))
            if wanted and (found := getattr(self, name)) is not None:
                self.tree[name] = xr.DataTree(found)
        return self.tree

    @property
    def _convex(self) -> bool:
        settings = json.loads(self.tree.attrs.get("settings", "{}"))
        return bool(settings.get("released", {}).get("offset") != "worst")

    def interval_level(self, width: ArrayLike) -> xr.DataArray:
        """Return draws of the probability of a response within the relative width of its median.

        Parameters
        ----------
        width : array_like
            Half-widths of the interval relative to the median, above 0: a number, or a vector that
            becomes a dimension.

        Returns
        -------
        DataArray
            Dims (chain, draw), and width for a vector.

        Raises
        ------
        InvalidInputError, InputTypeError
            If a width is not above 0 or widths repeat.

        See Also
        --------
        interval_epsilon : the epsilon from an audit's draws
        edp_bayes.plots.plot_interval_level : the level of each width at one epsilon, with a band
        """
        from edp_bayes.interval import response_intervals

        return response_intervals.interval_level(self.mixture, width, self._increasing)

    def interval_epsilon(
        self, width: ArrayLike, level: float | None = None, sensitivity: float = 1.0
    ) -> xr.DataArray:
        """Return draws of the epsilon of the Laplace mechanism that leaves the same interval.

        Laplace noise of that epsilon would keep a fixed answer within the relative width of itself
        with the same probability (Naldi and D'Acquisto 2015, equation 10).

        Parameters
        ----------
        width : array_like
            As for `interval_level`.
        level : float, optional
            Probability in place of that of `interval_level`, strictly between 0 and 1.
        sensitivity : float
            Largest effect of one individual on the response: 1 for counts.

        Returns
        -------
        DataArray
            Dims (chain, draw), and width for a vector.

        Raises
        ------
        InvalidInputError, InputTypeError
            If an argument is out of its range, or a level is given while the median is 0 in a draw.

        See Also
        --------
        interval_level : the level from an audit's draws
        edp_bayes.interval.epsilon : epsilon from width and level
        """
        from edp_bayes.interval import response_intervals

        return response_intervals.interval_epsilon(
            self.mixture, width, level, sensitivity, self._increasing
        )

    def summary(
        self,
        *,
        ci_prob: float | None = None,
        ci_kind: str | None = None,
        targets: ArrayLike = TARGETS,
        width: ArrayLike = WIDTHS,
        sensitivity: float | None = None,
    ) -> pd.DataFrame:
        """Return a table of every privacy quantity, made by ArviZ.

        Parameters
        ----------
        ci_prob : float, optional
            Probability of the intervals; ArviZ's ``stats.ci_prob`` if not given.
        ci_kind : {"eti", "hdi"}, optional
            ArviZ's ``stats.ci_kind`` if not given.
        targets : array_like
            Values of delta for which epsilon is reported; infinite beyond the grid.
        width : array_like
            Widths for which interval_level is reported.
        sensitivity : float, optional
            Largest effect of one individual on the response. With it interval_epsilon is reported,
            too: the epsilon of Laplace noise that leaves the same interval, no measure of what the
            answer hides.

        Returns
        -------
        DataFrame
            One row a quantity and epsilon, or width, with median, interval (its kind and
            probability are in the column's name), R-hat, effective sample sizes and Monte Carlo
            errors. Its attrs say the verdict for the default target (`verdict`), and against whom.

        See Also
        --------
        band : credible bands over epsilon
        describe : one paragraph in words

        Notes
        -----
        The intervals are those of the draws alone; bands, whose coverage has been studied, reach
        lower (see `band`).

        Raises
        ------
        InvalidInputError, InputTypeError
            If a target is not strictly between 0 and 1, or a width or the sensitivity is not
            above 0.
        """
        import pandas as pd

        from edp_bayes.interval.response_intervals import interval_quantities

        table = super().summary(ci_prob=ci_prob, ci_kind=ci_kind, targets=targets)
        asked = sensitivity is not None
        if self.intervals_known:
            around = interval_quantities(
                self.mixture,
                np.atleast_1d(width),
                1.0 if sensitivity is None else sensitivity,
                self._increasing,
            )
            around = around[["interval_level", "interval_epsilon"][: 1 + asked]]
            table = pd.concat([table, summary_table(around, ci_prob, ci_kind)])
        table.attrs = {"verdict": str(self.verdict()), "against": self.against}
        if self.transform:
            table.attrs["transform"] = self.transform
        return table

    def basis(self, *, prob: float = PROB, kind: str = "simultaneous") -> xr.Dataset:
        """Return limits of delta by what they rest on: the data alone, the shape, the model.

        Parameters
        ----------
        prob : float
            Probability of each limit.
        kind : {"simultaneous", "pointwise"}
            Whether those of the model are of the whole curve or of each single epsilon.

        Returns
        -------
        Dataset
            Dims epsilon. ``data``: the largest probability that an individual contributes, by how
            often they did (Clopper and Pearson 1934), for all individuals at once; no risk is
            larger. It holds for any distribution, where databases are alike, and is 1 where
            an individual contributed to all of them or there is an adversary. ``shape``: the same
            if, besides, the distribution has no component narrower than the attribute
            ``narrowest``, in units of the answer as it is modelled, contributions do not follow the
            rest within a component, and nobody contributes more than the most that they did; only
            where the model names one. ``model``: the upper limit, which rests on the model, too.
            ``resampled``: what the databases themselves show of the answers that tell most, without
            smoothness, which the upper limit is nowhere below. ``individual``: the largest such
            limit of a single individual, of those whose draws were kept: what ``model`` is above
            it, the largest of many adds.

        Raises
        ------
        InvalidInputError
            If the probability is not between 0 and 1.

        See Also
        --------
        upper : a one-sided upper limit
        Audit.guarantee : limits that hold for any distribution

        Notes
        -----
        An individual who contributed once in n databases has a limit of about 4.7 / n by the data
        alone (prob = 0.95). The narrowest component is a smooth assumption of the model: see
        `edp_bayes.models.BaseMeasure`.

        Examples
        --------
        >>> import numpy as np
        >>> import edp_bayes as edp
        >>> rng = np.random.default_rng(1)
        >>> once = np.zeros((40, 1))
        >>> once[7] = 0.5
        >>> responses = edp.Responses.from_arrays(rng.normal(10.0, 1.0, 40), contribution=once)
        >>> audit = edp.audit(responses, epsilon=0.1, draws=50, random_seed=1, progressbar=False)
        >>> basis = audit.basis()
        >>> float(basis["data"][0].round(3))
        0.113
        >>> bool(basis["shape"][0] <= basis["data"][0])
        True
        """
        from edp_bayes.results.basis import basis

        validate.choice(kind, BAND_KINDS, "kind")
        return basis(self, validate.probability(prob, "prob"), kind)

    def compose(self, databases: int, **options: Any) -> ComposedAudit:
        """Return the risk of as many releases, each of a fresh database; see `edp.compose`."""
        from edp_bayes.releases.composition import compose

        return compose(self, databases=databases, **options)

    def releases_until(self, *, epsilon: float, delta: float, **options: Any) -> xr.Dataset:
        """Say how many releases stay within a target; see `edp.releases_until`."""
        from edp_bayes.releases.how_many import releases_until

        return releases_until(self, epsilon=epsilon, delta=delta, **options)

    def disclosure(self, responses: Responses | None = None, **options: Any) -> pd.DataFrame:
        """Say which customary rules its responses pass, beside delta; see `edp.disclosure`.

        The responses are those of the audit, which holds them as long as it has its fit.

        Raises
        ------
        InvalidInputError
            If none are given and it holds none, or as for `edp.disclosure`.

        See Also
        --------
        edp_bayes.disclosure : customary rules beside delta
        """
        from edp_bayes.auditing.disclosure import disclosure

        return disclosure(self._responses(responses), audit=self, **options)

    def with_tried(self, tried: Tried) -> Self:
        """Return the same result, whose verdicts of that target and reports say what was tried.

        Parameters
        ----------
        tried : Tried
            What `edp_bayes.remedies` returned.

        Raises
        ------
        InputTypeError
            If it is anything else.

        See Also
        --------
        remedies : what would help where a target is not met
        verdict : whether a target is met
        """
        if not isinstance(tried, Tried):
            raise InputTypeError(f"tried must be Tried, found {type(tried).__name__}")
        tree = self.tree.copy()
        tree.attrs = {**tree.attrs, "tried": json.dumps(tried.record)}
        return replace(self, tree=tree)

    def guarantee(self, responses: Responses | None = None, **options: Any) -> xr.Dataset:
        """Say what holds for any distribution, at the same epsilons; see `edp.guarantee`.

        The responses are those of the audit, which holds them as long as it has its fit.

        Raises
        ------
        InvalidInputError
            If none are given and it holds none, or as for `edp.guarantee`.

        See Also
        --------
        edp_bayes.guarantee : limits that hold for any distribution
        """
        from edp_bayes.auditing.guarantee import guarantee

        options = {"epsilon": self.epsilon.to_numpy(), **options}
        return guarantee(self._responses(responses), **options)

    def _responses(self, given: Responses | None) -> Responses:
        """Return these responses, or those of the audit."""
        held = getattr(self.source, "responses", None) if given is None else given
        if held is None:
            raise InvalidInputError(
                "responses= must be given, those that the audit is of: an audit holds them as long "
                "as it has its fit, and this one was loaded from a file or is of what is published "
                "or of answers with atoms"
            )
        return held

    def prior_sensitivity(self, **options: Any) -> pd.DataFrame:
        """Say how far the result follows the prior; see `diagnostics.prior_sensitivity`."""
        from edp_bayes.diagnostics import prior_sensitivity

        return prior_sensitivity(self, **options)

    @property
    def plot(self) -> Pictures:
        """All pictures of the result by name: ``plot.delta()`` is ``plot_delta()``."""
        return Pictures(self)

    def plot_density(self, individual: Any = None, **options: Any) -> PlotCollection:
        """Plot the densities with and without an individual; see `edp_bayes.plots.plot_density`."""
        from edp_bayes import plots

        return plots.plot_density(self, individual=individual, **options)

    def plot_individuals(self, **options: Any) -> PlotCollection:
        """Plot the riskiest individuals; see `edp_bayes.plots.plot_individuals`."""
        from edp_bayes import plots

        return plots.plot_individuals(self, **options)

    def plot_past(self, **options: Any) -> PlotCollection:
        """Plot what the adversary has seen and expects; see `edp_bayes.plots.plot_past`."""
        from edp_bayes import plots

        return plots.plot_past(self, **options)


def require_audit_of(audit: object, responses: Responses) -> None:
    """Refuse what is no audit of these responses.

    Raises
    ------
    InputTypeError, InvalidInputError
        If it is no audit, or one of others.
    """
    if not isinstance(audit, Audit):
        raise InputTypeError(f"audit must be an Audit, found {type(audit).__name__}")
    if audit.settings.get("fingerprint") != responses.fingerprint:
        raise InvalidInputError(
            "audit must be of these responses, found one of others: their fingerprints differ"
        )
