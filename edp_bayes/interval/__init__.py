"""Epsilon by interval estimation (Naldi and D'Acquisto 2015)."""

from edp_bayes.interval.formulas import (
    count_curves,
    epsilon,
    iso_curves,
    level_curves,
    level_from_epsilon,
    posterior,
    width_curves,
    width_from_epsilon,
)
from edp_bayes.interval.true_answers import (
    answer_from_data,
    answer_from_mixture,
    answer_from_release,
)

__all__ = [
    "answer_from_data",
    "answer_from_mixture",
    "answer_from_release",
    "count_curves",
    "epsilon",
    "iso_curves",
    "level_curves",
    "level_from_epsilon",
    "posterior",
    "width_curves",
    "width_from_epsilon",
]
