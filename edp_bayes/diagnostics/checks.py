"""One check in numbers and in words, and a set of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

__all__ = ["Check", "Checks"]


@dataclass(frozen=True)
class Check:
    """One check.

    Parameters
    ----------
    name : str
        What was checked.
    statistic : float
        Its statistic.
    p_value : float or None
        Its p-value, uncorrected; None for a plain threshold.
    p_adjusted : float or None
        The p-value after Holm's correction for all tests made together.
    passed : bool
        p_adjusted is at least the level, or the statistic is within its threshold.
    sentence : str
        The outcome in plain words; a `Sentence` where it may name individuals.

    See Also
    --------
    Checks : checks made together
    withheld : why there is no verdict

    Examples
    --------
    >>> check = Check("ties", 0.02, None, None, True, "2% of the responses are tied.")
    >>> check.passed
    True
    """

    name: str
    statistic: float
    p_value: float | None
    p_adjusted: float | None
    passed: bool
    sentence: str


@dataclass(frozen=True)
class Checks:
    """Checks made together.

    Parameters
    ----------
    checks : tuple of Check
        Every check made.
    level : float
        Probability of any false alarm among the tests, if all is well.

    See Also
    --------
    Check : the outcome of one check
    DatabaseChecks : the outcome for the databases
    PredictiveChecks : the outcome for the model

    Examples
    --------
    >>> check = Check("ties", 0.4, None, None, False, "40% of the responses are tied.")
    >>> Checks((check,), 0.05).warnings
    ('40% of the responses are tied.',)
    """

    checks: tuple[Check, ...]
    level: float

    def __getitem__(self, name: str) -> Check:
        """Return the check of that name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise InvalidInputError(
            f"no check is named {name!r}; there are {', '.join(c.name for c in self.checks)}"
        )

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences of the checks that failed."""
        return tuple(check.sentence for check in self.checks if not check.passed)

    def table(self) -> pd.DataFrame:
        """Return one row a check, indexed by its name; thresholds have no p-values."""
        import pandas as pd

        columns = ("statistic", "p_value", "p_adjusted", "passed", "sentence")
        rows = [[getattr(check, column) for column in columns] for check in self.checks]
        index = pd.Index([check.name for check in self.checks], name="check")
        return pd.DataFrame(rows, index=index, columns=list(columns))


@dataclass(frozen=True)
class PendingTest:
    """A test whose outcome waits for the correction: a p-value and what a failure means."""

    name: str
    statistic: float
    p_value: float
    numbers: str
    failure: str
    advice: str = ""


def decide(tests: Sequence[PendingTest], level: float) -> tuple[Check, ...]:
    """Return the tests as checks, each decided at the level after Holm's correction."""
    adjusted = holm([test.p_value for test in tests])
    return tuple(_decided(test, p, level) for test, p in zip(tests, adjusted, strict=True))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's step-down procedure (1979)."""
    raw = np.array(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    steps = np.maximum.accumulate(raw[order] * np.arange(raw.size, 0, -1))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(p) for p in adjusted]


def threshold(name: str, statistic: float, passed: bool, text: str, advice: str) -> Check:
    """Return a check of a statistic against a plain threshold."""
    sentence = Sentence(text, ".") if passed else Sentence(text, ". ", advice)
    return Check(name, statistic, None, None, passed, sentence)


def _decided(test: PendingTest, p_adjusted: float, level: float) -> Check:
    passed = p_adjusted >= level
    p_words = "< 0.001" if test.p_value < 0.001 else f"= {test.p_value:.3f}"
    numbers = Sentence(test.numbers, f", p {p_words}")
    if passed and test.p_value < level:  # which alone would fail
        numbers = Sentence(numbers, f", corrected for all tests {p_adjusted:.3f}")
    sentence = (
        Sentence("Nothing unusual: ", numbers, ".")
        if passed
        else Sentence(test.failure, ": ", numbers, ". ", test.advice)
    )
    return Check(test.name, test.statistic, test.p_value, p_adjusted, passed, sentence)
