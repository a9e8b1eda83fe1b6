"""Server-sent events from stamped chunks, split after the measurement so that splitting costs it nothing."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from orchestrator.schema.capture import RawEvent

Chunk = tuple[float, bytes]
"""Arrival (seconds of our clock) and the bytes that arrived."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def split_events(chunks: Sequence[Chunk]) -> tuple[tuple[RawEvent, ...], str]:
    """The stream's events, each stamped with the arrival of the chunk that completed it, and what was left over.

    An event's ``data`` is the text after ``data:``, its lines joined by newlines. A comment line (keep-alive) is an
    event of its own whose data starts with ``:``. A block with neither, which the standard ignores, is kept whole:
    some servers report their errors that way.

    Returns:
        Events in order, and the unterminated rest: not an event, since more of it may have been coming.

    Source: the event stream format of the WHATWG HTML standard, "Interpreting an event stream".
    """
    text = b"".join(data for _, data in chunks)
    ends = list(accumulate(len(data) for _, data in chunks))

    def arrival(end: int) -> float:
        return chunks[bisect_left(ends, end)][0]

    events: list[RawEvent] = []
    block: list[str] = []
    start = 0
    for line, end in _lines(text):
        if line.startswith(":"):
            events.append(RawEvent(arrival(end), line))
        elif line:
            block.append(line)
        elif block:
            events.append(RawEvent(arrival(end), _data(block)))
            block = []
        start = end
    torn = text[start:].decode("utf-8", "replace")
    return tuple(events), "\n".join([*block, torn]) if block else torn


def _lines(text: bytes) -> Iterator[tuple[str, int]]:
    """Each complete line with the offset just behind its end."""
    start = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    for match in _LINE_END.finditer(text, start):
        yield text[start : match.start()].decode("utf-8", "replace"), match.end()
        start = match.end()


def _data(block: list[str]) -> str:
    fields = [line.partition(":") for line in block]
    data = [value.removeprefix(" ") for name, _, value in fields if name == "data"]
    return "\n".join(data) if data else "\n".join(block)
