"""The audit of what is published of a row of several answers, from the draws of the whole audit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.auditing.evaluation import Risks, evaluate
from edp_bayes.auditing.released import published_tree, replaced
from edp_bayes.auditing.single_answers import single_answers
from edp_bayes.coupling.joint import JointCoupling
from edp_bayes.coupling.views.published_row import RowCoupling
from edp_bayes.distributions.published_row import PublishedRow
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.joint import JointAudit
from edp_bayes.utils.arrays import Array, Index

if TYPE_CHECKING:
    from edp_bayes.results.query import Audit

__all__ = ["released_row"]


def released_row(audit: Audit, *, progressbar: bool, **asked: Any) -> JointAudit:
    """Return the audit of what is published of several answers; see `edp_bayes.released`."""
    assert isinstance(audit, JointAudit)
    whole = _fit_of(audit)
    kept = audit.tree["mixture"]["query"].to_numpy().tolist()
    names = [str(name) for name in audit.direction["query"].to_numpy()]
    published = PublishedRow.of(names, **asked)
    if len(kept) < len(names):
        first = next(name for name in names if name not in kept)
        raise InvalidInputError(
            f"{first} follows from the other answers, and its rounding does not follow from "
            "theirs: what it adds is not known; the risk of the whole answers, which is this "
            "audit, is no less"
        )
    if audit.less_insiders:
        raise InvalidInputError(
            "insiders' contributions to the answers in question are subtracted here, so that it is "
            "not known where their bins lie; the risk of the whole answers, which is this audit, "
            "is no less"
        )
    twice = [
        name
        for name, noise, variance in zip(
            names, published.noises, whole.responses.noise_variance, strict=False
        )
        if noise is not None and variance > 0.0
    ]
    if twice:
        raise InvalidInputError(
            f"{twice[0]} has known noise of its own already: give noise_after of other queries, or "
            "audit without noise="
        )
    exact = RowCoupling(whole, published, shift=_shift(audit))
    epsilon = audit.epsilon.to_numpy()
    places = _positions(audit)
    found = exact.curves(places, epsilon)
    least = np.maximum((found.value - found.error).max(axis=1), 0.0)
    risks = evaluate(replace(exact, least=least), epsilon, progressbar=progressbar)
    assert risks.errors is not None
    return JointAudit(_tree(audit, exact, places, (found.value, found.error), risks), fit=exact)


def _fit_of(audit: JointAudit) -> JointCoupling:
    """Return the coupling of the whole answers."""
    if isinstance(audit.fit, RowCoupling):
        raise InvalidInputError(
            f"this is the audit of an answer {audit.fit.published.words} already: start from the "
            "audit of the whole answers"
        )
    if audit.fit is None:
        raise InvalidInputError(
            "what is published is known as long as an audit has its fit, and this one was loaded "
            "or made without; audit again"
        )
    return audit.fit


def _shift(audit: JointAudit) -> Array | None:
    """Return how far the answers of every draw lie from where the coupling has them."""
    if "known" not in audit.tree.children:
        return None
    shift = audit.tree["known"]["shift"].transpose("chain", "draw", "query").to_numpy()
    return np.asarray(shift.reshape(-1, shift.shape[-1]))


def _positions(audit: JointAudit) -> Index:
    """Return the places of the individuals whose draws are kept among all."""
    everybody = audit.individuals["individual"].to_numpy().tolist()
    place = {label: k for k, label in enumerate(everybody)}
    return np.array([place[k] for k in audit.individual_delta["individual"].values.tolist()])


def _tree(
    audit: JointAudit,
    coupling: RowCoupling,
    places: Index,
    curves: tuple[Array, Array],
    risks: Risks,
) -> xr.DataTree:
    """Return the tree of the whole audit, with what is left of the risks."""
    epsilon = audit.epsilon.to_numpy()
    groups = {name: node.to_dataset() for name, node in audit.tree.children.items()}
    posterior, error = groups["posterior"], groups["integration_error"]
    assert risks.errors is not None
    drawn, wrong = {"individual_delta": curves[0]}, {"individual_delta": curves[1]}
    for name in ("delta", "total_risk", "total_risk_bound"):
        before = posterior[name].transpose("chain", "draw", "epsilon").to_numpy()
        raised = before + error[name].transpose("chain", "draw", "epsilon").to_numpy()
        drawn[name] = np.minimum(getattr(risks, name), before.reshape(-1, epsilon.size))
        most = np.minimum(risks.safe(name), raised.reshape(-1, epsilon.size))
        wrong[name] = np.maximum(most - drawn[name], 0.0)
    groups["posterior"] = replaced(posterior, drawn)
    groups["integration_error"] = replaced(error, wrong)
    least = np.maximum(curves[0] - curves[1], 0.0)
    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    tested, shown = single_answers(coupling, shape, places, least, epsilon)
    groups["lower_bounds"] = replaced(
        groups["lower_bounds"],
        {
            "individual_delta": tested,
            "delta": tested.max(axis=2),
            "total_risk": 1.0 - np.prod(1.0 - tested, axis=2),
        },
    )
    less = shown.of_less(posterior, groups.get("resampled"))
    groups["resampled"] = less.dataset(posterior["individual"].to_numpy(), epsilon)
    summaries = {"mean": risks.mean, "sd": risks.deviation, "median": risks.median}
    groups["individuals"] = replaced(
        groups["individuals"], {**summaries, "integration_error": risks.errors.individual}
    )
    return published_tree(audit, groups, coupling.published)
