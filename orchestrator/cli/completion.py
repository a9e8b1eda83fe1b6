"""What the shell completes: cell ids and run directories, read without an engine, a heavy import or a word of error.

A key press must be answered at once and must never write into the prompt: whatever cannot be read completes nothing.
"""

# ruff: noqa: PLC0415  (start-up stays light)

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

MOST_RUNS = 200
"""Run folders looked at, newest names first: their names begin with the time."""
MOST_JOURNAL_BYTES = 64_000_000
MOST_MATRIX_BYTES = 2_000_000
_MATRIX_LINE = b'"kind":"matrix"'
_LINE_END_BYTES = 200
"""Where in a line its kind stands: records are written with their kind last."""


def cells_of_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of cells and distribution checks of the run that ``--run`` names, or of the newest one."""
    return _quietly(lambda: _starting(_run_ids(_run(ctx)), incomplete))


def cells_of_matrix(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids of the matrix's cells and checks, of which ``run``, ``plan`` and ``rerun`` choose; else the newest run's."""
    found = _quietly(lambda: _starting(_matrix_ids(Path(ctx.params.get("matrix") or "matrix.yaml")), incomplete))
    return found or cells_of_run(ctx, incomplete)


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Run directories under ``--reports``, newest first, or beside the path that was begun."""

    def find() -> list[str]:
        known = [str(path) for path in _newest_first(_reports(ctx))]
        folder = Path(incomplete.rpartition("/")[0] or ".")
        return _starting(known, incomplete) or _starting(map(str, _newest_first(folder)), incomplete)

    return _quietly(find)


def prompt_sets(_ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the prompt sets that come with the program."""

    def find() -> list[str]:
        from orchestrator.workloads.load import known_names

        return _starting(known_names(), incomplete)

    return _quietly(find)


def _quietly(find: Callable[[], list[str]]) -> list[str]:
    try:
        return find()
    except Exception:  # noqa: BLE001  (an error here would be printed into the line that is being typed)
        return []


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _reports(ctx: typer.Context) -> Path:
    return Path(ctx.params.get("reports") or "reports")


def _run(ctx: typer.Context) -> Path | None:
    given = ctx.params.get("run")
    return Path(given) if given else next(iter(_newest_first(_reports(ctx))), None)


def _newest_first(reports: Path) -> list[Path]:
    """The runs of a folder by the time in their headers; a header that cannot be read is none."""
    headers = sorted(reports.glob("*/run.json"), reverse=True)[:MOST_RUNS]
    found = [(created, header.parent) for header in headers if (created := _created(header))]
    return [path for _, path in sorted(found, reverse=True)]


def _created(header: Path) -> str:
    try:
        row: Any = json.loads(header.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    created = row.get("created_utc") if isinstance(row, dict) else None
    return created if isinstance(created, str) else ""


def _run_ids(run: Path | None) -> Sequence[str]:
    """The ids of the journal's newest matrix line, found without parsing the others, which are many and long."""
    newest = b""
    with ((run or Path()) / "journal.jsonl").open("rb") as journal:
        for line in journal:
            if _MATRIX_LINE in line[-_LINE_END_BYTES:]:
                newest = line
            if journal.tell() > MOST_JOURNAL_BYTES:
                break
    record = json.loads(newest)
    return [row["id"] for row in (*record["cells"], *record.get("checks", ()))]


def _matrix_ids(path: Path) -> Sequence[str]:
    """The ids that a matrix expands to; its files need not exist and its engines are not asked."""
    if path.stat().st_size > MOST_MATRIX_BYTES:
        return []
    from orchestrator import registry
    from orchestrator.matrix.expand import expand
    from orchestrator.matrix.load import load_matrix

    found = expand(load_matrix(path, registry.adapters()), str)
    return [*(cell.id for cell in found.cells), *(check.id for check in found.checks)]
