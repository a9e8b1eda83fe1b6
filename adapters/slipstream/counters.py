"""What one request added to Slipstream's running totals, or why that cannot be told.

The server counts over its whole life and for all its clients. A difference is this request's own only where the same
engine process counted on, no total went back, and exactly one request came and went between the two readings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.slipstream.request import AFTER, BEFORE, SETTLING
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.errors import CaptureError

DRAFTED, ACCEPTED = "metrics.drafted_tokens", "metrics.accepted_draft_tokens"
PASSES, DECODED = "scheduler.decode_batches", "metrics.decode_output_tokens"
SUBMITTED, COMPLETED = "requests.submitted", "requests.completed"
PEAK = "memory_actual.peak_bytes"
COUNTED = (DRAFTED, ACCEPTED, PASSES, DECODED)

_SAME = {"instance.id": "another server answers", "transport.restarts": "the engine process was restarted"}


@dataclass(frozen=True, slots=True)
class Deltas:
    """What was added, by the counter's path; ``why`` says why there is nothing, ``peak_bytes`` is no difference."""

    added: Mapping[str, int]
    why: str
    peak_bytes: int | None = None


def read_deltas(capture: TrialCapture, completion: int) -> Deltas:
    """The differences between the readings around a request that answered ``completion`` tokens.

    Raises:
        CaptureError: a reading is incomplete, or is not this server's.
    """
    before, settling, after = (_status(capture, name) for name in (BEFORE, SETTLING, AFTER))
    if _stale(after) and not _stale(settling):
        after = settling
    peak = _count(after, PEAK)
    why = _unlike(before, after)
    if why:
        return Deltas({}, why, peak)
    added = {name: _count(after, name, 0) - _count(before, name, 0) for name in COUNTED if _both(before, after, name)}
    gone_back = next((name for name, value in added.items() if value < 0), None)
    if gone_back is not None:
        return Deltas({}, f"the total {gone_back} went back between the readings: it was reset", peak)
    if added.get(DECODED, 0) > completion + 1:  # an end-of-text token may be decoded and not sent
        return Deltas({}, f"{added[DECODED]} tokens were decoded meanwhile, this answer has {completion}", peak)
    if added.get(ACCEPTED, 0) > added.get(DRAFTED, 0):
        return Deltas({}, f"{added[ACCEPTED]} tokens accepted of {added.get(DRAFTED, 0)} drafted", peak)
    if len(added) == len(COUNTED) and added[DECODED] > added[PASSES] + added[ACCEPTED] + 1:  # 1: from prefill, perhaps
        parts = f"{added[PASSES]} passes with {added[ACCEPTED]} drafts accepted"
        return Deltas({}, f"{added[DECODED]} tokens cannot come from {parts}: one of the totals was reset", peak)
    return Deltas(added, "", peak)


def has_counters(status: Mapping[str, Any]) -> bool:
    """Whether a reading holds all that a trial needs."""
    return all(_count(status, name) is not None for name in (*COUNTED, SUBMITTED, COMPLETED))


def at(status: Mapping[str, Any], path: str) -> object:
    """The value at a dotted path, ``None`` where there is none."""
    found: object = status
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _unlike(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Why the two readings have no difference that is this request's own."""
    for reading, when in ((before, "before"), (after, "after")):
        if _stale(reading):
            return f"the counters {when} the request are stale: the engine did not answer /status in time"
    for path, words in _SAME.items():
        if at(before, path) != at(after, path):
            return f"{words} after the request ({path} changed)"
    for path, came in ((SUBMITTED, "came in"), (COMPLETED, "ended")):
        if not _both(before, after, path):
            return f"/status does not tell {path}, so another client's request could not be told from this one"
        many = _count(after, path, 0) - _count(before, path, 0)
        if many != 1:
            return f"{many} requests {came} between the readings, not this one alone"
    ended = sum(_count(before, path, 0) for path in (COMPLETED, "requests.cancelled", "requests.failed"))
    if _count(before, SUBMITTED, 0) != ended:
        return "another request was still running when this one began"
    return ""


def _status(capture: TrialCapture, name: str) -> Mapping[str, Any]:
    step = capture.step(name)
    if step is None:
        raise CaptureError(f"the reading {name} is incomplete")
    try:
        found = json.loads(step.text)
    except ValueError as err:
        raise CaptureError(f"{name}: /status is not JSON") from err
    if not isinstance(found, dict) or "schema_version" not in found:
        raise CaptureError(f"{name}: not the status of a Slipstream server")
    return found


def _stale(status: Mapping[str, Any]) -> bool:
    return at(status, "transport.status_stale") is not False


def _both(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> bool:
    return _count(before, path) is not None and _count(after, path) is not None


def _count(status: Mapping[str, Any], path: str, missing: int | None = None) -> Any:  # noqa: ANN401  (int | None)
    found = at(status, path)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else missing
