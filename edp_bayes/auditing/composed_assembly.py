"""Put the draws of several releases, and what they rest on, into one tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.auditing.composing import THRESHOLD
from edp_bayes.auditing.echoing import RELEASED, echo_of
from edp_bayes.results.composition import ComposedAudit
from edp_bayes.results.recording import recorded
from edp_bayes.utils.sentences import Sentence, restored

if TYPE_CHECKING:
    from edp_bayes.auditing.composing import ComposedRisks
    from edp_bayes.results.query import Audit

__all__ = ["assemble"]

# How the bound is asked for, in Python and on the command line.
BOUND = 'past="others" (--echoes)'
Array = NDArray[np.float64]
Index = NDArray[np.int64]


def assemble(
    audits: Sequence[Audit],
    counts: Sequence[int],
    people: NDArray[Any],
    rows: Index,
    assumed: str,
    past: str,
    epsilon: Array,
    risks: ComposedRisks,
    tested: Array,
) -> ComposedAudit:
    """Return the composition; `tested` is what tests chosen once reach, (draw, kept, epsilon)."""
    first, total = audits[0], sum(counts)
    chains = np.unravel_index(rows, (first.delta.sizes["chain"], first.delta.sizes["draw"]))
    coords = {
        "chain": first.delta["chain"].to_numpy()[chains[0][:, 0]],
        "draw": first.delta["draw"].to_numpy()[chains[1][0]],
        "epsilon": epsilon,
        "individual": people[risks.kept],
    }

    def draws(values: Array) -> Array:
        return values.reshape(*rows.shape, *values.shape[1:])

    curve, own = ("chain", "draw", "epsilon"), ("chain", "draw", "individual", "epsilon")
    posterior = xr.Dataset(
        {
            "individual_delta": (own, draws(risks.individual)),
            "delta": (curve, draws(risks.delta)),
            "total_risk": (curve, draws(risks.total_risk)),
            "total_risk_bound": (curve, draws(risks.total_risk_bound)),
        },
        coords=coords,
    )
    bounds = xr.Dataset(
        {
            "delta_lower": (curve, draws(risks.delta_lower)),
            "total_risk_lower": (curve, draws(risks.total_risk_lower)),
            "by_bound": (curve, draws(risks.by_bound)),
        },
        coords={name: values for name, values in coords.items() if name != "individual"},
    )
    echoes = [echo_of(part, count) for part, count in zip(audits, counts, strict=True)]
    if past == RELEASED or max(echoes) == 1.0:
        delta, everybody = _lowered(risks, tested)
    else:
        # lower bounds of enlarged contributions are none of those as they are
        delta, everybody = tested.max(axis=1), -np.expm1(np.log1p(-tested).sum(axis=1))
    lower = xr.Dataset(
        {
            "individual_delta": (own, draws(tested)),
            "delta": (curve, draws(delta)),
            "total_risk": (curve, draws(everybody)),
        },
        coords=coords,
    )
    gap = float((risks.delta - risks.delta_lower).max())
    checks = [row for part in audits for row in _checks(part)]
    record = {
        **_common(audits),
        "composed": list(counts),
        "databases": first.settings["databases"],
        "individuals": int(people.size),
        "hypotheses": _hypotheses(audits, total, past),
        "past": past,
        "echo": [echo if np.isfinite(echo) else None for echo in echoes],
        "assumed": _assumed(len(audits), assumed),
        "gap": gap,
        "total_gap": float((risks.total_risk - risks.total_risk_lower).max()),
        "bounded_below": THRESHOLD,
        "composed_in_a_draw": risks.composed,
        "chains": rows.shape[0],
        "draws": rows.shape[1],
    }
    said = dict.fromkeys(warning for part in audits for warning in part.warnings)
    warnings = [*said, *_doubts(audits, people, echoes, past)]
    tree = recorded(
        {
            "posterior": posterior,
            "lower_bounds": lower,
            "composition": bounds,
            "individuals": _individuals(audits, people),
            # what a key of pseudonyms is derived from, as for the audit
            "observed_data": first.tree["observed_data"].to_dataset(),
        },
        settings=record,
        checks=checks,
        warnings=warnings,
    )
    return ComposedAudit(tree)


def _individuals(audits: Sequence[Audit], people: NDArray[Any]) -> xr.Dataset:
    """Return presence and largest contribution of everybody, in the databases of all audits."""
    joint = any(part.joint for part in audits)
    names = ("presence", "adjusted_contribution" if joint else "largest_contribution")
    parts = [
        part.individuals[list(names)].reindex(individual=people, fill_value=0.0) for part in audits
    ]
    found = parts[0]
    for part in parts[1:]:
        found = xr.Dataset({name: np.maximum(found[name], part[name]) for name in names})
    return found.reset_coords(drop=True)


def _lowered(risks: ComposedRisks, tested: Array) -> tuple[Array, Array]:
    """Return lower bounds of delta and delta* in which tests stand for the kept individuals."""
    best = risks.individual_lower
    others = risks.delta_lower > best.max(axis=1)
    delta = np.where(others, risks.delta_lower, tested.max(axis=1))
    exchanged = (np.log1p(-tested) - np.log1p(-np.minimum(best, 1.0 - 1e-12))).sum(axis=1)
    survival = (1.0 - risks.total_risk_lower) * np.exp(exchanged)
    return delta, np.clip(1.0 - survival, delta, np.maximum(risks.total_risk_lower, delta))


def _common(audits: Sequence[Audit]) -> dict[str, Any]:
    """Return the settings of one audit, or what several have in common and their list."""
    settings = [dict(part.settings) for part in audits]
    for one in settings:
        for name in ("versions", "screened_out"):
            one.pop(name, None)
    if len(settings) == 1:
        return settings[0]
    common = {
        name: value
        for name, value in settings[0].items()
        if all(other.get(name) == value for other in settings[1:])
    }
    queries = dict.fromkeys(str(one["query"]) for one in settings)
    return {**common, "query": " and ".join(queries), "audits": settings}


def _hypotheses(audits: Sequence[Audit], total: int, past: str) -> str:
    known = any(part.against for part in audits)
    many = f"all {total:,} databases" if total > 1 else "the database"
    text = f"An individual is in {many}, or in none of them"
    if not known:
        return f"{text}; databases are independent of each other."
    lagged = total > 1 and any(_lagged(part) for part in audits)
    if not lagged:
        return (
            f"{text}; each database is as the one at hand, and given what is known then its answer "
            "has the distribution with or without them."
        )
    if past == RELEASED:
        return (
            f"{text}; each database is as the one at hand, and given what is known then, the "
            "answers of earlier ones as they were released, its answer has the distribution with "
            "or without them."
        )
    return (
        f"{text}, and so in the past of each as far as it is one of these; each database is as the "
        "one at hand and follows what the others contributed to earlier ones. Risks are upper "
        "bounds, also where databases follow the answers as they were released."
    )


def _lagged(audit: Audit) -> bool:
    return any(str(name).startswith("lag ") for name in audit.settings.get("known", []))


def _assumed(kinds: int, assumed: str) -> str:
    if kinds == 1:
        return "All databases follow the same draw of the distribution."
    if assumed.startswith("the same"):
        return "The audits share data and seed: all databases follow the same draw."
    return "The audits do not share draws: those of one are independent of those of the others."


def _checks(audit: Audit) -> list[dict[str, Any]]:
    rows = json.loads(audit.tree.attrs["checks"])
    return [{**row, "sentence": restored(row["sentence"])} for row in rows]


def _doubts(
    audits: Sequence[Audit], people: NDArray[Any], echoes: Sequence[float], past: str
) -> list[str]:
    """Return what may not carry over from one database to several."""
    found = []
    for part, echo in zip(audits, echoes, strict=True):
        known = part.settings.get("known", [])
        if echo > 1.0:
            found.append(_echo(echo, past))
        if "changing scale" in known or "trend" in known:
            found.append(
                "All databases are taken to be as the one at hand; where trend or spread change, "
                "later ones expose more or less."
            )
    sizes = {part.settings["individuals"] for part in audits}
    if any(size < people.size for size in sizes):
        found.append(
            f"The audits are of different individuals, {people.size:,} in all: who is not in an "
            "audit is taken to be in none of its databases."
        )
    prints = {part.settings.get("fingerprint") for part in audits}
    if len(audits) > 1 and len(prints) == 1 and not _one_seed(audits):
        found.append(
            "The audits are of the same data with different seeds or models, so their draws are "
            "taken as independent: audit with one seed and model to share them."
        )
    return [Sentence(text) for text in dict.fromkeys(found)]


def _one_seed(audits: Sequence[Audit]) -> bool:
    from edp_bayes.auditing.composition import same_draws

    return all(same_draws(audits[0], other) for other in audits[1:])


def _echo(echo: float, past: str) -> str:
    """Say what was made of contributions that echo in later answers."""
    if past == RELEASED:
        larger = f"{echo:.2f} times as large as" if np.isfinite(echo) else "larger than"
        return (
            "Later databases are taken to follow the answers as they were released. If they follow "
            "what the others contributed instead, a contribution echoes in later answers, and its "
            f"effect may be {larger} assumed here"
            + (f"; {BOUND} gives an upper bound." if np.isfinite(echo) else ".")
        )
    return (
        "Later databases may follow what the others contributed, so that a contribution echoes in "
        f"later answers: risks are those of contributions {echo:.2f} times as large, an upper "
        'bound. past="released" gives the risk where they follow the answers as they were released.'
    )
