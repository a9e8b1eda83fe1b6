"""Memory over the life of each process, from the samples that sessions left in their folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from orchestrator.report.analysis.findings import CellFinding
from orchestrator.report.analysis.measures import Arm
from orchestrator.report.figures import lines
from orchestrator.report.language.words import Words
from orchestrator.report.model.parts import CellView, Column, FigureView, LegendItem, RowView, TableView
from orchestrator.report.page.naming import figure_id, names
from orchestrator.schema import units

SAMPLES = "memory.jsonl"
POINTS = 48
"""Points drawn of one process; each is the highest sample of its stretch, so that no peak is lost."""
Curve = tuple[tuple[float, float], ...]


def over_time(
    key: str, base: Arm, base_name: str, members: Sequence[tuple[CellFinding, Arm]], run: Path | None, words: Words
) -> FigureView | None:
    """Every process of the block as a line, from its first sample on; ``None`` where no samples lie in the run."""
    if run is None:
        return None
    named = [(base_name, base, -1), *((names(cell, "method"), arm, n) for n, (cell, arm) in enumerate(members))]
    series = []
    for label, arm, number in named:
        curves = tuple(curve for session in arm.sessions if (curve := samples(run, session.folder)))
        if curves:
            series.append(lines.MemoryCurve(label, curves, number))
    if not series:
        return None
    title, identifier = words.say("Memory over time"), figure_id("memory", key)
    tops = {one.label: max(size for curve in one.sessions for _, size in curve) for one in series}
    most = max(series, key=lambda one: tops[one.label])
    caption = words.rich(
        "**Highest sample: {size}, by {name}.** A line is one engine process, sampled while it ran; peaks between two "
        "samples are in the peak of the table, which the kernel keeps.",
        size=units.size(tops[most.label]),
        name=most.label,
    )
    legend = tuple(LegendItem("off" if one.series < 0 else f"sw s{one.series % 6}", one.label) for one in series)
    labels = (words.say("processes"), words.say("first sample"), words.say("highest sample"), words.say("last sample"))
    rows = []
    for one in series:
        first, last = [curve[0][1] for curve in one.sessions], [curve[-1][1] for curve in one.sessions]
        values = (str(len(one.sessions)), _span(first), units.size(tops[one.label]), _span(last))
        rows.append(RowView("", one.label, "", (), tuple(map(CellView, values))))
    columns = tuple(Column(label, "", "") for label in labels)
    data = TableView(
        f"{identifier}-data", words.say("The numbers of this figure"), words.say("cell"), columns, tuple(rows)
    )
    return FigureView(identifier, title, lines.memory(series, identifier, title), caption, legend, data)


def samples(run: Path, folder: str) -> Curve:
    """(seconds since the first sample, bytes): footprint where the system keeps one, else the resident set.

    A folder that is gone, lies outside the run or holds something else gives no samples: the figure is an extra.
    """
    try:
        path = run / folder / SAMPLES
        # Asked first, because most folders of a copied run are not there; where a link leads is dearer to find out.
        if not path.is_file() or not path.resolve().is_relative_to(run.resolve()):
            return ()
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        # A name that no file system takes comes from an edited journal, and has no samples either.
        return ()
    found: list[tuple[float, float]] = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
            size = row["footprint_bytes"] if row.get("footprint_bytes") is not None else row["rss_bytes"]
            point = (float(row["t_s"]), float(size))
        except (ValueError, TypeError, KeyError, AttributeError):
            # The last line of a killed process may be torn.
            continue
        if point[1] >= 0 and (not found or point[0] >= found[-1][0]):
            found.append(point)
    if not found:
        return ()
    start = found[0][0]
    return _thinned([(seconds - start, size) for seconds, size in found])


def _thinned(points: Sequence[tuple[float, float]]) -> Curve:
    if len(points) <= POINTS:
        return tuple(points)
    inner, size = points[1:-1], -(-(len(points) - 2) // (POINTS - 2))
    stretches = [inner[at : at + size] for at in range(0, len(inner), size)]
    return (points[0], *(max(stretch, key=lambda point: point[1]) for stretch in stretches), points[-1])


def _span(values: Sequence[float]) -> str:
    low, high = units.size(min(values)), units.size(max(values))
    return low if low == high else f"{low}–{high}"
