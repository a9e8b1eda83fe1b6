"""Reading an engine's log file: for people, bounded and harmless to a terminal; for patterns, by complete lines."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path

from orchestrator.clock import now_s

MAX_LINE_CHARS = 500
MAX_TEXT_BYTES = 64 * 1024 * 1024
"""Of a log larger than this only the end is read."""

_POLL_S = 0.02
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]")


def size(path: Path) -> int:
    """Bytes in the file so far, 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def read(path: Path, start: int = 0, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """The file from byte ``start`` on, at most its last ``max_bytes``."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(start, end - max_bytes))
            return file.read(max_bytes)
    except FileNotFoundError:
        return b""


def cleaned(line: str) -> str:
    """The line without escape sequences, control and direction characters, at most 500 characters.

    Of a progress bar that rewrites its line with carriage returns, the last state is kept.
    """
    last = _ESCAPES.sub("", line).rstrip("\r").rpartition("\r")[2].replace("\t", " ")
    plain = "".join(char for char in last if unicodedata.category(char) not in ("Cc", "Cf"))
    return plain if len(plain) <= MAX_LINE_CHARS else plain[: MAX_LINE_CHARS - 1] + "…"


def tail(path: Path, count: int, max_bytes: int) -> tuple[str, ...]:
    """The last ``count`` non-empty lines within the last ``max_bytes`` of the file, cleaned."""
    raw = read(path, 0, max_bytes)
    lines = raw.decode("utf-8", "replace").split("\n")
    if len(raw) < size(path):
        lines = lines[1:] or lines  # the first one is cut
    shown = [text for line in lines if (text := cleaned(line)).strip()]
    return tuple(shown[-count:]) if count > 0 else ()


def wait_for(path: Path, pattern: str, since: int, timeout_s: float, ended: Callable[[], bool]) -> bool:
    """Whether the pattern matches complete lines written after byte ``since``, within the time-out (seconds).

    ``^`` and ``$`` match at line ends. An unterminated line does not count: half a number matches as a wrong one.
    Looks at the file's size every 20 ms and reads only when it grew; gives up when the process has ended.
    """
    wanted = re.compile(pattern, re.MULTILINE)
    deadline = now_s() + timeout_s
    pause = threading.Event()
    seen = since
    while True:
        last_look = ended()
        now = size(path)
        if now > seen:
            seen = now
            whole, newline, _ = read(path, since).rpartition(b"\n")
            if newline and wanted.search((whole + newline).decode("utf-8", "replace")):
                return True
        left = deadline - now_s()
        if last_look or left <= 0:
            return False
        pause.wait(min(_POLL_S, left))
