"""Assembles the sections of the groups: panels by workload, and under them a card per engine and sampling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import Analysis, CellFinding, Sweep
from orchestrator.report.analysis.measures import Arm, arm_of
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words, mark
from orchestrator.report.model.groups import BlockCard, GroupSection, Panel
from orchestrator.report.model.parts import Link
from orchestrator.report.page.groups import drafting_words, memory_traces, panels, speculation, traces
from orchestrator.report.page.groups.tables import engine_table, main_table, table_id
from orchestrator.report.page.naming import SECTION_ORDER, full_name, group_title, names, slug, trouble_anchor
from orchestrator.schema.cell import EosPolicy, Role
from orchestrator.schema.result import Group

if TYPE_CHECKING:
    from orchestrator.store.index import Index


def group_sections(analysis: Analysis, index: Index, words: Words, run: Path | None = None) -> tuple[GroupSection, ...]:
    """Every group that has cells. Exact and Opportunistic always stand, so that an empty one is seen to be empty."""
    always = (Group.EXACT, Group.OPPORTUNISTIC)
    found = []
    for group in SECTION_ORDER:
        members = [cell for cell in analysis.cells if cell.group is group]
        if members or group in always:
            found.append(_section(group, members, analysis, index, words, run))
    return tuple(found)


def _section(
    group: Group, members: Sequence[CellFinding], analysis: Analysis, index: Index, words: Words, run: Path | None
) -> GroupSection:
    by_workload: dict[str, list[CellFinding]] = {}
    for cell in members:
        if _has_figures(cell, analysis):
            by_workload.setdefault(cell.name("workload"), []).append(cell)
    unmeasured = tuple(
        Link(full_name(cell), "#" + trouble_anchor(cell.id)) for cell in members if not _has_figures(cell, analysis)
    )
    made = tuple(_panel(group, name, cells, analysis, index, words, run) for name, cells in by_workload.items())
    lead, explain = _explain(group, words)
    return GroupSection(group.value, group_title(words, group), lead, explain, made, unmeasured)


def _has_figures(cell: CellFinding, analysis: Analysis) -> bool:
    """Whether the cell, or another of its block and group, was measured: its row then stands among them."""
    return any(
        other.measured and other.group is cell.group and other.state.block == cell.state.block
        for other in analysis.cells
    )


def _explain(group: Group, words: Words) -> tuple[str, str]:
    """A line beside the heading, and what the group means."""
    return {
        Group.EXACT: (
            words.say("claimed to keep the target's output, and no check says otherwise"),
            words.say(
                "The claim is the engine's acceptance rule, read from its source or documentation. “Checks passed” "
                "means that the answers were compared token by token with the baseline's at temperature 0; above it "
                "only a distribution check could settle the claim, and a cell without one is “not tested”."
            ),
        ),
        Group.OPPORTUNISTIC: (
            words.say("faster by changing what is sampled: never ranked with exact runs"),
            words.say(
                "These cells accept draft tokens by a heuristic. Their answers are not those of the target model, "
                "so their speed is that of another product."
            ),
        ),
        Group.UNPROVEN: (
            words.say("nobody claims that the output is kept"),
            words.say(
                "A claim by the engine, with its acceptance rule named, or a distribution check would settle it."
            ),
        ),
        Group.CONTRADICTED: (
            words.say("claimed exact, and a check says otherwise"),
            words.say("The speed of these cells counts for nothing until the difference is explained."),
        ),
        Group.SYNTHETIC: (
            words.say("acceptance was set by hand: the output is not valid"),
            words.say("Such runs show what a given acceptance rate would cost or save, and nothing about answers."),
        ),
    }[group]


def _panel(
    group: Group,
    workload: str,
    cells: Sequence[CellFinding],
    analysis: Analysis,
    index: Index,
    words: Words,
    run: Path | None,
) -> Panel:
    rows: list[CellFinding] = []
    for block in dict.fromkeys(cell.state.block for cell in cells):
        mine = [cell for cell in cells if cell.state.block == block]
        rows += [c for c in analysis.cells if c.state.block == block and c.state.role is Role.BASELINE]
        rows += mine
    key = f"{group.value}/{workload}"
    shown = clean(workload, 60)
    caption = words.say("{workload}: each cell against its own engine's baseline", workload=shown)
    swept, absent = speculation.sweep(key, cells, words)
    figures = (
        panels.forest(key, cells, analysis, words),
        panels.scatter(key, cells, words),
        swept,
        speculation.cost(key, cells, words),
        speculation.positions(key, cells, words),
    )
    keys = dict.fromkeys((cell.state.block, cell.state.attempt) for cell in cells if cell.measured)
    blocks = tuple(_block(group, block, attempt, cells, analysis, index, words, run) for block, attempt in keys)
    return Panel(
        slug(f"panel/{key}"),
        shown,
        _workload_words(cells, words),
        main_table(table_id(key), caption, rows, words),
        tuple(one for one in figures if one is not None),
        blocks,
        (absent,) if absent else (),
    )


def _workload_words(cells: Sequence[CellFinding], words: Words) -> str:
    """What was asked for, and how many tokens there really were."""
    settings = cells[0].state.settings["workload"]
    limit, policy = settings["max_tokens"], EosPolicy(settings["eos"])
    prompts = clean(str(settings["prompts"]), 60)
    message = {
        EosPolicy.STOP: mark("prompts “{prompts}”, at most {limit} tokens, natural stop"),
        EosPolicy.CONTINUE: mark("prompts “{prompts}”, {limit} tokens each: matched length, past the end of text"),
        EosPolicy.MASK: mark("prompts “{prompts}”, {limit} tokens each: matched length, the end of text forbidden"),
    }[policy]
    asked = words.say(message, prompts=prompts, limit=limit)
    counts = [n for cell in cells if "output_tokens" in cell.summaries for n in cell.summaries["output_tokens"].values]
    if not counts:
        return asked
    real = words.say("real answers: {low} to {high} tokens", low=f"{min(counts):.0f}", high=f"{max(counts):.0f}")
    return f"{asked}; {real}"


def _block(
    group: Group,
    block: str,
    attempt: int | None,
    cells: Sequence[CellFinding],
    analysis: Analysis,
    index: Index,
    words: Words,
    run: Path | None,
) -> BlockCard:
    members = [c for c in cells if c.state.block == block and (c.state.attempt == attempt or not c.measured)]
    measured = [cell for cell in members if cell.measured]
    base = next((c for c in analysis.cells if c.state.block == block and c.state.role is Role.BASELINE), None)
    key = f"{group.value}/{block}/{attempt}"
    title = names(members[0], "engine", "model", "sampling", "workload")
    off = arm_of(base.state, attempt) if base is not None else Arm((), ())
    on = [(cell, arm_of(cell.state, attempt)) for cell in measured]
    base_name = names(base, "method") if base is not None else ""
    arms = [(base_name, off, -1)]
    twin = next((s for s in index.cells.values() if s.role is Role.TWIN and s.block == block), None)
    if twin is not None:
        arms.append((f"{base_name} ~", arm_of(twin, attempt), -1))
    arms += [(names(cell, "method"), arm, number) for number, (cell, arm) in enumerate(on)]
    whole = [arm_of(state, attempt) for state in index.cells.values() if state.block == block]
    drawn = (
        traces.arrival(key, off, base_name, on, words),
        traces.strip(key, off, base_name, on, words),
        traces.order(key, arms, whole, words),
        memory_traces.over_time(key, off, base_name, on, run, words),
    )
    caption = words.say("{title}: without and with speculation, medians", title=title)
    return BlockCard(
        slug(f"block/{key}"),
        title,
        _block_words(measured, attempt, words),
        engine_table(table_id("engine", key), caption, base, members, words),
        tuple(one for one in drawn if one is not None),
        _said(measured, analysis.sweeps, words),
    )


def _block_words(measured: Sequence[CellFinding], attempt: int | None, words: Words) -> str:
    state = measured[0].state
    trials = len(measured[0].summaries["e2e_latency"].values) if "e2e_latency" in measured[0].summaries else 0
    message = mark("{done} of {planned} sessions, {trials} answers per cell, interleaved with the baseline")
    if measured[0].blocked:
        message = mark(
            "{done} of {planned} sessions, {trials} answers per cell, a cell at a time, the baseline before and after"
        )
    parts = [
        words.say(
            message,
            done=state.sets_done,
            planned=state.sets_planned,
            trials=trials,
        )
    ]
    if attempt is not None and attempt > 1:
        parts.append(words.say("attempt {attempt}", attempt=attempt))
    if measured[0].stopped:
        parts.append(words.say("stopped when precise enough: {why}", why=words.said(clean(measured[0].stopped))))
    return " · ".join(parts)


def _said(measured: Sequence[CellFinding], sweeps: Sequence[Sweep], words: Words) -> tuple[str, ...]:
    """Per cell what a pass cost and brought, and what the model makes of it; per drafter its best length."""
    found = []
    for cell in measured:
        if cell.decomposition is not None:
            told = [drafting_words.decomposition_words(cell.decomposition, words)]
            told += filter(None, [drafting_words.model_words(cell.decomposition, words)])
            message = "{method}: {words}"
            found.append(words.say(message, method=names(cell, "method"), words=". ".join(told)))
    found += [drafting_words.sweep_words(one, words) for one in sweeps if one.cell in {cell.id for cell in measured}]
    return tuple(found)
