"""What a run is expected to ask for and to take, before it starts."""

# ruff: noqa: PLC0415  (start-up stays light)

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.schema.units import seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from orchestrator.matrix.types import RunSettings
    from orchestrator.runner.plan import PlannedAttempt
    from orchestrator.schema.adapter import Adapter


def expected_requests(
    attempts: Sequence[PlannedAttempt], settings: RunSettings, adapters: Mapping[str, Adapter]
) -> int:
    """The most requests of all their sessions: by each workload's own trials, with warm-ups, primes and repeats."""
    from orchestrator.runner.plan import instrumented, session_trials
    from orchestrator.workloads.load import load_prompts

    total = 0
    for attempt in attempts:
        for one, cell in attempt.sequence:
            phases = instrumented(adapters[cell.engine.adapter], cell, settings)
            prompts = load_prompts(*cell.workload.source)
            total += len(session_trials(prompts, cell, settings, one.set_index, phases=phases))
    return total


def expected_time(attempts: Sequence[PlannedAttempt], earlier: Path | None) -> str:
    """By an earlier run's sessions of the same cells, else of the same engine; nothing is guessed from thin air."""
    from orchestrator.store.directory import RunDirectory
    from orchestrator.store.durations import expected_s, session_seconds

    spent = session_seconds(RunDirectory.open(earlier).records()) if earlier is not None else {}
    if not spent:
        return "expected time: not known before a first run on this machine"
    wanted = [cell.id for attempt in attempts for one in attempt.sets for cell in one.cells]
    new = sum(cell not in spent for cell in wanted)
    text = f"expected time: {seconds(expected_s(wanted, spent))} by the sessions of {earlier}"
    return text + (f" ({new} sessions of cells never run before, by their engine's others)" if new else "")
