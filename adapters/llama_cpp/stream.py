"""Reads the event stream of llama.cpp's ``POST /completion``: which tokens came when, and the closing figures."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.llama_cpp.request import REQUEST
from orchestrator.schema.adapter import Arrival
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.errors import CaptureError

LOST_AT_END = -1
"""Stands for a token whose id the stream never tells: the answer ended inside a character."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Tokens that share a time stamp of the engine, with the growth of its draft counters."""

    tokens: int
    drafted: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Stream:
    """A whole answer.

    Args:
        arrivals: one per event that carried tokens.
        bursts: grouped by the engine's own time stamp.
        withheld: tokens whose ids are not in the stream, see :func:`read_stream`.
        final: the closing event.
        timings: its ``timings``.
    """

    sent_s: float
    done_s: float
    arrivals: tuple[Arrival, ...]
    bursts: tuple[Burst, ...]
    withheld: int
    text: str
    final: Mapping[str, Any]
    timings: Mapping[str, Any]

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All ids in order; negative ones stand for withheld ids."""
        return tuple(token for arrival in self.arrivals for token in arrival.ids)


def read_stream(capture: TrialCapture) -> Stream:
    """The answer of a trial.

    llama.cpp sends no event for a token that ends inside a character (Korean and emoji are split so); the next
    event carries the text of all of them and only its own id. The running count tells how many were withheld.
    In their place stand negative numbers made from that text: equal text in equal steps has equal numbers.

    Raises:
        CaptureError: the stream is incomplete or not as expected.
    """
    step = capture.steps.get(REQUEST)
    if step is None or step.done_s is None or step.error is not None:
        why = f": {step.error}" if step is not None and step.error is not None else ""
        raise CaptureError(f"the answer to POST /completion is incomplete{why}")
    events = [(event.t_s, read_event(event.data)) for event in step.events]
    parts = [(t_s, data) for t_s, data in events if data is not None]
    if not parts or parts[-1][1].get("stop") is not True:
        raise CaptureError("the stream has no closing event")
    final = parts[-1][1]
    timings = mapping(final, "timings")
    reader = _Reader()
    for t_s, data in parts[:-1]:
        reader.add(t_s, data)
    reader.close(parts[-1][0], timings)
    return Stream(
        step.sent_s,
        step.done_s,
        tuple(reader.arrivals),
        tuple(reader.bursts),
        reader.withheld,
        "".join(reader.text),
        final,
        timings,
    )


def read_event(text: str) -> Mapping[str, Any] | None:
    """The JSON object of one server-sent event; ``None`` for comments, blanks and the end mark.

    Raises:
        CaptureError: the engine reports an error, or the event is not a JSON object.
    """
    body = text.strip()
    if body.startswith("error:"):
        raise CaptureError(f"the engine reports: {body[6:].strip()}")
    body = body.removeprefix("data:").strip()
    if not body or body.startswith(":") or body == "[DONE]":
        return None
    try:
        data = json.loads(body)
    except ValueError as err:
        raise CaptureError(f"an event is not JSON: {body[:80]!r}") from err
    if not isinstance(data, dict):
        raise CaptureError(f"an event is not a JSON object: {body[:80]!r}")
    if "error" in data:
        raise CaptureError(f"the engine reports: {json.dumps(data['error'])}")
    return data


def mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under ``key``; raises :class:`CaptureError` when there is none."""
    found = data.get(key)
    if not isinstance(found, dict):
        raise CaptureError(f"{key!r} is missing from the engine's answer")
    return found


def whole(data: Mapping[str, Any], key: str) -> int:
    """The integer under ``key``; raises :class:`CaptureError` when there is none."""
    found = data.get(key)
    if not isinstance(found, int) or isinstance(found, bool):
        raise CaptureError(f"{key!r} is missing from the engine's answer, or no integer")
    return found


def number(data: Mapping[str, Any], key: str) -> float:
    """The number under ``key``; raises :class:`CaptureError` when there is none."""
    found = data.get(key)
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise CaptureError(f"{key!r} is missing from the engine's answer, or no number")
    return float(found)


class _Reader:
    """Follows the running counts from event to event."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.bursts: list[Burst] = []
        self.text: list[str] = []
        self.withheld = 0
        self._seen = 0
        self._key = ""
        self._drafted = 0
        self._accepted = 0

    def add(self, t_s: float, data: Mapping[str, Any]) -> None:
        if "prompt_progress" in data:
            return
        count, ids, content = whole(data, "tokens_predicted"), data.get("tokens"), data.get("content")
        if not isinstance(ids, list) or not isinstance(content, str):
            raise CaptureError("an event of the stream has no tokens or no content")
        if not all(isinstance(token, int) and not isinstance(token, bool) for token in ids):
            raise CaptureError("an event of the stream has token ids that are no integers")
        missing = count - self._seen - len(ids)
        if missing < 0:
            raise CaptureError(f"the stream's running count went from {self._seen} to {count} over {len(ids)} token(s)")
        self.text.append(content)
        if not ids and not missing:
            return
        self._token(t_s, (*_stand_ins(content, missing), *ids), mapping(data, "timings"))

    def close(self, t_s: float, timings: Mapping[str, Any]) -> None:
        missing = whole(timings, "predicted_n") - self._seen
        if missing > 0:
            self._token(t_s, (LOST_AT_END,) * missing, timings)

    def _token(self, t_s: float, ids: tuple[int, ...], timings: Mapping[str, Any]) -> None:
        key = repr(number(timings, "predicted_ms"))
        drafted, accepted = timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)
        if not isinstance(drafted, int) or not isinstance(accepted, int):
            raise CaptureError("the draft counters in the stream are no integers")
        grown = Burst(len(ids), drafted - self._drafted, accepted - self._accepted)
        if self.bursts and key == self._key:
            last = self.bursts.pop()
            grown = Burst(last.tokens + grown.tokens, last.drafted + grown.drafted, last.accepted + grown.accepted)
        self.bursts.append(grown)
        self._key, self._drafted, self._accepted = key, drafted, accepted
        self._seen += len(ids)
        self.withheld += sum(token < 0 for token in ids)
        self.arrivals.append(Arrival(t_s, ids, key))


def _stand_ins(content: str, count: int) -> tuple[int, ...]:
    code = zlib.crc32(content.encode())
    return tuple(-2 - ((code + place) % 2**31) for place in range(count))
