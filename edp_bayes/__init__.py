"""Posterior distributions and credible bands for empirical differential privacy.

Every name below is imported when it is first used, so that ``import edp_bayes`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edp_bayes import (
        diagnostics,
        interval,
        local_privacy,
        mechanisms,
        models,
        noise,
        plugin,
        property_audit,
        queries,
        report,
        statistical_privacy,
    )
    from edp_bayes.auditing import audit
    from edp_bayes.black_box.result import MechanismAudit, load_mechanism_audit
    from edp_bayes.comparison import compare
    from edp_bayes.databases import Databases
    from edp_bayes.divergence import hockey_stick
    from edp_bayes.exceptions import (
        EdpBayesError,
        EdpBayesWarning,
        InputTypeError,
        InvalidInputError,
        SamplingError,
    )
    from edp_bayes.mechanism_audit import audit_mechanism, audit_mechanisms
    from edp_bayes.membership import epsilon_from_membership
    from edp_bayes.mixtures import Mixture
    from edp_bayes.models import (
        DirichletProcessMixture,
        FiniteMixture,
        PyMCMixture,
        SmoothedBootstrap,
        Stacked,
    )
    from edp_bayes.noise import GaussianNoise, LaplaceNoise
    from edp_bayes.planning import plan
    from edp_bayes.property_audit import PropertyAudit, audit_property, load_property_audit
    from edp_bayes.responses import Responses
    from edp_bayes.result import Audit, load_audit

__version__ = "0.1.0"

_MODULES = (
    "diagnostics",
    "interval",
    "local_privacy",
    "mechanisms",
    "models",
    "noise",
    "plugin",
    "property_audit",
    "queries",
    "report",
    "statistical_privacy",
)
_NAMES = {
    "Audit": "result",
    "Databases": "databases",
    "DirichletProcessMixture": "models.dirichlet_process",
    "EdpBayesError": "exceptions",
    "EdpBayesWarning": "exceptions",
    "FiniteMixture": "models.finite_mixture",
    "GaussianNoise": "noise",
    "InputTypeError": "exceptions",
    "InvalidInputError": "exceptions",
    "LaplaceNoise": "noise",
    "Mixture": "mixtures",
    "PropertyAudit": "property_audit.result",
    "PyMCMixture": "models.custom",
    "Responses": "responses",
    "SamplingError": "exceptions",
    "SmoothedBootstrap": "models.smoothed_bootstrap",
    "Stacked": "models.stacking",
    "audit": "auditing",
    "audit_mechanism": "mechanism_audit",
    "audit_mechanisms": "mechanism_audit",
    "audit_property": "property_audit.auditing",
    "load_mechanism_audit": "black_box.result",
    "MechanismAudit": "black_box.result",
    "compare": "comparison",
    "epsilon_from_membership": "membership",
    "hockey_stick": "divergence",
    "load_audit": "result",
    "load_property_audit": "property_audit.result",
    "plan": "planning",
}

__all__ = [
    "Audit",
    "Databases",
    "DirichletProcessMixture",
    "EdpBayesError",
    "EdpBayesWarning",
    "FiniteMixture",
    "GaussianNoise",
    "InputTypeError",
    "InvalidInputError",
    "LaplaceNoise",
    "MechanismAudit",
    "Mixture",
    "PropertyAudit",
    "PyMCMixture",
    "Responses",
    "SamplingError",
    "SmoothedBootstrap",
    "Stacked",
    "__version__",
    "audit",
    "audit_mechanism",
    "audit_mechanisms",
    "audit_property",
    "compare",
    "diagnostics",
    "epsilon_from_membership",
    "hockey_stick",
    "interval",
    "load_audit",
    "load_mechanism_audit",
    "load_property_audit",
    "local_privacy",
    "mechanisms",
    "models",
    "noise",
    "plan",
    "plugin",
    "property_audit",
    "queries",
    "report",
    "statistical_privacy",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"edp_bayes.{name}")
    if name in _NAMES:
        value = getattr(import_module(f"edp_bayes.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'edp_bayes' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
