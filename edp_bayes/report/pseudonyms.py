"""Names of individuals in a report: those of a result saved under pseudonyms, with the same key."""

from __future__ import annotations

from edp_bayes.results.pseudonyms import (
    UNCLEAR,
    WITHHELD,
    Namer,
    Names,
    Pseudonyms,
    namer,
    pseudonym_table,
    worded,
)

__all__ = [
    "UNCLEAR",
    "WITHHELD",
    "Namer",
    "Names",
    "Pseudonyms",
    "namer",
    "pseudonym_table",
    "worded",
]
