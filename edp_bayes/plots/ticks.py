"""Numbers at ticks, in full: nothing is to be added or multiplied from a corner of the figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.ticker import Formatter

__all__ = ["PlainFormatter", "plain_numbers"]

MILLION, THOUSANDTH = 1e6, 1e-3
MOST = 12  # decimals
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class PlainFormatter(Formatter):  # type: ignore[misc, unused-ignore]
    """Write the numbers of an axis by `plain_numbers`."""

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the words of all ticks."""
        self.set_locs(list(values))
        return plain_numbers([float(value) for value in values])

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the words of one number."""
        return plain_numbers([float(x)])[0]


def plain_numbers(values: Sequence[float]) -> list[str]:
    """Return numbers with one number of decimals, the fewest that tell them apart.

    From a million on, and below a thousandth, each has its own power of ten.

    Examples
    --------
    >>> plain_numbers([0.0, 0.25, 0.5]), plain_numbers([10_000.0, 20_000.0])
    (['0.00', '0.25', '0.50'], ['10,000', '20,000'])
    >>> plain_numbers([0.0, 2.5e7]), plain_numbers([-2e-5, 2e-5])
    (['0', '25×10⁶'], ['−20×10⁻⁶', '20×10⁻⁶'])
    """
    largest = max(map(abs, values), default=0.0)
    if largest >= MILLION or 0.0 < largest < THOUSANDTH:
        power = 3 * math.floor(math.log10(largest) / 3.0 + 1e-9)
        unit = 10.0**power
        ending = "×10" + str(power).translate(_RAISED)
    else:
        unit, ending = 1.0, ""
    shares = [value / unit for value in values]
    decimals = _decimals(shares)
    words = [f"{share:,.{decimals}f}" for share in shares]
    zero = f"{0.0:.{decimals}f}" if not ending else "0"
    return [
        zero if float(word.replace(",", "")) == 0.0 else word.replace("-", "−") + ending
        for word in words
    ]


def _decimals(values: Sequence[float]) -> int:
    """Return how many decimals give every value to a hundredth of the steps between them."""
    distinct = sorted(set(values))
    steps = [b - a for a, b in pairwise(distinct)]
    allowed = 0.01 * min(steps, default=max(map(abs, values), default=1.0) or 1.0)
    for decimals in range(MOST):
        if all(abs(round(value, decimals) - value) <= allowed for value in values):
            return decimals
    return MOST
