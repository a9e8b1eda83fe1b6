"""A small writer of SVG for figures that a page holds many of: same input, same bytes, a fraction of a millisecond.

Matplotlib takes about 80 ms a figure, which a page of a hundred cells cannot pay. It draws the scatter, which stands
once per panel (:mod:`orchestrator.report.figures.scatter_plot`); all others are drawn here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from orchestrator.report.figures.axes import RATIO_TICKS, ratio_places

WIDTH = 380.0
"""In points, the width of a column: type of 11 points stays legible at 360 pixels."""
SHAPES = 6
"""Marker shapes before they repeat."""

Scale = Callable[[float], float]


class Sheet:
    """A figure in the making; y runs downwards."""

    def __init__(self, height: float) -> None:
        """An empty sheet of the column's width."""
        self.height = height
        self._parts: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        colour: str = "ink",
        size: float = 11,
        bold: bool = False,
    ) -> None:
        """Text as it is, its baseline at ``y``."""
        weight = ' font-weight="700"' if bold else ""
        self._parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" text-anchor="{anchor}" '
            f'fill="var(--{colour})"{weight}>{escape(text, quote=False)}</text>'
        )

    def line(
        self,
        points: Sequence[tuple[float, float]],
        colour: str,
        width: float,
        *,
        rounded: bool = False,
        dashed: bool = False,
    ) -> None:
        """A line through the points."""
        (x, y), *rest = points
        way = f"M{_n(x)} {_n(y)}" + "".join(f"L{_n(a)} {_n(b)}" for a, b in rest)
        self.path(way, colour, width, rounded=rounded, dashed=dashed)

    def path(self, way: str, colour: str, width: float, *, rounded: bool = False, dashed: bool = False) -> None:
        """A stroked path, as SVG writes it."""
        cap = (' class="r"' if rounded else "") + (' stroke-dasharray="5 4"' if dashed else "")
        self._parts.append(f'<path{cap} d="{way}" fill="none" stroke="var(--{colour})" stroke-width="{_n(width)}"/>')

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A filled rectangle."""
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
        self._parts.append(f'<rect {place} fill="var(--{colour})"/>')

    def marks(
        self, points: Iterable[tuple[float, float]], shape: int, size: float, colour: str, opacity: float
    ) -> None:
        """Many marks of one shape in one element; a shape beside the colour tells series apart without it."""
        way = "".join(_mark(x, y, shape % SHAPES, size) for x, y in points)
        if way:
            self._parts.append(f'<path d="{way}" fill="var(--{colour})" fill-opacity="{_n(opacity)}"/>')

    def ring(self, x: float, y: float, radius: float, colour: str) -> None:
        """A circle filled with the card's colour."""
        self._parts.append(
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="var(--card)" stroke="var(--{colour})" '
            'stroke-width="1.8"/>'
        )

    def svg(self, identifier: str, title: str) -> str:
        """The finished element, with a name for those who do not see it."""
        name = f"{identifier}-t"
        return (
            f'<svg viewBox="0 0 {_n(WIDTH)} {_n(self.height)}" role="img" aria-labelledby="{name}">'
            f'<title id="{name}">{escape(title)}</title>{"".join(self._parts)}</svg>'
        )


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """From values to places."""
    factor = (end - start) / ((high - low) or 1.0)
    return lambda value: start + (value - low) * factor


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """From ratios to places, equal factors equally far."""
    inner = linear(math.log2(low), math.log2(high), start, end)
    return lambda value: inner(math.log2(value))


def ratio_ticks(low: float, high: float, *, vertical: bool = False) -> list[tuple[float, str]]:
    """Round ratios within the limits, with their labels."""
    return [(tick, f"{tick:.2f}".rstrip("0").rstrip(".") + "×") for tick in ratio_places(low, high, vertical=vertical)]


def _mark(x: float, y: float, shape: int, size: float) -> str:
    r = size / 2
    if shape == 0:
        return f"M{_n(x - r)} {_n(y)}a{_n(r)} {_n(r)} 0 1 0 {_n(size)} 0a{_n(r)} {_n(r)} 0 1 0 {_n(-size)} 0"
    if shape == 1:
        return f"M{_n(x - r)} {_n(y - r)}h{_n(size)}v{_n(size)}h{_n(-size)}z"
    if shape == 2:
        a, b = _n(r * 1.3), _n(-r * 1.3)
        return f"M{_n(x)} {_n(y - r * 1.3)}l{a} {a}l{b} {a}l{b} {b}z"
    if shape == 3:
        return f"M{_n(x)} {_n(y - r * 1.2)}l{_n(r * 1.2)} {_n(r * 2.2)}h{_n(-r * 2.4)}z"
    if shape == 4:
        return f"M{_n(x)} {_n(y + r * 1.2)}l{_n(r * 1.2)} {_n(-r * 2.2)}h{_n(-r * 2.4)}z"
    return f"M{_n(x - r * 1.3)} {_n(y - r * 0.4)}h{_n(r * 2.6)}v{_n(r * 0.8)}h{_n(-r * 2.6)}z"


def _n(value: float) -> str:
    shown = f"{value:.1f}"
    return shown.removesuffix(".0")


__all__ = ["RATIO_TICKS", "WIDTH", "Scale", "Sheet", "linear", "logarithmic", "ratio_ticks"]
