"""`edp-bayes interval`: epsilon as an interval around the true answer, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edp_bayes.cli import options
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.terminal import terminal

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

    from edp_bayes.distributions.noise import GaussianNoise, LaplaceNoise

__all__ = ["interval"]

SOUGHT = {
    "width": ("interval_width", "relative half-width of the interval"),
    "level": ("interval_level", "probability of an answer within the interval"),
    "epsilon": ("interval_epsilon", "epsilon of the Laplace mechanism"),
}


def interval(
    count: Annotated[
        float | None, typer.Option("--count", help="True answer, such as a count.")
    ] = None,
    released: Annotated[
        float | None, typer.Option("--released", help="Noisy count, in place of the true one.")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise",
            help="Noise of the released count: laplace:SCALE or gaussian:SCALE; by default that "
            "of --epsilon.",
        ),
    ] = None,
    width: Annotated[
        str | None, typer.Option("--width", help="Half-width relative to the answer; a list: a,b.")
    ] = None,
    level: Annotated[
        str | None, typer.Option("--level", help="Probability of the interval; a list: a,b.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="Epsilon of the mechanism; a list: a,b.")
    ] = None,
    sensitivity: Annotated[
        float, typer.Option("--sensitivity", help="Largest effect of one individual.")
    ] = 1.0,
    seed: options.Seed = None,
) -> None:
    """Print epsilon, level or width, whichever is not given, of an interval around a count."""
    from edp_bayes import interval as intervals
    from edp_bayes.cli.numbers import parse_numbers
    from edp_bayes.utils import validate

    given = {"width": width, "level": level, "epsilon": epsilon}
    missing = [name for name, text in given.items() if text is None]
    if len(missing) != 1:
        found = [f"--{name}" for name in given if name not in missing]
        raise InvalidInputError(
            "exactly two of --width, --level and --epsilon must be given, found "
            + (", ".join(found) or "none")
        )
    if (count is None) == (released is None):
        raise InvalidInputError("exactly one of --count and --released must be given")
    axes = {
        name: parse_numbers(text, f"--{name}") for name, text in given.items() if text is not None
    }
    if released is None:
        if noise is not None:
            raise InvalidInputError("--noise is for a count that was --released")
        answer: float | xr.DataArray = validate.positive_number(count, "--count")
    else:
        scale = validate.positive_number(sensitivity, "--sensitivity")
        distribution = _noise(noise, axes.get("epsilon"), scale)
        answer = intervals.answer_from_release(released, distribution, random_seed=seed)
    result = intervals.posterior(answer, **axes, sensitivity=sensitivity)
    _print(result, missing[0], terminal(), known=released is None)


def _noise(
    text: str | None, epsilon: list[float] | None, sensitivity: float
) -> LaplaceNoise | GaussianNoise:
    from edp_bayes.cli.numbers import parse_noise
    from edp_bayes.distributions.noise import LaplaceNoise
    from edp_bayes.utils import validate

    if text is not None:
        return parse_noise(text, "--noise")
    if epsilon is None or len(epsilon) > 1:
        raise InvalidInputError(
            "a released count needs its --noise, or the one --epsilon it was released with"
        )
    return LaplaceNoise(sensitivity / validate.positive_number(epsilon[0], "--epsilon"))


def _print(found: xr.Dataset, sought: str, console: Console, *, known: bool) -> None:
    """Print a row for each pair of what was given."""
    from rich.table import Table

    from edp_bayes.results.summaries import interval as quantiles
    from edp_bayes.utils.formatting import percent

    name, words = SOUGHT[sought]
    others = [axis for axis in SOUGHT if axis != sought]
    table = Table()
    for head in (*others, sought, *(() if known else ("interval",))):
        table.add_column(head, justify="right")
    cells = found[name].stack(cell=others)
    for k in range(cells.sizes["cell"]):
        one = cells.isel(cell=k)
        lower, middle, upper = quantiles(one, PROB)
        row = [*(f"{float(one[axis]):g}" for axis in others), f"{middle:.6g}"]
        table.add_row(*row, *(() if known else (f"{lower:.6g} to {upper:.6g}",)))
    if known:
        console.print(f"True answer {float(found['answer'][0, 0]):g}; {sought}: {words}.")
    else:
        tailed = f"median and {percent(PROB)} equal-tailed interval"
        lower, middle, upper = quantiles(found["answer"], PROB)
        console.print(
            f"True answer {middle:g}, {lower:g} to {upper:g}: {tailed}, from a flat prior on the "
            f"counts from 1. {sought}: {words}; {tailed}."
        )
    console.print(table)
