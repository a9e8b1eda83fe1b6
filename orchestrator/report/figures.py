"""Draws the figures: numerals, units and names only, so that the words around them can be translated.

Every function takes plain numbers and gives what matplotlib writes; :mod:`orchestrator.report.svg` makes it fit
for the page. Sizes are in points of a 380-point-wide column, so that a figure stays legible at 360 pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter

from orchestrator.report.axes import ratio_limits
from orchestrator.report.canvas import MARKERS, SERIES, canvas, label, make_axes, ratio_axis
from orchestrator.report.svg import COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LABELLED = 12
"""Points of a scatter that are named in the figure; beyond it the names would cover each other."""


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """A cell's acceptance rate (a share of one) and its wait ratio with interval."""

    label: str
    acceptance: float
    ratio: float
    low: float | None
    high: float | None
    marker: int


def scatter(points: Sequence[ScatterPoint]) -> str:
    """Acceptance against wait: a figure that shows that one is not the other. Down is less waiting."""
    height = 270.0
    with canvas(height) as (figure, out):
        axes = make_axes(figure, height, left=46, right=14, bottom=28, top=10)
        low, high = ratio_limits([v for p in points for v in (p.ratio, p.low, p.high) if v is not None])
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(math.log2(low), math.log2(high))
        axes.axhline(0, color=COLOUR["mute"], linewidth=1, zorder=1)
        for marker in sorted({point.marker for point in points}):
            mine = [point for point in points if point.marker == marker]
            spans = [(p.acceptance, p.low, p.high) for p in mine if p.low is not None and p.high is not None]
            _spans(axes, spans, marker)
            _marks(axes, [p.acceptance for p in mine], [math.log2(p.ratio) for p in mine], marker)
        _scatter_labels(axes, points, height - 38)
        axes.xaxis.set_major_locator(FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        ratio_axis(axes, low, high, vertical=True)
    return out.getvalue()


def _scatter_labels(axes: Axes, points: Sequence[ScatterPoint], height: float) -> None:
    """Names beside the points, moved apart where two would meet: the same points always give the same places."""
    bottom, top = axes.get_ylim()
    step = 13.0 / height * (top - bottom)
    taken: list[float] = []
    if len(points) > LABELLED:
        # Where all cannot be named, those that the caption speaks of are.
        points = [max(points, key=lambda p: p.acceptance), min(points, key=lambda p: p.ratio)]
    for point in sorted(dict.fromkeys(points), key=lambda p: (p.ratio, p.label)):
        y = math.log2(point.ratio)
        while any(abs(y - other) < step for other in taken):
            y += step / 4
        taken.append(y)
        side = "left" if point.acceptance < 0.55 else "right"
        x = point.acceptance + (0.022 if side == "left" else -0.022)
        label(axes, x, y, point.label, ha=side, va="center", color=COLOUR["ink"], size=10)


@dataclass(frozen=True, slots=True)
class SweepSeries:
    """Decode rate on ÷ off by draft length: (K, point, low, high), and the model's curve of (K, value)."""

    label: str
    points: tuple[tuple[int, float, float | None, float | None], ...]
    model: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class PositionSeries:
    """Conditional acceptance by draft position: (position, low, high); equal where the counts settle it."""

    label: str
    points: tuple[tuple[int, float, float], ...]


def sweep(series: Sequence[SweepSeries]) -> str:
    """Draft lengths against the decode rate: marks are measured, dashes are the model."""
    height = 230.0
    with canvas(height) as (figure, out):
        axes = make_axes(figure, height, left=46, right=14, bottom=28, top=10)
        values = [v for one in series for row in one.points for v in row[1:] if v is not None]
        values += [v for one in series for _, v in one.model]
        lengths = sorted({k for one in series for k, *_ in one.points} | {k for one in series for k, _ in one.model})
        low, high = ratio_limits(values)
        axes.set_xlim(lengths[0] - 0.5, lengths[-1] + 0.5)
        axes.set_ylim(math.log2(low), math.log2(high))
        axes.axhline(0, color=COLOUR["mute"], linewidth=1, zorder=1)
        for number, one in enumerate(series):
            colour = COLOUR[SERIES[number % len(SERIES)]]
            if one.model:
                xs, ys = [k for k, _ in one.model], [math.log2(v) for _, v in one.model]
                axes.plot(xs, ys, color=colour, linewidth=1.4, linestyle=(0, (4, 3)), zorder=2)
            spans = [(k, low_, high_) for k, _, low_, high_ in one.points if low_ is not None and high_ is not None]
            _spans(axes, spans, number)
            _marks(axes, [row[0] for row in one.points], [math.log2(row[1]) for row in one.points], number)
        ratio_axis(axes, low, high, vertical=True)
        axes.xaxis.set_major_locator(FixedLocator(_spaced(lengths)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"K = {value:.0f}"))
    return out.getvalue()


def positions(series: Sequence[PositionSeries]) -> str:
    """Of the draft tokens judged at a position, how many were accepted."""
    height = 220.0
    with canvas(height) as (figure, out):
        axes = make_axes(figure, height, left=46, right=14, bottom=28, top=10)
        last = max(place for one in series for place, *_ in one.points)
        axes.set_xlim(0.6, last + 0.4)
        axes.set_ylim(0, 1.04)
        for number, one in enumerate(series):
            colour = COLOUR[SERIES[number % len(SERIES)]]
            places, middles = [p for p, *_ in one.points], [(low + high) / 2 for _, low, high in one.points]
            axes.plot(places, middles, color=colour, linewidth=1.2, alpha=0.6, zorder=2)
            for place, low, high in one.points:
                if high - low > 0.004:
                    axes.plot([place, place], [low, high], color=colour, linewidth=1.6, zorder=2)
            _marks(axes, places, middles, number)
        axes.xaxis.set_major_locator(FixedLocator(_spaced(list(range(1, last + 1)))))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
        axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        axes.grid(axis="y", color=COLOUR["line"], linewidth=0.8)
    return out.getvalue()


def _spans(axes: Axes, spans: Sequence[tuple[float, float, float]], number: int) -> None:
    """Intervals of ratios as strokes, all of one series at once: a call each would cost more than all the rest."""
    if spans:
        xs, lows, highs = zip(*spans, strict=True)
        colour = COLOUR[SERIES[number % len(SERIES)]]
        axes.vlines(
            xs, [math.log2(v) for v in lows], [math.log2(v) for v in highs], color=colour, linewidth=1.6, zorder=2
        )


def _marks(axes: Axes, xs: Sequence[float], ys: Sequence[float], number: int) -> None:
    colour = COLOUR[SERIES[number % len(SERIES)]]
    shape = MARKERS[number % len(MARKERS)]
    axes.scatter(xs, ys, marker=shape, s=40, facecolor=colour, edgecolor=COLOUR["card"], linewidths=1, zorder=3)


def _spaced(places: Sequence[int]) -> list[int]:
    """At most twelve of them, evenly."""
    return list(places[:: max(1, math.ceil(len(places) / 12))])
