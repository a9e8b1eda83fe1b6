"""Makes text from engines, logs and matrices safe to show: escaping is Jinja's, this is about what cannot be seen.

Model output and logs may hold terminal sequences, control characters, direction overrides and lines of any length.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from orchestrator.schema.hidden import DIRECTION, INVISIBLE, shown

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)"  # OSC and friends, where they end within the line
    r"|\x1b[ -/]*[0-~]"  # two-character escapes, and the beginning of what does not end: its text is shown
    r"|\x9b[0-?]*[ -/]*[@-~]"  # the one-byte CSI
)
LINE_LIMIT = 400
"""Characters kept of one log line."""
TAIL_LINES = 14
"""Lines kept of one log."""
EXCERPT = 160
"""Characters kept around a point in model output."""


def clean(text: str, limit: int = LINE_LIMIT) -> str:
    """One line that is what it looks like: no terminal sequences, controls made visible, bounded with an ellipsis."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        # Most names and sentences: nothing in them can hide.
        return text
    return _cleaned(text, limit) if len(text) <= LINE_LIMIT else _bounded(text, limit)


def _bounded(text: str, limit: int) -> str:
    cut = text[: 4 * limit]
    shown = "".join(_visible(char) for char in _ANSI.sub("", cut))
    if len(shown) <= limit and len(text) <= 4 * limit:
        return shown
    return shown[: limit - 1] + "…"


_cleaned = lru_cache(maxsize=4096)(_bounded)
"""Names recur on a page by the hundred; only short texts are kept."""


def tail(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The last lines of a log, each cleaned; lines that hold several are split first."""
    split = [part for line in lines[-TAIL_LINES:] for part in line[-100_000:].splitlines() or [""]]
    return tuple(clean(part.rstrip()) for part in split[-TAIL_LINES:])


def _visible(char: str) -> str:
    if char in DIRECTION or char in INVISIBLE:
        return shown(char)
    code = ord(char)
    if char in "\n\r\t":
        return {"\n": "⏎", "\r": "␍", "\t": "→"}[char]
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if unicodedata.category(char) in ("Cc", "Cs", "Cn", "Co"):
        return shown(char)
    return char
