"""A run directory: ``run.json``, the journal, one folder per session; nothing in it is ever overwritten."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.schema.codec import dump_header, load_header
from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import Record, RunHeader
from orchestrator.store.journal import JournalWriter, is_torn, read_journal
from orchestrator.store.lock import Holder, exclusive, holder_of
from orchestrator.store.names import cell_folder_name, new_run_name, session_folder_name

__all__ = ["RunDirectory", "latest_run", "new_run_name"]

HEADER, JOURNAL, LOCK, CELLS = "run.json", "journal.jsonl", "run.lock", "cells"
_HEADER_DRAFT = "run.json.part"


@dataclass(slots=True)
class RunDirectory:
    """One run on disk. Make it with :meth:`create` or :meth:`open`."""

    path: Path
    header: RunHeader
    _writer: JournalWriter | None = field(default=None, repr=False)

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> RunDirectory:
        """A new run in a new or empty folder; ``run.json`` appears whole or not at all.

        Raises:
            StoreError: the folder is a run already, holds other things, or cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            _refuse_content(path)  # before a lock file is put into a folder that may not be ours
            with exclusive(path / LOCK):
                _refuse_content(path)
                (path / JOURNAL).touch()
                _write_whole(path / _HEADER_DRAFT, path / HEADER, dump_header(header))
        except OSError as err:
            raise StoreError(f"{path}: cannot make a run directory there: {err.strerror}; choose another") from err
        return cls(path, header)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run.

        Raises:
            StoreError: it is not a run (says what is missing), is damaged, or was written by a newer version.
        """
        if not path.is_dir():
            raise StoreError(f"{path}: there is no such folder; `specmatrix run` starts a run")
        for name in (HEADER, JOURNAL):
            if not (path / name).is_file():
                raise StoreError(
                    f"{path}: not a run directory, {name} is missing; name a folder that holds {HEADER} and {JOURNAL}"
                )
        try:
            text = (path / HEADER).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as err:
            raise StoreError(f"{path / HEADER}: cannot be read: {err}") from err
        return cls(path, load_header(text, str(path / HEADER)))

    @property
    def torn(self) -> bool:
        """Whether the journal ends in a line that a crash cut short; it counts for nothing."""
        return is_torn(self.path / JOURNAL)

    @property
    def holder(self) -> Holder | None:
        """The process that writes into the run right now, if any."""
        return holder_of(self.path / LOCK)

    def records(self) -> Iterator[Record]:
        """The journal's records in order; may be read while another process appends.

        Raises:
            StoreError: a line in the middle is damaged; names file and line.
        """
        return read_journal(self.path / JOURNAL)

    @contextmanager
    def lock(self) -> Iterator[Holder | None]:
        """Makes this process the only writer; yields the holder that died without an end, or ``None``.

        Raises:
            StoreError: another process holds the lock; says which.
        """
        with exclusive(self.path / LOCK) as dead, JournalWriter(self.path / JOURNAL) as writer:
            self._writer = writer
            try:
                yield dead
            finally:
                self._writer = None

    def append(self, record: Record) -> None:
        """One more line, on disk when this returns.

        Raises:
            RuntimeError: the lock is not held (a fault of the caller).
            StoreError: the record cannot be written.
        """
        if self._writer is None:
            raise RuntimeError(f"{self.path}: append() outside lock()")
        self._writer.append(record)

    def session_folder(self, cell_id: str, fingerprint: str, attempt: int, set_index: int, take: int) -> Path:
        """A new empty folder ``cells/<slug>-<fp8>/attempt-N/session-S[.take-T]``.

        Raises:
            StoreError: it exists: nothing is overwritten, :meth:`next_take` tells which take is free.
        """
        folder = self._attempt_folder(cell_id, fingerprint, attempt) / session_folder_name(set_index, take)
        try:
            folder.mkdir(parents=True)
        except FileExistsError as err:
            raise StoreError(
                f"{folder}: exists, and nothing is overwritten; take {take} of set {set_index} was begun before"
            ) from err
        except OSError as err:
            raise StoreError(f"{folder}: cannot be made: {err.strerror}; check space and owner") from err
        return folder

    def replay_folder(self, cell_id: str, fingerprint: str, attempt: int) -> Path:
        """A new empty folder ``cells/<slug>-<fp8>/attempt-N/replay-R`` for a session that measures nothing.

        Raises:
            StoreError: it cannot be made.
        """
        parent = self._attempt_folder(cell_id, fingerprint, attempt)
        number = sum(1 for _ in parent.glob("replay-*"))
        folder = parent / f"replay-{number}"
        try:
            folder.mkdir(parents=True)
        except OSError as err:
            raise StoreError(f"{folder}: cannot be made: {err.strerror}; check space and owner") from err
        return folder

    def check_folder(self, cell_id: str, fingerprint: str, attempt: int, arm: str) -> Path:
        """A new empty folder ``cells/<slug>-<fp8>/attempt-N/<arm>-R`` for one arm of a distribution check.

        Raises:
            StoreError: it cannot be made.
        """
        parent = self._attempt_folder(cell_id, fingerprint, attempt)
        folder = parent / f"{arm}-{sum(1 for _ in parent.glob(f'{arm}-*'))}"
        try:
            folder.mkdir(parents=True)
        except OSError as err:
            raise StoreError(f"{folder}: cannot be made: {err.strerror}; check space and owner") from err
        return folder

    def memory_folder(self, cell_id: str, fingerprint: str) -> Path:
        """A new empty folder ``cells/<slug>-<fp8>/memory-N`` for an untimed memory trial.

        Raises:
            StoreError: it cannot be made.
        """
        parent = self._attempt_folder(cell_id, fingerprint, 0).parent
        folder = parent / f"memory-{sum(1 for _ in parent.glob('memory-*'))}"
        try:
            folder.mkdir(parents=True)
        except OSError as err:
            raise StoreError(f"{folder}: cannot be made: {err.strerror}; check space and owner") from err
        return folder

    def next_take(self, cells: Mapping[str, str], attempt: int, set_index: int) -> int:
        """The lowest take above every folder of that set on disk; 0 when there is none.

        A session that was killed before its end has left a folder and no record, so the journal alone cannot tell.

        Args:
            cells: fingerprint by cell id, of all cells of the attempt.
            attempt: the block's attempt.
            set_index: which set.
        """
        pattern = re.compile(rf"session-{set_index}(?:\.take-(\d+))?")
        takes = [-1]
        for cell_id, fingerprint in cells.items():
            folder = self._attempt_folder(cell_id, fingerprint, attempt)
            names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
            takes += [int(found[1] or 0) for found in map(pattern.fullmatch, names) if found]
        return max(takes) + 1

    def _attempt_folder(self, cell_id: str, fingerprint: str, attempt: int) -> Path:
        return self.path / CELLS / cell_folder_name(cell_id, fingerprint) / f"attempt-{attempt}"


def latest_run(reports: Path) -> Path | None:
    """The run that was made last, by ``created_utc`` of its header; ``None`` when there is none.

    Headers are not checked further: a run that a newer version wrote is still the latest, and opening it says so.
    """
    found = [(created, path) for path in reports.glob("*") if (created := _created(path)) is not None]
    return max(found, key=lambda item: (item[0], item[1].name))[1] if found else None


def _created(path: Path) -> str | None:
    try:
        row = json.loads((path / HEADER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    created = row.get("created_utc") if isinstance(row, dict) else None
    return created if isinstance(created, str) else None


def _refuse_content(path: Path) -> None:
    if (path / HEADER).exists():
        raise StoreError(f"{path}: is a run already; name it to go on with it, or choose another folder")
    begun = {LOCK, _HEADER_DRAFT}  # what an interrupted create leaves behind
    others = sorted(
        entry.name
        for entry in path.iterdir()
        if entry.name not in begun and not (entry.name == JOURNAL and entry.stat().st_size == 0)
    )
    if others:
        raise StoreError(f"{path}: not empty and not a run (holds {others[0]}); choose a new or empty folder")


def _write_whole(draft: Path, final: Path, text: str) -> None:
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(final)
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
