"""Distribution checks at the terminal: their fates, what they will cost, and how far they are."""

# ruff: noqa: PLC0415  (start-up stays light)

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.tables import plain, table
from orchestrator.schema.status import STATUS_RULES
from orchestrator.schema.units import seconds

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from orchestrator.cli.workspace import Workspace
    from orchestrator.runner.check_plan import PlannedCheck
    from orchestrator.store.index import Index


def print_check_fates(console: Console, workspace: Workspace) -> None:
    """A row for each distribution check of the matrix: ready, or why not."""
    rows = []
    for check in workspace.expansion.checks:
        fates = [workspace.survey.fates[cell.id] for cell in (check.cell, check.baseline)]
        refusal = next((fate.refusal for fate in fates if fate.refusal is not None), None)
        fate = "ready" if refusal is None else STATUS_RULES[refusal.status].word
        rows.append((check.id, fate, check.preset, "" if refusal is None else refusal.reason))
    if rows:
        console.print(table("Distribution checks", ("check", "fate", "size", "why"), rows))


def expected_checks(
    workspace: Workspace, index: Index, earlier: Path | None, selected: frozenset[str]
) -> tuple[str, ...]:
    """A line for each block's checks that ``run`` would make: generations, tokens and expected time."""
    if not workspace.expansion.checks:
        return ()
    from orchestrator.runner.check_plan import plan_checks

    numbers = {state.block: state.attempt or 0 for state in index.checks.values()}
    planned = plan_checks(
        workspace.expansion.checks,
        workspace.survey.fates,
        index.checks,
        numbers,
        selected=selected,
        again=False,
    )
    if not planned:
        return ()
    spent = _spent(earlier)
    return tuple(_line(one, spent) for one in planned)


def _line(one: PlannedCheck, spent: dict[str, float]) -> str:
    names = ", ".join(check.id for check in one.checks)
    engine = one.baseline.engine.name
    time = "expected time: not known before this engine's first check on this machine"
    if engine in spent:
        time = f"expected time at most {seconds(one.most_generations * spent[engine])}"
    return (
        f"{one.block} · check attempt {one.attempt} ({one.preset}): {names}: at most {one.most_generations} "
        f"generations, {one.most_tokens} tokens; {time}"
    )


def _spent(earlier: Path | None) -> dict[str, float]:
    """Seconds per generation by engine, of an earlier run's checks."""
    from orchestrator.store.directory import RunDirectory
    from orchestrator.store.durations import generation_seconds

    return generation_seconds(RunDirectory.open(earlier).records()) if earlier is not None else {}


def print_check_states(console: Console, index: Index) -> None:
    """A row for each distribution check of a run; the verdict is computed from its generations now."""
    if not index.checks:
        return
    from orchestrator.exactness.checking import judge_check

    rows = []
    for state in index.checks.values():
        cell = index.cells.get(state.cell)
        result = judge_check(state, cell.claim if cell is not None else None).results[0]
        word = STATUS_RULES[state.status].word
        rows.append((state.id, word, state.generated, state.attempt or "-", state.reason, result.verdict.value))
    columns = ("check", "status", "generations", "attempt", "reason", "verdict")
    console.print(table("Distribution checks", columns, rows))


def print_check(console: Console, index: Index, name: str) -> None:
    """All there is to know of one distribution check."""
    from orchestrator.exactness.checking import judge_check

    state = index.checks[name]
    console.print(plain(state.id), style="bold")
    console.print(plain(f"{STATUS_RULES[state.status].word}: {state.reason}".rstrip(": ")))
    cell = index.cells.get(state.cell)
    outcome = judge_check(state, cell.claim if cell is not None else None)
    for result in outcome.results:
        console.print(plain(f"{result.check}: {result.verdict.value}: {result.evidence}"), soft_wrap=True)
    for size, p, level in outcome.looks:
        said = "nothing to compare" if p is None else f"p {p:.2g}"
        console.print(plain(f"look at {size} generations per context: {said}, level {level:.2g}"))
    if state.plan is not None:
        for context, text in state.plan.contexts.items():
            console.print(plain(f"context {context}: {text!r}: {state.plan.why.get(context, '')}"), soft_wrap=True)
        if "" in state.plan.why:
            console.print(plain(state.plan.why[""]), soft_wrap=True)
    rows = [
        (arm.value, context, sum(len(one.tokens) for one in batches), batches[-1].folder)
        for arm, by in state.arms.items()
        for context, batches in by.items()
    ]
    console.print(table("Generations", ("arm", "context", "made", "folder"), rows))
