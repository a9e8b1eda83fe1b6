"""``run`` and ``rerun``: measure, then write the report, whatever happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from orchestrator.cli import EXIT_INTERRUPTED
from orchestrator.cli.progress import ProgressView
from orchestrator.cli.workspace import Workspace, open_workspace
from orchestrator.runner.execute import execute
from orchestrator.schema.errors import SelectionError, StoreError
from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import Index
from orchestrator.store.outcome import State, exit_code, select_failed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.schema.cell import Cell, CheckCell


def measure(
    matrix: Path, reports: Path, run: Path | None, only: Sequence[str], *, new: bool, strict: bool, verbose: bool
) -> int:
    """Measures what is missing; returns the exit status."""
    workspace = open_workspace(matrix, reports)
    selected = workspace.select(only)
    path = run if run is not None else (None if new else workspace.newest_run())
    directory = RunDirectory.open(path) if path is not None else workspace.create_run()
    return _measure(workspace, directory, selected, only, again=False, strict=strict, verbose=verbose)


def measure_again(
    matrix: Path, reports: Path, run: Path | None, patterns: Sequence[str], *, failed: bool, strict: bool, verbose: bool
) -> int:
    """Measures cells anew as a new attempt of their block; returns the exit status."""
    if bool(patterns) == failed:
        raise SelectionError("name the cells to measure again, or say --failed (not both)")
    workspace = open_workspace(matrix, reports)
    path = run if run is not None else workspace.newest_run()
    if path is None:
        raise StoreError(f"{reports}: no run of matrix {workspace.matrix.name!r} yet; start with `specmatrix run`")
    directory = RunDirectory.open(path)
    if failed:
        known, found = {cell.id for cell in workspace.select(())}, Index.build(directory.records())
        patterns = [cell for cell in select_failed((*found.cells.values(), *found.checks.values())) if cell in known]
        if not patterns:
            Console().print("no cell of this run failed")
            return 0
    selected = workspace.select(patterns)
    return _measure(workspace, directory, selected, patterns, again=True, strict=strict, verbose=verbose)


def _measure(
    workspace: Workspace,
    directory: RunDirectory,
    selected: Sequence[Cell | CheckCell],
    patterns: Sequence[str],
    *,
    again: bool,
    strict: bool,
    verbose: bool,
) -> int:
    console = Console()
    console.print(escape(f"run {directory.path}"), highlight=False, soft_wrap=True)
    with ProgressView(console, verbose=verbose) as view:
        interrupted = execute(workspace.job(selected, again=again), directory, view)
    from orchestrator.report.output.write import write_report  # noqa: PLC0415  (loads matplotlib: not beside an engine)

    index = Index.build(directory.records())
    page = write_report(directory.path)
    states: dict[str, State] = {**index.cells, **index.checks}
    chosen = {cell.id: states[cell.id] for cell in selected}
    _say_outcome(console, index, page)
    if interrupted:
        console.print("interrupted: what was measured is kept; the same command goes on from here")
        return EXIT_INTERRUPTED
    named = {pattern for pattern in patterns if pattern in chosen}
    return exit_code(chosen.values(), named, strict)


def _say_outcome(console: Console, index: Index, page: Path) -> None:
    from orchestrator.cli.tables import status_counts  # noqa: PLC0415

    console.print(escape(status_counts(index)), highlight=False, soft_wrap=True)
    console.print(escape(f"report {page}"), highlight=False, soft_wrap=True)
