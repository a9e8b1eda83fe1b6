"""Memory: what was foreseen beside what was measured, and what a drafter adds by the untimed memory trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.host.fit import Verdict, fit_of
from orchestrator.report.analysis.findings import Analysis, CellFinding
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words, mark
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.report.page.cells import Notes
from orchestrator.report.page.naming import full_name, group_title, metric_anchor, names
from orchestrator.schema import units
from orchestrator.schema.cell import Role
from orchestrator.schema.fit import need_of
from orchestrator.schema.record import MemoryRecord
from orchestrator.schema.result import Group
from orchestrator.schema.status import STATUS_RULES, Status

if TYPE_CHECKING:
    from orchestrator.store.index import Index

PEAK = "peak_unified"
ENGINE = ("engine_buffers", "engine_peak_memory")
"""The engine's own figure: of its buffers, or of its allocator's peak."""
SHOWN_FORCED = 3
MISS = 0.25
"""A forecast further off than this share of itself is marked, with what is known of the reason."""
ABOVE = mark(
    "Measured more than 25 % above the forecast: something takes memory that is not among its parts, or more of it "
    "than estimated (≈). The engine's own figure, where there is one, tells what is in its buffers; the rest is not "
    "split."
)
BELOW = mark(
    "Measured more than 25 % below the forecast: an estimate (≈) is too high, or a part was not in memory at the peak "
    "(mapped weights count only as far as they were read). The engine's own figure, where there is one, tells what is "
    "in its buffers; the rest is not split."
)


def memory_tables(analysis: Analysis, index: Index, words: Words) -> tuple[TableView, ...]:
    """Needs and peaks, one table per group: cells of different groups never share one."""
    needs = _needs(index)
    rows: dict[Group, list[RowView]] = {}
    notes: dict[Group, Notes] = {}
    for cell in analysis.cells:
        need = needs.get(cell.id)
        if cell.state.role is Role.TWIN or (
            need is None and PEAK not in cell.summaries and cell.id not in index.memory
        ):
            continue
        mine = notes.setdefault(cell.group, Notes())
        views = (
            _predicted(need, words),
            _parts(need, words),
            _measured(cell, need, mine, words),
            _engine(cell, words),
            _trial(cell, index, need, mine, words),
        )
        head, sub = names(cell, "engine", "model", "method"), names(cell, "sampling", "workload")
        rows.setdefault(cell.group, []).append(RowView("", head, sub, (), views, base=cell.state.role is Role.BASELINE))
    columns = (
        Column(words.say("foreseen"), words.say("before the run"), ""),
        Column(words.say("of which"), words.say("≈ is an estimate"), ""),
        Column(words.say("peak"), words.say("measured"), "", "#" + metric_anchor(PEAK)),
        Column(words.say("by the engine"), words.say("its own figure"), ""),
        Column(words.say("added by drafting"), words.say("memory trial"), ""),
    )
    return tuple(
        TableView(
            f"table/memory/{group.value}",
            words.say("{group}: memory foreseen and measured", group=group_title(words, group)),
            words.say("cell"),
            columns,
            tuple(found),
            tuple(notes[group].texts),
        )
        for group, found in rows.items()
    )


def room(index: Index, words: Words) -> str:
    """The machine's memory when the matrix was surveyed, and the largest other programs; empty where not recorded."""
    host = index.matrix.host if index.matrix is not None else {}
    found = host.get("budget")
    if not isinstance(found, Mapping):
        return ""
    parts = [
        words.say("{size} in all", size=units.size(found["total_bytes"])),
        words.say("{size} in use before the run", size=units.size(found["used_bytes"])),
        words.say("{size} reserved", size=units.size(found["reserved_bytes"])),
    ]
    if found.get("gpu_limit_bytes"):
        parts.append(words.say("the GPU may use {size}", size=units.size(found["gpu_limit_bytes"])))
    others = [
        f"{clean(str(one['name']), 40)} {units.size(one['rss_bytes'])}" for one in host.get("largest_others") or ()
    ]
    memory = words.say("Memory: {parts}.", parts=", ".join(parts))
    return f"{memory} {words.say('Largest other programs: {names}.', names=', '.join(others))}" if others else memory


def forced(analysis: Analysis, index: Index, words: Words) -> str:
    """Cells that were measured by ``run.force_fit`` although they cannot fit; empty where there are none."""
    settings = index.matrix.run_settings if index.matrix is not None else {}
    rows = {str(row["id"]): row.get("fit") for row in index.matrix.cells} if index.matrix is not None else {}
    found = [
        (full_name(cell), str(fit.get("why", "")))
        for cell in analysis.cells
        if cell.measured and cell.state.role is not Role.TWIN and isinstance(fit := rows.get(cell.id), Mapping)
        and fit_of(fit) == Verdict.DOES_NOT_FIT
    ]  # fmt: skip
    if not found or not settings.get("force_fit"):
        return ""
    named = ", ".join(name for name, _ in found[:SHOWN_FORCED]) + (", …" if len(found) > SHOWN_FORCED else "")
    return words.count(
        "{number} cell was measured although its memory does not fit by the prediction (run.force_fit): {names}. "
        "Memory that is moved out while measuring slows what is measured. {why}",
        "{number} cells were measured although their memory does not fit by the prediction (run.force_fit): {names}. "
        "Memory that is moved out while measuring slows what is measured. {why}",
        len(found),
        names=named,
        why=words.said(clean(found[0][1], 300)),
    )


def _needs(index: Index) -> Mapping[str, Mapping[str, Any]]:
    found = {}
    for row in index.matrix.cells if index.matrix is not None else ():
        need = need_of(row.get("memory"))
        if need is not None:
            found[str(row["id"])] = need
    return found


def _predicted(need: Mapping[str, Any] | None, words: Words) -> CellView:
    if need is None or not need.get("parts"):
        unknown = "; ".join(map(str, (need or {}).get("unknown") or ())) or words.say("Not foreseen by this adapter.")
        return CellView(words.say("unknown"), absent=True, why=words.said(clean(unknown, 300)))
    lines = []
    if need.get("increase_bytes"):
        lines.append(words.say("{size} of it by drafting", size=units.size(need["increase_bytes"])))
    if need.get("unknown"):
        lines.append(words.say("at least: part of it is unknown"))
    return CellView(
        units.size(need["total_bytes"]), lines=tuple(lines), why=words.said(clean("; ".join(need["unknown"]), 300))
    )


def _parts(need: Mapping[str, Any] | None, words: Words) -> CellView:
    parts = sorted((need or {}).get("parts") or (), key=lambda part: -part["bytes"])
    if not parts:
        return CellView("–", absent=True, why=words.say("Nothing is known of the parts."))
    told = [
        f"{words.said(clean(part['what'], 40))} {'≈ ' if part['estimate'] else ''}{units.size(part['bytes'])}"
        for part in parts
    ]
    basis = "; ".join(
        f"{words.said(clean(part['what'], 40))}: {words.said(clean(part['basis'], 120))}" for part in parts
    )
    return CellView(told[0], lines=tuple(told[1:]), why=basis)


def _measured(cell: CellFinding, need: Mapping[str, Any] | None, notes: Notes, words: Words) -> CellView:
    found = cell.summaries.get(PEAK)
    if found is None:
        missing = cell.missing.get(PEAK)
        word = STATUS_RULES[cell.state.status].word if cell.state.status is not Status.OK else "not reported"
        return CellView(
            words.say(word), absent=True, why=words.said(clean(missing.why if missing is not None else "", 300))
        )
    view = CellView(
        numerals.quantity(PEAK, found.median),
        lines=(words.say("largest {value}", value=numerals.quantity(PEAK, max(found.values))),),
        why=_source(cell),
    )
    whole, base = _off(max(found.values), need, "total_bytes"), cell.baseline_summaries.get(PEAK)
    more = found.median - base.median if base is not None else None
    added = _off(more, need, "increase_bytes") if more is not None else None
    lines = [_times(whole, words)] if whole is not None else []
    if more is not None and added is not None:
        size = numerals.change(PEAK, more)
        lines.append(words.say("{size} by drafting: {ratio}", size=size, ratio=_times(added, words)))
    return _marked(view, lines, [one for one in (whole, added) if one is not None], notes, words)


def _off(measured: float, need: Mapping[str, Any] | None, name: str) -> float | None:
    """Measured ÷ foreseen where the forecast is further off than :data:`MISS`; ``None`` where it holds, or is none.

    A forecast that lacks an unknown part is a lower bound, which a larger figure does not contradict.
    """
    foreseen = (need or {}).get(name)
    if not need or not foreseen or abs(measured / foreseen - 1) <= MISS:
        return None
    return None if need.get("unknown") and measured > foreseen else measured / foreseen


def _times(ratio: float, words: Words) -> str:
    return words.say("{ratio} the forecast", ratio=units.ratio(ratio)) if ratio > 0 else words.say("not as foreseen")


def _marked(view: CellView, lines: list[str], ratios: list[float], notes: Notes, words: Words) -> CellView:
    """The figure with what it is of its forecast, and what may be the reason as a footnote."""
    if not ratios:
        return view
    why = " ".join(dict.fromkeys(words.say(ABOVE if ratio > 1 else BELOW) for ratio in ratios))
    return replace(view, tone="ask", lines=(*lines, *view.lines), note=notes.number(why))


def _source(cell: CellFinding) -> str:
    """The basis of the newest session's figure."""
    for session in reversed(cell.state.sessions):
        for item in session.observations:
            if item.metric == PEAK and item.value is not None:
                return clean(item.source, 200)
    return ""


def _engine(cell: CellFinding, words: Words) -> CellView:
    metric = next((name for name in ENGINE if name in cell.summaries), None)
    if metric is None:
        return CellView(words.say("not reported"), absent=True, why=words.say("The engine tells no figure of its own."))
    found = cell.summaries[metric]
    return CellView(numerals.quantity(metric, max(found.values)), lines=(metric,))


def _trial(cell: CellFinding, index: Index, need: Mapping[str, Any] | None, notes: Notes, words: Words) -> CellView:
    """What the cell's peak is beyond its baseline's, both with weights not mapped."""
    if cell.state.role is Role.BASELINE:
        mine = _peak(index.memory.get(cell.id))
        if mine is None:
            return CellView(words.say("not applicable"), absent=True, why=words.say("A baseline drafts nothing."))
        return CellView(
            "–", lines=(words.say("{size} in all", size=units.size(mine)),), why=index.memory[cell.id].basis
        )
    mine_row, base_row = index.memory.get(cell.id), index.memory.get(cell.state.baseline or "")
    if mine_row is None or base_row is None:
        why = words.say("No memory trial was made: set checks.memory_trial: true.")
        return CellView(words.say("not run"), absent=True, why=why)
    mine, base = _peak(mine_row), _peak(base_row)
    if mine is None or base is None:
        failed = mine_row if mine is None else base_row
        return CellView(words.say(STATUS_RULES[failed.status].word), absent=True, why=clean(failed.reason, 300))
    if mine_row.basis != base_row.basis:
        why = words.say("The cell and its baseline were measured on two bases.")
        return CellView(words.say("not comparable"), absent=True, why=why)
    lines = (words.say("{size} in all", size=units.size(mine)), clean(mine_row.basis, 80))
    view = CellView(numerals.change(PEAK, mine - base), lines=lines, why=words.say("One trial each: no interval."))
    off = _off(mine - base, need, "increase_bytes")
    return view if off is None else _marked(view, [_times(off, words)], [off], notes, words)


def _peak(row: MemoryRecord | None) -> float | None:
    if row is None or row.status is not Status.OK:
        return None
    for item in row.observations:
        if item.metric == PEAK and isinstance(item.value, int | float):
            return float(item.value)
    return None
