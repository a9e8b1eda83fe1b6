"""The commands that do not measure: each prints what it is asked for."""

# ruff: noqa: PLC0415  (start-up stays light)

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cli.checks import expected_checks, print_check, print_check_fates, print_check_states
from orchestrator.cli.expected import expected_requests, expected_time
from orchestrator.cli.grades import print_grades
from orchestrator.cli.memory import print_memory
from orchestrator.cli.tables import plain, status_counts, table
from orchestrator.cli.workspace import Workspace, newest_run, open_run, open_workspace
from orchestrator.matrix.template import SCHEMA, template_text
from orchestrator.schema.errors import SelectionError, SpecmatrixError
from orchestrator.schema.status import STATUS_RULES, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.runner.plan import PlannedAttempt
    from orchestrator.store.index import CellState


def write_template(path: Path) -> None:
    """Writes the commented default matrix; an existing file is left alone.

    Raises:
        SpecmatrixError: there is a file already.
    """
    text = template_text(SCHEMA)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as err:
        raise SpecmatrixError(f"{path}: there is a file already; name another one") from err
    except OSError as err:
        raise SpecmatrixError(f"{path}: cannot be written ({err.strerror})") from err
    Console().print(plain(f"wrote {path}; next: specmatrix check"))


def check_matrix(matrix: Path, reports: Path, *, strict: bool) -> int:
    """Prints each engine and each cell's fate; returns 1 under ``strict`` when a cell cannot be measured."""
    workspace = open_workspace(matrix, reports)
    console = Console()
    _print_engines(console, workspace)
    rows = []
    for fate in workspace.survey.fates.values():
        if fate.refusal is None:
            rows.append((fate.cell.id, "ready", fate.claim.rule.value, ""))
        elif workspace.survey.engines[fate.cell.engine.name].identity.unavailable is None:
            why = ". ".join(part for part in (fate.refusal.reason, fate.refusal.remedy) if part)
            rows.append((fate.cell.id, STATUS_RULES[fate.refusal.status].word, fate.claim.rule.value, why))
    console.print(table("Cells", ("cell", "fate", "acceptance rule claimed", "why"), rows))
    for line in sorted({fate.crowded for fate in workspace.survey.fates.values() if fate.crowded}):
        console.print(plain(line), soft_wrap=True)
    print_memory(console, workspace)
    print_check_fates(console, workspace)
    for cell, reason in workspace.expansion.not_formed:
        console.print(plain(f"not formed: {cell}: {reason}"))
    refused = sum(fate.refusal is not None for fate in workspace.survey.fates.values())
    ready = len(workspace.survey.fates) - refused
    console.print(plain(f"{ready} cells ready, {refused} cannot be measured here"))
    return 1 if strict and refused else 0


def _print_engines(console: Console, workspace: Workspace) -> None:
    console.print(_engine_table(workspace))
    for line in _not_here(workspace):
        console.print(plain(line), soft_wrap=True)


def _not_here(workspace: Workspace) -> list[str]:
    """A line for each engine that is not on this machine: why, how to get it, and how many cells wait for it."""
    from orchestrator import registry
    from orchestrator.runner.survey import how_to_get

    lines = []
    for name, found in workspace.survey.engines.items():
        if found.identity.unavailable is None:
            continue
        waiting = sum(fate.cell.engine.name == name for fate in workspace.survey.fates.values())
        how = how_to_get(found.identity, registry.adapter(found.config.adapter))
        cells = f"{waiting} cell{'s' * (waiting != 1)} to be measured"
        lines.append(f"{name}: {cells}: " + "; ".join(part for part in (found.identity.unavailable, how) if part))
    return lines


def show_plan(matrix: Path, reports: Path, run: Path | None, only: Sequence[str], *, new: bool) -> None:
    """Prints the attempts that ``run`` would make, set by set."""
    from orchestrator import registry
    from orchestrator.runner.plan import plan_attempts
    from orchestrator.store.directory import RunDirectory
    from orchestrator.store.index import Index

    workspace = open_workspace(matrix, reports)
    path = run if run is not None else (None if new else workspace.newest_run())
    earlier = workspace.newest_run() or newest_run(reports)
    index = Index.build(RunDirectory.open(path).records() if path is not None else ())
    selected = frozenset(cell.id for cell in workspace.select(only))
    attempts = plan_attempts(
        workspace.expansion.blocks, workspace.survey.fates, index, workspace.matrix.run, selected=selected, again=False
    )
    console = Console()
    checks = expected_checks(workspace, index, earlier, selected)
    if not attempts and not checks:
        console.print("nothing to measure: every selected cell is measured, failed, or cannot be measured here")
        return
    for attempt in attempts:
        console.print(_attempt_table(attempt))
    for line in checks:
        console.print(plain(line))
    if not attempts:
        return
    sessions = sum(attempt.sessions for attempt in attempts)
    requests = expected_requests(attempts, workspace.matrix.run, registry.adapters())
    most = "at most " if workspace.matrix.run.adaptive is not None else ""
    console.print(plain(f"{most}{sessions} sessions, at most {requests} requests, warm-ups included"))
    if workspace.matrix.run.confirm_winner:
        console.print("besides: where several cells of a block are faster, the best is measured anew (confirm_winner)")
    console.print(plain(expected_time(attempts, earlier)))


def _attempt_table(attempt: PlannedAttempt) -> object:
    """The sets in order; in a blocked order the cells, each with all its sessions."""
    title = f"{attempt.block} · attempt {attempt.attempt}"
    if attempt.blocked:
        sessions = len(attempt.sets)
        rows = [(number + 1, f"{_short(cell.id)} × {sessions}") for number, cell in enumerate(attempt.cells)]
        return table(f"{title} · a cell at a time", ("turn", "sessions"), rows)
    sets = [(one.set_index + 1, " → ".join(_short(cell.id) for cell in one.cells)) for one in attempt.sets]
    return table(title, ("set", "order"), sets)


def _short(cell_id: str) -> str:
    parts = cell_id.split("/")
    return parts[2] + ("~twin" if cell_id.endswith("~twin") else "")


def show_status(reports: Path, run: Path | None) -> None:
    """Prints each cell's status in a run."""
    from orchestrator.store.index import Index

    directory = open_run(run, reports)
    index = Index.build(directory.records())
    rows = [
        (
            state.id,
            STATUS_RULES[state.status].word,
            f"{state.sets_done}/{state.sets_planned}",
            state.attempt or "-",
            state.reason,
        )
        for state in index.cells.values()
    ]
    console = Console()
    console.print(table(f"{directory.path}", ("cell", "status", "sets", "attempt", "reason"), rows))
    print_check_states(console, index)
    console.print(plain(status_counts(index)))
    if directory.holder is not None:
        pid, since = directory.holder.pid, directory.holder.since_utc
        console.print(plain(f"running now (process {pid} since {since}): cells shown as aborted are being measured"))


def write_reports(
    reports: Path, run: Path | None, language: str | None, formats: Sequence[str], output: Path | None
) -> None:
    """Writes the report of a run anew: page and data, or the formats that were asked for.

    Raises:
        SpecmatrixError: a format that there is not, or a place without a format.
    """
    from orchestrator.report.output.formats import Format, write_formats
    from orchestrator.report.output.write import write_report

    known = [one.value for one in Format]
    unknown = [one for one in formats if one not in known]
    if unknown:
        raise SpecmatrixError(f"--format {unknown[0]}: there are {', '.join(known)}")
    if output is not None and not formats:
        raise SpecmatrixError("--output wants a format: --format html, for instance")
    directory = open_run(run, reports)
    if not formats:
        Console().print(plain(f"report {write_report(directory.path, language)}"), soft_wrap=True)
        return
    for path in write_formats(directory.path, [Format(one) for one in formats], language, output):
        Console().print(plain(f"wrote {path}"), soft_wrap=True)


def show_cell(pattern: str, reports: Path, run: Path | None) -> None:
    """Prints all there is to know of one cell.

    Raises:
        SelectionError: the pattern names no cell, or several.
    """
    from orchestrator.matrix.select import matching_ids
    from orchestrator.store.index import Index

    directory = open_run(run, reports)
    index = Index.build(directory.records())
    ids = matching_ids((*index.cells, *index.checks), [pattern])
    if len(ids) > 1:
        raise SelectionError(f"{pattern!r} names {len(ids)} cells: {', '.join(ids)}; show takes one")
    if ids[0] in index.checks:
        print_check(Console(), index, ids[0])
        return
    _print_cell(Console(), directory.path, index.cells[ids[0]])


def _print_cell(console: Console, run: Path, state: CellState) -> None:
    console.print(plain(state.id), style="bold")
    console.print(plain(f"{STATUS_RULES[state.status].word}: {STATUS_RULES[state.status].meaning}"))
    for line in (state.reason, state.remedy):
        if line:
            console.print(plain(line))
    if state.claim is not None:
        console.print(plain(f"acceptance rule claimed: {state.claim.rule.value}, by {state.claim.by}"))
    rows = [(key, value) for part, values in state.settings.items() for key, value in _flat(part, values)]
    console.print(table("Settings", ("setting", "value"), rows))
    sessions = (*state.sessions, *state.failed_sessions)
    if not sessions:
        return
    last = sessions[-1]
    console.print(
        table(
            "Conditions",
            ("setting", "requested", "effective", "verdict"),
            [(c.name, c.requested, c.effective or "unknown", c.verdict.value) for c in last.conditions],
        )
    )
    print_grades(console, (*state.trials, *state.failed_trials))
    console.print(plain(f"argv: {_argv(run / last.folder)}"), soft_wrap=True)
    console.print(plain(f"folder: {run / last.folder}"), soft_wrap=True)
    for line in last.log_tail:
        console.print(plain(f"  {line}"), soft_wrap=True)


def _flat(prefix: str, value: object) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return [row for key, item in value.items() for row in _flat(f"{prefix}.{key}", item)]
    return [(prefix, value)]


def _argv(folder: Path) -> str:
    import json

    try:
        return shlex.join(json.loads((folder / "launch.json").read_text(encoding="utf-8"))["argv"])
    except (OSError, ValueError, KeyError, TypeError):
        return "not recorded"


def show_engines(matrix: Path, reports: Path) -> None:
    """Prints the adapters, and with a matrix the engines found against their pins."""
    from orchestrator import registry

    console = Console()
    adapters, broken = registry.load_all()
    rows = [
        (name, one.title, one.shape.value, ", ".join(kind.value for kind in one.method_options), one.verified.value)
        for name, one in adapters.items()
    ]
    rows += [(entry.name, "cannot be loaded", "-", "-", entry.why) for entry in broken]
    console.print(table("Adapters", ("adapter", "engine", "driven as", "methods", "how verified"), rows))
    if matrix.exists():
        _print_engines(console, open_workspace(matrix, reports))
    else:
        console.print(plain(f"{matrix}: no matrix here, so no engine was looked for; `specmatrix init` writes one"))


def _engine_table(workspace: Workspace) -> object:
    rows = []
    for name, found in workspace.survey.engines.items():
        told = ", ".join(f"{k} {v[:12] if k == 'sha256' else v}" for k, v in found.identity.facts.items())
        pin = ", ".join(f"{key} {value}" for key, value in found.config.pin.items()) or "unpinned"
        if found.identity.unavailable is not None:
            fate = f"{STATUS_RULES[Status.UNAVAILABLE].word}, see below"
        else:
            fate = found.mismatch or ("as pinned" if found.pinned else "runs unpinned")
        rows.append((name, found.config.adapter, told or "-", pin, fate))
    return table("Engines", ("engine", "adapter", "found", "pin", "verdict"), rows)
