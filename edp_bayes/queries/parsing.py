"""Queries written as text, for the command line."""

from __future__ import annotations

import re

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.queries.proportion import Proportion, literal
from edp_bayes.queries.quantile import Quantile
from edp_bayes.queries.slope import Slope
from edp_bayes.queries.totals import Count, Mean, Sum
from edp_bayes.queries.variance import Variance
from edp_bayes.records.query import Query

FORMS = (
    "count",
    "sum:COLUMN",
    "mean:COLUMN",
    "proportion:COLUMN",
    "proportion:COLUMN>=VALUE (or <=, ==, !=, >, <)",
    "variance:COLUMN",
    "median:COLUMN",
    "quantile:COLUMN:LEVEL",
    "slope:RESPONSE:PREDICTOR",
)
ONE_COLUMN = {"sum": Sum, "mean": Mean, "variance": Variance}
CONDITION = re.compile(r"(?P<column>.*?)\s*(?P<comparison>>=|<=|==|!=|>|<)\s*(?P<value>.+)")


def parse(text: str) -> Query:
    """Return the query that a text stands for.

    Parameters
    ----------
    text : str
        One of the forms "count", "sum:x", "mean:x", "proportion:x", "proportion:x>=40",
        "variance:x", "median:x", "quantile:x:0.9" and "slope:y:x". The column may be left out
        where the data have only one value column. A median is the quantile of level 0.5.

    Returns
    -------
    Query

    Raises
    ------
    InvalidInputError
        If the text has none of these forms.
    InputTypeError
        If it is not a string.

    See Also
    --------
    Query : what every query offers
    edp_bayes.Databases.respond : the responses of a query

    Examples
    --------
    >>> parse("proportion:age>=40")
    Proportion(column='age', comparison='>=', value=40)
    """
    if not isinstance(text, str):
        raise InputTypeError(f"a query must be given as text, found {text!r}")
    name, _, rest = text.strip().partition(":")
    name, rest = name.strip().lower(), rest.strip()
    if name == "count" and not rest:
        return Count()
    if name in ONE_COLUMN:
        return ONE_COLUMN[name](rest or None)
    if name == "proportion":
        return _proportion(rest)
    if name == "median":
        return Quantile(rest or None)
    if name == "quantile":
        return _quantile(rest, text)
    if name == "slope" and rest.count(":") == 1:
        response, predictor = (part.strip() for part in rest.split(":"))
        if response and predictor:
            return Slope(response, predictor)
    raise _unknown(text)


def _proportion(rest: str) -> Proportion:
    match = CONDITION.fullmatch(rest)
    if match is None:
        return Proportion(rest or None)
    return Proportion(match["column"] or None, match["comparison"], literal(match["value"]))


def _quantile(rest: str, text: str) -> Quantile:
    column, _, level = rest.rpartition(":")
    try:
        q = float(level)
    except ValueError:
        raise _unknown(text) from None
    return Quantile(column.strip() or None, q)


def _unknown(text: str) -> InvalidInputError:
    return InvalidInputError(f"unknown query {text!r}; the forms are {'; '.join(FORMS)}")
