"""Draws the scatter of a panel: numerals, units and names only, so that the words around it can be translated.

It takes plain numbers and gives what matplotlib writes; :mod:`.svg` makes it fit for the page.
Sizes are in points of a 380-point-wide column, so that a figure stays legible at 360 pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.collections import LineCollection
from matplotlib.ticker import FixedLocator, FuncFormatter

from orchestrator.report.figures.axes import ratio_limits
from orchestrator.report.figures.canvas import MARKERS, SERIES, WIDTH, canvas, label, make_axes, ratio_axis
from orchestrator.report.figures.labels import Box, Spot, arrange
from orchestrator.report.figures.svg import COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELLED = 12
"""Points that are named at most, those that the caption speaks of first; more names would hide the points."""
HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 270.0, 46.0, 14.0, 28.0, 10.0
START, END = -0.03, 1.03
"""Where the axis of acceptance begins and ends."""


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """A cell's acceptance rate (a share of one) and its wait ratio with interval."""

    label: str
    acceptance: float
    ratio: float
    low: float | None
    high: float | None
    marker: int


def scatter(points: Sequence[ScatterPoint]) -> tuple[str, int]:
    """Acceptance against wait: a figure that shows that one is not the other. Down is less waiting.

    Returns:
        What matplotlib writes, and how many points have no name in it for want of room.
    """
    with canvas(HEIGHT) as (figure, out):
        axes = make_axes(figure, HEIGHT, left=LEFT, right=RIGHT, bottom=BOTTOM, top=TOP)
        low, high = ratio_limits([v for p in points for v in (p.ratio, p.low, p.high) if v is not None])
        axes.set_xlim(START, END)
        axes.set_ylim(math.log2(low), math.log2(high))
        axes.axhline(0, color=COLOUR["mute"], linewidth=1, zorder=1)
        for marker in sorted({point.marker for point in points}):
            mine = [point for point in points if point.marker == marker]
            colour, shape = COLOUR[SERIES[marker % len(SERIES)]], MARKERS[marker % len(MARKERS)]
            spans = [
                [(p.acceptance, math.log2(p.low)), (p.acceptance, math.log2(p.high))]
                for p in mine
                if p.low is not None and p.high is not None
            ]
            axes.add_collection(LineCollection(spans, colors=colour, linewidths=1.6, zorder=2), autolim=False)
            axes.scatter(
                [p.acceptance for p in mine], [math.log2(p.ratio) for p in mine],
                marker=shape, s=40, facecolor=colour, edgecolor=COLOUR["card"], linewidths=1, zorder=3,
            )  # fmt: skip
        named = _names(axes, points, low, high)
        axes.xaxis.set_major_locator(FixedLocator([0, 0.2, 0.4, 0.6, 0.8, 1]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        ratio_axis(axes, low, high, vertical=True)
    return out.getvalue(), len(points) - named


def _names(axes: Axes, points: Sequence[ScatterPoint], low: float, high: float) -> int:
    """Writes the names that there is room for, and tells how many."""
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    bottom, top = math.log2(low), math.log2(high)

    def x(acceptance: float) -> float:
        return (acceptance - START) / (END - START) * across

    def y(ratio: float) -> float:
        return (top - math.log2(ratio)) / (top - bottom) * down

    spots = [
        Spot(p.label, x(p.acceptance), y(p.ratio), y(p.low) if p.low else None, y(p.high) if p.high else None)
        for p in sorted(points, key=_weight(points))
    ]
    # Every mark and stroke is in the way of a name, whether or not it has one of its own.
    places = arrange(spots, Box(0, -TOP, across + RIGHT - 2, down))
    written = [(spot, place) for spot, place in zip(spots, places, strict=True) if place is not None][:LABELLED]
    for spot, place in written:
        middle = (place.top + place.bottom) / 2
        at = top - middle / down * (top - bottom)
        side, edge = "center", (place.left + place.right) / 2
        if place.left >= spot.x:
            side, edge = "left", place.left
        elif place.right <= spot.x:
            side, edge = "right", place.right
        x_at = edge / across * (END - START) + START
        label(axes, x_at, at, spot.name, ha=side, va="center", color=COLOUR["ink"], size=10)
    return len(written)


def _weight(points: Sequence[ScatterPoint]) -> Callable[[ScatterPoint], tuple[bool, float, str]]:
    """Sorts those first that the caption speaks of: most accepted, and least waited."""
    most, least = max(points, key=lambda p: p.acceptance), min(points, key=lambda p: p.ratio)
    return lambda p: (p not in (most, least), p.ratio, p.label)
