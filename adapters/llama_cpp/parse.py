"""Turns one trial's capture into observations, with the invariants of llama.cpp checked."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.llama_cpp.counters import read_deltas
from adapters.llama_cpp.counts import Counts, combine
from adapters.llama_cpp.drafters import drafters
from adapters.llama_cpp.request import REQUEST
from adapters.llama_cpp.stream import LOST_AT_END, Burst, Stream, number, read_stream, whole
from adapters.llama_cpp.trace import Round, drafter_seconds, read_rounds
from orchestrator.schema.adapter import Arrivals, ParsedTrial
from orchestrator.schema.capture import SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence, Observation, absent, observed

DEFINED_BY = "llama.cpp:b11434"
"""The build whose source the boundaries of engine times were read from; they are part of definition ids."""

TIMINGS = f"events:{REQUEST}/timings"

SPECULATIVE = (
    "drafted_tokens",
    "accepted_tokens",
    "rejected_tokens",
    "discarded_tokens",
    "verify_rounds",
    "no_draft_rounds",
    "replay_passes",
    "target_passes",
    "acceptance_rate",
    "mean_accepted_length",
    "tokens_per_round",
    "cut_rounds",
    "tokens_per_pass",
    "speculative_coverage",
    "drafted_by_position",
    "accepted_by_position",
    "draft_time",
    "verify_time",
    "rollback_time",
)

FINISH = {"limit": "length", "eos": "eos", "word": "stop"}

NO_LOG = "the log of this request is not whole, and only its lines tell"
NO_DRAFT = "nothing was drafted in this trial"


def parse_trial(cell: Cell, capture: TrialCapture) -> ParsedTrial:
    """Everything that the engine says of one trial.

    Raises:
        CaptureError: the capture is incomplete or cannot be read.
    """
    if not capture.complete:
        raise CaptureError("the capture of the trial ends early")
    stream, deltas = read_stream(capture), read_deltas(capture)
    if whole(stream.timings, "predicted_n") < 1:
        raise CaptureError("the answer has no token")
    stop = stream.final.get("stop_type")
    finish = FINISH.get(stop, "error") if isinstance(stop, str) else "error"
    problems = _answer_problems(cell, stream, finish)
    counts = combine(stream, deltas, read_rounds(capture.log), at_end_of_text=finish == "eos")
    observations = [*_plain(stream, finish)]
    if cell.method.kind is MethodKind.NONE:
        observations += _baseline(counts)
        problems += [f"{burst.tokens} tokens came from one pass of a baseline" for burst in _crowded(stream)[:1]]
    else:
        observations += _speculative(counts, _summed(cell))
    problems += counts.problems
    return ParsedTrial(tuple(observations), stream.token_ids, stream.text, finish, tuple(problems))


def arrivals(capture: TrialCapture) -> Arrivals | None:
    """When which tokens came; ``None`` while the answer is incomplete or unreadable."""
    try:
        stream = read_stream(capture)
    except CaptureError:
        return None
    source = "engine" if not stream.withheld else "inferred"
    return Arrivals(stream.sent_s, stream.arrivals, stream.done_s, source)


def parse_session(cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:
    """The drafter's time, which llama.cpp prints only as a running total of the process."""
    if cell.method.kind is MethodKind.NONE:
        return ()
    seconds = drafter_seconds(capture.stderr)
    if seconds is None:
        return ()
    note = (
        "over all requests of the process, warm-up included; a lower bound: only the proposing itself is timed, "
        "not the drafter's reading of verified tokens"
    )
    summed = _summed(cell)
    note = f"{summed}, {note}" if summed is not None else note
    definition = f"{DEFINED_BY}:dur(g)"
    return (observed("draft_time", seconds, "stderr.log:statistics", definition=definition, note=note),)


def _plain(stream: Stream, finish: str) -> Iterable[Observation]:
    """Counts and times that every method has."""
    timings = stream.timings
    fresh, cached, predicted = whole(timings, "prompt_n"), whole(timings, "cache_n"), whole(timings, "predicted_n")
    yield observed("prompt_tokens", fresh + cached, f"{TIMINGS}.prompt_n+cache_n")
    yield observed("cached_tokens", cached, f"{TIMINGS}.cache_n")
    lost = sum(token == LOST_AT_END for token in stream.token_ids)
    note = f"the answer ended inside a character: the ids of its last {lost} token(s) are not told" if lost else None
    yield observed("output_tokens", len(stream.token_ids), f"events:{REQUEST}/tokens", note=note)
    yield observed("finish_reason", finish, f"events:{REQUEST}/stop_type")
    yield _seconds("engine_prefill_time", number(timings, "prompt_ms"), "prompt_ms", empty=fresh == 0)
    decode_ms = number(timings, "predicted_ms")
    yield _seconds("engine_decode_time", decode_ms, "predicted_ms", empty=predicted < 2)
    if predicted < 2 or decode_ms <= 0:
        yield absent("engine_decode_rate", Absence.SUPPRESSED, f"{predicted} token(s) in {decode_ms} ms: no rate")
    else:
        yield observed(
            "engine_decode_rate",
            (predicted - 1) / decode_ms * 1e3,
            f"{TIMINGS}.predicted_n,predicted_ms",
            definition=f"{DEFINED_BY}:(predicted_n-1)/predicted_ms",
        )


def _seconds(metric: str, milliseconds: float, key: str, *, empty: bool) -> Observation:
    if empty or milliseconds <= 0:
        return absent(metric, Absence.SUPPRESSED, f"{key} is {milliseconds} ms: no interval was measured")
    return observed(metric, milliseconds / 1e3, f"{TIMINGS}.{key}", definition=f"{DEFINED_BY}:{key}")


def _answer_problems(cell: Cell, stream: Stream, finish: str) -> list[str]:
    predicted, limit = whole(stream.timings, "predicted_n"), cell.workload.max_tokens
    problems = []
    if len(stream.token_ids) != predicted:
        problems.append(f"{len(stream.token_ids)} token ids received, the engine counts {predicted}")
    if predicted > limit:
        problems.append(f"{predicted} tokens came, the limit is {limit}")
    if finish in {"error", "stop"}:
        problems.append(f"the answer ended with stop_type {stream.final.get('stop_type')!r}, which was not asked for")
    if finish == "length" and predicted != limit:
        problems.append(f"the answer ended at its limit with {predicted} tokens, the limit is {limit}")
    if stream.final.get("truncated") is True:
        problems.append("the context was full before the answer ended; raise the engine's option context")
    if finish == "eos" and cell.workload.eos is EosPolicy.MASK:
        problems.append("the answer ended at an end-of-text token that was to be masked")
    cached = whole(stream.timings, "cache_n")
    if cached and cell.workload.cache == "cold":
        problems.append(f"{cached} prompt tokens came from a cache although the request forbids it")
    return problems


def _crowded(stream: Stream) -> list[Burst]:
    return [] if stream.withheld else [burst for burst in stream.bursts if burst.tokens > 1]


def _baseline(counts: Counts) -> Iterable[Observation]:
    why = "the method is none"
    for metric in SPECULATIVE:
        if metric == "drafted_tokens" and counts.drafted:
            yield observed(metric, counts.drafted, f"{TIMINGS}.draft_n", note="drafted although the method is none")
        else:
            yield absent(metric, Absence.NOT_APPLICABLE, why)


def _summed(cell: Cell) -> str | None:
    names = [drafter.name for drafter in drafters(cell.method)]
    return f"the sum over {' and '.join(names)}" if len(names) > 1 else None


def _speculative(counts: Counts, summed: str | None) -> Iterable[Observation]:
    absent_means_zero = "draft_n is absent from the answer, which means 0 while speculation is on"
    note = summed if counts.drafted else absent_means_zero
    yield observed("drafted_tokens", counts.drafted, f"{TIMINGS}.draft_n", note=note)
    yield observed("accepted_tokens", counts.accepted, f"{TIMINGS}.draft_n_accepted", note=note)
    yield _count("verify_rounds", counts.verify_rounds, counts.rounds_source, "the totals are too large to subtract")
    yield _count("no_draft_rounds", counts.no_draft_rounds, "events:request/timings (draft_n did not grow)", NO_LOG)
    yield _count("replay_passes", counts.replay_passes, counts.per_round_source, NO_LOG)
    yield _count("target_passes", counts.target_passes, "verify_rounds + no_draft_rounds + replay_passes", NO_LOG)
    yield from _judged(counts)
    yield from _ratios(counts)
    yield from _positions(counts)
    why = "llama.cpp prints drafter time only as a running total of the process"
    yield absent("draft_time", Absence.NOT_REPORTED, why)
    yield absent("verify_time", Absence.NOT_REPORTED, "llama.cpp does not measure it")
    yield absent("rollback_time", Absence.NOT_REPORTED, "llama.cpp does not measure it")


def _count(metric: str, value: int | None, source: str, why: str) -> Observation:
    return absent(metric, Absence.NOT_REPORTED, why) if value is None else observed(metric, value, source)


def _judged(counts: Counts) -> Iterable[Observation]:
    """Rejected and discarded tokens, from the rounds one by one."""
    names, rounds, why = ("rejected_tokens", "discarded_tokens"), counts.rounds, NO_LOG
    if rounds and counts.ended_in_round is not False and rounds[-1].accepted < rounds[-1].drafted:
        why = "the text ended in a round: whether the end was the draft's own or a correction is not told"
        rounds = None
    if rounds is None:
        yield from (absent(name, Absence.NOT_REPORTED, why) for name in names)
        return
    rejected = sum(item.accepted < item.drafted for item in rounds)
    yield observed(names[0], rejected, counts.per_round_source)
    yield observed(names[1], counts.drafted - counts.accepted - rejected, "drafted − accepted − rejected")


def _ratios(counts: Counts) -> Iterable[Observation]:
    rounds, passes = counts.verify_rounds, counts.target_passes
    if counts.drafted == 0:
        for name in ("acceptance_rate", "mean_accepted_length", "tokens_per_round"):
            yield absent(name, Absence.NOT_APPLICABLE, NO_DRAFT)
        yield observed("cut_rounds", 0, "no verify round")
    else:
        yield observed("acceptance_rate", counts.accepted / counts.drafted, "accepted ÷ drafted")
        if rounds:
            yield observed("mean_accepted_length", counts.accepted / rounds, "accepted ÷ verify_rounds")
        else:
            yield absent("mean_accepted_length", Absence.NOT_REPORTED, "the number of rounds is not known")
        yield from _per_round(counts)
    if not passes or counts.predicted < 2:
        why = NO_LOG if counts.predicted > 1 else "one token comes from prefill alone"
        yield absent("tokens_per_pass", Absence.NOT_REPORTED if counts.predicted > 1 else Absence.NOT_APPLICABLE, why)
    else:
        yield observed(
            "tokens_per_pass",
            (counts.predicted - 1) / passes,
            "(output − 1) ÷ target_passes",
            note="the first token comes from prefill",
        )
    if rounds is None or counts.dropped is None:
        yield absent("speculative_coverage", Absence.NOT_REPORTED, NO_LOG)
    else:
        note = "the token that each replay adds is not counted" if counts.replay_passes else None
        committed = counts.accepted + rounds - counts.dropped
        yield observed("speculative_coverage", committed / counts.predicted, "(accepted + rounds) ÷ output", note=note)


def _per_round(counts: Counts) -> Iterable[Observation]:
    names = ("tokens_per_round", "cut_rounds")
    whole_rounds = _uncut(counts)
    if whole_rounds is None:
        yield from (absent(name, Absence.NOT_REPORTED, NO_LOG) for name in names)
        return
    number_of, accepted = whole_rounds
    if number_of:
        yield observed(names[0], (accepted + number_of) / number_of, "(accepted + rounds) ÷ rounds, uncut ones")
    else:
        yield absent(names[0], Absence.NOT_APPLICABLE, "every round was cut by the end of the text")
    yield observed(names[1], int(counts.ended_in_round is True), f"events:{REQUEST}/stop_type")


def _uncut(counts: Counts) -> tuple[int, int] | None:
    """Verify rounds not cut by end of text, and the tokens accepted in them."""
    if counts.verify_rounds is None or counts.ended_in_round is None:
        return None
    if not counts.ended_in_round:
        return counts.verify_rounds, counts.accepted
    if not counts.rounds:
        return None
    return counts.verify_rounds - 1, counts.accepted - counts.rounds[-1].accepted


def _positions(counts: Counts) -> Iterable[Observation]:
    names, rounds = ("drafted_by_position", "accepted_by_position"), counts.rounds
    if rounds is None:
        yield from (absent(name, Absence.NOT_REPORTED, NO_LOG) for name in names)
        return
    if not rounds:
        yield from (absent(name, Absence.NOT_APPLICABLE, NO_DRAFT) for name in names)
        return
    yield observed(names[0], _at_least(rounds, drafted=True), counts.per_round_source)
    yield observed(names[1], _at_least(rounds, drafted=False), counts.per_round_source)


def _at_least(rounds: tuple[Round, ...], *, drafted: bool) -> tuple[int, ...]:
    longest = max(item.drafted for item in rounds)
    sizes = [item.drafted if drafted else item.accepted for item in rounds]
    return tuple(sum(size > place for size in sizes) for place in range(longest))
