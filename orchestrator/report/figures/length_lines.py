"""Draws what depends on the draft's length: the decode rate by length, and acceptance by position in the draft.

Numerals, units and names only, so that the words around them can be translated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.report.figures.axes import ratio_limits
from orchestrator.report.figures.draw import WIDTH, Sheet, linear, logarithmic, ratio_ticks
from orchestrator.report.figures.lines import across, colour_of

MOST_TICKS = 12
MARK = 6.4


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


def sweep(series: Sequence[SweepSeries], identifier: str, title: str) -> str:
    """Draft lengths against the decode rate: marks are measured, dashes are the model."""
    sheet = Sheet(230.0)
    values = [v for one in series for row in one.points for v in row[1:] if v is not None]
    values += [v for one in series for _, v in one.model]
    lengths = sorted({row[0] for one in series for row in one.points} | {k for one in series for k, _ in one.model})
    low, high = ratio_limits(values)
    x = linear(lengths[0] - 0.5, lengths[-1] + 0.5, 46, WIDTH - 14)
    y = logarithmic(low, high, 202, 10)
    for tick, text in ratio_ticks(low, high, vertical=True):
        across(sheet, y(tick), text, heavy=tick == 1)
    for number, one in enumerate(series):
        colour = colour_of(number)
        if one.model:
            sheet.line([(x(k), y(value)) for k, value in one.model], colour, 1.4, dashed=True)
        spans = [(k, below, above) for k, _, below, above in one.points if below is not None and above is not None]
        if spans:
            way = "".join(f"M{x(k):.1f} {y(below):.1f}V{y(above):.1f}" for k, below, above in spans)
            sheet.path(way, colour, 1.6)
        sheet.marks([(x(k), y(point)) for k, point, *_ in one.points], number, MARK, colour, 1)
    _numbers(sheet, [(x(k), f"K = {k}") for k in _spaced(lengths)])
    return sheet.svg(identifier, title)


def positions(series: Sequence[PositionSeries], identifier: str, title: str) -> str:
    """Of the draft tokens judged at a position, how many were accepted."""
    sheet = Sheet(220.0)
    last = max(place for one in series for place, *_ in one.points)
    x, y = linear(0.6, last + 0.4, 46, WIDTH - 14), linear(0, 1.04, 192, 10)
    for share in (0, 0.25, 0.5, 0.75, 1):
        across(sheet, y(share), f"{100 * share:.0f} %", heavy=share == 0)
    for number, one in enumerate(series):
        colour = colour_of(number)
        middles = [(x(place), y((low + high) / 2)) for place, low, high in one.points]
        sheet.line(middles, colour, 1.0)
        open_ = [(place, low, high) for place, low, high in one.points if high - low > 0.004]
        if open_:
            way = "".join(f"M{x(place):.1f} {y(low):.1f}V{y(high):.1f}" for place, low, high in open_)
            sheet.path(way, colour, 1.6)
        sheet.marks(middles, number, MARK, colour, 1)
    _numbers(sheet, [(x(place), str(place)) for place in _spaced(list(range(1, last + 1)))])
    return sheet.svg(identifier, title)


def _numbers(sheet: Sheet, ticks: Sequence[tuple[float, str]]) -> None:
    for x, text in ticks:
        sheet.text(x, sheet.height - 12, text, anchor="middle", colour="mute", size=10)


def _spaced(places: Sequence[int]) -> list[int]:
    """At most :data:`MOST_TICKS` of them, evenly."""
    return list(places[:: max(1, math.ceil(len(places) / MOST_TICKS))])
