"""The audit of what is published of an answer, from the draws of the full answer's audit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from edp_bayes.auditing.epsilon_at import CoupledCurves
from edp_bayes.auditing.evaluation import Risks, evaluate
from edp_bayes.auditing.lower_bounds import lower_bounds
from edp_bayes.coupling.base import FLOOR
from edp_bayes.coupling.views.published import NEGLIGIBLE, ReleasedCoupling, grid_of
from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.distributions.published import Published
from edp_bayes.divergence.released.grid import MOST_BINS
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.responses.atoms import refuse_atoms
from edp_bayes.results.other_answers import OTHER_ANSWERS
from edp_bayes.results.query import Audit
from edp_bayes.results.rounding import ROUNDING
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.auditing.resampled import Bootstrap
    from edp_bayes.coupling.base import Coupling
    from edp_bayes.distributions.published_row import PublishedRow

__all__ = [
    "ReleasedCurves",
    "audit_released",
    "published_tree",
    "released",
    "released_coupling",
    "replaced",
]

AS_CONTINUOUS = "audit the answers as continuous, responses.replaced(step=None) (--no-step)"
AT_WORST = "ask for rounded_to= with offset='worst' (--offset worst)"


@dataclass(frozen=True, eq=False)
class ReleasedCurves(CoupledCurves):
    """Evaluates privacy curves of a published answer at epsilons beside the grid."""

    coupling: ReleasedCoupling

    def end(self, instead: str) -> Array:
        """Say that it is not looked for."""
        raise InvalidInputError(
            "delta must be above 0 here, found 0: where delta is zero is known for the full answer "
            f"alone; {instead}"
        )

    def _risks(self, p: Array, q: Array, epsilon: Array) -> Array:
        from edp_bayes.divergence.centring import common_location
        from edp_bayes.divergence.released.curves import released_curves

        centre = common_location(np.where(p[..., 0] > 0.0, p[..., 1], np.nan))
        p, q = p.copy(), q.copy()
        p[..., 1] -= centre[:, None]
        q[..., 1] -= centre[:, None]
        published = self.coupling.published
        return released_curves(
            p, q, epsilon, grid_of(published), centre, worst=published.worst,
            noise=published.noise_after, floor=FLOOR,
        )  # fmt: skip


def released(
    audit: Audit,
    *,
    rounded_to: float | Mapping[str, float] | None = None,
    offset: float | str | Mapping[str, float] = 0.0,
    threshold: float | Mapping[str, float] | None = None,
    bins: ArrayLike | Mapping[str, ArrayLike] | None = None,
    noise_after: GaussianNoise | LaplaceNoise | Mapping[str, Any] | None = None,
    whole_row: bool = False,
    progressbar: bool = True,
) -> Audit:
    """Return the audit of what is published of the answer, from the same draws.

    Of several queries that were audited together all arguments are mappings by query.

    Parameters
    ----------
    audit : Audit
        With its fit, as `edp_bayes.audit` returns it.
    rounded_to : float, optional
        The answer is rounded to the nearest multiple of this.
    offset : float or "worst"
        It is rounded to the nearest of offset + k rounded_to, k whole. "worst" bounds the
        largest risk over all offsets, draw by draw.
    threshold : float, optional
        Answers below, after rounding where there is any, are suppressed; that an answer was
        suppressed is seen.
    bins : array_like, optional
        Shape (edge,): increasing edges of bins, of which that one is published in which the
        answer lies; the first and the last have one edge.
    noise_after : GaussianNoise or LaplaceNoise, optional
        Added to the rounded answer. Noise before rounding is that of the query (``noise=``). Of
        several queries it is added to the whole answers, and the risk is an upper limit: of
        readers who also see the variance of Laplace noise, an exponential variable.
    whole_row : bool
        Of several queries: where one answer is suppressed, so are all.
    progressbar : bool
        Show progress of the individuals.

    Returns
    -------
    Audit
        It names what is published in its query; ``settings["released"]`` holds the arguments.
        No risk is above that of the full answer. The distribution of the response, its
        densities and checks are those of the full answer.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument cannot be used, or not together with another; if the fit is gone (the
        audit was loaded) or the answer is that of `released` already.

    See Also
    --------
    Audit.released : the same as a method
    edp_bayes.noise.verify : audit a query with noise added
    Audit.verdict : whether a target is met

    Notes
    -----
    A bin is published as one value, so the positive and the negative part of
    p - exp(epsilon) p_i in it cancel and nothing else is lost: delta is the sum over bins of
    max(0, P(bin) - exp(epsilon) P_i(bin)), and the same with P and P_i exchanged. It is never
    above the delta of the full answer (Burchard, Daoud and Dotterrer 2020, Lemma 2).

    Where bins are too many to be added up for everybody, or the worst offset is asked for, the
    risk of the full answer stands for that of individuals whose risk is below the largest of
    the riskiest: delta is that of all, and the total risk is bounded from above.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.2, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1, 0.5], model=edp.SmoothedBootstrap(), draws=50,
    ...     random_seed=1, progressbar=False,
    ... )
    >>> rounded = edp.released(audit, rounded_to=2.0, progressbar=False)
    >>> bool((rounded.delta <= audit.delta).all())
    True
    """
    asked: dict[str, Any] = {
        "rounded_to": rounded_to,
        "offset": offset,
        "threshold": threshold,
        "bins": bins,
    }
    if audit.joint:
        from edp_bayes.auditing.released_row import released_row

        asked["offset"] = None if offset == 0.0 else offset
        return released_row(
            audit, **asked, noise_after=noise_after, whole_row=whole_row, progressbar=progressbar
        )
    if whole_row:
        raise InvalidInputError("whole_row is for several queries: leave it out")
    published = Published.of(**asked, noise_after=noise_after)
    return audit_released(audit, published, progressbar=progressbar)


def audit_released(audit: Audit, published: Published, *, progressbar: bool) -> Audit:
    """Return the audit of what is published of the answer; see `released`.

    The riskiest are evaluated first: where the risk of another in the full answer is below theirs
    it need not be reduced to know the largest.
    """
    source, exact = audit.source, released_coupling(audit, published)
    assert isinstance(source, CoupledCurves)
    kept = _positions(audit)
    curves = exact.curves(kept, source.epsilon)
    before = source.risks
    people = np.flatnonzero(before.highest[:, 0] > NEGLIGIBLE)
    coupling = replace(exact, people=people)
    if exact.costly():
        coupling = replace(coupling, least=curves.max(axis=1))
    risks = evaluate(coupling, source.epsilon, progressbar=progressbar)
    # equal but for rounding where nothing is lost
    risks = replace(
        risks,
        delta=np.minimum(risks.delta, before.delta),
        total_risk=np.minimum(risks.total_risk, before.total_risk),
        total_risk_bound=np.minimum(risks.total_risk_bound, before.total_risk_bound),
    )
    curves = np.minimum(curves, before.curves_of(kept, source.coupling, source.epsilon))
    return Audit(
        _tree(audit, exact, published, kept, curves, risks, source.bootstrap),
        ReleasedCurves(exact, source.epsilon, risks, source.bootstrap),
    )


def released_coupling(audit: Audit, published: Published) -> ReleasedCoupling:
    """Return the coupling of what is published of the answer, from the fit of an audit.

    Raises
    ------
    InvalidInputError
        If what is left of the risks is not known, or the audit has no fit.
    """
    source = audit.source
    if "reduced" in audit.settings:
        raise InvalidInputError(
            "the risks of individuals whose contributions were not collected are bounded for the "
            "answer itself alone: collect all of them, and audit again"
        )
    refuse_atoms(audit.settings.get("atoms"), "what rounding or bins leave of the risk")
    if "transform" in audit.settings:
        raise InvalidInputError(
            f"this audit models the answer on the scale of transform "
            f"{audit.settings['transform']}, and what is published of it is rounded or binned on "
            "its own: audit without transform"
        )
    if not isinstance(source, CoupledCurves):
        raise InvalidInputError(
            "what is published is known as long as an audit has its fit, and this one was loaded "
            "or made without; audit again"
        )
    full = source.coupling
    if isinstance(full, ReleasedCoupling):
        if "released" in audit.settings:
            raise InvalidInputError(
                f"this is the audit of an answer {full.published.words} already: start from the "
                "audit of the full answer"
            )
        if full.published.worst:
            raise InvalidInputError(
                "where the rounded answers lie is not known, because what insiders contributed is "
                f"on no grid: {AS_CONTINUOUS}, and {AT_WORST}"
            )
        _refuse_insiders(audit, published, full.published)
        published, full = published.of_rounded(full.published), full.full
    else:
        _refuse_insiders(audit, published, None)
    exact = ReleasedCoupling(full, published, shift=_shift(audit))
    if published.noise_after is not None and exact.many_values():
        raise InvalidInputError(
            f"noise_after is added to at most {MOST_BINS} rounded answers, and here are more: "
            "round more coarsely, or audit an answer with the noise alone (noise= of the query)"
        )
    return exact


def _shift(audit: Audit) -> Array | None:
    """Return how far the answer of every draw lies from where its coupling has it."""
    if "known" not in audit.tree.children:
        return None
    return audit.tree["known"]["shift"].transpose("chain", "draw").to_numpy().ravel()


def _refuse_insiders(audit: Audit, published: Published, rounded: Published | None) -> None:
    """Refuse bins of the whole answer where what insiders contributed to it is not known."""
    if not audit.less_insiders or (published.worst and rounded is None):
        return
    if rounded is not None and published.rounded_to is not None and published.threshold is None:
        step = float(rounded.rounded_to or 0.0)
        apart = (published.origin - rounded.origin) / step
        if max(abs(published.rounded_to / step - 1.0), abs(apart - round(apart))) < 1e-6:
            return
    raise InvalidInputError(
        "insiders' contributions to the answer in question are subtracted here, so that it is not "
        f"known where its bins lie: {'' if rounded is None else f'{AS_CONTINUOUS}, and '}{AT_WORST}"
    )


def _positions(audit: Audit) -> Index:
    """Return the places of the individuals whose draws are kept among all."""
    everybody = audit.individuals["individual"].to_numpy()
    place = {label: k for k, label in enumerate(everybody.tolist())}
    return np.array(
        [place[label] for label in audit.individual_delta["individual"].values.tolist()]
    )


def _tree(
    audit: Audit,
    coupling: Coupling,
    published: Published,
    kept: Index,
    curves: Array,
    risks: Risks,
    bootstrap: Bootstrap,
) -> xr.DataTree:
    epsilon = audit.epsilon.to_numpy()
    groups = {name: node.to_dataset() for name, node in audit.tree.children.items()}
    tested = lower_bounds(coupling, kept, curves, risks.delta, risks.total_risk, epsilon)
    posterior = groups["posterior"]
    found = {
        "individual_delta": curves,
        "delta": risks.delta,
        "total_risk": risks.total_risk,
        "total_risk_bound": risks.total_risk_bound,
    }
    groups["posterior"] = replaced(posterior, found)
    below = {name: getattr(tested, name) for name in ("individual_delta", "delta", "total_risk")}
    groups["lower_bounds"] = replaced(groups["lower_bounds"], below)
    whole = groups.pop("resampled", None)
    shown = bootstrap.draws(coupling, kept, tested.means, epsilon)
    if shown is not None:
        less = shown.of_less(posterior, whole)
        groups["resampled"] = less.dataset(posterior["individual"].to_numpy(), epsilon)
    summaries = {"mean": risks.mean, "sd": risks.deviation, "median": risks.median}
    groups["individuals"] = replaced(groups["individuals"], summaries)
    # the predictive draws, and what rounding or other answers would leave, are of the full answer
    for name in ("new_individual", ROUNDING, OTHER_ANSWERS):
        groups.pop(name, None)
    return published_tree(audit, groups, published)


def published_tree(
    audit: Audit, groups: dict[str, xr.Dataset], published: Published | PublishedRow
) -> xr.DataTree:
    """Return the tree of what is published, of its groups and of an audit of the whole answer."""
    tree = xr.DataTree.from_dict(groups)
    settings = dict(audit.settings)
    settings["released"] = published.record | {"query": settings["query"]}
    settings["query"] = f"{settings['query']}, {published.words}"
    # what was tried is of the full answer
    attributes = {name: value for name, value in audit.tree.attrs.items() if name != "tried"}
    tree.attrs = {**attributes, "settings": json.dumps(settings)}
    return tree


def replaced(dataset: xr.Dataset, found: dict[str, Any]) -> xr.Dataset:
    """Return the data set with other numbers in some of its variables."""
    changed = {
        name: (dataset[name].dims, np.asarray(values).reshape(dataset[name].shape))
        for name, values in found.items()
    }
    return dataset.assign(changed)
