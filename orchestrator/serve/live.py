"""What a run looks like at this moment: its journal's new lines, and who holds its lock.

The journal is read from where the last look ended, so that watching a long run does not take the machine's time from
the engine that is measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.schema.codec import load_record
from orchestrator.schema.record import NoteRecord, Record, SessionRecord, TrialRecord
from orchestrator.schema.status import Status
from orchestrator.store.durations import expected_s, session_seconds
from orchestrator.store.index import Index
from orchestrator.store.journal import SEAL
from orchestrator.store.running import Running, running_now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.store.directory import RunDirectory
    from orchestrator.store.lock import Holder
    from orchestrator.store.states import CellState

JOURNAL = "journal.jsonl"
LATEST = 8
"""Sessions shown under "last finished"."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment.

    Args:
        holder: the process that measures now, if any.
        done: sessions finished of the newest attempts, of ``planned``.
        left_s: expected seconds to the end; ``None`` while nothing is known or nothing runs.
        latest: the sessions that ended last, newest first.
        running: the session that runs now; ``None`` between sessions.
    """

    holder: Holder | None
    cells: tuple[CellState, ...]
    done: int
    planned: int
    left_s: float | None
    latest: tuple[SessionRecord, ...]
    notes: tuple[NoteRecord, ...]
    running: Running | None = None


@dataclass
class Watcher:
    """Reads one run again and again; use it from one thread."""

    directory: RunDirectory
    _offset: int = 0
    _records: list[Record] = field(default_factory=list)
    _index: Index | None = None

    def look(self) -> Snapshot:
        """The run as it is now.

        Raises:
            StoreError: a line of the journal is damaged.
        """
        fresh = self._read()
        if fresh or self._index is None:
            self._index = Index.build(self._records)
        index, holder = self._index, self.directory.holder
        sessions = [one for one in self._records if isinstance(one, SessionRecord)]
        queue = _queue(tuple(index.cells.values()), sessions)
        spent = session_seconds(sessions)
        planned = sum(cell.sets_planned for cell in index.cells.values())
        return Snapshot(
            holder=holder,
            cells=tuple(index.cells.values()),
            done=planned - len(queue),
            planned=planned,
            left_s=expected_s(queue, spent) if holder is not None and spent and queue else None,
            latest=tuple(reversed(sessions[-LATEST:])),
            notes=index.notes[-3:],
            running=running_now(self.directory.path, holder.pid) if holder is not None else None,
        )

    @property
    def index(self) -> Index:
        """The index of the last look."""
        return self._index if self._index is not None else Index.build(())

    def _read(self) -> bool:
        """Takes the whole lines that came since the last look; a line still being written waits for the next one."""
        path = self.directory.path / JOURNAL
        with path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        end = data.rfind(b"\n") + 1
        for line in data[:end].splitlines(keepends=True):
            if not line.endswith(SEAL):
                self._records.append(_slim(load_record(line.decode(), f"{path} near byte {self._offset}")))
        self._offset += end
        return end > 0


def _slim(record: Record) -> Record:
    """Without what a page of statuses never shows: of a long run the tokens and texts would fill the memory."""
    if not isinstance(record, TrialRecord):
        return record
    return TrialRecord(
        record.place, record.trial, record.phase, record.prompt_id, record.category, record.language, record.seed,
        record.status, record.reason, (), (), "", record.finish_reason, (), (), record.started_utc,
    )  # fmt: skip


def _queue(cells: Sequence[CellState], sessions: Sequence[SessionRecord]) -> list[str]:
    """One id per session still to come; a cell that failed is left out of the sets that remain.

    A session of a set that is not complete yet has ended all the same, so sessions are counted and not sets.
    """
    ended = {(one.place.cell, one.place.fingerprint, one.place.attempt, one.place.set_index) for one in sessions}
    return [
        cell.id
        for cell in cells
        if cell.status in (Status.ABORTED, Status.OK)
        for number in range(cell.sets_planned)
        if (cell.id, cell.fingerprint, cell.attempt, number) not in ended
    ]
