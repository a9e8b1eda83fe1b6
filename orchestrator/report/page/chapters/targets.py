"""One target on several engines: absolute figures side by side, with the conditions that differ; never a ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import WAIT, Analysis, CellFinding
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.chapters import TargetView
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.report.page import cells as cell_views
from orchestrator.report.page.cells import Notes
from orchestrator.report.page.naming import cell_anchor, group_title, metric_anchor, names, slug
from orchestrator.schema.cell import Role
from orchestrator.schema.result import Group

if TYPE_CHECKING:
    from orchestrator.store.index import Index

Key = tuple[str, str, str]
METRICS = (WAIT, "ttft", "decode_rate", cell_views.MEMORY, "output_tokens")
SHOWN_CONDITIONS = 60


def same_target(analysis: Analysis, index: Index, words: Words) -> tuple[TargetView, ...]:
    """Targets that the matrix declares the same on two engines or more, by sampling and workload."""
    found: dict[Key, list[CellFinding]] = {}
    for cell in analysis.cells:
        name = cell.state.settings["model"].get("same_target")
        if name and cell.state.role is not Role.TWIN and cell.measured:
            found.setdefault((str(name), cell.name("sampling"), cell.name("workload")), []).append(cell)
    return tuple(
        _target(key, members, index, words)
        for key, members in found.items()
        if len({cell.name("engine") for cell in members}) > 1
    )


def _target(key: Key, members: Sequence[CellFinding], index: Index, words: Words) -> TargetView:
    target, sampling, workload = (clean(part, 60) for part in key)
    title = f"{target} · {sampling} · {workload}"
    equivalent = all(bool(cell.state.settings["model"].get("weights_equivalent")) for cell in members)
    about = (
        words.say("The matrix declares the weights equivalent; engines still differ in the conditions below.")
        if equivalent
        else words.say("The weights are not declared equivalent, so there is no ratio: look at the conditions below.")
    )
    tables = []
    # Groups never share a table; baselines stand with the exact ones, whose answers are theirs.
    for group in dict.fromkeys(_home(cell) for cell in members):
        mine = sorted((cell for cell in members if _home(cell) is group), key=lambda cell: cell.name("engine"))
        caption = words.say("{title}: {group}, absolute medians", title=title, group=group_title(words, group))
        tables.append(_absolute(slug(f"table/target/{'/'.join(key)}/{group.value}"), caption, mine, words))
    return TargetView(
        slug(f"target/{'/'.join(key)}"), title, about, tuple(tables), _differing(key, members, index, words)
    )


def _home(cell: CellFinding) -> Group:
    return Group.EXACT if cell.group is Group.BASELINE else cell.group


def _absolute(identifier: str, caption: str, members: Sequence[CellFinding], words: Words) -> TableView:
    notes = Notes()
    labels = {
        WAIT: words.say("total wait"),
        "ttft": words.say("first answer"),
        "decode_rate": words.say("decode"),
        cell_views.MEMORY: words.say("peak memory"),
        "output_tokens": words.say("output"),
    }
    columns = tuple(Column(labels[name], words.say("median"), "", "#" + metric_anchor(name)) for name in METRICS)
    rows = []
    for cell in members:
        views = tuple(_value(cell, name, notes, words) for name in METRICS)
        base = cell.state.role is Role.BASELINE
        rows.append(RowView("", names(cell, "engine", "method"), names(cell, "model"), (), views, base))
    return TableView(identifier, caption, words.say("cell"), columns, tuple(rows), tuple(notes.texts))


def _value(cell: CellFinding, metric: str, notes: Notes, words: Words) -> CellView:
    found = cell.summaries.get(metric)
    if found is None:
        return cell_views.absent(cell_views.missing_in(cell, metric), notes, words)
    lines = (words.say("MAD {mad}", mad=numerals.quantity(metric, found.mad)), words.say("n = {n}", n=found.n))
    return CellView(
        numerals.quantity(metric, found.median), lines=lines, href="#" + cell_anchor(cell.id) if metric == WAIT else ""
    )


def _differing(key: Key, members: Sequence[CellFinding], index: Index, words: Words) -> TableView | None:
    """What is not the same on all engines: identity, files, and settings in effect where two or more tell them."""
    bases = {cell.name("engine"): cell for cell in members if cell.state.role is Role.BASELINE}
    told = {engine: _conditions(cell, index) for engine, cell in bases.items()}
    if len(told) < 2:
        return None
    every = dict.fromkeys(name for one in told.values() for name in one)
    rows = []
    for name in list(every):
        values = [one.get(name) for one in told.values()]
        if len({value for value in values if value is not None}) < 2 and None not in values:
            continue
        views = tuple(
            CellView(words.said(clean(value, 120)) if " " in value else clean(value, 120))
            if value is not None
            else CellView(words.say("not told"), absent=True)
            for value in values
        )
        rows.append(RowView("", words.said(name), "", (), views))
    columns = tuple(Column(clean(engine, 60), "", "") for engine in told)
    caption = words.say("What differs between the engines")
    identifier = slug(f"table/target/{'/'.join(key)}/conditions")
    return TableView(identifier, caption, words.say("condition"), columns, tuple(rows[:SHOWN_CONDITIONS]))


def _conditions(cell: CellFinding, index: Index) -> Mapping[str, str]:
    settings = cell.state.settings
    found: dict[str, str] = {}
    identity = index.matrix.engines.get(cell.name("engine")) if index.matrix is not None else None
    if identity is not None:
        told = {"engine version": identity.version, "engine build": identity.build, "backend": identity.backend}
        found |= {name: str(value) for name, value in told.items() if value}
    found["target file"] = PurePosixPath(str(settings["model"]["target"])).name
    for key, value in sorted((settings["engine"].get("options") or {}).items()):
        found[f"engine option {key}"] = str(value)
    for session in cell.state.sessions[-1:]:
        found |= {one.name: one.effective for one in session.conditions if one.effective is not None}
    return found
