"""Turns one trial's capture into observations, with the invariants of oMLX's log lines checked."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.omlx.counts import Counts, dflash_counts, native_counts, vlm_counts
from adapters.omlx.log import Reading, read_log
from adapters.omlx.options import Path, path_of
from adapters.omlx.stream import REQUEST, Stream, cached_tokens, read_stream, seconds, whole
from orchestrator.schema.adapter import ParsedTrial
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence, Observation, absent, observed

RESOLUTION_S = 0.01
"""oMLX rounds the seconds of its usage to this."""
SHORTEST_S = 0.5
"""Below it that rounding is more than 1 %, and the engine's time is not used."""

USAGE = f"events:{REQUEST}/usage"
NO_LOG = "the log of this request is not whole, and oMLX tells of its drafts only there"
NO_METHOD = "the method is none"
FINISH = {"length": "length", "stop": "eos"}

SPECULATIVE = (
    "drafted_tokens",
    "judged_tokens",
    "draft_capacity",
    "accepted_tokens",
    "rejected_tokens",
    "discarded_tokens",
    "verify_rounds",
    "no_draft_rounds",
    "replay_passes",
    "target_passes",
    "acceptance_rate",
    "judged_acceptance_rate",
    "capacity_acceptance_rate",
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


def parse_trial(cell: Cell, capture: TrialCapture) -> ParsedTrial:
    """Everything that oMLX says of one trial.

    Raises:
        CaptureError: the capture is incomplete or cannot be read.
    """
    if not capture.complete:
        raise CaptureError("the capture of the trial ends early")
    stream, log = read_stream(capture), read_log(capture.log)
    finish = FINISH.get(stream.finish, "error")
    problems = _answer_problems(cell, stream, finish)
    if log.unread:
        problems.append(f"{len(log.unread)} log line(s) about drafts in no known form, e.g. {log.unread[0][:120]!r}")
    if path_of(cell) is Path.NONE:
        found = _baseline(log)
    else:
        found, more = _speculative(cell, stream, log)
        problems += more
    observations = (*_plain(stream, finish), *found)
    return ParsedTrial(observations, stream.token_ids, stream.text, finish, tuple(problems))


def _plain(stream: Stream, finish: str) -> Iterable[Observation]:
    usage = stream.usage
    yield observed("prompt_tokens", whole(usage, "prompt_tokens"), f"{USAGE}.prompt_tokens")
    cached = cached_tokens(usage)
    if cached is None:
        yield absent("cached_tokens", Absence.NOT_REPORTED, "this version's usage has no prompt_tokens_details")
    else:
        yield observed("cached_tokens", cached, f"{USAGE}.prompt_tokens_details.cached_tokens")
    note = "the token that ended the text is not in it" if finish == "eos" else None
    if not stream.exact:
        note = f"they came in {len(stream.pieces)} events; how many each holds is not told and was shared out by length"
    yield observed("output_tokens", stream.tokens, f"{USAGE}.completion_tokens", note=note)
    yield observed("finish_reason", finish, f"events:{REQUEST}/finish_reason")
    yield _seconds("engine_prefill_time", stream, "prompt_eval_duration")
    yield _seconds("engine_decode_time", stream, "generation_duration")
    why = "its generation time runs from the first text to the end of the request, ours from burst to burst"
    yield absent("engine_decode_rate", Absence.NOT_REPORTED, why)


def _seconds(metric: str, stream: Stream, key: str) -> Observation:
    found = seconds(stream.usage, key)
    if found is None:
        return absent(metric, Absence.NOT_REPORTED, f"this version's usage has no {key}")
    if found < SHORTEST_S:
        return absent(metric, Absence.SUPPRESSED, f"{key} is {found} s in steps of {RESOLUTION_S} s: too coarse")
    note = f"rounded to {RESOLUTION_S} s by the engine"
    return observed(metric, found, f"{USAGE}.{key}", definition=f"omlx:{key}", note=note)


def _answer_problems(cell: Cell, stream: Stream, finish: str) -> list[str]:
    limit = cell.workload.max_tokens
    problems = []
    if stream.tokens > limit:
        problems.append(f"{stream.tokens} tokens came, the limit is {limit}")
    if finish == "error":
        problems.append(f"the answer ended with finish_reason {stream.finish!r}, which was not asked for")
    if finish == "length" and stream.tokens != limit:
        problems.append(f"the answer ended at its limit with {stream.tokens} tokens, the limit is {limit}")
    cached = cached_tokens(stream.usage)
    if cached:
        problems.append(f"{cached} prompt tokens came from a cache although it is switched off")
    return problems


def _baseline(log: Reading) -> Iterable[Observation]:
    """Without a drafter nothing may have been drafted: at least one token a round, if there were rounds."""
    rounds = sum(line.cycles - line.idle for line in log.native) + sum(line.rounds for line in log.vlm)
    rounds += sum(line.cycles for line in log.dflash if not line.plain)
    for metric in SPECULATIVE:
        if metric == "drafted_tokens" and rounds:
            note = "drafted although the method is none; inferred: at least one token a round"
            yield observed(metric, rounds, "stderr.log:statistics line (inferred)", note=note)
        else:
            yield absent(metric, Absence.NOT_APPLICABLE, NO_METHOD)


def _speculative(cell: Cell, stream: Stream, log: Reading) -> tuple[list[Observation], list[str]]:
    if not log.whole:
        return [absent(metric, Absence.NOT_REPORTED, NO_LOG) for metric in SPECULATIVE], []
    path = path_of(cell)
    lines = {Path.NATIVE: len(log.native), Path.VLM: len(log.vlm), Path.DFLASH: len(log.dflash)}
    foreign = [other.value for other, count in lines.items() if count and other is not path]
    problems = [f"the log tells of {' and '.join(foreign)}, the cell asks for {path.value}"] if foreign else []
    if lines.get(path, 0) > 1:
        why = f"{lines[path]} statistics lines of {path.value} in the log of one request: whose is not told"
        return [absent(metric, Absence.NOT_REPORTED, why) for metric in SPECULATIVE], [*problems, why]
    if not lines.get(path) and log.unread:
        why = "the log's lines about drafts are in no known form"
        return [absent(metric, Absence.NOT_REPORTED, why) for metric in SPECULATIVE], problems
    if not lines.get(path) or (log.dflash and path is Path.DFLASH and log.dflash[0].plain):
        return _nothing(path, log), problems
    counts = _counts(path, cell, stream, log)
    return _told(counts), [*problems, *counts.problems]


def _counts(path: Path, cell: Cell, stream: Stream, log: Reading) -> Counts:
    if path is Path.NATIVE:
        return native_counts(log.native[0], cell, stream, parked=bool(log.fell_back))
    if path is Path.VLM:
        return vlm_counts(log.vlm[0], cell, stream)
    return dflash_counts(log.dflash[0], stream)


def _nothing(path: Path, log: Reading) -> list[Observation]:
    """No statistics line in a log that is whole: oMLX answers without drafts, and says so nowhere else."""
    why = f"no statistics line of {path.value} in the log of this request, which is whole"
    if log.dflash:
        why = "DFlash itself says that it decoded without drafts (fallback=AR)"
    elif log.started:
        why += "; the drafter took the request, and no round came to its end"
    elif log.fell_back:
        why += f"; it says: {log.fell_back[0][:160]}"
    found = [observed("drafted_tokens", 0, "stderr.log (inferred)", note=f"inferred: {why}")]
    return found + [absent(metric, Absence.NOT_APPLICABLE, "nothing was drafted") for metric in SPECULATIVE[1:]]


def _told(counts: Counts) -> list[Observation]:
    found = []
    for metric in SPECULATIVE:
        told = counts.values.get(metric)
        if told is None:
            reason, why = counts.absences.get(metric, (Absence.NOT_REPORTED, "oMLX does not tell it"))
            found.append(absent(metric, reason, why))
        else:
            found.append(observed(metric, told.value, told.source, definition=told.definition, note=told.note))
    return found
