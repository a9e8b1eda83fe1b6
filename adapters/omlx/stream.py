"""Reads the event stream of oMLX's ``POST /v1/completions``: pieces of text, which token ids it never tells."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.errors import CaptureError

REQUEST = "request"
KEEP_ALIVE = "keepalive"
"""The model's name in the events that only keep the line open; the first one comes before any work is done."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An event that carries tokens: when it came, its text (empty inside a character), and how many tokens."""

    t_s: float
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Stream:
    """A whole answer.

    Args:
        pieces: the events that carry tokens, in order.
        exact: there are as many as tokens, so each holds one; otherwise ``Piece.tokens`` is shared out by length.
        usage: the engine's own counts and times.
    """

    sent_s: float
    done_s: float
    pieces: tuple[Piece, ...]
    exact: bool
    text: str
    finish: str
    tokens: int
    usage: Mapping[str, Any]

    @property
    def token_ids(self) -> tuple[int, ...]:
        """A number for each token, made from its text; none where it is not known which text is whose."""
        return tuple(stand_in(piece.text) for piece in self.pieces) if self.exact else ()


def stand_in(text: str) -> int:
    """A number for a token whose id is not told: equal text has an equal one, and no real id is negative."""
    return -1 - zlib.crc32(text.encode())


def read_stream(capture: TrialCapture) -> Stream:
    """The answer of a trial.

    Raises:
        CaptureError: the stream is incomplete, reports an error, or is not as expected.
    """
    step = capture.steps.get(REQUEST)
    if step is None or step.done_s is None or step.error is not None:
        why = f": {step.error}" if step is not None and step.error is not None else ""
        raise CaptureError(f"the answer to POST /v1/completions is incomplete{why}")
    raw: list[tuple[float, str, str | None]] = []
    usage: Mapping[str, Any] | None = None
    ended = False
    for event in step.events:
        body = event.data.strip().removeprefix("data:").strip()
        ended = ended or body == "[DONE]"
        data = _read(body)
        if data is None or data.get("model") == KEEP_ALIVE:
            continue
        if isinstance(data.get("usage"), dict):
            usage = data["usage"]
        for choice in _choices(data):
            text, finish = choice.get("text"), choice.get("finish_reason")
            if not isinstance(text, str) or not (finish is None or isinstance(finish, str)):
                raise CaptureError("an event of the stream has no text, or a finish_reason that is no word")
            raw.append((event.t_s, text, finish))
    if not ended or usage is None or not raw or raw[-1][2] is None:
        raise CaptureError("the stream has no closing events (finish_reason, usage, [DONE])")
    tokens = whole(usage, "completion_tokens")
    if tokens < 1:
        raise CaptureError("the answer has no token")
    pieces, exact = _pieces(raw, tokens)
    text = "".join(part for _, part, _ in raw)
    return Stream(step.sent_s, step.done_s, pieces, exact, text, raw[-1][2] or "", tokens, usage)


def whole(data: Mapping[str, Any], key: str) -> int:
    """The count under ``key``; raises :class:`CaptureError` when there is none."""
    found = data.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise CaptureError(f"{key!r} is missing from the engine's usage, or no count")
    return found


def cached_tokens(usage: Mapping[str, Any]) -> int | None:
    """Prompt tokens from a cache; ``None`` where this version does not say."""
    details = usage.get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def seconds(usage: Mapping[str, Any], key: str) -> float | None:
    """A time of the usage, if it is there."""
    found = usage.get(key)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _pieces(raw: list[tuple[float, str, str | None]], tokens: int) -> tuple[tuple[Piece, ...], bool]:
    """The events that carry tokens: an end mark has none, since oMLX does not count the token that ended the text."""
    mark = raw[-1][2] == "stop" and (raw[-1][1] == "" or len(raw) == tokens + 1)
    kept = raw[:-1] if mark and len(raw) > 1 else raw
    if len(kept) > tokens:
        raise CaptureError(f"{len(kept)} events came with text, the engine counts {tokens} tokens")
    if len(kept) == tokens and (mark or raw[-1][2] != "stop"):
        return tuple(Piece(t_s, text, 1) for t_s, text, _ in kept), True
    # oMLX joins events while its reader lags behind. The rest is shared out by length of text, and said to be a guess.
    spare, length = tokens - len(kept), sum(len(text) for _, text, _ in kept) or 1
    shares = [spare * len(text) / length for _, text, _ in kept]
    counts = [1 + int(share) for share in shares]
    order = sorted(range(len(kept)), key=lambda at: (int(shares[at]) - shares[at], at))
    for at in (order * (1 + (tokens - sum(counts)) // len(kept)))[: tokens - sum(counts)]:
        counts[at] += 1
    return tuple(Piece(t_s, text, count) for (t_s, text, _), count in zip(kept, counts, strict=True)), False


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
