"""The session that runs at this moment, written down for whoever watches; the journal knows it only when it ends."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

RUNNING = "running.json"


@dataclass(frozen=True, slots=True)
class Running:
    """A session that has begun.

    Args:
        pid: of the process that measures; what a dead one left behind is told by it.
        cell: cell id.
        attempt: of its block.
        set_index: from 0, of ``planned_sets``.
        requests: that it will make.
        since_utc: when it began.
    """

    pid: int
    cell: str
    attempt: int
    set_index: int
    planned_sets: int
    requests: int
    since_utc: str


@contextmanager
def announced(run: Path, running: Running) -> Iterator[None]:
    """Keeps the file while the session runs. Written before the engine starts: nothing touches the disk beside it.

    A watcher's view is no measurement: a file that cannot be written costs nothing but the view.
    """
    path = run / RUNNING
    draft = path.with_name(RUNNING + ".part")
    with contextlib.suppress(OSError):
        draft.write_text(json.dumps(asdict(running), ensure_ascii=False), encoding="utf-8")
        draft.replace(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def running_now(run: Path, pid: int | None) -> Running | None:
    """The session that the process runs; ``None`` between sessions, or when another process left the file behind."""
    try:
        data = json.loads((run / RUNNING).read_text(encoding="utf-8"))
        found = Running(**data)
    except (OSError, ValueError, TypeError):
        return None
    numbers = (found.pid, found.attempt, found.set_index, found.planned_sets, found.requests)
    told = all(type(one) is int for one in numbers) and isinstance(found.cell, str) and isinstance(found.since_utc, str)
    return found if told and found.pid == pid else None


def own_pid() -> int:
    """The process that measures, as the lock names it too."""
    return os.getpid()
