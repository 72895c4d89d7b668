"""What was tried against a risk, what it leaves of it and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edp_bayes.results.verdict import MET, NOT_ESTABLISHED, Target
from edp_bayes.utils.formatting import number, percent, risk_limit

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.results.verdict import Verdict

__all__ = ["Remedy", "Tried"]


# Of kinds, in sentences.
NAMES = {
    "noise": "Gaussian noise",
    "period": "a longer period",
    "limit": "a limit for each contribution",
}


@dataclass(frozen=True)
class Remedy:
    """One thing that was tried.

    Attributes
    ----------
    kind : str
        Such as "rounding".
    what : str
        In words, such as "rounding to 500"; empty where nothing could be tried.
    verdict : Verdict or None
        Of what is published then; None where it was not tried.
    moves : float
        Root mean square of what it moves an answer by, in standard deviations of the answers; NaN
        where there are other answers.
    databases : int
        How many there are then.
    why : str
        Why it was not tried.
    """

    kind: str
    what: str
    verdict: Verdict | None
    moves: float
    databases: int
    why: str = ""

    @property
    def status(self) -> str:
        """As of a verdict; "not tried" where it was not."""
        return "not tried" if self.verdict is None else self.verdict.status

    @property
    def limit(self) -> float:
        """The upper limit of delta; NaN where there is none."""
        if self.verdict is None or self.status == NOT_ESTABLISHED:
            return math.nan
        return self.verdict.limit

    def sentence(self, databases: int) -> str:
        """Return what it leaves and costs, beside an audit of so many databases."""
        if self.verdict is None:
            # it may name an individual
            return f"Not tried: {NAMES.get(self.kind, self.kind)}; the table of remedies says why."
        what = self.what[0].upper() + self.what[1:]
        if self.status == NOT_ESTABLISHED:
            return f"{what}: nothing is established, a check withholds the verdict."
        left = f": the limit is {risk_limit(self.limit)}"
        if self.status == MET:
            said = f"{what} meets the target{left}"
        else:
            said = f"{what} leaves the target {self.status}{left}"
        cost = f" It moves an answer by {number(self.moves, 2)} of its standard deviation."
        if math.isnan(self.moves):
            cost = f" There are {self.databases:,} databases then instead of {databases:,}."
        return f"{said}.{cost}"


@dataclass(frozen=True, eq=False)
class Tried:
    """What was tried so that a target is met; `str` is the result in sentences.

    Made by `edp_bayes.remedies`.

    Parameters
    ----------
    remedies : tuple of Remedy
        One of each kind: the mildest that meets the target, or that of the smallest limit.
    target : Target
        What was to be met.
    prob : float
        Probability of every limit.
    databases : int
        How many there are.

    See Also
    --------
    remedies : try what may help
    Audit.with_tried : a result whose verdict and report say what was tried
    Verdict : of which it is a part

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> steady = np.full(40, 0.5)
    >>> y = np.random.default_rng(1).normal(size=40) + steady
    >>> responses = edp.Responses.from_arrays(y, contribution=steady, additive=True)
    >>> audit = edp.audit(responses, epsilon=[0.1], draws=50, random_seed=1, progressbar=False)
    >>> tried = edp.remedies(audit, responses, kinds=("rounding",), progressbar=False)
    >>> tried.target
    Target(epsilon=0.1, delta=0.1, defaults=('epsilon', 'delta'), individuals=1)
    >>> len(tried.sentences)
    1
    """

    remedies: tuple[Remedy, ...]
    target: Target
    prob: float
    databases: int

    @property
    def table(self) -> pd.DataFrame:
        """One row a kind: remedy, status, limit, moves, databases, why."""
        import pandas as pd

        names = ("what", "status", "limit", "moves", "databases", "why")
        rows = [{name: getattr(one, name) for name in names} for one in self.remedies]
        index = pd.Index([one.kind for one in self.remedies], name="kind")
        return pd.DataFrame(rows, index=index).rename(columns={"what": "remedy"})

    @property
    def sentences(self) -> tuple[str, ...]:
        """What each leaves and costs."""
        return tuple(one.sentence(self.databases) for one in self.remedies)

    @property
    def record(self) -> dict[str, Any]:
        """The target and the sentences, as plain values that a result keeps."""
        return {
            "epsilon": self.target.epsilon,
            "delta": self.target.delta,
            "sentences": list(self.sentences),
        }

    def __str__(self) -> str:
        """Return the target, and what each leaves and costs."""
        held = f"Limits hold with {percent(self.prob)} probability."
        return " ".join((self.target.words, held, *self.sentences))
