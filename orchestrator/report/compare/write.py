"""Two compared runs as JSON, Markdown and a page of their own."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.report.compare.comparability import Difference
from orchestrator.report.compare.runs import NOT_INTERLEAVED, Absolute, CellChange, Change, RunsCompared
from orchestrator.report.compare.view import CompareView, RunCard
from orchestrator.report.data.summary import estimate_data
from orchestrator.report.language.words import Words
from orchestrator.report.output import markdown
from orchestrator.report.output.render import render_page
from orchestrator.schema.hidden import escaped
from orchestrator.schema.record import RunHeader
from orchestrator.schema.result import Comparison

COMPARE_VERSION = 1
"""Of the JSON below. History: 1, first version."""


def compare_html(view: CompareView, words: Words) -> str:
    """One self-contained page without a script; the same runs give the same bytes."""
    return render_page("compare.html.j2", words, view=view)


def compare_markdown(view: CompareView, words: Words) -> str:
    """The same as Markdown."""
    parts = [f"# specmatrix: {markdown.escape(view.title)}", markdown.rich(view.lead)]
    parts += [markdown.escape(note) for note in view.notes]
    parts += [_card(run) for run in view.runs]
    parts += [markdown.table(table) for table in (view.refused, view.changed) if table is not None]
    for section in view.sections:
        parts.append(f"## {markdown.escape(section.title)}")
        parts.append("\n".join(f"- {markdown.sentence(one)}" for one in section.sentences))
        parts += [markdown.table(section.ratios), markdown.table(section.absolutes)]
    parts.append(markdown.escape(words.say("Made by specmatrix from the records of two runs.")))
    return "\n\n".join(part for part in parts if part) + "\n"


def _card(run: RunCard) -> str:
    facts = [f"- {markdown.escape(fact.label)}: {markdown.escape(fact.value)}" for fact in run.facts]
    return "\n".join([f"**{markdown.escape(run.title)}**", "", *facts])


def compare_json(found: RunsCompared) -> str:
    """Every condition and every figure; indented, in a fixed order."""
    return escaped(json.dumps(compare_data(found), indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def compare_data(found: RunsCompared) -> dict[str, Any]:
    """The comparison as plain data."""
    return {
        "compare_version": COMPARE_VERSION,
        "before": _run(found.before.header),
        "after": _run(found.after.header),
        "same_run": found.same,
        "comparable_cells": len(found.comparable),
        "changed": _differences(found.conditions.changed),
        "only_before": list(found.only_before),
        "only_after": list(found.only_after),
        "cells": [_cell(cell) for cell in found.cells],
    }


def _run(header: RunHeader) -> dict[str, Any]:
    return {"run": header.run, "created_utc": header.created_utc, "tool_version": header.tool_version}


def _differences(items: tuple[Difference, ...]) -> list[dict[str, str]]:
    return [{"condition": one.name, "before": one.before, "after": one.after} for one in items]


def _cell(cell: CellChange) -> dict[str, Any]:
    return {
        "id": cell.id,
        "comparable": cell.comparable,
        "refused": _differences(cell.conditions.refused),
        "changed": _differences(cell.conditions.changed),
        "group_before": cell.before.group.value,
        "group_after": cell.after.group.value,
        "changes": {one.metric: _change(one) for one in cell.changes},
        "absolute": [_absolute(one) for one in cell.absolutes],
        "absolute_caveat": NOT_INTERLEAVED,
    }


def _change(one: Change) -> dict[str, Any]:
    return {
        "before": _ratio(one.before),
        "after": _ratio(one.after),
        "ratio_of_ratios": estimate_data(one.ratio),
        "outcome": one.outcome.value,
        "reason": one.reason,
        "p_value": one.p_value,
        "noise_floor": one.floor,
    }


def _ratio(row: Comparison | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {"outcome": row.outcome.value, "reason": row.reason, "ratio": estimate_data(row.ratio)}


def _absolute(one: Absolute) -> dict[str, Any]:
    return {
        "cell": one.cell,
        "metric": one.metric,
        "before": {"median": one.before.median, "mad": one.before.mad, "n": one.before.n},
        "after": {"median": one.after.median, "mad": one.after.mad, "n": one.after.n},
        "ratio": estimate_data(one.ratio),
        "note": one.reason,
    }
