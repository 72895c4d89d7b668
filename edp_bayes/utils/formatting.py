"""Numbers and names as they stand in a report, a legend or on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "about",
    "at_most",
    "counted",
    "crossing",
    "enough",
    "first_line",
    "number",
    "percent",
    "risk",
    "risk_least",
    "risk_limit",
    "rounded_up",
    "short",
]

SMALLEST = 1e-6
MOST_DIGITS = 15
LONGEST = 120
KNOWN = 0.01  # an epsilon known to a hundredth is given as it is


def risk(value: float, *, exact: bool = False, digits: int = 2) -> str:
    """Return a probability with two digits, in few characters, as for a table.

    Parameters
    ----------
    value : float
        The probability.
    exact : bool
        Whether a zero is that. Otherwise it is a number too small to be known, and no more is said
        of it than that it is small.
    digits : int
        How many, if not two.

    Examples
    --------
    >>> [risk(value) for value in (0.01234, 0.00012, 3e-9, 0.0)]
    ['0.012', '1.2e-4', '< 1e-6', '< 1e-6']
    >>> risk(0.0, exact=True), risk(0.9996), risk(1.0)
    ('0', '> 0.99', '1')
    """
    if value < SMALLEST:
        return "0" if exact and value == 0.0 else "< 1e-6"
    if value < 1.0 and float(f"{value:.{digits}g}") == 1.0:
        return "> 0.99"
    if value >= 1e-3:
        return f"{value:.{digits}g}"
    return f"{value:.{digits - 1}e}".replace("e-0", "e-")


def about(value: float, *, exact: bool = False) -> str:
    """Return a probability as `risk` does, for a sentence.

    Examples
    --------
    >>> about(0.01234), about(3e-9)
    ('0.012', 'below 1e-6')
    """
    return risk(value, exact=exact).replace("< ", "below ").replace("> ", "above ")


def at_most(value: float, *, exact: bool = False, resting: str = "", target: float = 1.0) -> str:
    """Return what an upper limit of a probability says, in words that follow "is".

    Parameters
    ----------
    value, exact
        As for `risk`.
    resting : str
        What a limit rests on that is zero or too small to be known.
    target
        As for `risk_limit`.

    Examples
    --------
    >>> at_most(0.0451), at_most(0.0, exact=True)
    ('at most 0.046', 'exactly 0')
    >>> at_most(0.0, resting="resting on the model")
    'below 1e-6, resting on the model'
    """
    if value >= SMALLEST:
        return f"at most {risk_limit(value, target=target)}"
    said = "exactly 0" if exact and value == 0.0 else "below 1e-6"
    return f"{said}, {resting}" if resting else said


def risk_limit(value: float, *, exact: bool = False, target: float = 1.0) -> str:
    """Return an upper limit of a probability with two digits, rounded up, as for a table.

    One that is at most a target is never shown above it: it has as many digits as that takes.

    Examples
    --------
    >>> [risk_limit(value) for value in (0.2001, 0.0451, 0.2, 3e-9, 0.0)]
    ['0.21', '0.046', '0.2', '< 1e-6', '< 1e-6']
    >>> risk_limit(0.10028, target=0.101)
    '0.101'
    """
    if value < SMALLEST:
        return risk(value, exact=exact)
    for shown, digits in _shorter(value, lambda units: math.ceil(units - 1e-9)):
        if shown <= target * (1.0 + 1e-12) or value > target:
            return risk(min(shown, 1.0), digits=digits)
    return f"{value!r}"


def risk_least(value: float, *, target: float = 0.0) -> str:
    """Return a lower limit of a probability with two digits, rounded down.

    One that is above a target is shown above it: it has as many digits as that takes.

    Examples
    --------
    >>> [risk_least(value) for value in (0.2099, 0.0451, 0.2, 3e-9, 0.0)]
    ['0.2', '0.045', '0.2', '0', '0']
    >>> risk_least(0.20084, target=0.2)
    '0.2008'
    """
    if value < SMALLEST:
        return "0"
    for shown, digits in _shorter(value, lambda units: math.floor(units + 1e-9)):
        if shown > target or value <= target:
            return risk(shown, digits=digits)
    return f"{value!r}"


def _shorter(value: float, whole: Callable[[float], int]) -> Iterator[tuple[float, int]]:
    """Yield a value rounded to two digits and to ever more, and how many."""
    least = math.floor(math.log10(value))
    for digits in range(2, MOST_DIGITS + 1):
        unit = 10.0 ** (least - digits + 1)
        yield whole(value / unit) * unit, digits


def enough(value: float, digits: int = 6) -> str:
    """Return the shortest number of so many digits that is not below a positive one.

    A number that is given as the least that would do has to do.

    Examples
    --------
    >>> enough(0.5 / 11), enough(0.0733, 2), enough(0.25)
    ('0.0454546', '0.074', '0.25')
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    steps = math.floor(value / unit)
    return next(
        text for more in range(3) if float(text := f"{(steps + more) * unit:.{digits}g}") >= value
    )


def number(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits, commas between thousands.

    Examples
    --------
    >>> [number(value) for value in (12345.678, 1234.56, 0.00005, float("inf"))]
    ['12,350', '1,235', '5e-5', 'infinite']
    """
    if math.isinf(value):
        return "infinite"
    text = f"{value:.{digits}g}".replace("e-0", "e-")
    return f"{float(text):,.0f}" if 1e3 <= abs(float(text)) < 1e15 else text


def crossing(value: float, least: float, last: float) -> str:
    """Return an epsilon that lies between two numbers, the smaller of which may be far below.

    Examples
    --------
    >>> [crossing(*ends, 0.5) for ends in ((0.1, 0.0), (0.25, 0.2499), (math.inf, 0.5))]
    ['at most 0.1', '0.25', 'above 0.5']
    """
    if value > last:
        return f"above {last:.4g}"
    return f"{value:.3g}" if value - least <= KNOWN * value else f"at most {value:.3g}"


def percent(prob: float) -> str:
    """Return a probability in per cent.

    Examples
    --------
    >>> percent(0.95), percent(0.995)
    ('95%', '99.5%')
    """
    return f"{100 * prob:.4g}%"


def counted(count: int, noun: str) -> str:
    """Return how many of something there are, in words.

    Examples
    --------
    >>> counted(1, "cell"), counted(1200, "cell")
    ('1 cell', '1,200 cells')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def either(words: Iterable[str]) -> str:
    """Return words as a choice, of which there is one at least.

    Examples
    --------
    >>> either(["1"]), either(["1", "2", "5"])
    ('1', '1, 2 or 5')
    """
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def short(name: str) -> str:
    """Return a name, cut where it is too long for a table.

    Examples
    --------
    >>> short("x" * 200)[-24:]
    'xxxx... (200 characters)'
    """
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}... ({len(name)} characters)"


def first_line(error: BaseException) -> str:
    """Return the first line of what an error of another library says, or else its name.

    Examples
    --------
    >>> first_line(ValueError("no such host" + chr(10) + "at line 7"))
    'no such host'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def rounded_up(value: float, digits: int = 2) -> float:
    """Return a number rounded away from zero to some significant digits.

    Examples
    --------
    >>> rounded_up(1234.5), rounded_up(0.051), rounded_up(0.0)
    (1300.0, 0.051, 0.0)
    """
    if value == 0.0 or not math.isfinite(value):
        return value
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    if unit == 0.0:
        return value
    up = math.ceil(abs(value) / unit * (1.0 - 1e-12)) * unit
    return math.copysign(float(f"{up:.{digits + 1}g}"), value)
