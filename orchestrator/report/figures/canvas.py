"""What all figures share: a canvas of the column's width, plain axes, colours, and ticks at round numbers."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from orchestrator.report.figures.axes import ratio_places
from orchestrator.report.figures.svg import COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 380.0
MARKERS = ("o", "s", "D", "^", "v", "P")
"""One shape per series, beside its colour."""
SERIES = ("s0", "s1", "s2", "s3", "s4", "s5")
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "specmatrix",
    "font.family": "DejaVu Sans",
    "font.size": 11.0,
    "path.simplify": False,
}


@contextmanager
def canvas(height: float) -> Iterator[tuple[Figure, io.StringIO]]:
    """A figure of the column's width that is written to the buffer when the block ends."""
    out = io.StringIO()
    with mpl.rc_context(rc=_SETTINGS), warnings.catch_warnings():
        # The page's own fonts draw the labels; that matplotlib's lacks a glyph does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        yield figure, out
        figure.savefig(out, format="svg", metadata={"Date": None})


def make_axes(figure: Figure, height: float, *, left: float, right: float, bottom: float, top: float) -> Axes:
    """Axes at margins in points, with nothing drawn but a baseline."""
    box = (left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, (height - bottom - top) / height)
    axes = figure.add_axes(box)
    axes.patch.set_visible(False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(COLOUR["line"])
    axes.tick_params(length=0, labelsize=10, labelcolor=COLOUR["mute"], pad=6)
    axes.set_axisbelow(True)
    return axes


def label(
    axes: Axes, x: float, y: float, text: str, *, ha: str, va: str, color: str, size: float = 11, weight: str = "normal"
) -> None:
    """Places text as it is: names may hold dollar signs, which are no formulae."""
    axes.text(x, y, text, ha=ha, va=va, color=color, fontsize=size, fontweight=weight, parse_math=False)


def series_colour(series: int) -> str:
    """The colour of the series; −1 is off, in the muted colour."""
    return COLOUR["mute"] if series < 0 else COLOUR[SERIES[series % len(SERIES)]]


def ratio_axis(axes: Axes, low: float, high: float, *, vertical: bool = False) -> list[float]:
    """Round ratios as ticks with a grid; gives their places on the axis."""
    axis = axes.yaxis if vertical else axes.xaxis
    places = [math.log2(tick) for tick in ratio_places(low, high, vertical=vertical)]
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{2**value:.2f}".rstrip("0").rstrip(".") + "×"))
    axes.grid(axis="y" if vertical else "x", color=COLOUR["line"], linewidth=0.8)
    return places
