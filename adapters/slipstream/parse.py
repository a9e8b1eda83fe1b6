"""Turns one Slipstream trial's capture into observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adapters.slipstream.counters import ACCEPTED, DECODED, DRAFTED, PASSES, Deltas, read_deltas
from adapters.slipstream.request import AFTER, BEFORE, REQUEST
from adapters.slipstream.stream import WITHOUT_TEXT, Stream, number, read_stream, stand_in, whole
from orchestrator.schema.adapter import Arrival, Arrivals, ParsedTrial
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence, Observation, absent, observed

DEFINED_BY = "slipstream:5604182"
"""The commit of npanj/slipstream whose source the boundaries and counters were read from; part of definition ids."""

POOLED = "mtp+prompt-lookup"
POOLED_NOTE = (
    "the engine counts the drafts of its MTP head and of its prompt lookup together and tells neither apart; on a "
    "model without an MTP head (Qwen3.8-27B) all of them are prompt lookup"
)
STAND_INS = "the server tells no token ids: each token is known by its text alone"

ANSWER, STATUS = f"events:{REQUEST}", f"events:{AFTER}−{BEFORE}"

PER_ROUND = (
    "verify_rounds",
    "no_draft_rounds",
    "rejected_tokens",
    "discarded_tokens",
    "mean_accepted_length",
    "tokens_per_round",
    "cut_rounds",
    "speculative_coverage",
    "drafted_by_position",
    "accepted_by_position",
)
PER_ROUND_WHY = "/status counts decode passes, not which of them had a draft, nor what each accepted"
TIMES = ("draft_time", "verify_time", "rollback_time")
SPECULATIVE = (
    "drafted_tokens",
    "accepted_tokens",
    "acceptance_rate",
    "target_passes",
    "tokens_per_pass",
    "replay_passes",
    *PER_ROUND,
    *TIMES,
)


def parse_trial(cell: Cell, capture: TrialCapture) -> ParsedTrial:
    """Everything that the engine says of one trial.

    Raises:
        CaptureError: the capture is incomplete or cannot be read.
    """
    if not capture.complete:
        raise CaptureError("the capture of the trial ends early")
    stream = read_stream(capture)
    deltas = read_deltas(capture, stream.completion)
    finish = {"stop": "eos", "length": "length"}.get(stream.finish, "error")
    observations = [*_plain(stream, finish), *_memory(deltas)]
    observations += _baseline(deltas) if cell.method.kind is MethodKind.NONE else _speculative(deltas)
    ids = tuple(token for one in _arrivals(stream, deltas) for token in one.ids)
    return ParsedTrial(tuple(observations), ids, stream.text, finish, tuple(_problems(cell, stream, finish)))


def arrivals(capture: TrialCapture) -> Arrivals | None:
    """When which tokens came; ``None`` while the answer is incomplete or unreadable."""
    try:
        stream = read_stream(capture)
    except CaptureError:
        return None
    try:
        deltas = read_deltas(capture, stream.completion)
    except CaptureError as err:
        deltas = Deltas({}, str(err))
    return Arrivals(stream.sent_s, _arrivals(stream, deltas), stream.done_s, "inferred")


def _arrivals(stream: Stream, deltas: Deltas) -> tuple[Arrival, ...]:
    """One arrival per piece; tokens without a text of their own are put behind the last one.

    How many tokens the first pass emitted, and how many passes there were, the engine tells. Where the later ones begin
    is taken from the longest gaps between the pieces.
    """
    keys = _bursts([piece.t_s for piece in stream.pieces], _first_batch(stream), _later_passes(stream, deltas))
    found = [
        Arrival(piece.t_s, (stand_in(piece.text),), str(key)) for piece, key in zip(stream.pieces, keys, strict=True)
    ]
    last = found[-1]
    untold = (WITHOUT_TEXT,) * stream.without_text
    return (*found[:-1], Arrival(last.t_s, (*last.ids, *untold), last.burst))


def _bursts(stamps: Sequence[float], first: int, later: int | None) -> list[int]:
    """The number of its pass for each piece."""
    first = min(max(first, 1), len(stamps))
    rest = range(first, len(stamps))
    if later is None or later >= len(rest):
        return [0] * first + [place - first + 1 for place in rest]
    by_gap = sorted(rest[1:], key=lambda place: (stamps[place - 1] - stamps[place], place))
    begins = {*rest[:1], *by_gap[: max(later - 1, 0)]}
    keys, key = [0] * first, 0
    for place in rest:
        key += place in begins
        keys.append(key)
    return keys


def _first_batch(stream: Stream) -> int:
    decode = stream.metrics.get("decode")
    tokens = decode.get("tokens") if isinstance(decode, dict) else None
    return stream.completion - tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else 1


def _later_passes(stream: Stream, deltas: Deltas) -> int | None:
    """Passes after the one that emitted first, which is a decode pass itself where those decoded every token."""
    passes, decoded = deltas.added.get(PASSES), deltas.added.get(DECODED)
    if passes is None or decoded is None:
        return None
    return passes - 1 if decoded >= stream.completion else passes


def _plain(stream: Stream, finish: str) -> Iterable[Observation]:
    """Counts and times that every method has."""
    cached = stream.usage.get("prompt_tokens_details")
    yield observed("prompt_tokens", whole(stream.usage, "prompt_tokens"), f"{ANSWER}/usage.prompt_tokens")
    if isinstance(cached, dict) and isinstance(cached.get("cached_tokens"), int):
        yield observed("cached_tokens", whole(cached, "cached_tokens"), f"{ANSWER}/usage.prompt_tokens_details")
    else:
        yield absent("cached_tokens", Absence.NOT_REPORTED, "the answer's usage does not tell cached tokens")
    note = STAND_INS
    if stream.without_text:
        note += f"; {stream.without_text} of them have no text of their own and stand behind the last"
    source = f"{ANSWER}/usage.completion_tokens"
    yield observed(
        "output_tokens", stream.completion, source, definition=f"{DEFINED_BY}:usage.completion_tokens", note=note
    )
    yield observed("finish_reason", finish, f"{ANSWER}/finish_reason")
    yield _seconds("engine_prefill_time", stream, "prompt_ms", "start of the request to its first token")
    yield _seconds("engine_decode_time", stream, "predicted_ms", "first emission to the end")
    later, spent = stream.completion - _first_batch(stream), number(stream.timings, "predicted_ms")
    if not isinstance(stream.metrics.get("decode"), dict) or later <= 0 or not spent:
        yield absent("engine_decode_rate", Absence.SUPPRESSED, f"{later} token(s) after the first emission: no rate")
    else:
        definition = f"{DEFINED_BY}:decode.tokens/predicted_ms"
        source = f"{ANSWER}/metrics.decode.tokens,timings.predicted_ms"
        yield observed("engine_decode_rate", later / spent * 1e3, source, definition=definition)


def _seconds(metric: str, stream: Stream, key: str, note: str) -> Observation:
    spent = number(stream.timings, key)
    if not spent or spent < 0:
        return absent(metric, Absence.SUPPRESSED, f"{key} is {spent}: no interval was measured")
    return observed(metric, spent / 1e3, f"{ANSWER}/timings.{key}", definition=f"{DEFINED_BY}:{key}", note=note)


def _memory(deltas: Deltas) -> Iterable[Observation]:
    if deltas.peak_bytes is None:
        yield absent("engine_peak_memory", Absence.NOT_REPORTED, "/status does not tell memory_actual.peak_bytes")
        return
    definition = f"{DEFINED_BY}:memory_actual.peak_bytes"
    note = "since the process began, by the engine's own account"
    yield observed("engine_peak_memory", deltas.peak_bytes, f"events:{AFTER}", definition=definition, note=note)


def _baseline(deltas: Deltas) -> Iterable[Observation]:
    drafted = deltas.added.get(DRAFTED)
    for metric in SPECULATIVE:
        if metric == "drafted_tokens" and drafted:
            note = f"drafted although the method is none; {POOLED_NOTE}"
            yield observed(metric, drafted, f"{STATUS}/{DRAFTED}", definition=_pooled("drafted_tokens"), note=note)
        else:
            yield absent(metric, Absence.NOT_APPLICABLE, "the method is none")


def _speculative(deltas: Deltas) -> Iterable[Observation]:
    drafted, accepted = deltas.added.get(DRAFTED), deltas.added.get(ACCEPTED)
    for metric, path, value in (
        ("drafted_tokens", DRAFTED, drafted),
        ("accepted_tokens", ACCEPTED, accepted),
    ):
        if value is None:
            yield absent(metric, Absence.NOT_REPORTED, _why(deltas, path))
        else:
            yield observed(metric, value, f"{STATUS}/{path}", definition=_pooled(metric), note=POOLED_NOTE)
    if drafted is None or accepted is None:
        yield absent("acceptance_rate", Absence.NOT_REPORTED, _why(deltas, DRAFTED))
    elif drafted == 0:
        yield absent("acceptance_rate", Absence.NOT_APPLICABLE, "nothing was drafted in this trial")
    else:
        definition = _pooled("acceptance_rate")
        yield observed(
            "acceptance_rate", accepted / drafted, "accepted ÷ drafted", definition=definition, note=POOLED_NOTE
        )
    yield from _passes(deltas)
    yield absent("replay_passes", Absence.NOT_REPORTED, "/status has no count of them")
    yield from (absent(metric, Absence.NOT_REPORTED, PER_ROUND_WHY) for metric in PER_ROUND)
    yield from (absent(metric, Absence.NOT_REPORTED, "/status has no time of it") for metric in TIMES)


def _passes(deltas: Deltas) -> Iterable[Observation]:
    passes, decoded = deltas.added.get(PASSES), deltas.added.get(DECODED)
    if passes is None:
        yield absent("target_passes", Absence.NOT_REPORTED, _why(deltas, PASSES))
    else:
        definition = f"{DEFINED_BY}:{PASSES}"
        yield observed("target_passes", passes, f"{STATUS}/{PASSES}", definition=definition)
    if not passes or decoded is None:
        yield absent("tokens_per_pass", Absence.NOT_REPORTED, _why(deltas, DECODED))
    else:
        definition = f"{DEFINED_BY}:{DECODED}/{PASSES}"
        yield observed("tokens_per_pass", decoded / passes, f"{STATUS}/{DECODED},{PASSES}", definition=definition)


def _why(deltas: Deltas, path: str) -> str:
    return deltas.why or f"/status does not tell {path}"


def _pooled(metric: str) -> str:
    return f"{DEFINED_BY}:{metric}({POOLED})"


def _problems(cell: Cell, stream: Stream, finish: str) -> Iterable[str]:
    completion, limit = stream.completion, cell.workload.max_tokens
    if completion > limit:
        yield f"{completion} tokens came, the limit is {limit}"
    if finish == "error":
        yield f"the answer ended with finish_reason {stream.finish!r}, which was not asked for"
    if finish == "length" and completion != limit:
        yield f"the answer ended at its limit with {completion} tokens, the limit is {limit}"
    if stream.reasoning:
        yield "the answer holds reasoning, which was to be off"
