"""Statistical privacy of property queries (Breutigam and Reischuk, "Statistical Privacy").

A property query answers with the share of the entries of one database that have a property. The
adversary knows the law of the entries but none of them, or only some of them. Every curve here is
exact; names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edp_bayes.statistical_privacy import figures
    from edp_bayes.statistical_privacy.approximations import normal_approximation
    from edp_bayes.statistical_privacy.beta_binomial import beta_binomial_delta
    from edp_bayes.statistical_privacy.choosing import MechanismChoice, least_utility_loss
    from edp_bayes.statistical_privacy.curves import delta, delta_minus, delta_plus
    from edp_bayes.statistical_privacy.differential_privacy import (
        differential_privacy_delta,
        laplace_epsilon,
    )
    from edp_bayes.statistical_privacy.groups import group_delta
    from edp_bayes.statistical_privacy.inversion import epsilon_at
    from edp_bayes.statistical_privacy.mechanisms import GaussianNoise, LaplaceNoise, Subsampling
    from edp_bayes.statistical_privacy.property_query import PropertyQuery
    from edp_bayes.statistical_privacy.subsampling_theorem import subsampling_bound
    from edp_bayes.statistical_privacy.utility import matching_rate, matching_scale, utility_loss

_NAMES = {
    "GaussianNoise": "mechanisms",
    "LaplaceNoise": "mechanisms",
    "MechanismChoice": "choosing",
    "PropertyQuery": "property_query",
    "Subsampling": "mechanisms",
    "beta_binomial_delta": "beta_binomial",
    "delta": "curves",
    "delta_minus": "curves",
    "delta_plus": "curves",
    "differential_privacy_delta": "differential_privacy",
    "epsilon_at": "inversion",
    "group_delta": "groups",
    "laplace_epsilon": "differential_privacy",
    "least_utility_loss": "choosing",
    "matching_rate": "utility",
    "matching_scale": "utility",
    "normal_approximation": "approximations",
    "subsampling_bound": "subsampling_theorem",
    "utility_loss": "utility",
}

__all__ = [
    "GaussianNoise",
    "LaplaceNoise",
    "MechanismChoice",
    "PropertyQuery",
    "Subsampling",
    "beta_binomial_delta",
    "delta",
    "delta_minus",
    "delta_plus",
    "differential_privacy_delta",
    "epsilon_at",
    "figures",
    "group_delta",
    "laplace_epsilon",
    "least_utility_loss",
    "matching_rate",
    "matching_scale",
    "normal_approximation",
    "subsampling_bound",
    "utility_loss",
]


def __getattr__(name: str) -> Any:
    if name == "figures":
        return import_module(f"{__name__}.figures")
    if name in _NAMES:
        value = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
