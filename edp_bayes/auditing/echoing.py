"""How contributions echo where later databases follow what the others contributed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    from edp_bayes.auditing.composing import Source
    from edp_bayes.results.query import Audit

__all__ = ["OTHERS", "RELEASED", "checked_past", "echo_of", "with_echo"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

OTHERS, RELEASED = PASTS = ("others", "released")


def checked_past(past: str) -> str:
    """Return what later databases follow, or say what it may be."""
    if past not in PASTS:
        raise InvalidInputError(f"past must be one of {', '.join(PASTS)}, found {past!r}")
    return past


def _lags(audit: Audit, count: int) -> Array | None:
    """Return the coefficients of the lags that reach so many databases, (chain * draw, lag).

    None where the answers do not depend on earlier ones, or there is one database only.
    """
    if "known" not in audit.tree.children:
        return None
    group = audit.tree["known"].to_dataset()
    reaching = min(int(group.attrs["past"]), count - 1)
    if reaching < 1:
        return None
    slopes = group["coefficients"].transpose("chain", "draw", "term").to_numpy()[..., :reaching]
    return np.asarray(slopes.reshape(-1, reaching))


def with_echo(source: Source, audit: Audit, chosen: Index) -> Source:
    """Return what is composed, with the echo of contributions in later databases.

    Upper bounds are of contributions that are as much larger as echoes may make them, where each
    answer tells its component of the mixture; what tests reach is of what is left of them.
    """
    from edp_bayes.coupling.echo import Echo, echoed

    slopes = _lags(audit, source.count)
    if slopes is None:
        return source
    slopes = slopes[chosen]
    return replace(
        source,
        coupling=echoed(source.coupling, Echo.most(slopes)),
        least=echoed(source.coupling, Echo.least(slopes)),
    )


def echo_of(audit: Audit, count: int) -> float:
    """Return by how much echoes enlarge contributions at most, the mean of all draws."""
    from edp_bayes.coupling.echo import Echo

    slopes = _lags(audit, count)
    return 1.0 if slopes is None else float(Echo.most(slopes).sometimes.mean())
