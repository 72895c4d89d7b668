"""Queries with exact leave-one-out responses, and any callable by rerunning it."""

from edp_bayes.queries.parsing import parse
from edp_bayes.queries.proportion import Proportion
from edp_bayes.queries.quantile import Quantile
from edp_bayes.queries.slope import Slope
from edp_bayes.queries.totals import Count, Mean, Sum
from edp_bayes.queries.variance import Variance
from edp_bayes.records.query import Query

__all__ = [
    "Count",
    "Mean",
    "Proportion",
    "Quantile",
    "Query",
    "Slope",
    "Sum",
    "Variance",
    "parse",
]
