"""Draws the figures that every block has: ratios with intervals, raw values, the order of trials, arrival curves.

Numerals, units and names only, so that the words around them can be translated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.report.figures.axes import nice_ticks, ratio_limits, ticks_between
from orchestrator.report.figures.draw import WIDTH, Scale, Sheet, linear, logarithmic, ratio_ticks
from orchestrator.schema import units


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


@dataclass(frozen=True, slots=True)
class MemoryCurve:
    """Bytes over seconds since the process started, one line per process. ``series`` −1 is off."""

    label: str
    sessions: tuple[tuple[tuple[float, float], ...], ...]
    series: int


@dataclass(frozen=True, slots=True)
class CostRow:
    """What a pass cost and brought, in plain passes: ``draft`` is ``None`` where it is not told from the rest."""

    label: str
    tokens_per_pass: float
    pass_cost: float
    draft: float | None


def colour_of(series: int) -> str:
    """The colour of a series; −1 is off, in the muted colour."""
    return "mute" if series < 0 else f"s{series % 6}"


def forest(rows: Sequence[ForestRow], identifier: str, title: str) -> str:
    """Ratios with their intervals on a log axis, each over its own A/A band; small ticks are session ratios."""
    sheet = Sheet(30.0 + 40.0 * len(rows))
    reach = [value for row in rows for value in (row.low, row.high, row.point, *row.sessions) if value is not None]
    reach += [bound for row in rows if row.floor for bound in (1 + row.floor, 1 / (1 + row.floor))]
    low, high = ratio_limits(reach)
    x = logarithmic(low, high, 14, WIDTH - 14)
    ticks = ratio_ticks(low, high)
    for index, row in enumerate(rows):
        top = 4.0 + 40.0 * index
        if row.floor:
            left, right = x(1 / (1 + row.floor)), x(1 + row.floor)
            sheet.box(left, top + 17.5, right - left, 20, "band")
        sheet.path("".join(f"M{x(tick):.1f} {top + 17:.0f}v23" for tick, _ in ticks), "line", 0.8)
        sheet.line([(x(1), top + 17), (x(1), top + 40)], "mute", 1.1)
        _interval(sheet, row, x, top + 27)
        sheet.text(14, top + 12, row.label)
        sheet.text(WIDTH - 14, top + 12, row.number, anchor="end", colour=row.tone, bold=True)
    _axis(sheet, [(x(tick), text) for tick, text in ticks])
    return sheet.svg(identifier, title)


def _interval(sheet: Sheet, row: ForestRow, x: Scale, y: float) -> None:
    sheet.path(
        "".join(f"M{x(value):.1f} {y + 6:.0f}v5" for value in row.sessions), "mute", 0.9
    ) if row.sessions else None
    if row.low is not None and row.high is not None:
        sheet.line([(x(row.low), y), (x(row.high), y)], row.tone, 2.4, rounded=True)
    if row.tone == "flat":
        sheet.ring(x(row.point), y, 3.6, row.tone)
    else:
        sheet.marks([(x(row.point), y)], 1 if row.tone == "bad" else 0, 8, row.tone, 1)


def strip(rows: Sequence[StripRow], identifier: str, title: str) -> str:
    """Every raw value, one lane per session, with the median as a stroke."""
    sheet = Sheet(30.0 + 44.0 * len(rows))
    values = [value for row in rows for lane in row.sessions for value in lane]
    spread = max(values) - min(values) or max(values)
    low, high = max(0.0, min(values) - 0.06 * spread), max(values) + 0.06 * spread
    x = linear(low, high, 14, WIDTH - 14)
    ticks = ticks_between(low, high)
    for index, row in enumerate(rows):
        top, lanes = 4.0 + 44.0 * index, max(1, len(row.sessions))
        sheet.path("".join(f"M{x(tick):.1f} {top + 17:.0f}v27" for tick in ticks), "line", 0.8)
        dots = [
            (x(value), top + 19 + 22 * (lane + 0.5) / lanes)
            for lane, session in enumerate(row.sessions) for value in session
        ]  # fmt: skip
        sheet.marks(dots, row.series + 1, 3.6, colour_of(row.series), 0.65)
        sheet.line([(x(row.median), top + 18), (x(row.median), top + 42)], "ink", 1.4)
        sheet.text(14, top + 13, row.label)
        count = sum(len(lane) for lane in row.sessions)
        sheet.text(WIDTH - 14, top + 13, f"{units.seconds(row.median)} · n = {count}", anchor="end", colour="mute")
    _axis(sheet, [(x(tick), _seconds(tick)) for tick in ticks])
    return sheet.svg(identifier, title)


def order(series: Sequence[OrderSeries], identifier: str, title: str) -> str:
    """Trials in the order they ran; a machine that drifts shows a slope."""
    sheet = Sheet(200.0)
    last = max(position for one in series for position, _ in one.points)
    low, high = ratio_limits([value for one in series for _, value in one.points])
    x, y = linear(0, last + 1, 46, WIDTH - 14), logarithmic(low, high, 174, 8)
    for tick, text in ratio_ticks(low, high, vertical=True):
        across(sheet, y(tick), text, heavy=tick == 1)
    for one in series:
        places = [(x(position), y(value)) for position, value in one.points]
        sheet.marks(places, one.series + 1, 4.2, colour_of(one.series), 0.8)
    _axis(sheet, [(x(tick), f"{tick:.0f}") for tick in nice_ticks(last) if tick == round(tick)])
    return sheet.svg(identifier, title)


def curves(series: Sequence[Curve], identifier: str, title: str) -> str:
    """Tokens on screen against seconds: bursts are steps."""
    sheet = Sheet(230.0)
    tokens = max(len(curve.seconds) for curve in series)
    longest = max(curve.seconds[-1] for curve in series)
    x, y = linear(0, longest * 1.02, 38, WIDTH - 14), linear(0, tokens * 1.1, 202, 12)
    for tick in nice_ticks(tokens):
        across(sheet, y(tick), f"{tick:.0f}", left=38)
    for curve in sorted(series, key=lambda one: one.series):
        steps = [f"M{x(0):.1f} {y(0):.1f}"]
        for now, (seconds, following) in enumerate(pairwise((*curve.seconds, math.inf)), 1):
            # Tokens that arrive together are one step.
            if following > seconds:
                steps.append(f"H{x(seconds):.1f}V{y(now):.1f}")
        sheet.path("".join(steps), colour_of(curve.series), 1.6 if curve.series < 0 else 2.2)
    _curve_labels(sheet, series, x, y, longest)
    _axis(sheet, [(x(tick), _seconds(tick)) for tick in nice_ticks(longest)])
    return sheet.svg(identifier, title)


def _curve_labels(sheet: Sheet, series: Sequence[Curve], x: Scale, y: Scale, longest: float) -> None:
    """Names along the right edge of each curve, at heights that keep them apart."""
    ordered = sorted(series, key=lambda one: (one.seconds[-1], one.label))
    step = 19.0 / max(0.01, y(0) - y(1))
    for place, curve in enumerate(ordered):
        tokens = max(1, len(curve.seconds) - round(place * step) - 1)
        at = x(curve.seconds[tokens - 1])
        left = curve.seconds[tokens - 1] < 0.7 * longest
        sheet.text(
            at + (5 if left else -5), y(tokens) + 4, curve.label, anchor="start" if left else "end",
            colour=colour_of(curve.series), size=10, bold=True,
        )  # fmt: skip


def memory(series: Sequence[MemoryCurve], identifier: str, title: str) -> str:
    """Memory of every process over its life; the scale begins at zero."""
    sheet = Sheet(190.0)
    points = [point for one in series for session in one.sessions for point in session]
    longest, top = max(seconds for seconds, _ in points), max(size for _, size in points)
    x, y = linear(0, longest * 1.02 or 1.0, 58, WIDTH - 14), linear(0, top * 1.12, 164, 8)
    for tick in nice_ticks(top):
        across(sheet, y(tick), units.size(tick) if tick else "0", left=58)
    for one in series:
        for session in one.sessions:
            sheet.line([(x(seconds), y(size)) for seconds, size in session], colour_of(one.series), 1.3)
    _axis(sheet, [(x(tick), _seconds(tick)) for tick in nice_ticks(longest)])
    return sheet.svg(identifier, title)


def cost(rows: Sequence[CostRow], identifier: str, title: str) -> str:
    """What a pass costs as a bar, in plain passes, and the tokens it brings as a mark: right of the bar is gain."""
    sheet = Sheet(30.0 + 44.0 * len(rows))
    top = max(max(row.pass_cost, row.tokens_per_pass) for row in rows) * 1.08
    x = linear(0, top, 14, WIDTH - 14)
    ticks = nice_ticks(top)
    for index, row in enumerate(rows):
        y = 4.0 + 44.0 * index
        sheet.path("".join(f"M{x(tick):.1f} {y + 17:.0f}v27" for tick in ticks), "line", 0.8)
        sheet.box(x(0), y + 22, x(row.pass_cost) - x(0), 13, "s0")
        if row.draft:
            sheet.box(x(0), y + 22, x(row.draft) - x(0), 13, "s1")
        gain = "good" if row.tokens_per_pass >= row.pass_cost else "bad"
        sheet.line([(x(row.tokens_per_pass), y + 18), (x(row.tokens_per_pass), y + 39)], gain, 2.6)
        sheet.text(14, y + 13, row.label)
        shown = f"{units.plain(row.tokens_per_pass)} ÷ {units.plain(row.pass_cost)}"
        sheet.text(WIDTH - 14, y + 13, shown, anchor="end", colour=gain, bold=True)
    _axis(sheet, [(x(tick), f"{tick:g}") for tick in ticks])
    return sheet.svg(identifier, title)


def across(sheet: Sheet, y: float, text: str, *, left: float = 46, heavy: bool = False) -> None:
    """A horizontal line of the grid with its number."""
    sheet.line([(left, y), (WIDTH - 14, y)], "mute" if heavy else "line", 1.0 if heavy else 0.8)
    sheet.text(left - 7, y + 3.5, text, anchor="end", colour="mute", size=10)


def _axis(sheet: Sheet, ticks: Sequence[tuple[float, str]]) -> None:
    """The numbers under the figure."""
    base = sheet.height - 26
    sheet.line([(14, base), (WIDTH - 14, base)], "line", 0.8)
    for x, text in ticks:
        sheet.text(min(max(x, 18), WIDTH - 18), base + 15, text, anchor="middle", colour="mute", size=10)


def _seconds(value: float) -> str:
    return "0" if value == 0 else units.seconds(value)
