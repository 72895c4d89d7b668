"""Twenty seeded faults, one for each part of the product, that the quick tests must catch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Fault:
    """A fault, by the text of the source that it replaces.

    `file` is relative to the package. `tests` are files, relative to `tests`, whose quick tests
    catch it. `harm` says what a user would suffer.
    """

    name: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]
    harm: str

    @property
    def source(self) -> str:
        """The source as it should be."""
        return (ROOT / "edp_bayes" / self.file).read_text(encoding="utf-8")

    @property
    def compiled(self) -> bool:
        """Whether Numba compiles code of this file, and keeps it as part of its callers."""
        return any(f"\n{mark}\n" in self.source for mark in ("@compiled", "@borrowing", "@inlined"))


FAULTS = (
    Fault(
        "safe pairs",
        "divergence/near_pair/safety.py",
        "safe = safe and BETWEEN * upper[c] <= high * least[c]",
        "safe = safe and BETWEEN * upper[c] <= 2.0 * high * least[c]",
        ("divergence/test_safety.py",),
        "individuals at risk are screened out, and delta is too small",
    ),
    Fault(
        "epsilon twice",
        "coupling/curves/one_answer.py",
        "np.expm1(by_draw(epsilon, len(base))),",
        "np.expm1(2.0 * by_draw(epsilon, len(base))),",
        ("test_coupled_curves.py",),
        "delta of close pairs is that at twice the epsilon asked for",
    ),
    Fault(
        "strong pool",
        "coupling/contributions/pooling.py",
        "MOST_MOVED = 1.0",
        "MOST_MOVED = 100.0",
        ("test_exposed.py",),
        "an exposed individual is pooled away, and their risk looks like everybody's",
    ),
    Fault(
        "wide components",
        "models/gibbs.py",
        "v[k] = (rates[k] + 0.5 * (max(rest, 0.0) + least)) / sharp",
        "v[k] = (rates[k] + max(rest, 0.0) + least) / sharp",
        ("models/test_models.py",),
        "the answer looks more spread than it is, and hides less than the audit says",
    ),
    Fault(
        "check ignored",
        "results/verdict.py",
        "    if reason is not None:\n        status",
        "    if reason is not None and limit > target.delta:\n        status",
        ("test_verdict.py",),
        "a target counts as met although a check withholds the verdict",
    ),
    Fault(
        "spread of old",
        "models/regression.py",
        "moved = (residuals - residuals.mean()) * self.growth(gamma) + self.place",
        "moved = (residuals - residuals.mean()) + self.place",
        ("models/test_regression.py",),
        "where the spread shrinks, the next answer is audited as if it were spread as before",
    ),
    Fault(
        "dropped individual",
        "noise/scales.py",
        "over[part] = (risk > delta).any(axis=0)",
        "over[part] = (risk > delta).all(axis=0)",
        ("noise/test_calibration.py",),
        "noise is calibrated without those at risk in some draws only, and is too little",
    ),
    Fault(
        "database too few",
        "divergence/composition/convolution.py",
        "product *= power(fft.rfft(on_grid), count)",
        "product *= power(fft.rfft(on_grid), max(count - 1, 1))",
        ("divergence/test_privacy_losses.py",),
        "the risk of many releases is that of one release fewer",
    ),
    Fault(
        "queries apart",
        "coupling/curves/several_answers.py",
        "for b in range(a + 1):\n            turned[0, a] += inverse[a, b] * jump[b]",
        "for b in range(a, a + 1):\n            turned[0, a] += inverse[a, b] * jump[b]",
        ("test_joint_evaluation.py",),
        "what correlated answers tell only together is lost in joint audits",
    ),
    Fault(
        "cells apart",
        "auditing/cells/together.py",
        "pairs.update(pairwise(places))",
        "pairs.update(pairwise(places[1:]))",
        ("test_cells.py",),
        "individuals in two cells are audited in each alone, and both together tell more",
    ),
    Fault(
        "p-percent rule",
        "auditing/disclosure.py",
        "sizes[2:].sum() / sizes[0]",
        "sizes[1:].sum() / sizes[0]",
        ("test_disclosure.py",),
        "a database passes in which the second largest learns the largest contribution",
    ),
    Fault(
        "limit of one",
        "auditing/guarantee.py",
        "level = 1.0 - (1.0 - prob) / max(present.size, 1)",
        "level = prob",
        ("test_guarantee.py",),
        "the guaranteed upper limit holds for one individual, not for all at once",
    ),
    Fault(
        "coarse grid",
        "auditing/rounded.py",
        "Published(rounded_to=step, offset=offset)",
        "Published(rounded_to=2.0 * step, offset=offset)",
        ("test_rounded.py",),
        "answers count as rounded to twice the step, and their last digit as hidden",
    ),
    Fault(
        "last period",
        "records/owning.py",
        '(("first", cut.first, 0), ("last", cut.last, size.size - 1))',
        '(("first", cut.first, 0),)',
        ("test_cut_off.py",),
        "a last week cut off in the middle widens the answer, and understates all risks",
    ),
    Fault(
        "same fingerprint",
        "responses/responses.py",
        '            matrix.data.astype("<f8").tobytes(),\n',
        "",
        ("test_responses.py",),
        "an audit continues with what a store kept of other contributions",
    ),
    Fault(
        "check passes",
        "cli/session.py",
        "in counted.values()), check=run.check)",
        "in counted.values()), check=False)",
        ("test_verdict.py",),
        "a pipeline releases data though --check was to stop it",
    ),
    Fault(
        "hopeful plan",
        "auditing/planning.py",
        'np.quantile(measured, 0.5, axis=-1, method="inverted_cdf")',
        'np.quantile(measured, 0.1, axis=-1, method="inverted_cdf")',
        ("test_planning.py",),
        "a plan promises a limit that one future in ten reaches",
    ),
    Fault(
        "known entries",
        "statistical_privacy/curves.py",
        "unknown = self.n - self.known",
        "unknown = self.n",
        ("statistical_privacy/test_exact_curves.py",),
        "an adversary who knows entries counts as one who knows none",
    ),
    Fault(
        "one direction",
        "black_box/posterior/privacy.py",
        "out[:, e] = np.maximum(forward, backward)",
        "out[:, e] = forward",
        ("test_mechanism_audit.py",),
        "a mechanism that betrays who is absent passes",
    ),
    Fault(
        "sensitivity",
        "interval/formulas.py",
        'out["interval_epsilon"] = -scale * np.log1p(-axes["level"])',
        'out["interval_epsilon"] = -np.log1p(-axes["level"])',
        ("test_interval.py",),
        "epsilon is too small where an individual changes a count by more than one",
    ),
)
