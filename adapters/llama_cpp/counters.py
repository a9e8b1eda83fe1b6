"""Reads the running totals of ``GET /metrics`` and what one request added to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from adapters.llama_cpp.request import AFTER, BEFORE
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.errors import CaptureError

DRAFTED = "spec_decode_num_draft_tokens_total"
ACCEPTED = "spec_decode_num_accepted_tokens_total"
ROUNDS = "spec_decode_num_drafts_total"
PREDICTED = "tokens_predicted_total"
CALLS = "n_decode_total"
BY_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"

OTHER_NAMES = {
    DRAFTED: ("spec_decode_num_draft_tokens", "draft_tokens_total", "spec_tokens_drafted_total"),
    ACCEPTED: ("spec_decode_num_accepted_tokens", "draft_tokens_accepted_total", "spec_tokens_accepted_total"),
    ROUNDS: ("spec_decode_num_drafts", "draft_verify_steps_total"),
    BY_POSITION: ("spec_decode_num_accepted_tokens_per_pos",),
}
"""Names of the same totals in other builds; the first that is there counts.

Source: llama.cpp pull requests 23328, 25327 and 26389; not seen in a real run.
"""
_CURRENT = {other: name for name, others in OTHER_NAMES.items() for other in others}

EXACT_BELOW = 1_000_000
"""Totals are printed with six significant digits: from here on a difference is no count any more."""

_LINE = re.compile(r"^llamacpp:(\w+)(?:\{position=\"(\d+)\"\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Deltas:
    """What one request added to the totals; a name is missing where the engine has no such total or it is too large."""

    counts: Mapping[str, int]
    accepted_by_position: tuple[int, ...] | None


def read_deltas(capture: TrialCapture) -> Deltas:
    """The differences between the two scrapes of a trial.

    Raises:
        CaptureError: a scrape is incomplete or is not this server's.
    """
    before, after = _totals(capture, BEFORE), _totals(capture, AFTER)
    counts: dict[str, int] = {}
    for name in (DRAFTED, ACCEPTED, ROUNDS, PREDICTED, CALLS):
        added = _difference(before.get((name, -1)), after.get((name, -1)))
        if added is not None:
            counts[name] = added
    return Deltas(counts, _by_position(before, after))


def _by_position(
    before: Mapping[tuple[str, int], float], after: Mapping[tuple[str, int], float]
) -> tuple[int, ...] | None:
    places = sorted(place for name, place in after if name == BY_POSITION)
    if places != list(range(len(places))):
        return None
    added = [_difference(before.get((BY_POSITION, place), 0.0), after[BY_POSITION, place]) for place in places]
    known = tuple(value for value in added if value is not None)
    return known if known and len(known) == len(added) else None


def _totals(capture: TrialCapture, name: str) -> dict[tuple[str, int], float]:
    step = capture.step(name)
    if step is None:
        raise CaptureError(f"the scrape {name} is incomplete")
    found: dict[tuple[str, int], float] = {}
    for match in _LINE.finditer(step.text):
        metric, place, text = match.groups()
        try:
            value = float(text)
        except ValueError as err:
            raise CaptureError(f"{name}: {metric} is no number but {text!r}") from err
        at = int(place) if place is not None else -1
        if metric in _CURRENT:
            found.setdefault((_CURRENT[metric], at), value)
        else:
            found[metric, at] = value
    if (PREDICTED, -1) not in found:
        raise CaptureError(f"{name}: not the counters of a llama.cpp server")
    return found


def _difference(before: float | None, after: float | None) -> int | None:
    if before is None or after is None or not 0 <= before <= after < EXACT_BELOW:
        return None
    return round(after - before)
