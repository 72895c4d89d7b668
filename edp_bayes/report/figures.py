"""Geometry of the figures: numbers to SVG paths. How they look stands in the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from edp_bayes.report.content import Band, Content, Curve, Distributions, Histogram, SeenSeries
from edp_bayes.utils.formatting import number, percent

__all__ = [
    "Figure",
    "distribution_figures",
    "histogram",
    "privacy_figures",
    "seen_figures",
    "total_figure",
]

WIDTH, HEIGHT = 720, 350
LEFT, RIGHT, TOP, BOTTOM = 84, 30, 16, 58
DECADES = 8
TICKS = 5
DATES = 4  # on an axis, legible on a phone, too
DOT = 2  # radius of an answer
ROOM = 1.3  # around a median, for its band


@dataclass(frozen=True)
class Axis:
    """A scale from numbers to pixels; `named` are ticks to be shown in place of round values."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False
    named: tuple[tuple[float, str], ...] = ()

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, at the edge if it lies beyond."""
        if self.logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start)

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Pixels and labels of round values, or of those that have names."""
        if self.named:
            return tuple((round(self(value), 1), name) for value, name in self.named)
        values = _powers(self.low, self.high) if self.logarithmic else _round(self.low, self.high)
        names = [number(value) for value in values]
        if len(set(names)) < len(names):
            names = [f"{value:,.12g}" for value in values]
        return tuple((round(self(v), 1), name) for v, name in zip(values, names, strict=True))


@dataclass(frozen=True)
class Mark:
    """One thing drawn: a filled area or a line, with its words and its `key` in the legend."""

    look: str
    path: str
    label: str = ""
    key: str = "M0,6H26"


@dataclass(frozen=True)
class Figure:
    """A figure, ready to be written as SVG.

    Attributes
    ----------
    name : str
        Identifies it in the page.
    says : str
        What it shows, for those who cannot see it.
    x, y : Axis
    areas, lines : tuple of Mark
    cursor : tuple of float
        Pixels of the grid of epsilon, for the marker that follows the slider; else empty.
    """

    name: str
    says: str
    x_label: str
    y_label: str
    x: Axis
    y: Axis
    areas: tuple[Mark, ...] = ()
    lines: tuple[Mark, ...] = ()
    bars: tuple[tuple[float, float, float, str], ...] = ()
    cursor: tuple[float, ...] = ()
    width: int = field(default=WIDTH, init=False)
    height: int = field(default=HEIGHT, init=False)


def privacy_figures(content: Content) -> tuple[Figure, ...]:
    """Return the privacy curve on a linear and, where there is something, a logarithmic axis."""
    label = {
        "query": "δ: largest risk of an individual",
        "composition": "δ: largest risk of an individual",
        "mechanism": "δ: difference of the outcomes",
        "property": "δ: risk of the critical entry",
    }[content.kind]
    return _curve_figures(content, "delta", content.curve, label, "The privacy curve", ())


def total_figure(content: Content) -> tuple[Figure, ...]:
    """Return the total risk with its two bounds, likewise."""
    if content.total is None:
        return ()
    limit = percent(content.prob)
    bounds = (
        (
            "upper-bound",
            content.total.bound,
            f"min(1, sum of risks), upper end of the {limit} band",
        ),
        ("lower-bound", content.curve.least, f"largest risk, lower end of the {limit} band"),
    )
    label = "δ*: risk that anybody is exposed"
    return _curve_figures(content, "total", content.total.curve, label, "The total risk", bounds)


def distribution_figures(
    distributions: Distributions, index: int, prob: float, epsilon: float
) -> tuple[Figure, Figure]:
    """Return the densities with and without an individual, and their log ratio below."""
    x = Axis(distributions.x[0], distributions.x[-1], LEFT, WIDTH - RIGHT)
    top = max(
        max(c.pointwise.upper) for c in (distributions.present, distributions.absent) if c.pointwise
    )
    density = _vertical(0.0, top)
    words = f"median and {percent(prob)} pointwise band"
    marks = [
        _banded(distributions.x, curve, x, density, look, f"{look}: {words}")
        for look, curve in (("with", distributions.present), ("without", distributions.absent))
    ]
    above = Figure(
        f"density-{index}",
        "Densities of the answer with and without the individual",
        distributions.axis,
        "density",
        x,
        density,
        areas=tuple(area for area, _ in marks),
        lines=tuple(line for _, line in marks),
    )
    return above, _ratio_figure(distributions, index, words, epsilon, x)


def histogram(rest: Histogram) -> Figure | None:
    """Return bars of how many individuals have a median risk in each power of ten."""
    if not rest.counts:
        return None
    first, last = rest.exponents[0], rest.exponents[-1]
    # Bars of one or two would fill the figure.
    x = Axis(float(first), float(max(last, first + 4)), LEFT, WIDTH - RIGHT)
    y = Axis(0.5, 2.0 * max(rest.counts), HEIGHT - BOTTOM, TOP, logarithmic=True)
    floor = y(y.low)
    bars = tuple(
        (x(power) + 2.0, y(count), x(power + 1) - x(power) - 4.0, f"{count:,}")
        for power, count in zip(rest.exponents, rest.counts, strict=False)
        if count
    )
    return Figure(
        "rest",
        "How many of the other individuals have which risk",
        "posterior median of δᵢ, as a power of ten",
        "individuals",
        x,
        y,
        bars=tuple(
            (round(at, 1), round(up, 1), round(wide, 1), label) for at, up, wide, label in bars
        ),
        lines=(Mark("axis", f"M{LEFT},{floor:.1f}H{WIDTH - RIGHT}"),),
    )


def seen_figures(content: Content) -> list[Figure]:
    """Return the responses seen, with what was expected of each and of the database in question.

    One of each query.
    """
    return [
        _seen_figure(seen, content.prob, f"seen-{k}" if k else "seen")
        for k, seen in enumerate(content.seen)
    ]


def _seen_figure(seen: SeenSeries, prob: float, name: str) -> Figure:
    places = tuple(float(seen.first + k) for k in range(len(seen.median)))
    values = (*seen.responses, *seen.outer.lower, *seen.outer.upper)
    room = 0.05 * (max(values) - min(values))
    last = max(places[-1], float(len(seen.responses)))
    x = Axis(1.0, last, LEFT, WIDTH - RIGHT, named=_dated(seen.dates))
    y = Axis(min(values) - room, max(values) + room, HEIGHT - BOTTOM, TOP)
    at = x(places[seen.at])
    ends = (y(seen.outer.lower[seen.at]), y(seen.outer.upper[seen.at]))
    dots = "".join(_dot(x(k + 1.0), y(value)) for k, value in enumerate(seen.responses))
    answer = f"answer to {seen.query}" if seen.query else seen.axis
    return Figure(
        name,
        "Answers in their order, and what was expected of each",
        "database" if seen.dates else "database, in their order",
        f"{answer}, less what insiders contributed" if seen.less else answer,
        x,
        y,
        areas=(
            Mark("outer", _area(places, seen.outer, x, y), f"expected: {percent(prob)} interval"),
            Mark(
                "inner",
                _area(places, seen.inner, x, y),
                f"expected: {percent(seen.inner_prob)} interval",
            ),
        ),
        lines=(
            Mark("median", _line(places, seen.median, x, y), "expected: median"),
            Mark(
                "question", f"M{at:.1f},{ends[0]:.1f}V{ends[1]:.1f}", f"in question: {seen.label}"
            ),
            Mark("seen", dots, "answers", key=_dot(13, 6)),
        ),
    )


def _dot(x: float, y: float) -> str:
    return f"M{x - DOT:.1f},{y:.1f}a{DOT},{DOT} 0 1,0 {2 * DOT},0a{DOT},{DOT} 0 1,0 {-2 * DOT},0"


def _dated(dates: Sequence[str]) -> tuple[tuple[float, str], ...]:
    """Return numbers of a few databases, away from both ends of the axis, with their dates."""
    last = len(dates) - 1
    shown = sorted({round((k + 0.5) / DATES * last) for k in range(DATES)}) if dates else ()
    return tuple((k + 1.0, dates[k]) for k in shown)


def _curve_figures(
    content: Content,
    name: str,
    curve: Curve,
    label: str,
    title: str,
    bounds: Sequence[tuple[str, tuple[float, ...], str]],
) -> tuple[Figure, ...]:
    grid = content.epsilon
    low, high = (grid[0], grid[-1]) if len(grid) > 1 else (0.5 * grid[0], 1.5 * grid[0] + 1e-3)
    x = Axis(low, high, LEFT, WIDTH - RIGHT)
    band = curve.widest
    tops = [max(curve.median), max(band.upper) if band else 0.0]
    tops += [min(max(values), 1.0) for _, values, _ in bounds]
    top = max(max(tops), 1e-12)
    least = min((v for v in curve.median if v > 0.0), default=top)
    floor = max(least / 3.0, top * 10.0**-DECADES)
    axes = [_vertical(0.0, top)]
    if top / floor > 20.0:
        axes.append(Axis(floor, min(2.0 * top, 1.0) if top < 1.0 else 1.0,
                         HEIGHT - BOTTOM, TOP, logarithmic=True))  # fmt: skip
    figures = []
    for y in axes:
        areas, lines = [], []
        for kind in ("simultaneous", "pointwise"):
            ends = getattr(curve, kind)
            if ends is not None:
                words = f"{percent(content.prob)} {kind} band"
                areas.append(Mark(kind, _area(grid, ends, x, y), words))
        for look, values, words in bounds:
            lines.append(Mark(look, _line(grid, values, x, y), words))
        words = "exact" if content.exact else "posterior median"
        lines.append(Mark("median", _line(grid, curve.median, x, y), words))
        scale = "log" if y.logarithmic else "linear"
        figures.append(
            Figure(
                f"{name}-{scale}",
                f"{title} over epsilon, {scale} axis",
                "ε",
                label,
                x,
                y,
                tuple(areas),
                tuple(lines),
                cursor=tuple(round(x(e), 1) for e in grid),
            )
        )
    return tuple(figures)


def _ratio_figure(
    distributions: Distributions, index: int, words: str, epsilon: float, x: Axis
) -> Figure:
    # in the far tails a band may be endless
    edge = ROOM * max(epsilon, *map(abs, distributions.ratio.median), 1e-9)
    y = Axis(-edge, edge, HEIGHT - BOTTOM, TOP)
    area, line = _banded(
        distributions.ratio_x, distributions.ratio, x, y, "ratio", f"log ratio: {words}"
    )
    ends = [
        Mark("strip", f"M{x.start},{y(value):.1f}H{x.stop}", label)
        for value, label in ((epsilon, f"plus and minus ε = {epsilon:.4g}"), (-epsilon, ""))
    ]
    return Figure(
        f"ratio-{index}",
        "Logarithm of the ratio of both densities",
        distributions.axis,
        "log(with / without)",
        x,
        y,
        areas=(area,),
        lines=(line, *ends),
    )


def _banded(
    xs: Sequence[float], curve: Curve, x: Axis, y: Axis, look: str, words: str
) -> tuple[Mark, Mark]:
    band = curve.pointwise or Band(curve.median, curve.median)
    return (
        Mark(look, _area(xs, band, x, y)),
        Mark(look, _line(xs, curve.median, x, y), words),
    )


def _vertical(low: float, high: float) -> Axis:
    return Axis(low, 1.05 * high, HEIGHT - BOTTOM, TOP)


def _points(xs: Sequence[float], ys: Sequence[float], x: Axis, y: Axis) -> list[str]:
    return [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(xs, ys, strict=True)]


def _line(xs: Sequence[float], ys: Sequence[float], x: Axis, y: Axis) -> str:
    points = _points(xs, ys, x, y)
    if len(points) == 1:
        return f"M{x.start},{y(ys[0]):.1f}H{x.stop}"
    return "M" + "L".join(points)


def _area(xs: Sequence[float], band: Band, x: Axis, y: Axis) -> str:
    if len(xs) == 1:
        return f"M{x.start},{y(band.lower[0]):.1f}H{x.stop}V{y(band.upper[0]):.1f}H{x.start}Z"
    there = _points(xs, band.upper, x, y)
    back = _points(xs, band.lower, x, y)[::-1]
    return "M" + "L".join([*there, *back]) + "Z"


def _round(low: float, high: float) -> list[float]:
    """Return about five multiples of 1, 2 or 5 times a power of ten between two ends."""
    rough = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= rough * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, -(-(last - first + 1) // (TICKS + 1)))
    return [float(f"1e{k}") for k in range(first, last + 1, step)]
