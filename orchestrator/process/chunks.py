"""Pieces of several pipes as they are read, each with the moment it arrived, and every byte in files besides."""

from __future__ import annotations

import os
import selectors
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from orchestrator.clock import now_s

MAX_UNREAD_BYTES = 64 * 1024 * 1024
"""Pieces waiting for a reader, beyond which they are no longer kept."""

_CHUNK_BYTES = 64 * 1024
_WAKE = "wake"
_SETTLE, _CLOSE = b"s", b"c"
"""What wakes the thread: to say that the pipes are empty, or to end."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one read of a pipe gave: seconds of our clock, the stream's name, and its bytes."""

    t_s: float
    stream: str
    data: bytes


class ChunkPump:
    """A thread that blocks on pipes, writes the raw bytes to files and queues each piece with its arrival.

    Nothing is split or joined: a progress bar that only ever writes carriage returns is seen as it moves.
    """

    def __init__(self, sources: Mapping[str, tuple[IO[bytes], Path]], max_unread_bytes: int = MAX_UNREAD_BYTES) -> None:
        """Start reading. ``sources`` are pipe and file by stream name; the pump closes them."""
        self._sources = {name: pipe for name, (pipe, _) in sources.items()}
        self._logs = {name: log.open("wb", buffering=0) for name, (_, log) in sources.items()}
        self._limit = max_unread_bytes
        self._chunks: deque[Chunk] = deque()
        self._unread = 0
        self._changed = threading.Condition()
        self._ended = False
        self._settled = 0
        self._fault: str | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="chunks of a command", daemon=True)
        self._thread.start()

    def next(self, timeout_s: float) -> Chunk | None:
        """The next piece; ``None`` when none came in time (seconds) or all pipes have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._chunks or self._ended or self._fault, timeout_s)
            if not self._chunks:
                return None
            found = self._chunks.popleft()
            self._unread -= len(found.data)
            return found

    @property
    def ended(self) -> bool:
        """Whether every pipe has ended and every piece was taken."""
        with self._changed:
            return self._ended and not self._chunks

    @property
    def fault(self) -> str | None:
        """Why pieces were lost, ``None`` when none were."""
        with self._changed:
            return self._fault

    def settle(self, timeout_s: float) -> None:
        """Wait until all that is in the pipes by now is queued, at most so long (seconds); see ``LinePump.settle``."""
        with self._changed:
            if self._ended:
                return
            before = self._settled
        os.write(self._wake_write, _SETTLE)
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._settled > before, timeout_s)

    def close(self, timeout_s: float = 1.0) -> None:
        """End the thread, waiting so long (seconds) for the pipes' own end, and close all files."""
        self._thread.join(timeout_s)
        os.write(self._wake_write, _CLOSE)  # a child that left may hold a pipe open for ever
        self._thread.join()
        for file in (*self._sources.values(), *self._logs.values()):
            file.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for name, pipe in self._sources.items():
                selector.register(pipe.fileno(), selectors.EVENT_READ, name)
            selector.register(self._wake_read, selectors.EVENT_READ, _WAKE)
            left = set(self._sources)
            while left:
                ready = [one for one in selector.select() if one[0].data != _WAKE]
                if not ready:  # woken, and nothing is left in the pipes
                    if os.read(self._wake_read, 1) == _CLOSE:
                        break
                    with self._changed:
                        self._settled += 1
                        self._changed.notify_all()
                    continue
                # A command that speaks on standard error and then on standard output has both ready here: the order
                # in which it spoke is kept by reading the first one first.
                for key, _ in sorted(ready, key=lambda one: one[0].data):
                    data = os.read(key.fd, _CHUNK_BYTES)
                    stamp = now_s()
                    if data:
                        self._keep(Chunk(stamp, key.data, data))
                    else:
                        selector.unregister(key.fd)
                        left.discard(key.data)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _keep(self, chunk: Chunk) -> None:
        fault = None
        try:
            self._logs[chunk.stream].write(chunk.data)
        except OSError as err:
            fault = f"{chunk.stream} could not be written: {err}"
        with self._changed:
            if self._unread + len(chunk.data) <= self._limit:
                self._chunks.append(chunk)
                self._unread += len(chunk.data)
            else:
                fault = f"more than {self._limit} bytes of output were waiting to be read"
            self._fault = self._fault or fault
            self._changed.notify_all()
