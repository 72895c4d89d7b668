"""Put the draws of several releases, and what they rest on, into one tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.releases.carry_over import RELEASED, carry_over_of
from edp_bayes.releases.composing import THRESHOLD
from edp_bayes.releases.parts import CURVE, OWN, TOTALS, on_grid
from edp_bayes.releases.sharing import alike_only, names_of, shared
from edp_bayes.results.composition import ComposedAudit
from edp_bayes.results.recording import recorded
from edp_bayes.results.release import common
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import EXACT_UP_TO
from edp_bayes.utils.sentences import Sentence, restored

if TYPE_CHECKING:
    from edp_bayes.releases.composing import ComposedRisks
    from edp_bayes.results.query import Audit

__all__ = ["Groups", "assemble", "composed_groups", "own_groups"]

# How the bound is asked for, in Python and on the command line.
BOUND = 'past="others" (--carry-over)'


class Groups(NamedTuple):
    """The draws of a composition.

    Attributes
    ----------
    posterior, lower_bounds, composition : Dataset
        Upper bounds; what tests reach; delta_lower, total_risk_lower and by_bound.
    composed : float
        Mean number of individuals composed in a draw.
    parts : dict of str to Dataset
        What each part says in all of its draws, by the name of its group.
    """

    posterior: xr.Dataset
    lower_bounds: xr.Dataset
    composition: xr.Dataset
    composed: float
    parts: dict[str, xr.Dataset]

    def beside(self, parts: dict[str, xr.Dataset]) -> Groups:
        """Return them with the draws of each part."""
        return self._replace(parts=parts)

    def most(self, upper: str, lower: str) -> float:
        """Return by how much an upper bound is above a lower one at most."""
        return float((self.posterior[upper] - self.composition[lower]).max())


def own_groups(audit: Audit, keep: int, epsilon: Array, progressbar: bool) -> Groups:
    """Return the draws of one release: those of the audit, as its limits are made from them.

    At other epsilons than the audit's they are evaluated anew.
    """
    if not on_grid(audit, epsilon):
        return _evaluated(audit, keep, epsilon, progressbar)
    some = {"individual": slice(None, keep)}
    drawn = audit.safe_draws[["individual_delta", *TOTALS]]
    posterior = drawn.isel(some).sel(epsilon=epsilon)
    lower = audit.tree["lower_bounds"].to_dataset().isel(some).sel(epsilon=epsilon)
    # as far above the integrals as below where these have errors
    plain = audit.tree["posterior"].to_dataset().sel(epsilon=epsilon)
    least = [(2.0 * plain[name] - posterior[name]).clip(0.0) for name in TOTALS[:2]]
    return Groups(posterior, lower, _least(*least), 0.0, {})


def _least(delta: xr.DataArray, total_risk: xr.DataArray) -> xr.Dataset:
    """Return lower bounds of everybody's risk where nobody is bounded."""
    return xr.Dataset(
        {
            "delta_lower": delta,
            "total_risk_lower": total_risk,
            "by_bound": xr.zeros_like(delta),
        }
    )


def _evaluated(audit: Audit, keep: int, epsilon: Array, progressbar: bool) -> Groups:
    from edp_bayes.auditing.evaluation import evaluate, riskiest
    from edp_bayes.auditing.lower_bounds import lower_bounds

    fit = audit.fit
    risks = evaluate(fit, epsilon, progressbar=progressbar, exact_up_to=EXACT_UP_TO)
    kept = riskiest(risks.mean, keep)
    curves = risks.curves_of(kept, fit, epsilon)
    least = risks.least_delta, risks.least_total_risk
    tested = lower_bounds(fit, kept, curves, *least, epsilon)
    lead = {name: audit.delta[name].to_numpy() for name in ("chain", "draw")}
    shape = tuple(values.size for values in lead.values())
    coords = {
        **lead,
        "epsilon": epsilon,
        "individual": audit.individuals["individual"].to_numpy()[kept],
    }

    def totals(values: dict[str, Array]) -> xr.Dataset:
        drawn = {name: (CURVE, found.reshape(*shape, -1)) for name, found in values.items()}
        return xr.Dataset(drawn, coords={name: coords[name] for name in CURVE})

    posterior = totals({name: getattr(risks, name) for name in TOTALS})
    own = (OWN, curves.reshape(*shape, kept.size, epsilon.size))
    lower = xr.Dataset(
        {
            "individual_delta": (OWN, tested.individual_delta),
            "delta": (CURVE, tested.delta),
            "total_risk": (CURVE, tested.total_risk),
        },
        coords=coords | {"draw": lead["draw"][:: tested.step]},
    )
    whole = totals(dict(zip(TOTALS[:2], least, strict=True)))
    return Groups(
        xr.Dataset({"individual_delta": own, **posterior.data_vars}, coords=coords),
        lower,
        _least(whole["delta"], whole["total_risk"]),
        0.0,
        {},
    )


def composed_groups(
    first: Audit,
    people: NDArray[Any],
    rows: Index,
    epsilon: Array,
    risks: ComposedRisks,
    tested: Array,
    *,
    enlarged: bool,
) -> Groups:
    """Return the draws of a composition.

    Parameters
    ----------
    first : Audit
        Whose draws, at `rows`, name those of the composition.
    people : ndarray
        Everybody's label.
    rows : ndarray of int
        Shape (chain, draw).
    epsilon : ndarray
    risks : ComposedRisks
    tested : ndarray
        Shape (draw, kept, epsilon): what tests chosen once reach.
    enlarged : bool
        Whether risks are those of enlarged contributions.
    """
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
    if not enlarged:
        delta, everybody = _lowered(risks, tested)
    else:
        # lower bounds of enlarged risks are none of those as they are
        delta, everybody = tested.max(axis=1), -np.expm1(np.log1p(-tested).sum(axis=1))
    lower = xr.Dataset(
        {
            "individual_delta": (own, draws(tested)),
            "delta": (curve, draws(delta)),
            "total_risk": (curve, draws(everybody)),
        },
        coords=coords,
    )
    return Groups(posterior, lower, bounds, risks.composed, {})


def assemble(
    audits: Sequence[Audit],
    counts: Sequence[int],
    people: NDArray[Any],
    groups: Groups,
    assumed: str,
    past: str,
    *,
    fresh: bool,
) -> ComposedAudit:
    """Return the composition of draws, with what they rest on."""
    first, total = audits[0], sum(counts)
    factors = [carry_over_of(part, count) for part, count in zip(audits, counts, strict=True)]
    checks = [row for k in range(len(audits)) for row in _checks(audits, k)]
    stated = shared(audits) if fresh else []
    record = {
        **_common(audits, counts),
        "composed": list(counts),
        "databases": first.settings["databases"],
        "individuals": int(people.size),
        "hypotheses": _hypotheses(audits, total, past),
        "past": past,
        "carry_over": factors,
        "assumed": _assumed(len(audits), assumed, stated),
        "fresh": bool(stated),
        "gap": groups.most("delta", "delta_lower"),
        "total_gap": groups.most("total_risk", "total_risk_lower"),
        "bounded_below": THRESHOLD,
        "composed_in_a_draw": groups.composed,
        "chains": groups.posterior.sizes["chain"],
        "draws": groups.posterior.sizes["draw"],
    }
    said = dict.fromkeys(warning for part in audits for warning in part.warnings)
    warnings = [*said, *_doubts(audits, people, factors, past)]
    tree = recorded(
        {
            "posterior": groups.posterior,
            "lower_bounds": groups.lower_bounds,
            "composition": groups.composition,
            **_resampled(audits, groups.posterior),
            **groups.parts,
            "individuals": _individuals(audits, people),
            # what a key of pseudonyms is derived from, as for the audit
            "observed_data": first.tree["observed_data"].to_dataset(),
        },
        settings=record,
        checks=checks,
        warnings=warnings,
    )
    words = common([part.release for part in audits])
    return ComposedAudit(tree).with_release(words) if words.record else ComposedAudit(tree)


def _resampled(audits: Sequence[Audit], posterior: xr.Dataset) -> dict[str, xr.Dataset]:
    """Return what the databases themselves show of one release: that of all is no less.

    At an epsilon that an audit's grid does not hold it is that of the next larger one, which is no
    more; there is none beyond.
    """
    kept, epsilon = posterior["individual"], posterior["epsilon"]
    found: list[xr.Dataset] = []
    for part, labels in zip(audits, names_of(audits), strict=True):
        if (group := part.tree.get("resampled")) is not None:
            shown = group.to_dataset()
            own = part.individuals.indexes["individual"].get_indexer(shown.indexes["individual"])
            shown = shown.assign_coords(individual=labels[own]).reindex(
                individual=kept, fill_value=0.0
            )
            place = np.searchsorted(part.epsilon.to_numpy(), epsilon.to_numpy())
            shown = shown.pad(epsilon=(0, 1), constant_values=0.0).isel(epsilon=place)
            found.append(shown.assign_coords(epsilon=epsilon))
    return {"resampled": xr.concat(found, "part").max("part")} if found else {}


def _individuals(audits: Sequence[Audit], people: NDArray[Any]) -> xr.Dataset:
    """Return presence and largest contribution of everybody, in the databases of all audits."""
    # of several queries contributions are in another unit
    each = ["adjusted_contribution" if part.joint else "largest_contribution" for part in audits]
    together: dict[str, xr.DataArray] = {}
    for part, labels, contribution in zip(audits, names_of(audits), each, strict=True):
        own = part.individuals.reset_coords(drop=True).assign_coords(individual=labels)
        for name in ("presence", contribution):
            values = own[name].reindex(individual=people, fill_value=0.0)
            if name in together:
                values = values.copy(data=np.maximum(together[name].to_numpy(), values.to_numpy()))
            together[name] = values
    found = xr.Dataset(together)
    return found.reset_coords(drop=True)


def _lowered(risks: ComposedRisks, tested: Array) -> tuple[Array, Array]:
    """Return lower bounds of delta and delta* in which tests stand for the kept individuals."""
    best = risks.individual_lower
    others = risks.delta_lower > best.max(axis=1)
    delta = np.where(others, risks.delta_lower, tested.max(axis=1))
    exchanged = (np.log1p(-tested) - np.log1p(-np.minimum(best, 1.0 - 1e-12))).sum(axis=1)
    survival = (1.0 - risks.total_risk_lower) * np.exp(exchanged)
    return delta, np.clip(1.0 - survival, delta, np.maximum(risks.total_risk_lower, delta))


def _common(audits: Sequence[Audit], counts: Sequence[int]) -> dict[str, Any]:
    """Return the settings of one audit, or what several have in common and their list."""
    settings = [dict(part.settings) for part in audits]
    for one, count in zip(settings, counts, strict=True):
        later = one.pop("against_later", None)
        if count > 1 and later is not None:
            one["against"] = later
            del one["last_published"]
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
    against = dict.fromkeys(str(one.get("against") or Adversary().words) for one in settings)
    several = {} if len(against) == 1 else {"against": _each(list(against))}
    return {**common, **several, "query": " and ".join(queries), "audits": settings}


def _each(against: Sequence[str]) -> str:
    """Return adversaries who differ from audit to audit."""
    return f"a person who is, of one of these releases each, {'; '.join(against)}"


def _hypotheses(audits: Sequence[Audit], total: int, past: str) -> str:
    known = any(part.against for part in audits)
    many = f"all {total:,} databases" if total > 1 else "the database"
    text = f"An individual is in {many}, or in none of them"
    if not known:
        return f"{text}; databases are independent of each other."
    lagged = total > 1 and any(_lagged(part) for part in audits)
    if not lagged:
        return (
            f"{text}; each database is as the one in question, and given what is known then its "
            "answer has the distribution with or without them."
        )
    if past == RELEASED:
        return (
            f"{text}; each database is as the one in question, and given what is known then, the "
            "answers of earlier ones as they were released, its answer has the distribution with "
            "or without them."
        )
    return (
        f"{text}, and so in the past of each as far as it is one of these; each database is as the "
        "one in question and follows what the others contributed to earlier ones. Risks are upper "
        "bounds, also where databases follow the answers as they were released."
    )


def _lagged(audit: Audit) -> bool:
    return any(str(name).startswith("lag ") for name in audit.settings.get("known", []))


def _assumed(kinds: int, assumed: str, stated: Sequence[str]) -> str:
    if kinds == 1:
        return "All databases follow the same draw of the distribution."
    if stated:
        said = "; ".join(stated)
        return f"{_assumed(kinds, assumed, ())} Databases are fresh ones as was stated: {said}."
    if assumed.startswith("the same"):
        return "The audits share data and seed: all databases follow the same draw."
    return "The audits do not share draws: those of one are independent of those of the others."


def _checks(audits: Sequence[Audit], place: int) -> list[dict[str, Any]]:
    """Return the checks of a part; of several their sentences begin with its name."""
    rows = json.loads(audits[place].tree.attrs["checks"])
    said = [restored(row["sentence"]) for row in rows]
    if len(audits) == 1:
        return [{**row, "sentence": text} for row, text in zip(rows, said, strict=True)]
    name = f"Part {place + 1} ({audits[place].settings['query']})"
    return [
        {**row, "part": name, "sentence": Sentence(f"{name}: ", text)}
        for row, text in zip(rows, said, strict=True)
    ]


def _doubts(
    audits: Sequence[Audit], people: NDArray[Any], factors: Sequence[float], past: str
) -> list[str]:
    """Return what may not carry over from one database to several."""
    found = []
    for part, factor in zip(audits, factors, strict=True):
        known = part.settings.get("known", [])
        if factor > 1.0:
            found.append(_carry_over(factor, past))
        if "changing scale" in known or "trend" in known:
            found.append(
                "All databases are taken to be as the one in question; where trend or spread "
                "change, later ones expose more or less."
            )
    sizes = {part.settings["individuals"] for part in audits}
    if any(size < people.size for size in sizes):
        found.append(
            f"The audits are of different individuals, {people.size:,} in all: who is not in an "
            "audit is taken to be in none of its databases."
        )
    found += [f"{said[0].upper()}{said[1:]}." for said in alike_only(audits)]
    prints = {part.settings.get("fingerprint") for part in audits}
    if len(audits) > 1 and len(prints) == 1 and not _one_seed(audits):
        found.append(
            "The audits are of the same data with different seeds or models, so their draws are "
            "taken as independent: audit with one seed and model to share them."
        )
    return [Sentence(text) for text in dict.fromkeys(found)]


def _one_seed(audits: Sequence[Audit]) -> bool:
    from edp_bayes.releases.composition import same_draws

    return all(same_draws(audits[0], other) for other in audits[1:])


def _carry_over(factor: float, past: str) -> str:
    """Say what was made of contributions that carry over to later answers."""
    if past == RELEASED:
        return (
            "Later databases are taken to follow the answers as they were released. If they follow "
            "what the others contributed instead, a contribution carries over to later answers, "
            f"and its effect may be {factor:.2f} times as large as assumed here; {BOUND} gives an "
            "upper bound."
        )
    return (
        "Later databases may follow what the others contributed, so that a contribution carries "
        f"over to later answers: risks are those of contributions {factor:.2f} times as large, an "
        'upper bound. past="released" gives the risk where they follow the answers as they were '
        "released."
    )
