"""Draws the figures: numerals, units and names only, so that the words around them can be translated.

Every function takes plain numbers and gives what matplotlib writes; :mod:`orchestrator.report.svg` makes it fit
for the page. Sizes are in points of a 380-point-wide column, so that a figure stays legible at 360 pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from orchestrator.report.canvas import (
    MARKERS,
    SERIES,
    canvas,
    label,
    make_axes,
    nice_ticks,
    ratio_axis,
    ratio_limits,
    series_colour,
    ticks_between,
)
from orchestrator.report.svg import COLOUR
from orchestrator.schema import units

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One comparison. ``floor`` is the half-width of the A/A band; ``tone`` is ``good``, ``bad`` or ``flat``."""

    label: str
    number: str
    point: float
    low: float | None
    high: float | None
    floor: float | None
    tone: str
    sessions: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """A cell's acceptance rate (a share of one) and its wait ratio with interval."""

    label: str
    acceptance: float
    ratio: float
    low: float | None
    high: float | None
    marker: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Tokens on screen over time: seconds at which token 1, 2, … was there (medians). ``series`` −1 is off."""

    label: str
    seconds: tuple[float, ...]
    series: int


@dataclass(frozen=True, slots=True)
class StripRow:
    """Every raw value of one cell by session, in seconds, with their median. ``series`` −1 is off."""

    label: str
    sessions: tuple[tuple[float, ...], ...]
    median: float
    series: int


@dataclass(frozen=True, slots=True)
class OrderSeries:
    """Trials in the order they ran: position, and value ÷ the cell's own median of that prompt."""

    label: str
    points: tuple[tuple[int, float], ...]
    series: int


def forest(rows: Sequence[ForestRow]) -> str:
    """Ratios with their intervals on a log axis, each over its own A/A band; small ticks are session ratios."""
    height = 30.0 + 40.0 * len(rows)
    with canvas(height) as (figure, out):
        axes = make_axes(figure, height, left=14, right=14, bottom=26, top=4)
        reach = [value for row in rows for value in (row.low, row.high, row.point, *row.sessions) if value is not None]
        reach += [bound for row in rows if row.floor for bound in (1 + row.floor, 1 / (1 + row.floor))]
        low, high = ratio_limits(reach)
        axes.set_xlim(math.log2(low), math.log2(high))
        axes.set_ylim(-len(rows), 0)
        for index, row in enumerate(rows):
            _forest_row(axes, row, -index - 1, math.log2(low), math.log2(high))
        ticks = ratio_axis(axes, low, high)
        axes.grid(visible=False)
        for index in range(len(rows)):
            bottom, top = -index - 1.0, -index - 0.42
            axes.vlines(ticks, bottom, top, color=COLOUR["line"], linewidth=0.8, zorder=0.5)
            axes.vlines([0], bottom, top, color=COLOUR["mute"], linewidth=1.1, zorder=1)
        axes.yaxis.set_major_locator(NullLocator())
    return out.getvalue()


def _forest_row(axes: Axes, row: ForestRow, base: float, left: float, right: float) -> None:
    centre = base + 0.3
    if row.floor:
        edge = math.log2(1 + row.floor)
        axes.fill_between([-edge, edge], base + 0.06, base + 0.56, color=COLOUR["band"], linewidth=0, zorder=0)
    colour = COLOUR[row.tone]
    if row.low is not None and row.high is not None:
        ends = [math.log2(max(row.low, 2**left)), math.log2(min(row.high, 2**right))]
        axes.plot(ends, [centre, centre], color=colour, linewidth=2.4, solid_capstyle="round", zorder=2)
    logs = [math.log2(value) for value in row.sessions]
    axes.scatter(logs, [centre - 0.19] * len(logs), marker="|", s=26, color=COLOUR["mute"], linewidths=0.9, zorder=2)
    marker = {"good": "o", "bad": "s", "flat": "o"}[row.tone]
    face = COLOUR["card"] if row.tone == "flat" else colour
    axes.scatter(
        [math.log2(row.point)],
        [centre],
        marker=marker,
        s=46,
        facecolor=face,
        edgecolor=colour,
        linewidths=1.8,
        zorder=3,
    )
    label(axes, left, base + 0.62, row.label, ha="left", va="bottom", color=COLOUR["ink"])
    label(axes, right, base + 0.62, row.number, ha="right", va="bottom", color=colour, weight="bold")


def scatter(points: Sequence[ScatterPoint]) -> str:
    """Acceptance against wait: a figure that shows that one is not the other. Down is less waiting."""
    height = 270.0
    with canvas(height) as (figure, out):
        axes = make_axes(figure, height, left=46, right=14, bottom=28, top=10)
        low, high = ratio_limits([v for p in points for v in (p.ratio, p.low, p.high) if v is not None])
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(math.log2(low), math.log2(high))
        axes.axhline(0, color=COLOUR["mute"], linewidth=1, zorder=1)
        for point in points:
            x, y, colour = point.acceptance, math.log2(point.ratio), COLOUR[SERIES[point.marker % len(SERIES)]]
            if point.low is not None and point.high is not None:
                axes.plot([x, x], [math.log2(point.low), math.log2(point.high)], color=colour, linewidth=1.6, zorder=2)
            axes.scatter(
                [x],
                [y],
                marker=MARKERS[point.marker % len(MARKERS)],
                s=44,
                facecolor=colour,
                edgecolor=COLOUR["card"],
                linewidths=1,
                zorder=3,
            )
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
    for point in sorted(points, key=lambda p: (p.ratio, p.label)):
        y = math.log2(point.ratio)
        while any(abs(y - other) < step for other in taken):
            y += step / 4
        taken.append(y)
        side = "left" if point.acceptance < 0.55 else "right"
        x = point.acceptance + (0.022 if side == "left" else -0.022)
        label(axes, x, y, point.label, ha=side, va="center", color=COLOUR["ink"], size=10)


def curves(series: Sequence[Curve]) -> str:
    """Tokens on screen against seconds: bursts are steps."""
    height = 230.0
    with canvas(height) as (figure, out):
        axes = make_axes(figure, height, left=38, right=14, bottom=28, top=12)
        tokens = max(len(curve.seconds) for curve in series)
        longest = max(curve.seconds[-1] for curve in series)
        axes.set_xlim(0, longest * 1.02)
        axes.set_ylim(0, tokens * 1.1)
        for curve in sorted(series, key=lambda one: one.series):
            colour = series_colour(curve.series)
            axes.step(
                (0.0, *curve.seconds),
                range(len(curve.seconds) + 1),
                where="post",
                color=colour,
                linewidth=1.6 if curve.series < 0 else 2.2,
            )
        _curve_labels(axes, series, height - 40)
        axes.xaxis.set_major_locator(FixedLocator(nice_ticks(longest)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else units.seconds(value)))
        axes.yaxis.set_major_locator(FixedLocator(nice_ticks(tokens)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
        axes.grid(axis="y", color=COLOUR["line"], linewidth=0.8)
    return out.getvalue()


def _curve_labels(axes: Axes, series: Sequence[Curve], height: float) -> None:
    """Names along the right edge of each curve, at heights that keep them apart."""
    top = axes.get_ylim()[1]
    step = 19.0 / height * top
    ordered = sorted(series, key=lambda one: (one.seconds[-1], one.label))
    for place, curve in enumerate(ordered):
        tokens = max(1, len(curve.seconds) - round(place * step) - 1)
        x = curve.seconds[tokens - 1]
        left = x < 0.7 * axes.get_xlim()[1]
        pad = 0.012 * axes.get_xlim()[1]
        label(
            axes,
            x + (pad if left else -pad),
            tokens,
            curve.label,
            ha="left" if left else "right",
            va="center",
            color=series_colour(curve.series),
            size=10,
            weight="bold",
        )


def strip(rows: Sequence[StripRow]) -> str:
    """Every raw value, one lane per session, with the median as a stroke."""
    height = 30.0 + 44.0 * len(rows)
    with canvas(height) as (figure, out):
        axes = make_axes(figure, height, left=14, right=14, bottom=26, top=4)
        values = [value for row in rows for lane in row.sessions for value in lane]
        spread = max(values) - min(values) or max(values)
        axes.set_xlim(max(0.0, min(values) - 0.06 * spread), max(values) + 0.06 * spread)
        axes.set_ylim(-len(rows), 0)
        left, right = axes.get_xlim()
        for index, row in enumerate(rows):
            base, colour = -index - 1.0, series_colour(row.series)
            lanes = max(1, len(row.sessions))
            for lane, session in enumerate(row.sessions):
                y = base + 0.56 - 0.5 * (lane + 0.5) / lanes
                axes.scatter(session, [y] * len(session), s=11, color=colour, alpha=0.65, linewidths=0, zorder=2)
            axes.plot([row.median] * 2, [base + 0.03, base + 0.59], color=COLOUR["ink"], linewidth=1.4, zorder=3)
            label(axes, left, base + 0.66, row.label, ha="left", va="bottom", color=COLOUR["ink"])
            count = sum(len(lane) for lane in row.sessions)
            label(
                axes,
                right,
                base + 0.66,
                f"{units.seconds(row.median)} · n = {count}",
                ha="right",
                va="bottom",
                color=COLOUR["mute"],
            )
        ticks = ticks_between(left, right)
        for index in range(len(rows)):
            axes.vlines(ticks, -index - 1.0, -index - 0.38, color=COLOUR["line"], linewidth=0.8, zorder=0.5)
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == 0 else units.seconds(value)))
        axes.yaxis.set_major_locator(NullLocator())
    return out.getvalue()


def order(series: Sequence[OrderSeries]) -> str:
    """Trials in the order they ran; a machine that drifts shows a slope."""
    height = 200.0
    with canvas(height) as (figure, out):
        axes = make_axes(figure, height, left=46, right=14, bottom=26, top=8)
        values = [value for one in series for _, value in one.points]
        last = max(position for one in series for position, _ in one.points)
        low, high = ratio_limits(values)
        axes.set_xlim(0, last + 1)
        axes.set_ylim(math.log2(low), math.log2(high))
        axes.axhline(0, color=COLOUR["mute"], linewidth=1, zorder=1)
        for one in series:
            axes.scatter(
                [p for p, _ in one.points],
                [math.log2(v) for _, v in one.points],
                marker=MARKERS[(one.series + 1) % len(MARKERS)],
                s=15,
                color=series_colour(one.series),
                alpha=0.8,
                linewidths=0,
                zorder=2,
            )
        ratio_axis(axes, low, high, vertical=True)
        axes.xaxis.set_major_locator(FixedLocator([t for t in nice_ticks(last) if t >= 1 or t == 0]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    return out.getvalue()
