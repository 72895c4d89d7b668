"""The record of all cells for machines, with the keys that output checkers' tools read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from edp_bayes.auditing.cells.work import REVEALED
from edp_bayes.results.verdict import MET, NOT_MET
from edp_bayes.results.verdict_record import ACRO_STATUS, REVIEW, RISKS, number_or_none

if TYPE_CHECKING:
    import pandas as pd

    from edp_bayes.auditing.cells.result import Cells

__all__ = ["record_of"]


def record_of(cells: Cells) -> dict[str, Any]:
    """Return the verdicts of cells and how they were made, as `results.verdict_record.record`.

    The status is pass if every target is met, fail if one is not or an individual is revealed, and
    review otherwise.
    """
    from edp_bayes import __version__

    statuses = set(cells.statuses)
    failed = not statuses.isdisjoint({NOT_MET, REVEALED})
    status = ACRO_STATUS[NOT_MET] if failed else REVIEW
    status = ACRO_STATUS[MET] if statuses == {MET} else status
    _, headline = cells.headline(lambda row: str(row["sentence"]))
    return {
        "uid": f"edp_bayes_{cells.fingerprint[:16]}",
        "status": status,
        "type": "privacy audit of cells",
        "properties": {"method": "edp_bayes", "query": cells.query, "by": list(cells.by)},
        "sdc": {
            "summary": {name: cells.statuses.count(name) for name in sorted(statuses)},
            "risks": list(RISKS),
        },
        "command": "edp_bayes.audit_cells",
        "summary": f"{status}; {headline}",
        "outcome": {},
        "output": [],
        "timestamp": datetime.now(UTC).isoformat(),
        "comments": [*filter(None, (cells.chance,)), str(cells.together)],
        "exception": "",
        "cells": _rows(cells.table),
        "together": _rows(cells.together.groups),
        "prob": cells.prob,
        "against": cells.against,
        "fingerprint": cells.fingerprint,
        "databases": cells.databases,
        "individuals": cells.individuals,
        "seed": cells.random_seed,
        "versions": {"edp_bayes": __version__},
    }


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as plain numbers and words."""
    return [
        {
            str(name): number_or_none(value) if isinstance(value, float) else value
            for name, value in row.items()
        }
        for row in table.to_dict(orient="records")
    ]
