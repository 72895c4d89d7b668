"""Real data that come with the package; origin and licence stand in README.md beside them."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load_cdnow", "load_cdnow_weeks"]

FIRST_WEEK = "1997-03-31"
LAST_WEEK = "1998-06-22"


def load_cdnow() -> pd.DataFrame:
    """Return every purchase of the CDNOW data.

    All 23,570 customers who first bought at the online music shop between 1 January and 25 March
    1997, and their 69,659 purchases up to 30 June 1998.

    Returns
    -------
    DataFrame
        One row a purchase: customer (int32), date (day), quantity (number of CDs), dollars
        (amount paid) and week (the Monday on which the week of the purchase began).

    See Also
    --------
    load_cdnow_weeks : example data, 65 whole weeks
    edp_bayes.Databases.from_table : databases from records

    References
    ----------
    Fader and Hardie (2001), Forecasting repeat sales at CDNOW: a case study, Interfaces 31,
    S94-S107.

    Examples
    --------
    >>> load_cdnow().shape
    (69659, 5)
    """
    import pandas as pd
    import pyarrow.parquet as pq

    with as_file(files(__name__) / "cdnow.parquet") as path:
        table: pd.DataFrame = pq.read_table(path).to_pandas(date_as_object=False)
    table["week"] = table["date"] - pd.to_timedelta(table["date"].dt.day_of_week, unit="D")
    return table


def load_cdnow_weeks() -> pd.DataFrame:
    """Return the purchases of the 65 whole weeks after the last customer had joined.

    Customers join until Tuesday 25 March 1997, and revenue is not comparable until they have. The
    first week is therefore the one that begins on Monday 31 March 1997. The data end on Tuesday
    30 June 1998, so the last whole week is the one that begins on Monday 22 June 1998.

    The weeks are the databases of the demo, its individuals the 10,010 customers who bought in one
    of them, its query the revenue of the week. Weeks are not independent: a week with high revenue
    tends to follow another.

    Returns
    -------
    DataFrame
        37,877 purchases, columns as in `load_cdnow`.

    See Also
    --------
    load_cdnow : every purchase
    edp_bayes.Databases.from_table : databases from records

    Examples
    --------
    >>> weeks = load_cdnow_weeks()
    >>> weeks["week"].nunique(), weeks["customer"].nunique()
    (65, 10010)
    """
    table = load_cdnow()
    return table[table["week"].between(FIRST_WEEK, LAST_WEEK)].reset_index(drop=True)
