"""Customary rules of disclosure control beside delta, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edp_bayes.exceptions import InputTypeError
from edp_bayes.report.content import Fact, RuleRow, RulesHeld
from edp_bayes.utils.formatting import counted, risk_limit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["rules_fact", "rules_held"]


def rules_held(rules: pd.DataFrame) -> RulesHeld:
    """Return which rules pass, and the limit of delta before and after each.

    Parameters
    ----------
    rules : DataFrame
        What `edp_bayes.disclosure` returned.

    Raises
    ------
    InputTypeError
        If it is something else.
    """
    if "meaning" not in getattr(rules, "attrs", {}):
        raise InputTypeError(
            f"rules must be what edp_bayes.disclosure returned, found {type(rules).__name__}"
        )
    rows = tuple(
        RuleRow(
            str(name),
            "yes" if row["passed"] else f"no, {counted(row['failing'], 'database')}",
            _limit(row.get("limit_before")),
            _limit(row.get("limit_after")),
        )
        for name, row in rules.iterrows()
    )
    return RulesHeld(rows, rules.attrs["epsilon"], rules.attrs["meaning"])


def rules_fact(rules: RulesHeld) -> Fact:
    """Return how many rules every database passes, for the first page."""
    passed = sum(row.passed == "yes" for row in rules.rows)
    return Fact(
        "Rules of disclosure control", f"{passed} of {len(rules.rows)} passed in all databases"
    )


def _limit(value: float | None) -> str:
    return "not known" if value is None or math.isnan(value) else risk_limit(float(value))
