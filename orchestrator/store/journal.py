"""``journal.jsonl``: whole lines only, even after a crash in the middle of one.

A line that was cut by a crash has no newline. Before the next line is written it is *sealed*: a CAN character
(0x18) and a newline are put behind it. JSON writes control characters as escapes, so no complete line can end
like that, and a reader tells a sealed line, which it skips, from a damaged one, which it refuses. Nothing is cut off
the file. A last line that lacks nothing but its newline is complete, for no true prefix of a JSON object is JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.schema.codec import dump_record, load_record
from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import Record

SEAL = b"\x18\n"
_CHUNK = 1 << 16


def read_journal(path: Path) -> Iterator[Record]:
    """The records in order; sealed lines and a torn last line yield nothing.

    Raises:
        StoreError: a line in the middle is not a record; names file and line number.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if raw.endswith(SEAL):
                continue
            whole = raw.endswith(b"\n")
            if whole or _is_whole(raw):
                yield _load(raw, f"{path}:{number}")
            if not whole:
                return  # a writer may be at work on this line; its rest is not a line of its own


def is_torn(path: Path) -> bool:
    """Whether the last line was cut before its end and is not sealed yet."""
    with path.open("rb") as file:
        tail = _tail(file.fileno())
    return bool(tail) and not _is_whole(tail)


class JournalWriter:
    """Appends records to one file. Whoever holds one must hold the run's lock."""

    def __init__(self, path: Path) -> None:
        """Open the existing journal for appending."""
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND)
        self._ends_clean = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def append(self, record: Record) -> None:
        """One line, on disk when this returns.

        The line is read back before it is written: one that no reader accepts (a number that is not finite, a lone
        surrogate) would make the whole journal unreadable.

        Raises:
            StoreError: the record cannot be written as a line that reads back, or the disk refused it.
        """
        line = self._line(record)
        try:
            if not self._ends_clean:
                self._mend()
            self._ends_clean = False
            self._write(line)
            self._ends_clean = True
        except OSError as err:
            raise StoreError(
                f"{self._path}: the record was not written: {err.strerror}; what was measured before is kept. "
                "Make room or restore access, then run again"
            ) from err

    def _line(self, record: Record) -> bytes:
        where = f"{self._path}: a {record.kind} record"
        try:
            line = dump_record(record)
        except ValueError as err:
            raise StoreError(f"{where} cannot be written as JSON: {err}; this is a fault of specmatrix") from err
        load_record(line, where)
        return line.encode()

    def _mend(self) -> None:
        tail = _tail(self._fd)
        if tail:
            self._write(b"\n" if _is_whole(tail) else SEAL)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)


def _load(raw: bytes, where: str) -> Record:
    advice = "The journal is damaged there; restore it from a copy, or move that line out of it by hand"
    try:
        return load_record(raw.decode(), where)
    except UnicodeDecodeError as err:
        raise StoreError(f"{where}: not UTF-8 text. {advice}") from err
    except StoreError as err:
        raise StoreError(f"{err}. {advice}") from err


def _is_whole(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _tail(fd: int) -> bytes:
    """What follows the last newline; empty when the file ends with one."""
    start = os.fstat(fd).st_size
    tail = b""
    while start:
        size = min(_CHUNK, start)
        start -= size
        chunk = os.pread(fd, size, start)
        cut = chunk.rfind(b"\n")
        if cut >= 0:
            return chunk[cut + 1 :] + tail
        tail = chunk + tail
    return tail
