"""Reads the event stream of Slipstream's ``POST /v1/chat/completions``."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.slipstream.request import REQUEST
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.errors import CaptureError

WITHOUT_TEXT = -1
"""Stands for a token that has no text of its own in the stream."""

_TEXTS = ("content", "reasoning_content")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the answer as it came: the server sends one per token that completes a character."""

    t_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Stream:
    """A whole answer.

    Args:
        pieces: at most one per token, in order.
        reasoning: whether some of the text is marked as reasoning.
        completion: tokens by the engine's count.
        timings: ``timings`` of the closing event.
        usage: its ``usage``; ``metrics`` what comes beside it, empty where this version has none.
    """

    sent_s: float
    done_s: float
    pieces: tuple[Piece, ...]
    reasoning: bool
    finish: str
    completion: int
    timings: Mapping[str, Any]
    usage: Mapping[str, Any]
    metrics: Mapping[str, Any]

    @property
    def without_text(self) -> int:
        """Tokens that the engine counts and whose text came with a later one's, or not at all."""
        return self.completion - len(self.pieces)

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(piece.text for piece in self.pieces)


def stand_in(text: str) -> int:
    """A number for a token whose id the server never tells: equal text has an equal one, no real id does."""
    return -2 - zlib.crc32(text.encode())


def read_stream(capture: TrialCapture) -> Stream:
    """The answer of a trial.

    Raises:
        CaptureError: the stream is incomplete or not as expected.
    """
    step = capture.steps.get(REQUEST)
    if step is None or step.done_s is None or step.error is not None:
        why = f": {step.error}" if step is not None and step.error is not None else ""
        raise CaptureError(f"the answer to POST /v1/chat/completions is incomplete{why}")
    pieces: list[Piece] = []
    reasoning, ended = False, False
    finish, timings, usage = "", None, None
    metrics: Mapping[str, Any] = {}
    for event in step.events:
        body = event.data.strip().removeprefix("data:").strip()
        ended = ended or body == "[DONE]"
        data = _read(body)
        if data is None:
            continue
        if isinstance(data.get("usage"), dict):
            usage, metrics = data["usage"], _mapping_or_empty(data.get("metrics"))
        for choice in _choices(data):
            delta = _mapping_or_empty(choice.get("delta"))
            found = [(key, text) for key in _TEXTS if isinstance(text := delta.get(key), str) and text]
            pieces += [Piece(event.t_s, text) for _, text in found]
            reasoning = reasoning or any(key == "reasoning_content" for key, _ in found)
            if isinstance(choice.get("finish_reason"), str):
                finish, timings = choice["finish_reason"], data.get("timings")
    if not ended or usage is None or not finish or not isinstance(timings, dict):
        raise CaptureError("the stream has no closing events (finish_reason with timings, usage, [DONE])")
    completion = whole(usage, "completion_tokens")
    if completion < len(pieces):
        raise CaptureError(f"{len(pieces)} pieces of text came, the engine counts {completion} tokens")
    if not pieces:
        raise CaptureError("the answer has no text")
    return Stream(step.sent_s, step.done_s, tuple(pieces), reasoning, finish, completion, timings, usage, metrics)


def whole(data: Mapping[str, Any], key: str) -> int:
    """The count under ``key``; raises :class:`CaptureError` when there is none."""
    found = data.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise CaptureError(f"{key!r} is missing from the engine's answer, or no count")
    return found


def number(data: Mapping[str, Any], key: str) -> float | None:
    """The number under ``key``, if there is one."""
    found = data.get(key)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _read(body: str) -> Mapping[str, Any] | None:
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


def _choices(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = data.get("choices")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _mapping_or_empty(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}
