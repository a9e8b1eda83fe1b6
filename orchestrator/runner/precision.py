"""What a block's complete sets say while it still runs: precise enough, a steady baseline, a winner to confirm.

The runner asks between sets, when no engine runs. NumPy, SciPy and pandas are loaded only by a run that asks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.schema.adapter import Rule
from orchestrator.schema.cell import Role
from orchestrator.schema.metrics import TIME_TO_N, VOCABULARY
from orchestrator.schema.record import Phase
from orchestrator.schema.result import Outcome
from orchestrator.schema.status import STATUS_RULES

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.matrix.types import Adaptive
    from orchestrator.schema.result import Comparison
    from orchestrator.stats.noise import NoiseFloor
    from orchestrator.store.index import Index
    from orchestrator.store.states import CellState

WAIT = "e2e_latency"
MANY = 2
"""Cells that are faster, from which on the best of them is partly luck."""


@dataclass(frozen=True, slots=True)
class _Values:
    """Measured values of one block attempt by cell and metric."""

    frame: pd.DataFrame

    def of(self, cell: str, metric: str) -> pd.DataFrame:
        chosen = (self.frame["cell"] == cell) & (self.frame["metric"] == metric)
        return self.frame.loc[chosen, ["set_index", "prompt_id", "value"]]

    def wait_metric(self, cell: str, base: str) -> str:
        """Total wait where both arms write answers of one length, else the longest ``time_to_n`` that all reached."""
        from orchestrator.stats.length import length_comparable  # noqa: PLC0415  (SciPy: not for a run that never asks)

        if length_comparable(self.of(cell, "output_tokens"), self.of(base, "output_tokens"))[0]:
            return WAIT
        answers = {name: len(self.of(name, WAIT)) for name in (cell, base)}
        for n in sorted(TIME_TO_N, reverse=True):
            if all(len(self.of(name, f"time_to_{n}")) == count for name, count in answers.items()):
                return f"time_to_{n}"
        return WAIT


def precise_enough(index: Index, block: str, attempt: int, adaptive: Adaptive) -> tuple[bool, str]:
    """Whether an adaptive attempt may stop after the sets it has, and why."""
    from orchestrator.stats.stopping import enough  # noqa: PLC0415

    values = _values(index, block, attempt)
    done = next(len(one.complete) for one in index.attempts[block] if one.attempt == attempt)
    cells = [state for state in _speculative(index, block, attempt) if not state.failed_sessions]
    rows = [_compare(values, state, None) for state in cells]
    return enough(rows, done, adaptive.max_sessions, adaptive.half_width)


def steady_baseline(index: Index, block: str, attempt: int) -> tuple[bool, str]:
    """Whether the baseline kept its total wait from before the other cells to after them, where its twin stands."""
    from orchestrator.stats.noise import canary  # noqa: PLC0415

    values = _values(index, block, attempt)
    by_role = {state.role: state.id for state in index.cells.values() if state.block == block}
    before = values.of(by_role[Role.BASELINE], WAIT)
    return canary(before, values.of(by_role.get(Role.TWIN, ""), WAIT))


def winner_to_confirm(index: Index, block: str) -> str | None:
    """The best of several faster cells, when it was not measured anew yet.

    Only cells whose acceptance rule is claimed exact count, since no other is ever recommended. A block whose
    baseline differs from itself has no winner.
    """
    from orchestrator.stats.compare import apply_holm  # noqa: PLC0415

    confirmed = {one.attempt for one in index.attempts.get(block, ()) if one.purpose}
    rows: list[Comparison] = []
    for attempt in sorted({state.attempt for state in index.cells.values() if state.block == block and state.attempt}):
        values, members = _values(index, block, attempt), _speculative(index, block, attempt)
        if attempt in confirmed and members:
            return None
        floor = _floor(values, index, block)
        if floor is not None and floor.inconclusive:
            continue
        rows += [
            _compare(values, state, floor)
            for state in members
            if STATUS_RULES[state.status].ranked and _claimed_exact(state) and not _broken(index, state)
        ]
    faster = [row for row in apply_holm(rows) if row.outcome is Outcome.LOWER and row.ratio is not None]
    if len(faster) < MANY:
        return None
    return min(faster, key=lambda row: row.ratio.point if row.ratio is not None else 1.0).cell


def _values(index: Index, block: str, attempt: int) -> _Values:
    from orchestrator.store.frame import observations_frame  # noqa: PLC0415

    cells = {name: state for name, state in index.cells.items() if state.block == block}
    frame = observations_frame(replace(index, cells=cells), partners=True)
    kept = (frame["attempt"] == attempt) & (frame["phase"] == "measured") & frame["value"].notna()
    return _Values(frame.loc[kept])


def _speculative(index: Index, block: str, attempt: int) -> list[CellState]:
    return [
        state
        for state in index.cells.values()
        if state.block == block and state.role is Role.SPECULATIVE and state.attempt == attempt
    ]


def _floor(values: _Values, index: Index, block: str) -> NoiseFloor | None:
    from orchestrator.stats.noise import noise_floor  # noqa: PLC0415

    by_role = {state.role: state.id for state in index.cells.values() if state.block == block}
    if Role.TWIN not in by_role:
        return None
    return noise_floor(values.of(by_role[Role.TWIN], WAIT), values.of(by_role[Role.BASELINE], WAIT))


def _compare(values: _Values, state: CellState, floor: NoiseFloor | None) -> Comparison:
    from orchestrator.stats.compare import compare  # noqa: PLC0415

    base = state.baseline or ""
    metric = values.wait_metric(state.id, base)
    return compare(
        state.id,
        base,
        metric,
        values.of(state.id, metric),
        values.of(base, metric),
        better=VOCABULARY[metric].better,
        noise_floor=floor.half_width if floor is not None and metric == WAIT else None,
    )


def _broken(index: Index, state: CellState) -> bool:
    """Whether the cell's answers are none where its baseline's are: the best of such a run is nothing to confirm."""
    from orchestrator.stats.broken import broken_pairs  # noqa: PLC0415

    base = index.cells.get(state.baseline or "", state)
    mine, theirs = (
        {
            (trial.place.set_index, trial.prompt_id): trial.degenerate.partition(":")[0]
            for trial in (*one.partner_trials, *one.trials)
            if trial.phase is Phase.MEASURED and trial.place.attempt == state.attempt
        }
        for one in (state, base)
    )
    greedy = not state.settings["sampling"]["temperature"]
    return bool(broken_pairs(mine, theirs, greedy=greedy).refusal)


def _claimed_exact(state: CellState) -> bool:
    claim = state.claim
    return claim is not None and claim.exact is True and claim.rule not in (Rule.HEURISTIC, Rule.SYNTHETIC)
