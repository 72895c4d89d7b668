"""One small table of records for every engine, and the queries that are asked of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from edp_bayes import Databases, queries

QUERIES = [
    queries.Count(),
    queries.Sum("amount"),
    queries.Mean("amount"),
    queries.Variance("amount"),
    queries.Slope("level", "amount"),
    queries.Proportion("paid"),
    queries.Proportion("items", ">=", 2.5),
    queries.Proportion("kind", "==", "a"),
    queries.Quantile("amount", 0.3),
]


def records(size: int = 400) -> pd.DataFrame:
    """Records whose amounts lie between a thousandth and ten thousands: floats lose digits."""
    rng = np.random.default_rng(7)
    spare = size - 40
    return pd.DataFrame(
        {
            "week": np.concatenate([np.repeat(np.arange(20), 2), rng.integers(20, size=spare)]),
            "client": [
                f"c{k}" for k in [*np.tile([0, 1], 20), *rng.integers(6, size=spare).tolist()]
            ],
            "amount": rng.normal(50.0, 9.0, size) * 10.0 ** rng.integers(-3, 3, size),
            "level": rng.normal(1e6, 1.0, size),
            "items": rng.integers(0, 5, size),
            "kind": rng.choice(["a", "b"], size),
            "paid": rng.random(size) < 0.4,
        }
    )


def fingerprints(table: object, asked: list[queries.Query] | None = None) -> dict[str, str]:
    """Return the fingerprints of the responses to some queries, or to all."""
    databases = Databases.from_table(table, database="week", individual="client")
    return {
        str(query): databases.respond(query).fingerprint
        for query in (QUERIES if asked is None else asked)
    }
