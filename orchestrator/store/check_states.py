"""Distribution checks as the journal tells them: how far each got, and its generations, without a verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import CheckArm, CheckEndRecord, CheckPlanRecord, CheckRecord
from orchestrator.schema.status import Status
from orchestrator.store.ledger import Ledger
from orchestrator.store.states import CellState

Batches = Mapping[str, tuple[CheckRecord, ...]]
"""By context: complete batches without a gap, from the first."""

SPECULATIVE_ARMS = frozenset({CheckArm.ON, CheckArm.COUPLED})
_REFUSED = frozenset({Status.UNSUPPORTED, Status.UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class CheckState:
    """A check of the current matrix with what was generated for it.

    Args:
        id: the judged cell's id with ``~check``.
        fingerprint: of the speculative arms; ``base`` of those without speculation, which a block's checks share.
        attempt: the newest one that generated for this check; ``None`` before the first.
        plan: its contexts and size, once they are chosen.
        arms: generations of the attempt by arm; an arm without any is missing.
        earlier: attempts before it under the same fingerprint, each a whole experiment of its own.
        before: those experiments, oldest first.
    """

    id: str
    cell: str
    baseline: str
    block: str
    preset: str
    fingerprint: str
    base: str
    status: Status
    reason: str
    remedy: str
    attempt: int | None
    plan: CheckPlanRecord | None
    arms: Mapping[CheckArm, Batches]
    earlier: tuple[int, ...]
    before: tuple[CheckState, ...] = ()

    @property
    def generated(self) -> int:
        """Generations of its own arms and of those it shares."""
        return sum(len(one.tokens) for arm in self.arms.values() for batches in arm.values() for one in batches)


@dataclass(slots=True)
class CheckLedger:
    """The records of checks by what they belong to; the first of two equal batches counts."""

    plans: dict[tuple[str, str, int], CheckPlanRecord] = field(default_factory=dict)
    batches: dict[tuple[str, str, int], dict[tuple[CheckArm, str, int], CheckRecord]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    ends: dict[tuple[str, str, int], CheckEndRecord] = field(default_factory=dict)

    @classmethod
    def read(cls, records: Iterable[CheckPlanRecord | CheckRecord | CheckEndRecord]) -> CheckLedger:
        """All records of checks, in the journal's order."""
        ledger = cls()
        for record in records:
            if isinstance(record, CheckPlanRecord):
                ledger.plans.setdefault((record.block, record.fingerprint, record.attempt), record)
            elif isinstance(record, CheckRecord):
                of_cell = ledger.batches[record.cell, record.fingerprint, record.attempt]
                of_cell.setdefault((record.arm, record.context, record.batch), record)
            else:
                ledger.ends[record.cell, record.fingerprint, record.attempt] = record
        return ledger

    def arms(self, cell: str, fingerprint: str, attempt: int) -> dict[CheckArm, Batches]:
        """What the cell generated in the attempt."""
        found: dict[CheckArm, dict[str, list[CheckRecord]]] = {}
        for (arm, context, batch), record in sorted(self.batches.get((cell, fingerprint, attempt), {}).items()):
            row = found.setdefault(arm, {}).setdefault(context, [])
            if batch == len(row):  # what follows a gap is made anew
                row.append(record)
        return {arm: {context: tuple(row) for context, row in by.items() if row} for arm, by in found.items()}

    def attempts(self, cell: str, fingerprint: str) -> tuple[int, ...]:
        """Attempts in which the cell has generations or an end, in order."""
        keys = [*self.batches, *self.ends]
        return tuple(sorted({number for name, print_, number in keys if (name, print_) == (cell, fingerprint)}))

    def last_attempt(self, block: str) -> int:
        """The highest attempt number of the block, whatever became of it; 0 without one."""
        planned = [number for name, _, number in self.plans if name == block]
        made = [number for key, by in self.batches.items() for number in (key[2],) if _block_of(by) == block]
        ended = [number for (_, _, number), end in self.ends.items() if end.block == block]
        return max((*planned, *made, *ended), default=0)


def check_states(ledger: Ledger, cells: Mapping[str, CellState]) -> dict[str, CheckState]:
    """Every check of the newest matrix revision, by id.

    Raises:
        StoreError: the matrix revision lists a check without one of its keys.
    """
    if ledger.matrix is None:
        return {}
    found = CheckLedger.read(ledger.checks)
    return {row["id"]: _state(found, row, cells) for row in ledger.matrix.checks if _whole(row)}


def _whole(row: Mapping[str, Any]) -> bool:
    missing = {"id", "cell", "baseline", "block", "preset", "fingerprint", "base"} - row.keys()
    if missing:
        raise StoreError(f"journal: the matrix revision lists a check without {', '.join(sorted(missing))}")
    return True


def _state(found: CheckLedger, row: Mapping[str, Any], cells: Mapping[str, CellState]) -> CheckState:
    own = found.attempts(row["cell"], row["fingerprint"])
    attempt = own[-1] if own else None
    shared = attempt if attempt is not None else _newest_plan(found, row["block"], row["base"])
    arms: dict[CheckArm, Batches] = {}
    if shared is not None:
        arms |= found.arms(row["baseline"], row["base"], shared)
        arms |= found.arms(row["cell"], row["fingerprint"], shared)
    end = found.ends.get((row["cell"], row["fingerprint"], attempt)) if attempt is not None else None
    status, reason, remedy = _status(row, end, bool(arms), cells)
    state = CheckState(
        row["id"],
        row["cell"],
        row["baseline"],
        row["block"],
        row["preset"],
        row["fingerprint"],
        row["base"],
        status,
        reason,
        remedy,
        shared,
        found.plans.get((row["block"], row["base"], shared)) if shared is not None else None,
        arms,
        own[:-1],
    )
    return replace(state, before=experiments_before(found, state))


def experiments_before(found: CheckLedger, state: CheckState) -> tuple[CheckState, ...]:
    """The check in each attempt before its own under the same fingerprint, oldest first."""
    earlier = [one for one in found.attempts(state.cell, state.fingerprint) if one < (state.attempt or 0)]
    return tuple(
        replace(
            state,
            attempt=one,
            plan=found.plans.get((state.block, state.base, one)),
            arms=found.arms(state.baseline, state.base, one) | found.arms(state.cell, state.fingerprint, one),
            earlier=tuple(earlier[:place]),
            before=(),
        )
        for place, one in enumerate(earlier)
    )


def _newest_plan(found: CheckLedger, block: str, base: str) -> int | None:
    return max((number for name, print_, number in found.plans if (name, print_) == (block, base)), default=None)


def _status(
    row: Mapping[str, Any], end: CheckEndRecord | None, begun: bool, cells: Mapping[str, CellState]
) -> tuple[Status, str, str]:
    for name in (row["cell"], row["baseline"]):
        state = cells.get(name)
        if state is not None and state.status in _REFUSED:
            return state.status, state.reason, state.remedy
    if end is not None:
        return end.status, end.reason, end.remedy
    if begun:
        return Status.ABORTED, "interrupted before it was decided", "run again: complete batches are kept"
    return Status.NOT_RUN, "planned, not run yet", "run again"


def _block_of(batches: Mapping[tuple[CheckArm, str, int], CheckRecord]) -> str:
    return next((record.block for record in batches.values()), "")
