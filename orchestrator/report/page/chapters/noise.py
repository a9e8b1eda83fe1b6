"""Every baseline with its own figures, and what it looks like against its own twin."""

from __future__ import annotations

from orchestrator.report.analysis.findings import COMPARED, Analysis, CellFinding
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.report.page.first_screen.waiting import is_waiting
from orchestrator.report.page.naming import cell_anchor, metric_anchor, names
from orchestrator.schema.cell import Role
from orchestrator.schema.status import STATUS_RULES


def noise(analysis: Analysis, words: Words) -> TableView | None:
    """Every baseline with its own figures, and what it looks like against itself."""
    columns = [
        Column(words.say("total wait"), words.say("median"), "", "#" + metric_anchor("e2e_latency")),
        Column(words.say("first answer"), words.say("median"), "", "#" + metric_anchor("ttft")),
        Column(words.say("decode"), words.say("median"), "", "#" + metric_anchor("decode_rate")),
    ]
    columns += [
        Column(words.say("A/A {label}", label=label), words.say("twin ÷ baseline"), "")
        for label in (words.say("wait"), words.say("first answer"), words.say("decode"))
    ]
    rows = []
    for cell in analysis.cells:
        if cell.state.role is not Role.BASELINE or is_waiting(cell):
            continue
        views = [_median(cell, metric, words) for metric in COMPARED[:3]]
        views += [_floor(analysis, cell, metric, words) for metric in COMPARED[:3]]
        head, sub = names(cell, "engine", "model"), names(cell, "sampling", "workload")
        rows.append(RowView(cell_anchor(cell.id), head, sub, (), tuple(views)))
    if not rows:
        return None
    caption = words.say("Each baseline, and what it looks like against its own twin")
    return TableView("table/noise", caption, words.say("baseline"), tuple(columns), tuple(rows))


def _median(cell: CellFinding, metric: str, words: Words) -> CellView:
    found = cell.summaries.get(metric)
    if found is None:
        return CellView(
            words.say(STATUS_RULES[cell.state.status].word), absent=True, why=words.said(clean(cell.state.reason))
        )
    spread = words.say("MAD {mad} · n = {n}", mad=numerals.quantity(metric, found.mad), n=found.n)
    return CellView(numerals.quantity(metric, found.median), lines=(spread,))


def _floor(analysis: Analysis, cell: CellFinding, metric: str, words: Words) -> CellView:
    floor = analysis.floors.get((cell.state.block, cell.state.attempt or 0, metric))
    if floor is None or floor.ratio is None:
        why = floor.reason if floor is not None else words.say("No twin was measured.")
        return CellView(words.say("unknown"), absent=True, why=words.said(clean(why)))
    lines = [numerals.interval(floor.ratio) or words.say("no interval")]
    if floor.half_width is not None:
        lines.append(words.say("floor ±{half}", half=words.percent(floor.half_width, 1)))
    return CellView(
        numerals.ratio(floor.ratio),
        "bad" if floor.inconclusive else "",
        tuple(lines),
        why=words.said(clean(floor.reason)),
    )
