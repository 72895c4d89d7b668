"""One HTML file about a result, to hand on: `write_report`.

`content` says what a report holds, `describing` computes it from a result by what that has, and
`html` renders it. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edp_bayes.report.describing import describe
    from edp_bayes.report.html import write_report
    from edp_bayes.report.pseudonyms import pseudonym_table

_NAMES = {"describe": "describing", "pseudonym_table": "pseudonyms", "write_report": "html"}

__all__ = ["describe", "pseudonym_table", "write_report"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(f"edp_bayes.report.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
