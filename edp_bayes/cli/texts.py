"""What the text of an option stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edp_bayes.exceptions import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edp_bayes.distributions.published import Published
    from edp_bayes.models.base import DensityModel

# Digits kept of a spaced grid, so that 0.3 is not 0.30000000000000004.
DIGITS = 12
MOST_EPSILONS = 10_000
# Options that say what is published of an answer.
PUBLISHED = ("rounded_to", "offset", "threshold", "bins")


def number(text: str) -> float | None:
    """Return a number, or None where the text is none."""
    try:
        return float(text)
    except ValueError:
        return None


def columns(values: Iterable[str], option: str) -> tuple[str, ...]:
    """Return column names given by repeating an option or with commas between them.

    Examples
    --------
    >>> columns(["year", "month, day"], "--database")
    ('year', 'month', 'day')
    """
    names = tuple(part.strip() for value in values for part in value.split(","))
    if not names or not all(names):
        raise InvalidInputError(f"{option} must name columns, found {', '.join(values)!r}")
    return names


def parse_atoms(text: str) -> str | list[float]:
    """Return the numbers that a list with commas stands for, or that they are to be found.

    Raises
    ------
    InvalidInputError
        If the text is neither.

    Examples
    --------
    >>> parse_atoms("0,99.5")
    [0.0, 99.5]
    """
    from edp_bayes.responses.atoms import FOUND as AT_ENDS

    if text == AT_ENDS:
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"--atoms must be numbers with commas between them, such as 0,100, or {AT_ENDS}, found "
            f"{text!r}"
        ) from None


def parse_epsilon(text: str) -> NDArray[np.float64]:
    """Return the grid that start:stop:count or a list with commas stands for.

    Raises
    ------
    InvalidInputError
        If the text is neither, or the grid is not increasing and not negative.

    Examples
    --------
    >>> parse_epsilon("0.1:0.3:3")
    array([0.1, 0.2, 0.3])
    """
    import numpy as np

    from edp_bayes.utils import validate

    try:
        if ":" not in text:
            return validate.epsilon_grid([float(part) for part in text.split(",")], "--epsilon")
        start, stop, count = text.split(":")
        first, last, size = float(start), float(stop), int(count)
    except InvalidInputError:
        raise
    except ValueError:
        raise InvalidInputError(
            f"--epsilon must be start:stop:count or a list such as 0.1,0.2,0.5, found {text!r}"
        ) from None
    if not (np.isfinite([first, last]).all() and 1 <= size <= MOST_EPSILONS):
        raise InvalidInputError(
            f"--epsilon must have finite ends and a count from 1 to {MOST_EPSILONS}, found {text!r}"
        )
    if size == 1 and first != last:
        raise InvalidInputError(
            f"--epsilon with a count of 1 has one value and no room for both ends, found {text!r}: "
            f"give --epsilon {first:g} or a larger count"
        )
    return validate.epsilon_grid(np.linspace(first, last, size).round(DIGITS), "--epsilon")


def parse_published(given: Mapping[str, Any]) -> Published | None:
    """Return what is published, of rounded_to, offset, threshold and bins as text or numbers.

    Raises
    ------
    InvalidInputError
        If an option cannot be used, or not together with another.

    Examples
    --------
    >>> parse_published({"rounded_to": 1000.0, "offset": "worst"}).words
    'rounded to 1000 at the worst offset'
    >>> parse_published({"bins": "10, 20"}).bins
    (10.0, 20.0)
    """
    from edp_bayes.distributions.published import WORST, Published

    if not given:
        return None
    asked = dict(given)
    offset = asked.get("offset")
    if offset is not None and "rounded_to" not in asked:
        raise InvalidInputError("--offset is that of a grid: give --rounded-to with its step")
    if offset is not None and offset != WORST:
        asked["offset"] = number(offset)
        if asked["offset"] is None:
            raise InvalidInputError(f"--offset must be a number or worst, found {offset!r}")
    if "bins" in asked:
        asked["bins"] = [number(part) for part in asked["bins"].split(",")]
        if None in asked["bins"]:
            raise InvalidInputError(
                f"--bins must be edges such as 1000,2000,5000, found {given['bins']!r}"
            )
    return Published.of(**asked)


def parse_model(
    text: str,
    kernel: str | None,
    thin: int | None = None,
    components: int | None = None,
    narrowest: float | None = None,
) -> DensityModel:
    """Return the density model that dpm, finite:K or bootstrap stands for.

    The first two have draws that are thin sweeps apart, and a narrowest component; components are
    those of the first.

    Raises
    ------
    InvalidInputError
        If it is none of these, K is no positive integer, the kernel is unknown, or components or
        the narrowest are given for another model.
    """
    from edp_bayes.models import (
        BaseMeasure,
        DirichletProcessMixture,
        FiniteMixture,
        SmoothedBootstrap,
    )
    from edp_bayes.utils import validate

    name, _, count = text.partition(":")
    model: DirichletProcessMixture | FiniteMixture | SmoothedBootstrap
    if text == "dpm":
        model = DirichletProcessMixture()
    elif text == "bootstrap":
        model = SmoothedBootstrap()
    elif name == "finite" and count.isdecimal() and int(count) > 0:
        model = FiniteMixture(components=int(count))
    else:
        raise InvalidInputError(f"--model must be dpm, finite:K or bootstrap, found {text!r}")
    if components is not None and text != "dpm":
        raise InvalidInputError(
            f"--components is for --model dpm, found --model {text}: leave it out, or give the "
            "number of a finite mixture as --model finite:K"
        )
    changes: dict[str, Any] = {"kernel": kernel, "thin": thin, "components": components}
    if narrowest is not None:
        validate.positive_number(narrowest, "--narrowest")
        if text == "bootstrap":
            raise InvalidInputError(
                "--narrowest is for --model dpm and finite:K, found --model bootstrap: leave it "
                "out, or leave out --model"
            )
        changes["base_measure"] = BaseMeasure(narrowest=narrowest)
    return replace(model, **{name: value for name, value in changes.items() if value is not None})
