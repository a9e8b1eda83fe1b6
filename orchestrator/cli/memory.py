"""What ``check`` says of memory: each cell's need against what the machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.tables import plain, table
from orchestrator.host.fit import parts_in_words
from orchestrator.schema.units import size

if TYPE_CHECKING:
    from rich.console import Console

    from orchestrator.cli.workspace import Workspace
    from orchestrator.schema.fit import MemoryNeed


def print_memory(console: Console, workspace: Workspace) -> None:
    """Prints the fit of every cell but twins, the machine's memory, and the largest other programs."""
    rows = []
    for fate in workspace.survey.fates.values():
        if fate.need is None or fate.cell.twin:
            continue
        verdict = fate.fit.verdict.value if fate.fit is not None else "not judged"
        if fate.need.parts:
            more = f"+ {size(fate.need.increase)}" if fate.need.increase else "-"
            rows.append((fate.cell.id, size(fate.need.total), more, verdict, _parts(fate.need)))
        else:
            rows.append((fate.cell.id, "unknown", "-", verdict, "; ".join(fate.need.unknown)))
    if not rows:
        return
    columns = ("cell", "needs", "by drafting", "fit", "of which (≈: estimate)")
    console.print(table("Memory before the run", columns, rows))
    host = workspace.survey.host
    room = host.get("budget")
    if isinstance(room, dict):
        parts = [
            f"{size(room['total_bytes'])} in all",
            f"{size(room['used_bytes'])} in use now",
            f"{size(room['reserved_bytes'])} reserved by host.reserve",
        ]
        if room.get("gpu_limit_bytes"):
            parts.append(f"the GPU may use {size(room['gpu_limit_bytes'])} ({room['gpu_limit_note']})")
        console.print(plain(f"memory: {', '.join(parts)}; environment: {workspace.matrix.host.environment}"))
    others = host.get("largest_others") or []
    told = ", ".join(f"{one['name']} {size(one['rss_bytes'])}" for one in others)
    console.print(plain(f"largest other programs: {told or 'none seen'}"), soft_wrap=True)


def _parts(need: MemoryNeed) -> str:
    unknown = f"; not counted: {'; '.join(need.unknown)}" if need.unknown else ""
    return parts_in_words(need) + unknown
