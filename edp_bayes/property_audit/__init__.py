"""Property queries audited from counts: a posterior of pi, and of the privacy curve it implies.

`audit_property` takes counts of positives and returns a `PropertyAudit`. The models are PyMC
models that can be opened, changed and replaced. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edp_bayes.property_audit.auditing import audit_property
    from edp_bayes.property_audit.counts import PropertyCounts
    from edp_bayes.property_audit.models import BetaBinomialModel, BinomialModel, PyMCProbabilities
    from edp_bayes.property_audit.result import PropertyAudit, load_property_audit

_NAMES = {
    "BetaBinomialModel": "models",
    "BinomialModel": "models",
    "PropertyAudit": "result",
    "PropertyCounts": "counts",
    "PyMCProbabilities": "models",
    "audit_property": "auditing",
    "load_property_audit": "result",
}

__all__ = [
    "BetaBinomialModel",
    "BinomialModel",
    "PropertyAudit",
    "PropertyCounts",
    "PyMCProbabilities",
    "audit_property",
    "load_property_audit",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
