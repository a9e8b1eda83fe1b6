"""The journal's meaning: each cell of the current matrix with what may be pooled for it, and what is missing.

Pure: the same records give the same index. Three rules protect the figures: only sessions of complete sets count,
only under the fingerprint that the matrix now has, and only from one attempt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.schema.cell import Role
from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import (
    AttemptRecord,
    CellRecord,
    MatrixRecord,
    MemoryRecord,
    NoteRecord,
    Record,
    ReplayRecord,
    TrialRecord,
)
from orchestrator.schema.status import Status
from orchestrator.store.check_states import CheckState, check_states
from orchestrator.store.judge import Counted, Verdict, judge, trials_of
from orchestrator.store.ledger import Ledger
from orchestrator.store.outcome import exit_code, select_failed
from orchestrator.store.states import AttemptState, CellState

__all__ = ["AttemptState", "CellState", "Index", "exit_code", "select_failed"]


@dataclass(frozen=True, slots=True)
class Index:
    """A run as its journal tells it.

    Args:
        matrix: the newest revision; ``None`` for a run that never got that far.
        cells: by id, in the order of the matrix.
        attempts: by block, oldest first.
        notes: what a reader of the run must know, in order.
        replays: what baselines said of given texts, in order; of every attempt.
        memory: the newest memory trial of a cell under its present fingerprint, by cell id.
        checks: distribution checks by id, in the order of the matrix.
        texts: by block and attempt, how tokens near a divergence are spelled, by id.
    """

    matrix: MatrixRecord | None
    cells: dict[str, CellState]
    attempts: dict[str, list[AttemptState]]
    notes: tuple[NoteRecord, ...]
    replays: tuple[ReplayRecord, ...] = ()
    memory: Mapping[str, MemoryRecord] = field(default_factory=dict)
    checks: Mapping[str, CheckState] = field(default_factory=dict)
    texts: Mapping[tuple[str, int], Mapping[int, str]] = field(default_factory=dict)

    @classmethod
    def build(cls, records: Iterable[Record]) -> Index:
        """The index of a journal's records, in their order.

        Raises:
            StoreError: the records contradict each other.
        """
        ledger = Ledger.read(records)
        rows = _rows(ledger.matrix)
        by_block: dict[str, list[AttemptRecord]] = defaultdict(list)
        for key in sorted(ledger.attempts):
            by_block[key[0]].append(ledger.attempts[key])
        views = {row.id: _view(ledger, row, by_block.get(row.block, [])) for row in rows}
        in_use: dict[str, set[int]] = defaultdict(set)
        for view in views.values():
            if view.current is not None:
                in_use[view.row.block].add(view.current.attempt)
        cells = {name: _state(ledger, view, in_use[view.row.block]) for name, view in views.items()}
        prints = {row.id: row.fingerprint for row in rows}
        attempts = {block: [_attempt(ledger, one, prints) for one in found] for block, found in by_block.items()}
        keys = {row.id: (row.id, row.fingerprint) for row in rows}
        memory = {name: ledger.memory[key] for name, key in keys.items() if key in ledger.memory}
        replays, checks = tuple(ledger.replays), check_states(ledger, cells)
        return cls(ledger.matrix, cells, attempts, tuple(ledger.notes), replays, memory, checks, ledger.texts)


@dataclass(frozen=True, slots=True)
class _Row:
    """A cell as the matrix revision resolved it."""

    id: str
    fingerprint: str
    block: str
    role: Role
    baseline: str | None
    settings: Mapping[str, Any]
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _View:
    """A cell with its verdicts: under its current fingerprint by attempt, and of older fingerprints."""

    row: _Row
    verdicts: tuple[Verdict, ...]
    older: tuple[Verdict, ...]

    @property
    def current(self) -> Verdict | None:
        return self.verdicts[-1] if self.verdicts else None


def _rows(matrix: MatrixRecord | None) -> tuple[_Row, ...]:
    if matrix is None:
        return ()
    try:
        return tuple(
            _Row(
                row["id"],
                row["fingerprint"],
                row["block"],
                Role(row["role"]),
                row["baseline"],
                row["settings"],
                row.get("facts", {}),
            )
            for row in matrix.cells
        )
    except (KeyError, ValueError) as err:
        raise StoreError(f"journal: the matrix revision of {matrix.utc} lists a cell without a valid {err}") from err


def _view(ledger: Ledger, row: _Row, attempts: list[AttemptRecord]) -> _View:
    holding = [one for one in attempts if row.id in one.cells]
    judged = [(one.cells[row.id] == row.fingerprint, judge(ledger, row.id, one)) for one in holding]
    return _View(
        row,
        tuple(verdict for same, verdict in judged if same),
        tuple(verdict for same, verdict in judged if not same),
    )


def _state(ledger: Ledger, view: _View, in_use: set[int]) -> CellState:
    row, current = view.row, view.current
    status, reason, remedy = _fate(ledger.fates.get((row.id, row.fingerprint)), view)
    partners = _partners(view, in_use)
    history = sorted((one.attempt, one.status) for one in (*view.verdicts, *view.older))
    return CellState(
        id=row.id,
        block=row.block,
        role=row.role,
        baseline=row.baseline,
        fingerprint=row.fingerprint,
        status=status,
        reason=reason,
        remedy=remedy,
        attempt=current.attempt if current else None,
        sets_done=current.done if current else 0,
        sets_planned=current.planned if current else 0,
        sessions=tuple(one.session for one in current.pooled) if current else (),
        trials=trials_of(current.pooled) if current else (),
        failed_sessions=tuple(one.session for one in current.failed) if current else (),
        failed_trials=trials_of(current.failed) if current else (),
        stale_trials=() if current else _stale(view.older),
        partner_sessions=tuple(one.session for one in partners),
        partner_trials=trials_of(partners),
        claim=ledger.matrix.claims.get(row.id) if ledger.matrix else None,
        settings=row.settings,
        engagement=current.engagement if current else None,
        history=tuple(history),
        facts=row.facts,
    )


def _fate(refused: CellRecord | None, view: _View) -> tuple[Status, str, str]:
    if refused is not None:
        return refused.status, refused.reason, refused.remedy
    current = view.current
    if current is not None:
        return current.status, current.reason, current.remedy
    measured = [one.attempt for one in view.older if one.counted]
    if measured:
        reason = f"attempt {measured[-1]} measured it with other settings or files than the matrix now names"
        return Status.STALE, reason, "run again to measure it as it is now"
    return Status.NOT_RUN, "planned, not measured yet", "run again"


def _stale(older: tuple[Verdict, ...]) -> tuple[TrialRecord, ...]:
    return next((trials_of(one.pooled) for one in reversed(older) if one.pooled), ())


def _partners(view: _View, in_use: set[int]) -> tuple[Counted, ...]:
    if view.row.role is Role.SPECULATIVE:
        return ()
    return tuple(one for verdict in view.verdicts[:-1] if verdict.attempt in in_use for one in verdict.pooled)


def _attempt(ledger: Ledger, record: AttemptRecord, prints: Mapping[str, str]) -> AttemptState:
    key = (record.block, record.attempt)
    complete = {number: done.take for number, done in sorted(ledger.complete.get(key, {}).items())}
    return AttemptState(
        block=record.block,
        attempt=record.attempt,
        cells=dict(record.cells),
        planned_sets=record.planned_sets,
        trials_per_session=record.trials_per_session,
        complete=complete,
        takes=dict(sorted(ledger.takes.get(key, {}).items())),
        order=record.order,
        order_seed=record.order_seed,
        current=all(prints.get(cell) == fingerprint for cell, fingerprint in record.cells.items()),
        max_sets=record.max_sets,
        stopped=record.stopped,
        purpose=record.purpose,
    )
