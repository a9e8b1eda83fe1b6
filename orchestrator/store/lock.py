"""The lock of a run directory: one writer at a time, freed by the kernel when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.clock import utc_now
from orchestrator.schema.errors import StoreError

_TRIES, _PAUSE_S = 50, 0.02
"""A reader that asks who holds the lock takes it for an instant, which a busy machine makes a long one: a writer tries
again for a second before it gives up."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who took the lock, and when."""

    pid: int
    since_utc: str


@contextmanager
def exclusive(path: Path) -> Iterator[Holder | None]:
    """Holds the lock file; yields the dead process that left it behind, or ``None`` after a clean end.

    ``flock`` belongs to the open file, so the kernel frees it however the process ends; children do not inherit it
    across ``exec``. The file itself stays, since removing it would let two processes lock two files of one name.

    Raises:
        StoreError: another process holds it; says which.
    """
    fd = _open(path)
    try:
        if not _take(fd):
            holder = _read(fd)
            who = f"process {holder.pid} since {holder.since_utc}" if holder is not None else "another process"
            raise StoreError(
                f"{path.parent}: in use by {who}; wait for it, or stop it, or choose another run directory"
            )
        dead = _read(fd)
        _write(fd, json.dumps({"pid": os.getpid(), "since_utc": utc_now()}))
        try:
            yield dead
        finally:
            _write(fd, "")
    finally:
        os.close(fd)


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock right now; ``None`` when nobody does."""
    if not path.exists():
        return None
    fd = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(fd)
        return None
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as err:
        raise StoreError(f"{path}: cannot be opened for writing: {err.strerror}; check the folder's owner") from err


def _take(fd: int) -> bool:
    for number in range(_TRIES):
        if number:
            time.sleep(_PAUSE_S)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return True
    return False


def _read(fd: int) -> Holder | None:
    try:
        row = json.loads(os.pread(fd, 4096, 0))
        return Holder(int(row["pid"]), str(row["since_utc"]))
    except (ValueError, KeyError, TypeError):
        return None


def _write(fd: int, text: str) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, text.encode(), 0)
