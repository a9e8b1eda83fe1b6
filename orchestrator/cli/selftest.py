"""``selftest``: prints which faults are caught at the current settings."""

# ruff: noqa: PLC0415  (start-up stays light)

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cli.tables import plain, table
from orchestrator.schema.units import seconds

if TYPE_CHECKING:
    from orchestrator.matrix.types import CheckSettings
    from orchestrator.selftest.run import Result


def run_selftest(matrix: Path, keep: Path | None) -> int:
    """Puts every fault into a real stream and prints what caught it; returns the exit status.

    Args:
        matrix: whose ``checks`` are the current settings; the defaults where there is no such file.
        keep: where the evidence stays; without it, it is thrown away.
    """
    from orchestrator.clock import now_s
    from orchestrator.selftest.run import selftest

    console = Console()
    checks, said = _settings(matrix)
    console.print(plain(said))
    started = now_s()
    with tempfile.TemporaryDirectory(prefix="specmatrix-selftest-") as scratch:
        folder = keep if keep is not None else Path(scratch) / "selftest"
        with console.status("a real engine, one fault after another"):
            results = selftest(folder, checks, lambda _event: None)
    rows = [(one.sampling, one.fault.value, _word(one), _by(one)) for one in results]
    console.print(table("Self-test", ("sampling", "fault", "verdict", "caught by"), rows))
    bad = [one for one in results if not one.good]
    missed = sum(not one.caught_by for one in results if one.good and not one.is_control)
    summary = f"{len(results)} cells in {seconds(now_s() - started)}: {len(bad)} not as they must be"
    console.print(plain(f"{summary}, {missed} faults that nothing at these settings can catch"))
    if keep is not None:
        console.print(plain(f"evidence {keep}"), soft_wrap=True)
    return 1 if bad else 0


def _settings(matrix: Path) -> tuple[CheckSettings, str]:
    from orchestrator import registry
    from orchestrator.matrix.load import load_matrix
    from orchestrator.matrix.types import CheckSettings
    from orchestrator.workloads.load import known_names

    if not matrix.exists():
        checks, where = CheckSettings(greedy_identity=True), f"no {matrix}: default checks"
    else:
        checks, where = load_matrix(matrix, registry.adapters(), known_names()).checks, f"checks of {matrix}"
    both = {"greedy identity": checks.greedy_identity, "cross-scoring": checks.cross_scoring}
    named = [name for name, wanted in both.items() if wanted]
    return checks, f"{where}: {', '.join(named) or 'none'}"


def _word(one: Result) -> str:
    if one.broke:
        return "BROKE OFF"
    if one.is_control:
        return "clean" if one.good else "NOT CLEAN"
    if one.caught_by:
        return "caught" if one.good else "NOT CAUGHT as it must be"
    return "not caught at these settings" if one.good else "NOT CAUGHT"


def _by(one: Result) -> str:
    pairs = zip(one.caught_by, one.said, strict=True)
    told = [f"{gate.value.partition(':')[0]}: {said}" for gate, said in pairs]
    return "; ".join([*told, f"no gate: {one.broke}"] if one.broke else told)
