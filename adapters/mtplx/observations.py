"""Turns one MTPLX trial's capture into observations."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.mtplx.stream import REQUEST, Stream, counts, number, read_stream, whole
from adapters.mtplx.support import READ
from orchestrator.schema.adapter import ParsedTrial
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence, Observation, absent, observed

DEFINED_BY = f"mtplx:{READ}"
STATS = f"events:{REQUEST}/mtplx_stats"

COUNTS = {
    "drafted_tokens": "drafted_tokens",
    "accepted_tokens": "accepted_drafts",
    "rejected_tokens": "rejected_drafts",
    "verify_rounds": "verify_calls",
}
"""Which of its counters is which of ours."""
LISTS = {"drafted_by_position": "drafted_by_depth", "accepted_by_position": "accepted_by_depth"}
TIMES = {"draft_time": "draft_time_s", "verify_time": "verify_time_s", "rollback_time": "rollback_time_s"}
LAZY = "by the engine's own stamps, which hold what it waits for there: work is queued, not done, when it is asked for"

UNTOLD = {
    "no_draft_rounds": "passes without a draft have no counter",
    "replay_passes": "passes that repair a cache after a refused draft are timed (repair_time_s), not counted",
    "target_passes": "passes that repair a cache after a refused draft are timed (repair_time_s), not counted",
    "tokens_per_pass": "not all passes are counted",
    "tokens_per_round": "no counter tells what each round committed, nor which was cut",
    "cut_rounds": "no counter tells which round was cut",
    "speculative_coverage": "no counter tells what each round committed",
}
DERIVED = ("discarded_tokens", "acceptance_rate", "mean_accepted_length")


def parse_trial(cell: Cell, capture: TrialCapture) -> ParsedTrial:
    """Everything that the engine says of one trial.

    Raises:
        CaptureError: the capture is incomplete or cannot be read.
    """
    if not capture.complete:
        raise CaptureError("the capture of the trial ends early")
    stream = read_stream(capture)
    finish = {"stop": "eos", "length": "length"}.get(stream.finish, "error")
    found = [*_plain(stream, finish)]
    found += _baseline(stream) if cell.method.kind is MethodKind.NONE else _speculative(stream)
    return ParsedTrial(tuple(found), (), stream.text, finish, tuple(_problems(cell, stream, finish)))


def _plain(stream: Stream, finish: str) -> Iterable[Observation]:
    """Counts and times that every method has."""
    yield observed("prompt_tokens", whole(stream.usage, "prompt_tokens"), f"events:{REQUEST}/usage.prompt_tokens")
    details = stream.usage.get("prompt_tokens_details")
    if isinstance(details, dict) and "cached_tokens" in details:
        yield observed(
            "cached_tokens", whole(details, "cached_tokens"), f"events:{REQUEST}/usage.prompt_tokens_details"
        )
    else:
        yield absent("cached_tokens", Absence.NOT_REPORTED, "the answer's usage does not tell cached tokens")
    yield observed(
        "output_tokens",
        stream.completion,
        f"events:{REQUEST}/usage.completion_tokens",
        definition=f"{DEFINED_BY}:usage.completion_tokens",
        note="the engine's count, the end-of-text token included: the server tells no token ids",
    )
    yield observed("finish_reason", finish, f"events:{REQUEST}/finish_reason")
    yield _seconds("engine_prefill_time", stream, "prompt_eval_time_s", "the prompt's passes, the MTP head's included")
    yield _seconds("engine_decode_time", stream, "decode_elapsed_s", "end of the prompt's part to the last token")
    spent = number(stream.stats, "decode_elapsed_s")
    if not spent or spent < 0 or stream.completion < 2:
        yield absent("engine_decode_rate", Absence.SUPPRESSED, f"{stream.completion} token(s) in {spent} s: no rate")
    else:
        rate, source = (stream.completion - 1) / spent, f"{STATS}.decode_elapsed_s,completion_tokens"
        definition = f"{DEFINED_BY}:(completion_tokens-1)/decode_elapsed_s"
        yield observed("engine_decode_rate", rate, source, definition=definition)
    peak = number(stream.stats, "peak_memory_bytes")
    if peak is None or peak <= 0:
        yield absent("engine_peak_memory", Absence.NOT_REPORTED, "mtplx_stats does not tell peak_memory_bytes")
    else:
        definition, note = f"{DEFINED_BY}:peak_memory_bytes", "MLX's own peak since the process began"
        source = f"{STATS}.peak_memory_bytes"
        yield observed("engine_peak_memory", int(peak), source, definition=definition, note=note)


def _seconds(metric: str, stream: Stream, key: str, note: str) -> Observation:
    spent = number(stream.stats, key)
    if spent is None:
        return absent(metric, Absence.NOT_REPORTED, f"mtplx_stats does not tell {key}")
    return observed(metric, spent, f"{STATS}.{key}", definition=f"{DEFINED_BY}:{key}", note=note)


def _baseline(stream: Stream) -> Iterable[Observation]:
    drafted = stream.stats.get("drafted_tokens")
    for metric in (*COUNTS, *DERIVED, *LISTS, *TIMES, *UNTOLD):
        if metric == "drafted_tokens" and isinstance(drafted, int) and drafted:
            yield observed(metric, drafted, f"{STATS}.drafted_tokens", note="drafted although the method is none")
        else:
            yield absent(metric, Absence.NOT_APPLICABLE, "the method is none")


def _speculative(stream: Stream) -> Iterable[Observation]:
    told = {metric: whole(stream.stats, key) for metric, key in COUNTS.items() if key in stream.stats}
    for metric, key in COUNTS.items():
        if metric in told:
            yield observed(metric, told[metric], f"{STATS}.{key}")
        else:
            yield absent(metric, Absence.NOT_REPORTED, f"mtplx_stats does not tell {key}")
    yield from _derived(told)
    for metric, key in LISTS.items():
        values = counts(stream.stats, key)
        if values is None:
            yield absent(metric, Absence.NOT_REPORTED, f"mtplx_stats does not tell {key}")
        else:
            yield observed(metric, values, f"{STATS}.{key}")
    for metric, key in TIMES.items():
        yield _seconds(metric, stream, key, LAZY)
    yield from (absent(metric, Absence.NOT_REPORTED, why) for metric, why in UNTOLD.items())


def _derived(told: dict[str, int]) -> Iterable[Observation]:
    if set(told) != set(COUNTS):
        yield from (absent(one, Absence.NOT_REPORTED, "not all counters that it needs are told") for one in DERIVED)
        return
    drafted, accepted, rejected, rounds = (told[metric] for metric in COUNTS)
    if drafted < accepted + rejected:
        yield absent("discarded_tokens", Absence.FAILED, "more drafts were judged than made")
    else:
        yield observed("discarded_tokens", drafted - accepted - rejected, "drafted − accepted − rejected")
    if not drafted or not rounds:
        why = "nothing was drafted in this trial"
        yield from (absent(one, Absence.NOT_APPLICABLE, why) for one in ("acceptance_rate", "mean_accepted_length"))
    else:
        yield observed("acceptance_rate", accepted / drafted, "accepted ÷ drafted")
        yield observed("mean_accepted_length", accepted / rounds, "accepted ÷ verify rounds")


def _problems(cell: Cell, stream: Stream, finish: str) -> Iterable[str]:
    stats, limit = stream.stats, cell.workload.max_tokens
    wanted = "ar" if cell.method.kind is MethodKind.NONE else "mtp"
    if stats.get("generation_mode") != wanted:
        yield f"the engine decoded in mode {stats.get('generation_mode')}, the cell asks for {wanted}"
    if stats.get("context_copy_drafted_tokens"):
        yield "the engine drafted from the prompt too, which was to be off and shares its count of rounds"
    if stats.get("memory_stop") or stats.get("repetition_stop_triggered"):
        yield "the engine cut the answer itself, for want of memory or because it repeats"
    if finish == "error":
        yield f"the answer ended with finish_reason {stream.finish!r}, which was not asked for"
    if stream.completion > limit or (finish == "length" and stream.completion != limit):
        yield f"{stream.completion} tokens came with finish_reason {stream.finish}, the limit is {limit}"
    values = {key: stats.get(key) for key in (*COUNTS.values(), *LISTS.values())}
    if wanted == "mtp" and all(isinstance(one, int | list) for one in values.values()):
        yield from _contradictions(stream)


def _contradictions(stream: Stream) -> Iterable[str]:
    drafted, accepted, rejected, rounds = (whole(stream.stats, key) for key in COUNTS.values())
    if accepted + rejected > drafted or rejected > rounds:
        yield f"{drafted} drafted in {rounds} rounds, but {accepted} accepted and {rejected} refused"
    for total, key in ((drafted, LISTS["drafted_by_position"]), (accepted, LISTS["accepted_by_position"])):
        places = counts(stream.stats, key)
        if places is not None and sum(places) != total:
            yield f"{key} sums up to {sum(places)}, the total is {total}"
