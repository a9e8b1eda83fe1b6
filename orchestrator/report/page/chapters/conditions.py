"""Settings in which a cell was not as asked, or not as its baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import Analysis, CellFinding
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.report.page.naming import group_title, names
from orchestrator.schema.adapter import Condition
from orchestrator.schema.cell import Role
from orchestrator.schema.record import SessionRecord
from orchestrator.schema.result import Group

if TYPE_CHECKING:
    from orchestrator.store.index import Index


def conditions(analysis: Analysis, index: Index, words: Words) -> tuple[tuple[TableView, ...], str]:
    """Settings in which a cell was not as asked, or not as its baseline, and a sentence where there are none.

    One table per group: cells of different groups never share one.
    """
    found: dict[Group, list[RowView]] = {}
    compared = 0
    for cell in analysis.cells:
        if cell.state.role is not Role.SPECULATIVE or not cell.state.sessions:
            continue
        compared += 1
        base = index.cells.get(cell.state.baseline or "")
        theirs = {one.name: one for one in _last_conditions(base.sessions)} if base is not None else {}
        for mine in _last_conditions(cell.state.sessions):
            other = theirs.get(mine.name)
            differs = other is not None and (other.effective, other.requested) != (mine.effective, mine.requested)
            if differs or mine.verdict.value in ("changed", "unsupported"):
                found.setdefault(cell.group, []).append(_condition(cell, mine, other, words))
    if not found:
        return (), words.count(
            "No condition differs between the {number} compared cell and its baseline, as far as the engine tells.",
            "No condition differs between the {number} compared cells and their baselines, as far as the engines tell.",
            compared,
        )
    columns = tuple(
        Column(label, "", "")
        for label in (
            words.say("setting"),
            words.say("asked"),
            words.say("in effect"),
            words.say("baseline in effect"),
            words.say("verdict"),
            words.say("by whose word"),
        )
    )
    message = "{group}: what was not as asked, or not as in the baseline"
    return tuple(
        TableView(
            f"table/conditions/{group.value}",
            words.say(message, group=group_title(words, group)),
            words.say("cell"),
            columns,
            tuple(rows),
        )
        for group, rows in found.items()
    ), ""


def _last_conditions(sessions: Sequence[SessionRecord]) -> tuple[Condition, ...]:
    found: tuple[Condition, ...] = ()
    for session in sessions:
        found = session.conditions or found
    return found


def _condition(cell: CellFinding, mine: Condition, other: Condition | None, words: Words) -> RowView:
    unknown = words.say("not told")
    values = (
        clean(mine.name, 80),
        _value(mine.requested, words),
        _value(mine.effective, words) if mine.effective is not None else unknown,
        _value(other.effective, words) if other is not None and other.effective is not None else unknown,
        words.say(mine.verdict.value),
        words.said(clean(mine.source, 120)),
    )
    head, sub = names(cell, "engine", "method"), names(cell, "model", "sampling", "workload")
    return RowView("", head, sub, (), tuple(map(CellView, values)))


def _value(text: str, words: Words) -> str:
    """A setting as it was told: values of one word are names and numbers, others may be sentences of ours."""
    shown = clean(text, 120)
    return words.said(shown) if " " in shown else shown
