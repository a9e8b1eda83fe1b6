"""The engines of a run in one table: what each reports, which acceptance rule it claims, how its adapter was verified.

All of it is read from the run's records: a report can be made where none of the engines is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import Analysis, CellFinding
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.schema.cell import Role
from orchestrator.schema.observation import Absence

if TYPE_CHECKING:
    from orchestrator.store.index import Index

_PER_LINE = 3


def engines_table(analysis: Analysis, index: Index, words: Words) -> TableView | None:
    """A row per engine and method; ``None`` for a run that never got as far as a matrix."""
    if index.matrix is None:
        return None
    members: dict[tuple[str, str], list[CellFinding]] = {}
    for cell in analysis.cells:
        if cell.state.role is not Role.TWIN:
            members.setdefault((cell.name("engine"), cell.name("method")), []).append(cell)
    if not members:
        return None
    recorded = index.matrix.adapters
    columns = tuple(
        Column(label, "", "")
        for label in (
            words.say("what it reports"),
            words.say("what it does not"),
            words.say("claimed acceptance rule"),
            words.say("adapter verified"),
            words.say("pinned version"),
        )
    )
    rows = tuple(
        RowView(
            "",
            clean(engine, 60),
            clean(method, 60),
            (),
            (
                *_reported(cells, words),
                _claim(cells, words),
                _verified(recorded.get(engine), words),
                _pin(cells, words),
            ),
        )
        for (engine, method), cells in members.items()
    )
    caption = words.say("Each engine and method: what it tells of itself, what it claims, and who checked that")
    return TableView("table/engines", caption, words.say("engine"), columns, rows)


def _reported(cells: Sequence[CellFinding], words: Words) -> tuple[CellView, CellView]:
    """Figures of the engine's own, and those that it says nothing of; ours are the same for every engine."""
    measured = [cell for cell in cells if cell.measured]
    if not measured:
        why = words.said(clean(cells[0].state.reason, 300)) or words.say("not run yet")
        waits = CellView(words.say("to be measured"), absent=True, why=why)
        return waits, waits
    told = {name for cell in measured for name in (*cell.summaries, *cell.per_process)}
    silent = {
        name
        for cell in measured
        for name, one in cell.missing.items()
        if one.absence is Absence.NOT_REPORTED and name not in told
    }
    nothing = CellView(words.say("nothing"), absent=True, why=words.say("This engine reports no figure of its own."))
    all_of = CellView(words.say("nothing"), absent=True, why=words.say("No figure that was asked for is missing."))
    return _names(told, words) or nothing, _names(silent, words) or all_of


def _names(metrics: set[str], words: Words) -> CellView | None:
    """The figures in short words, some to a line; their names in full for whoever points at them."""
    short = {
        "drafted_tokens": words.say("drafted"),
        "accepted_tokens": words.say("accepted"),
        "verify_rounds": words.say("verify rounds"),
        "tokens_per_pass": words.say("tokens per pass"),
        "draft_time": words.say("draft time"),
        "verify_time": words.say("verify time"),
        "rollback_time": words.say("rollback time"),
        "engine_prefill_time": words.say("prefill time"),
        "engine_decode_rate": words.say("decode rate"),
        "engine_peak_memory": words.say("peak memory"),
        "engine_buffers": words.say("buffers"),
    }
    listed = [name for name in short if name in metrics]
    if not listed:
        return None
    lines = tuple(", ".join(short[name] for name in some) for some in _rows(listed, _PER_LINE))
    return CellView(lines[0], lines=lines[1:], why=", ".join(listed))


def _rows(names: Sequence[str], size: int) -> tuple[Sequence[str], ...]:
    """The names in rows of ``size``."""
    return tuple(names[start : start + size] for start in range(0, len(names), size))


def _claim(cells: Sequence[CellFinding], words: Words) -> CellView:
    rules, notes = [], []
    for cell in cells:
        claim = cell.state.claim
        if claim is None:
            continue
        sampling = clean(cell.name("sampling"), 60)
        rules.append(f"{sampling}: {words.said(claim.rule.value)}")
        notes.append(words.said(clean(claim.by, 300)))
    if not rules:
        return CellView(words.say("none"), absent=True, why=words.say("nobody claims anything"))
    first, *more = dict.fromkeys(rules)
    return CellView(first, lines=tuple(more), why=next(iter(dict.fromkeys(notes))))


def _verified(found: Mapping[str, str] | None, words: Words) -> CellView:
    if not found or not found.get("verified"):
        return CellView(words.say("not recorded"), absent=True, why=words.say("The run is older than this table."))
    adapter = clean(found.get("title", ""), 80)
    return CellView(words.say(clean(found["verified"], 80)), lines=(adapter,) if adapter else ())


def _pin(cells: Sequence[CellFinding], words: Words) -> CellView:
    pin = cells[0].state.settings["engine"].get("pin")
    if not isinstance(pin, Mapping) or not pin:
        return CellView(words.say("unpinned"), absent=True, why=words.say("specmatrix pin writes the version found."))
    return CellView(", ".join(f"{clean(str(key), 40)} {clean(str(value), 40)}" for key, value in pin.items()))
