"""The event stream of MTPLX's ``POST /v1/completions``: pieces of text in time, and the engine's closing word."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.schema.adapter import Arrival, Arrivals
from orchestrator.schema.capture import RawEvent, TrialCapture
from orchestrator.schema.errors import CaptureError

REQUEST = "request"
UNTOLD = -1
"""Stands for every token: the server tells their texts, a whole round's in one event, and never an id."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A whole answer.

    Args:
        pieces: the events that carry text: their times, and what they say.
        stats: ``mtplx_stats`` of the closing event; ``usage`` what stands beside it.
    """

    sent_s: float
    done_s: float
    pieces: tuple[RawEvent, ...]
    finish: str
    completion: int
    stats: Mapping[str, Any]
    usage: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(piece.data for piece in self.pieces)


def read_stream(capture: TrialCapture) -> Stream:
    """The answer of a trial.

    Raises:
        CaptureError: the stream is incomplete, reports an error, or is not as expected.
    """
    step = capture.steps.get(REQUEST)
    if step is None or step.done_s is None or step.error is not None:
        why = f": {step.error}" if step is not None and step.error is not None else ""
        raise CaptureError(f"the answer to POST /v1/completions is incomplete{why}")
    pieces: list[RawEvent] = []
    finish, last, ended = None, None, False
    for event in step.events:
        body = event.data.strip().removeprefix("data:").strip()
        ended = ended or body == "[DONE]"
        data = _read(body)
        if data is None:
            continue
        text, reason = _choice(data)
        if text:
            pieces.append(RawEvent(event.t_s, text))
        if reason is not None:
            finish, last = reason, data
    stats, usage = (_mapping(last, "mtplx_stats"), _mapping(last, "usage")) if last is not None else (None, None)
    if not ended or finish is None or stats is None or usage is None:
        raise CaptureError("the stream has no closing events (finish_reason with mtplx_stats and usage, [DONE])")
    completion = whole(usage, "completion_tokens")
    if not pieces or completion < len(pieces):
        raise CaptureError(f"{len(pieces)} pieces of text came, the engine counts {completion} tokens")
    return Stream(step.sent_s, step.done_s, tuple(pieces), finish, completion, stats, usage)


def arrivals(capture: TrialCapture) -> Arrivals | None:
    """When how many tokens came, and by which pass: both inferred; ``None`` while the answer is not whole.

    The engine hands out the first token alone, from prefill, then each round's; a wholly accepted round comes in two
    events, its drafts and the target's own token. How many rounds there were it tells: where they begin is taken from
    the longest gaps.
    """
    try:
        stream = read_stream(capture)
    except CaptureError:
        return None
    rounds = stream.stats.get("verify_calls")
    starts = _starts([piece.t_s for piece in stream.pieces], rounds if isinstance(rounds, int) and rounds > 0 else None)
    came, burst = [], 0
    for place, (piece, tokens) in enumerate(zip(stream.pieces, _shares(stream), strict=True)):
        burst += place in starts
        came.append(Arrival(piece.t_s, (UNTOLD,) * tokens, f"b{burst}"))
    return Arrivals(stream.sent_s, tuple(came), stream.done_s, "inferred")


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


def counts(data: Mapping[str, Any], key: str) -> tuple[int, ...] | None:
    """The list of counts under ``key``, if there is one."""
    found = data.get(key)
    if not isinstance(found, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in found):
        return None
    return tuple(found) or None


def _starts(stamps: Sequence[float], rounds: int | None) -> frozenset[int]:
    """Places at which a burst begins behind the first one; each event is one where no count of rounds is smaller."""
    places = range(1, len(stamps))
    if rounds is None or rounds >= len(places):
        return frozenset(places)
    return frozenset(sorted(places, key=lambda place: (stamps[place - 1] - stamps[place], place))[:rounds])


def _shares(stream: Stream) -> list[int]:
    """Tokens of each piece: one each, and the rest by length of text behind the first, which holds one alone."""
    pieces, spare = stream.pieces, stream.completion - len(stream.pieces)
    found = [1] * len(pieces)
    behind = range(1, len(pieces)) or range(1)
    length = sum(len(pieces[place].data) for place in behind)
    seen = given = 0
    for place in behind:
        seen += len(pieces[place].data)
        share = spare * seen // length - given
        found[place] += share
        given += share
    return found


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


def _choice(data: Mapping[str, Any]) -> tuple[str, str | None]:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    text, finish = (first.get("text"), first.get("finish_reason")) if isinstance(first, dict) else (None, None)
    if not isinstance(text, str) or not (finish is None or isinstance(finish, str)):
        raise CaptureError("an event of the stream has no text, or a finish_reason that is no word")
    return text, finish


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    found = data.get(key)
    return found if isinstance(found, dict) else None
