"""Words on a result: its title, checks, assumptions and settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from edp_bayes import diagnostics
from edp_bayes.adversary.known import INSIDERS
from edp_bayes.report.content import CheckRow
from edp_bayes.responses.transforms import described
from edp_bayes.utils.formatting import at_most

if TYPE_CHECKING:
    from edp_bayes.results.base import PrivacyCurves

__all__ = ["assumptions", "checks", "settings", "title", "withheld"]

# Settings whose own name says too little.
NAMES = {
    "transform": "scale on which the answer is modelled",
    "atoms": "answers at each atom",
    "scores": "log densities",
    "edp_bayes": "edp_bayes",
    "partial": "first and last periods that are cut off",
    "screened_out": "bound on what was not integrated, by epsilon",
    "bounded": "bound on what individuals of bounded risk add to the sum, by epsilon",
    "reduced": "individuals whose contributions were not collected, and the upper limit of their "
    "largest bound, by epsilon",
    "truncation_bound": "bound on the error of finitely many components, in total variation of all "
    "databases together",
    "truncation_mass": "mass that finitely many components leave out for one response",
}


def title(result: PrivacyCurves, kind: str) -> str:
    """Return the heading of a report."""
    record = result.settings
    if kind == "composition":
        return f"Privacy of {result.subject[0]}"
    if result.release.title:
        return f"Privacy of {result.release.title}"
    if kind == "query":
        return f"Privacy of the query {record.get('query', '')}".strip()
    if kind == "mechanism":
        return "Privacy of a mechanism"
    several = len(record.get("properties", ()))
    if several > 1:
        return f"Privacy of {several} property queries"
    return f"Privacy of {record.get('query', 'a property query')}"


def checks(result: PrivacyCurves, worded: Callable[[str], str]) -> tuple[CheckRow, ...]:
    """Return every check, failed ones first, and every doubt that is no check's sentence."""
    rows = [
        CheckRow(one.check, one.passed, worded(one.sentence), one.effect) for one in result.outcomes
    ]
    return tuple(row for state in (False, None, True) for row in rows if row.passed is state)


def withheld(rows: Iterable[CheckRow]) -> str | None:
    """Return why there is no verdict; see `edp_bayes.diagnostics.withheld`."""
    return diagnostics.withheld((row.name, row.sentence) for row in rows if row.passed is False)


def assumptions(result: PrivacyCurves, kind: str) -> tuple[str, ...]:
    """Return what the numbers rest on, in plain words."""
    record = result.settings
    first = float(result.epsilon[0])
    draws = int(record.get("draws", 0)) * int(record.get("chains", 0))
    common = [
        "The bands are credible bands: given the data, the model and its prior, the truth lies "
        f"in them with the probability stated. They are made from {draws:,} posterior draws.",
    ]
    if kind != "composition":
        common.append(
            "The audit is of this release alone: several releases together say more than each."
        )
    if first > 0.0:
        common.append(f"Nothing is said of ε below {first:.4g}.")
    if "direction" in result.tree.children:
        common.insert(1, _of_several(result))
    own = {
        "query": _of_query,
        "composition": _of_releases,
        "mechanism": _of_mechanism,
        "property": _of_property,
    }[kind]
    return (*own(record), *common)


def settings(result: PrivacyCurves) -> tuple[tuple[str, str], ...]:
    """Return every setting, version, seed and fingerprint as text."""
    rows: list[tuple[str, str]] = []
    known_noise = json.loads(result.tree.attrs.get("noise", "null"))
    record = {
        **result.settings,
        "epsilon": [float(f"{e:.12g}") for e in result.epsilon.to_numpy()],
        "known noise": known_noise or "none",
        "created": result.tree["posterior"].attrs.get("created_at", "unknown"),
        "edp_bayes": result.tree.attrs.get("edp_bayes_version", "unknown"),
    }
    for name, value in record.items():
        if name == "versions" and isinstance(value, Mapping):
            rows += [(f"{name}: {part}", _shown(one)) for part, one in value.items()]
        else:
            rows.append((NAMES.get(name, name.replace("_", " ")), _shown(value)))
    return tuple(rows)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        if len(value) > 1 and len(set(map(str, value.values()))) == 1:
            return f"{_shown(next(iter(value.values())))} throughout"
        return ", ".join(f"{_shown(name)}: {_shown(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return "not given" if value is None or value == "" else str(value)


def _of_query(record: Mapping[str, Any]) -> tuple[str, ...]:
    resampled = str(record["model"]).startswith("SmoothedBootstrap")
    screened = max(record.get("screened_out", {}).values(), default=0.0)
    return (
        *_of_adversary(record),
        *_of_published(record),
        *_of_scale(record),
        *_of_atoms(record),
        "The unit of privacy is one individual with all of their records; the risks are those "
        f"of the {record['individuals']:,} individuals in the data.",
        f"The distribution of the answer is {record['model']}. That without an individual follows "
        "from the same posterior draw"
        + (
            "."
            if resampled
            else ", in which presence may change from one component of that distribution to "
            "another and within one does not depend on the others."
        ),
        "δ* takes individuals to be exposed independently of each other. Whatever the "
        "dependence, the total risk lies between the largest risk and the sum of all risks.",
        "Individuals whose risk cannot matter were not integrated. What all of them together add "
        f"to the sum at any ε is {at_most(float(screened), exact=True)}.",
        *_of_bounds(record),
    )


def _of_bounds(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what upper bounds in the place of risks change, where there are any."""
    if "bounded" not in record:
        return ()
    most = max(record["bounded"].values())
    return (
        "In a population this large, individuals whose risk is far below the largest enter by an "
        f"upper bound. The largest risk is not changed. What the sum of all risks, and δ*, are too "
        f"high by in any draw is {at_most(float(most))}; lower ends of bands leave this out.",
    )


def _of_several(result: PrivacyCurves) -> str:
    """Return what several queries tell together, in one sentence each."""
    from edp_bayes.results.joint import JointAudit

    said = JointAudit(result.tree).direction_of()
    error = float(result.tree["integration_error"]["delta"].mean(("chain", "draw")).max())
    return (
        "The answers are published together. The combination of them that exposes the riskiest "
        f"individual most is {said}; densities are shown along it, in standard deviations, and "
        "contributions are in standard deviations of all answers together. Integrals are by "
        "quasi-Monte-Carlo, and bands reach farther by their standard errors. The average of these "
        f"for δ is {at_most(error)}."
    )


def _of_published(record: Mapping[str, Any]) -> tuple[str, ...]:
    if "released" not in record:
        return ()
    return (
        f"What is published is the answer {record['released']['words']}; nothing else of it is "
        "known. Densities, checks and what concerns the answer's spread are those of the full "
        "answer.",
    )


def _of_scale(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return on which scale the answer was modelled, where that is not its own."""
    if "transform" not in record:
        return ()
    return (
        f"What is modelled is the {described(record['transform'], 'the answer')}. Either tells the "
        "other, so the risks are those of the answer itself. Densities and what was expected of "
        "answers are shown on this scale; contributions and how far answers spread are not.",
    )


def _of_atoms(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the risks rest on where answers have atoms."""
    counts = ", ".join(
        f"{count} answers at {value}" for value, count in record.get("atoms", {}).items()
    )
    if not counts:
        return ()
    return (
        f"Atoms, values that the answer has again and again, have probabilities of their own: "
        f"{counts}. Densities are those of all other answers. Where an answer is an atom with an "
        "individual and another without them, or the other way round, it is taken to tell which.",
    )


def _of_releases(record: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        record["hypotheses"],
        record["assumed"],
        "Every curve is an upper bound: privacy losses are rounded up. What δ is lower by if they "
        f"are rounded down instead is {at_most(record['gap'])}.",
        "Individuals whose bound of the risk is "
        f"{at_most(record['bounded_below'])}, and all but the largest few, enter δ* by that bound. "
        f"What δ* is too high by is {at_most(record['total_gap'])}.",
        "δ* takes individuals to be exposed independently of each other. Whatever the dependence, "
        "the total risk lies between the largest risk and the sum of all risks.",
    )


def _of_adversary(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is assumed of the databases, and who sees the answer."""
    size = f"{record['databases']:,}"
    if "against" not in record:
        return (
            f"The {size} databases are independent draws of one distribution. The checks of "
            "autocorrelation, trend and halves above test this; where one of those failed, nothing "
            "is established.",
            "A reader of an answer knows that distribution and none of the databases. What is "
            "known beyond it is not covered.",
        )
    found = [
        f"The risk is that of {record['at']}, against {record['against']}. An individual is "
        "compared in it and not in it; the past is what was observed.",
        f"Given {', '.join(record['known']) or 'that'}, the databases are independent draws of "
        "one distribution, moved and scaled. The checks of autocorrelation, trend and halves "
        "above test this on residuals.",
    ]
    if record.get("insiders"):
        subtracted = not any(name.startswith(INSIDERS) for name in record["known"])
        found.append(
            f"{record['insiders']:,} insiders are no individuals of this audit: what they "
            f"contributed is known{', and subtracted from every answer here' * subtracted}."
        )
    return tuple(found)


def _of_mechanism(record: Mapping[str, Any]) -> tuple[str, ...]:
    found = [
        "The outcomes are independent draws of the mechanism, from a database and from a "
        f"neighbour; adjacency is by {record['adjacency']}, the unit of privacy is "
        f"{record['unit']}.",
        f"The local epsilon is the largest log ratio over outcomes whose probability (or relative "
        f"density) reaches tau = {record['tau']:g} under either database. tau was fixed before.",
        "The audit covers the pairs of databases that were tried: for the mechanism as a whole it "
        "is a lower bound.",
    ]
    if record.get("statistic"):
        found.append(
            f"Outcomes were reduced to a number ({record['statistic']}); a function of the "
            "outcomes is never less private than they are, so this too makes it a lower bound."
        )
    return tuple(found)


def _of_property(record: Mapping[str, Any]) -> tuple[str, ...]:
    known = record.get("known", 0)
    knowledge = f"{known:,} of the other entries" if known else "none of the entries"
    return (
        f"The distribution of the counts is {record.get('model', 'not recorded')}. Entries are as "
        "independent as that model says.",
        f"The adversary knows the probability of the property, and {knowledge}; the answer is "
        "the share of entries that have it.",
    )
