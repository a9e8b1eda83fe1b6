"""Engines and models that are not on this machine: their rows stand in the report as "to be measured", with the reason.

One table takes the place of a card per cell: a matrix may list every engine there is, and a reader wants to see once
what is missing and how to get it.
"""

from __future__ import annotations

from orchestrator.report.analysis.findings import Analysis, CellFinding, Recommendation
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.first_screen import Decision
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.report.page.naming import metric_anchor, names, trouble_anchor
from orchestrator.schema.cell import Role
from orchestrator.schema.status import Status


def is_waiting(cell: CellFinding) -> bool:
    """Whether the cell waits for an engine, a version or a file, and has no card of its own."""
    return cell.state.status is Status.UNAVAILABLE and not cell.state.failed_sessions


def to_measure(analysis: Analysis, words: Words) -> TableView | None:
    """The rows of the table per engine for the cells that wait; ``None`` when none does."""
    cells = [cell for cell in analysis.cells if is_waiting(cell) and cell.state.role is not Role.TWIN]
    if not cells:
        return None
    told: set[tuple[str, str]] = set()
    rows = []
    for cell in cells:
        key = (cell.name("engine"), cell.state.reason)
        rows.append(_row(cell, words, remedy=key not in told))
        told.add(key)
    note = words.say("Nothing else has to be changed: once it is there, specmatrix run measures these rows.")
    caption = words.say("Engines and models that are not on this machine")
    return TableView("table/to-measure", caption, words.say("engine"), _columns(words), tuple(rows), (note,))


def fold(waiting: list[Recommendation], words: Words) -> Decision:
    """One entry of the first screen for all that could not be measured for want of an engine or a file."""
    lines = []
    for one in waiting:
        cell = one.by_sampling[0].considered[0]
        why = words.said(_in_short(cell))
        lines.append(words.rich("{what}: {why}", what=names(cell, "engine", "model"), why=why))
    where = ", ".join(dict.fromkeys(clean(one.engine, 60) for one in waiting))
    word = words.say("To be measured")
    return Decision("advice/to-measure", where, word, "ask", "○", tuple(lines), (), major=False)


def only_waits(one: Recommendation) -> bool:
    """Whether every cell that the advice would rest on waits."""
    return all(is_waiting(cell) for part in one.by_sampling for cell in part.considered)


def _row(cell: CellFinding, words: Words, *, remedy: bool) -> RowView:
    reason = words.said(clean(cell.state.reason, 600))
    lines = (reason, words.said(clean(cell.state.remedy, 600))) if remedy else (words.said(_in_short(cell)),)
    span = CellView(words.say("to be measured"), lines=tuple(line for line in lines if line), absent=True, why=reason)
    sub = names(cell, "model", "sampling", "workload")
    base = cell.state.role is not Role.SPECULATIVE
    return RowView(trouble_anchor(cell.id), names(cell, "engine", "method"), sub, (), (), base, span)


def _in_short(cell: CellFinding) -> str:
    """Why, without how to get it, which some adapters say in the same sentence."""
    return clean(cell.state.reason.split("; ")[0], 160)


def _columns(words: Words) -> tuple[Column, ...]:
    return tuple(
        Column(label, "", "", "#" + metric_anchor(metric))
        for label, metric in (
            (words.say("First answer (TTFT)"), "ttft"),
            (words.say("Decode"), "decode_rate"),
            (words.say("Total response time"), "e2e_latency"),
            (words.say("Peak memory"), "peak_unified"),
            (words.say("Mean accepted length"), "mean_accepted_length"),
            (words.say("Verify rounds"), "verify_rounds"),
            (words.say("Draft cost"), "draft_time"),
        )
    )
