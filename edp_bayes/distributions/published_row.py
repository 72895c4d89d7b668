"""What of a row of answers is published, each by a rule of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise
from edp_bayes.distributions.published import WORST, Published
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils.arrays import Array, Index

__all__ = ["PublishedRow"]

OPTIONS = ("rounded_to", "offset", "threshold", "bins")


@dataclass(frozen=True)
class PublishedRow:
    """Rules by which several answers are published; made and checked by `of`.

    Attributes
    ----------
    names : tuple of str
        The queries.
    rules : tuple of Published or None
        One for each; of None the answer is published in full.
    whole_row : bool
        Where one answer is suppressed, so are all.
    noises : tuple of GaussianNoise, LaplaceNoise or None
        One for each: what is added to answers without rules; empty where rules are given.

    See Also
    --------
    edp_bayes.distributions.published.Published : what of one answer is published

    Examples
    --------
    >>> row = PublishedRow.of(
    ...     ("revenue", "orders"), rounded_to={"revenue": 100, "orders": 5},
    ...     threshold={"orders": 10}, whole_row=True,
    ... )
    >>> row.words
    'with revenue rounded to 100, orders rounded to 5 and suppressed below 10 with the whole row'
    >>> row.cells(np.array([[820.0, 12.0], [840.0, 11.0], [820.0, 3.0], [210.0, 4.0]]))
    array([1, 1, 0, 0])
    """

    names: tuple[str, ...]
    rules: tuple[Published | None, ...]
    whole_row: bool = False
    noises: tuple[GaussianNoise | LaplaceNoise | None, ...] = ()

    @classmethod
    def of(
        cls, names: Sequence[str], *, noise_after: Any = None, whole_row: bool = False, **asked: Any
    ) -> PublishedRow:
        """Check the arguments of `edp_bayes.released` for several queries.

        Parameters
        ----------
        names : sequence of str
            The queries.
        noise_after, whole_row, asked
            As for `edp_bayes.released`: of `asked` mappings by query, or None.

        Raises
        ------
        InvalidInputError, InputTypeError
            If an argument cannot be used, or not together with another.
        """
        if noise_after is not None:
            if whole_row or any(asked.get(option) is not None for option in OPTIONS):
                raise InvalidInputError(
                    "rounded answers with noise have no cells, whose masses several answers are "
                    "summed over: leave noise_after out, as noise after rounding only lowers the "
                    "risk, or give it alone, for noise on the whole answers"
                )
            return cls(tuple(names), (None,) * len(names), noises=_noises(noise_after, names))
        options: dict[str, dict[str, Any]] = {name: {} for name in names}
        for option in OPTIONS:
            for query, value in _by_query(asked.get(option), option, names).items():
                options[query][option] = value
        if any(one.get("offset") == WORST for one in options.values()):
            raise InvalidInputError(
                "the worst place of several grids is not looked for, since it is that of all at "
                "once: give offsets as numbers; the risk of the whole answers, which is this "
                "audit, is no less at any"
            )
        rules = tuple(Published.of(**one) if one else None for one in options.values())
        if not any(rules):
            raise InvalidInputError(
                "say what is published of which query: "
                f"rounded_to={{{names[0]!r}: 1000}}, threshold= or bins="
            )
        suppressed = any(one is not None and one.threshold is not None for one in rules)
        if whole_row and not suppressed:
            raise InvalidInputError(
                "whole_row suppresses all answers where one is: give threshold= of a query"
            )
        return cls(tuple(names), rules, whole_row)

    def cells(self, y: Array) -> Index:
        """Return a number, from 0, of what is published of each row of answers (n, query)."""
        low = y.copy()
        hidden = np.zeros(len(y), dtype=bool)
        for k, rule in enumerate(self.rules):
            if rule is not None:
                low[:, k] = rule.intervals(y[:, k])[0]
                hidden |= y[:, k] < rule.first_edge
        if self.whole_row:
            low[hidden] = -np.inf
        found = np.zeros(len(y), dtype=np.int64)
        for column in low.T:
            values, place = np.unique(column, return_inverse=True)
            found = np.unique(found * values.size + place, return_inverse=True)[1]
        return found

    def alone(self, query: int) -> bool:
        """Return whether the row tells what is published of one answer by its own rule."""
        others = [rule for k, rule in enumerate(self.rules) if k != query and rule is not None]
        return not self.whole_row or all(rule.threshold is None for rule in others)

    @property
    def words(self) -> str:
        """What is published, in words."""
        said = [
            f"{name} {rule.words.replace(', ', ' and ')}"
            f"{' with the whole row' if self.whole_row and rule.threshold is not None else ''}"
            for name, rule in zip(self.names, self.rules, strict=True)
            if rule is not None
        ]
        said += [
            f"{noise} added to {name}"
            for name, noise in zip(self.names, self.noises, strict=False)
            if noise is not None
        ]
        return f"with {', '.join(said)}"

    @property
    def record(self) -> dict[str, Any]:
        """What was asked for, as plain values."""
        rules = {
            name: rule.record
            for name, rule in zip(self.names, self.rules, strict=True)
            if rule is not None
        }
        noises = {
            name: str(noise)
            for name, noise in zip(self.names, self.noises, strict=False)
            if noise is not None
        }
        found = {"words": self.words, "rules": rules, "whole_row": self.whole_row}
        return found | ({"noise_after": noises} if noises else {})


def _noises(asked: Any, names: Sequence[str]) -> tuple[GaussianNoise | LaplaceNoise | None, ...]:
    """Return the noise of each query, None where there is none."""
    found = _by_query(asked, "noise_after", names)
    for noise in found.values():
        if not isinstance(noise, GaussianNoise | LaplaceNoise):
            raise InputTypeError(
                f"noise_after must be GaussianNoise or LaplaceNoise, found {type(noise).__name__}"
            )
    if not found:
        raise InvalidInputError("noise_after must name at least one query")
    return tuple(found.get(name) for name in names)


def _by_query(asked: Any, option: str, names: Sequence[str]) -> Mapping[str, Any]:
    """Return what is asked of each query by name."""
    if asked is None:
        return {}
    if not isinstance(asked, Mapping):
        raise InputTypeError(
            f"{option} of several queries must be a mapping by query, such as "
            f"{{{names[0]!r}: ...}}, found {asked!r}"
        )
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise InvalidInputError(
            f"{option} must name queries of the audit, {', '.join(names)}; found {unknown[0]!r}"
        )
    return asked
