"""Lines of a pipe with the moment each arrived, and every byte in a file besides."""

from __future__ import annotations

import os
import selectors
import threading
from collections import deque
from pathlib import Path
from typing import IO

from orchestrator.clock import now_s
from orchestrator.schema.capture import RawEvent

MAX_UNREAD_BYTES = 64 * 1024 * 1024
"""Lines waiting for a reader, or one line without an end, beyond which lines are no longer kept."""

_CHUNK_BYTES = 64 * 1024
_SETTLE, _CLOSE = b"s", b"c"
"""What wakes the thread: to say that the pipe is empty, or to end."""


class LinePump:
    """A thread that blocks on a pipe, writes the raw bytes to a file and queues complete lines.

    A line's stamp is the arrival of the chunk that completed it, taken before anything else is done with the chunk.
    An unterminated last line stays in the file and is not queued.
    """

    def __init__(self, source: IO[bytes], log: Path, max_unread_bytes: int = MAX_UNREAD_BYTES) -> None:
        """Start reading; ``source`` is closed by the pump."""
        self._source = source
        self._log = log.open("wb", buffering=0)
        self._limit = max_unread_bytes
        self._lines: deque[tuple[float, bytes]] = deque()
        self._unread = 0
        self._torn = bytearray()
        self._changed = threading.Condition()
        self._ended = False
        self._settled = 0
        self._fault: str | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name=f"lines of {log.name}", daemon=True)
        self._thread.start()

    def next(self, timeout_s: float) -> RawEvent | None:
        """The next line without its newline; ``None`` when none came in time (seconds) or the pipe has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._ended or self._fault, timeout_s)
            if not self._lines:
                return None
            stamp, raw = self._lines.popleft()
            self._unread -= len(raw)
        return RawEvent(stamp, raw.decode("utf-8", "replace").removesuffix("\r"))

    @property
    def ended(self) -> bool:
        """Whether the pipe has ended and every line was taken."""
        with self._changed:
            return self._ended and not self._lines

    @property
    def fault(self) -> str | None:
        """Why lines were lost, ``None`` when none were."""
        with self._changed:
            return self._fault

    def settle(self, timeout_s: float) -> None:
        """Wait until all that is in the pipe by now is queued, at most so long (seconds).

        Of a process that is dead all is in the pipe, so that after this no line of it is still on its way, however
        late the thread is given the processor.
        """
        with self._changed:
            if self._ended:
                return
            before = self._settled
        os.write(self._wake_write, _SETTLE)
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._settled > before, timeout_s)

    def close(self, timeout_s: float = 1.0) -> None:
        """End the thread, waiting so long (seconds) for the pipe's own end, and close all files."""
        self._thread.join(timeout_s)
        os.write(self._wake_write, _CLOSE)  # someone else may hold the pipe open for ever
        self._thread.join()
        self._source.close()
        self._log.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _run(self) -> None:
        pipe = self._source.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if pipe not in ready:
                    if os.read(self._wake_read, 1) == _CLOSE:
                        break
                    with self._changed:
                        self._settled += 1
                        self._changed.notify_all()
                    continue
                chunk = os.read(pipe, _CHUNK_BYTES)
                stamp = now_s()
                if not chunk:
                    break
                self._keep(chunk)
                self._queue(stamp, chunk)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _keep(self, chunk: bytes) -> None:
        try:
            self._log.write(chunk)
        except OSError as err:
            self._lose(f"{self._log.name} could not be written: {err}")

    def _queue(self, stamp: float, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        with self._changed:
            if self._fault:  # what follows a lost piece could be the rest of that piece, and is no line
                return
            for part in whole:
                self._torn += part
                if self._unread + len(self._torn) <= self._limit:
                    self._lines.append((stamp, bytes(self._torn)))
                    self._unread += len(self._torn)
                else:
                    self._fault = self._fault or self._too_much()
                self._torn.clear()
            self._torn += rest
            if len(self._torn) > self._limit:
                self._fault = self._fault or self._too_much()
                self._torn.clear()
            if whole or self._fault:
                self._changed.notify_all()

    def _too_much(self) -> str:
        return f"more than {self._limit} bytes of output were waiting to be read"

    def _lose(self, why: str) -> None:
        with self._changed:
            self._fault = self._fault or why
            self._changed.notify_all()
