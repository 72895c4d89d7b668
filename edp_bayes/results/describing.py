"""A result in one paragraph: what was audited, how, against whom, and what it says."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edp_bayes.responses.transforms import described
from edp_bayes.results.effects import ADVISES, WITHHOLDS, shown
from edp_bayes.results.pseudonyms import WITHHELD, worded
from edp_bayes.utils import labels
from edp_bayes.utils.sentences import restored

if TYPE_CHECKING:
    from edp_bayes.results.base import Outcome, PrivacyCurves

__all__ = ["failed_of", "paragraph", "without_names"]

# Samplers by the names that a result records.
DRAWN = {
    "gibbs": "by Gibbs sampling",
    "nutpie": "by NUTS (nutpie)",
    "pymc": "by NUTS (PyMC)",
    "numpyro": "by NUTS (NumPyro)",
    "blackjax": "by NUTS (BlackJAX)",
    "exact": "exactly",
    "conjugate": "exactly",
    "grid": "from a fine grid",
    "stacked": "from several models, stacked",
    "elsewhere": "elsewhere",
    "none": "from a distribution that was given",
}
WARMED_UP = ("gibbs", "nutpie", "pymc", "numpyro", "blackjax")  # whose warm-up is worth a word


@dataclass(frozen=True)
class Unnamed:
    """Calls every individual the same."""

    described: str = "Names are withheld."

    def __call__(self, label: object) -> str:
        """Return words in the place of a label.

        Examples
        --------
        >>> Unnamed()("Ann")
        '(name withheld)'
        """
        return WITHHELD


def paragraph(
    result: PrivacyCurves, *, epsilon: float | None, delta: float | None, prob: float, kind: str
) -> str:
    """Return the description; see `edp_bayes.results.base.PrivacyCurves.describe`."""
    nameless = without_names(result)
    verdict = nameless.verdict(epsilon=epsilon, delta=delta, prob=prob, kind=kind)
    said = (_what(nameless), nameless.opponent, _how(nameless), str(verdict), _checks(nameless))
    return " ".join(one for one in said if one)


def without_names[T: PrivacyCurves](result: T) -> T:
    """Return the same result whose sentences name no individual."""
    known: frozenset[str] = frozenset()
    if "individuals" in result.tree.children:
        everybody = result.tree["individuals"]["individual"].to_numpy()
        known = frozenset(map(str, labels.plain_list(everybody)))
    attributes = dict(result.tree.attrs)

    def said(value: object) -> str:
        return worded(restored(value), Unnamed(), known)

    checks = json.loads(attributes.get("checks", "[]"))
    rows = [{**row, "sentence": said(row["sentence"])} for row in checks]
    warnings = [said(one) for one in json.loads(attributes.get("warnings", "[]"))]
    tree = result.tree.copy()
    tree.attrs = {**attributes, "checks": json.dumps(rows), "warnings": json.dumps(warnings)}
    return replace(result, tree=tree)


def _what(result: PrivacyCurves) -> str:
    """Return what was audited, by whom it is released, and on how much data."""
    (what, size), release = result.subject, result.release
    query = str(result.settings.get("query", what))
    words = [what if query in what else f"{what} ({query})"]
    if release.unit:
        words.append(f"in {release.unit}")
    if release.publisher:
        words.append(f"released by {release.publisher}")
    if release.audience:
        words.append(f"released to {release.audience}")
    if release.period:
        words.append(release.period)
    return f"Audited: {', '.join(words)}; on {size}."


def _how(result: PrivacyCurves) -> str:
    """Return how it was modelled and drawn, and from which seed."""
    settings = result.settings
    found = [f"The model is {settings['model']}."] if "model" in settings else []
    if settings.get("contributions") == "empirical Bayes":
        found.append("Contributions are known by empirical Bayes.")
    if "transform" in settings:
        found.append(f"What is modelled is the {described(settings['transform'], 'the answer')}.")
    if atoms := settings.get("atoms"):
        at = ", ".join(f"{count} answers at {value}" for value, count in atoms.items())
        found.append(f"Point masses stand for {at}, and the density for all others.")
    if "draws" in settings and "chains" in settings:
        sampler = str(settings.get("sampler", ""))
        drawn = f"Drawn {DRAWN.get(sampler, f'by {sampler}')}" if sampler else "Drawn"
        drawn += f": {int(settings['chains']):,} chains of {int(settings['draws']):,}"
        if sampler in WARMED_UP:
            drawn += f" after {int(settings.get('tune') or 0):,} of warm-up"
        if settings.get("random_seed") is not None:
            drawn += f", with seed {settings['random_seed']}"
        version = result.tree.attrs.get("edp_bayes_version")
        found.append(f"{drawn}{f' (edp_bayes {version})' if version else ''}.")
    grid = result.epsilon.to_numpy()
    ends = f"{float(grid[0]):.4g}"
    if grid.size > 1:
        ends = f"{grid.size:,} values from {ends} to {float(grid[-1]):.4g}"
    return " ".join([*found, f"The grid of epsilon is {ends}."])


def _checks(result: PrivacyCurves) -> str:
    """Return how many checks failed, and which withhold or advise."""
    failed = [one for one in result.outcomes if one.passed is False]
    withholding, advising = (failed_of(failed, effect) for effect in (WITHHOLDS, ADVISES))
    found = [f"{result.failures[0].upper()}{result.failures[1:]}."]
    if withholding:
        found.append(f"Withholding the verdict: {withholding}.")
    if advising:
        found.append(f"Advising: {advising}.")
    return " ".join(found)


def failed_of(failed: list[Outcome], effect: str) -> str:
    """Return the names of failed checks of one effect."""
    return ", ".join(dict.fromkeys(shown(one.check) for one in failed if one.effect == effect))
