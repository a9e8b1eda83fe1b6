"""The journal's records sorted by what they belong to: one pass, no judgement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import (
    AttemptRecord,
    CellRecord,
    CheckEndRecord,
    CheckPlanRecord,
    CheckRecord,
    MatrixRecord,
    MemoryRecord,
    NoteRecord,
    Place,
    Record,
    ReplayRecord,
    SessionRecord,
    SetRecord,
    TokensRecord,
    TrialRecord,
)

BlockAttempt = tuple[str, int]
"""Block id and attempt number."""


@dataclass(slots=True)
class Ledger:
    """Records by their keys.

    Args:
        attempts: by block and number, in order of the journal.
        complete: the first completion of each set: figures once shown do not change.
        takes: the highest take seen of each set.
        sessions: by cell, block and attempt.
        trials: by the place of their session.
        begun: cell, block and attempt of every trial and session.
        fates: the newest ``CellRecord`` by cell and fingerprint, while nothing newer was measured there.
    """

    matrix: MatrixRecord | None = None
    notes: list[NoteRecord] = field(default_factory=list)
    replays: list[ReplayRecord] = field(default_factory=list)
    texts: dict[BlockAttempt, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    memory: dict[tuple[str, str], MemoryRecord] = field(default_factory=dict)
    checks: list[CheckPlanRecord | CheckRecord | CheckEndRecord] = field(default_factory=list)
    attempts: dict[BlockAttempt, AttemptRecord] = field(default_factory=dict)
    complete: dict[BlockAttempt, dict[int, SetRecord]] = field(default_factory=lambda: defaultdict(dict))
    takes: dict[BlockAttempt, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    sessions: dict[tuple[str, str, int], list[SessionRecord]] = field(default_factory=lambda: defaultdict(list))
    trials: dict[Place, list[TrialRecord]] = field(default_factory=lambda: defaultdict(list))
    begun: set[tuple[str, str, int]] = field(default_factory=set)
    fates: dict[tuple[str, str], CellRecord] = field(default_factory=dict)

    @classmethod
    def read(cls, records: Iterable[Record]) -> Ledger:
        """All records of one journal, in its order.

        Raises:
            StoreError: one attempt number stands for two different attempts, or a session or trial is there twice.
        """
        ledger = cls()
        for record in records:
            ledger._enter(record)
        return ledger

    def _enter(self, record: Record) -> None:
        if isinstance(record, TrialRecord):
            same = self.trials[record.place]
            _refuse_second(record, any(other.trial == record.trial for other in same))
            same.append(record)
            self._measured(record.place)
        elif isinstance(record, SessionRecord):
            place = record.place
            sessions = self.sessions[place.cell, place.block, place.attempt]
            _refuse_second(record, any(other.place == place for other in sessions))
            sessions.append(record)
            self._measured(place)
        elif isinstance(record, SetRecord):
            key = (record.block, record.attempt)
            self.complete[key].setdefault(record.set_index, record)
            self._see_take(key, record.set_index, record.take)
        elif isinstance(record, AttemptRecord):
            self._begin(record)
        elif isinstance(record, CellRecord):
            self.fates[record.cell, record.fingerprint] = record
        elif isinstance(record, MatrixRecord):
            self.matrix = record
        else:
            self._enter_beside(record)

    def _enter_beside(self, record: Record) -> None:
        """What is no measurement: replays, texts of tokens, memory trials, distribution checks and notes."""
        if isinstance(record, ReplayRecord):
            self.replays.append(record)
        elif isinstance(record, TokensRecord):
            self.texts[record.block, record.attempt] |= {int(number): text for number, text in record.texts.items()}
        elif isinstance(record, MemoryRecord):
            self.memory[record.cell, record.fingerprint] = record
        elif isinstance(record, CheckPlanRecord | CheckRecord | CheckEndRecord):
            self.checks.append(record)
        elif isinstance(record, NoteRecord):
            self.notes.append(record)

    def _measured(self, place: Place) -> None:
        self.begun.add((place.cell, place.block, place.attempt))
        self.fates.pop((place.cell, place.fingerprint), None)
        self._see_take((place.block, place.attempt), place.set_index, place.take)

    def _see_take(self, key: BlockAttempt, set_index: int, take: int) -> None:
        seen = self.takes[key]
        seen[set_index] = max(take, seen.get(set_index, take))

    def _begin(self, record: AttemptRecord) -> None:
        key = (record.block, record.attempt)
        before = self.attempts.get(key)
        if before is not None and dict(before.cells) != dict(record.cells):
            raise StoreError(
                f"journal: attempt {record.attempt} of block {record.block} was begun twice with different cells; "
                "the journal was edited or merged: restore it from a copy"
            )
        self.attempts[key] = record


def _refuse_second(record: TrialRecord | SessionRecord, known: bool) -> None:
    if known:
        place = record.place
        raise StoreError(
            f"journal: a {record.kind} of {place.cell} (attempt {place.attempt}, set {place.set_index}, take "
            f"{place.take}) is recorded twice, and pooling it would count it twice; restore the journal from a copy"
        )
