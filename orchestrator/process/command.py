"""One run of a command to its end, recorded piece by piece."""

from __future__ import annotations

import json
from dataclasses import dataclass

from orchestrator.clock import now_s
from orchestrator.process.chunks import Chunk
from orchestrator.process.spawn import EngineProcess
from orchestrator.schema.capture import RawEvent, StepCapture

MAX_ANSWER_BYTES = 256 * 1024 * 1024

_LOOK_S = 0.25
"""How often a silent command is looked at: a child that left may hold its pipes open."""
_DRAIN_S = 10.0
"""How long a child that holds its pipes and goes on writing may keep us from its last words."""
_EXIT_S = 60.0
"""How long a command may take to go once it has closed its output: giving back mapped weights takes a moment."""
_LAST_LINES = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a command may take, in seconds.

    Args:
        first_s: without a word on standard output: loading and prefill are silent.
        silence_s: without a word of either stream after that.
        total_s: altogether.
    """

    first_s: float
    silence_s: float
    total_s: float


def record(process: EngineProcess, name: str, body: str, limits: Limits) -> StepCapture:
    """Every piece of the command's output with its arrival, until it has ended or took too long.

    Args:
        process: just started with ``EachStep``; stopped by the caller.
        name: of the step.
        body: what was asked for, as it is written down.
        limits: the time it may take.

    Returns:
        The capture. ``sent_s`` is the moment before the process was started, ``done_s`` when it was seen to have
        ended; ``error`` is set for an exit code other than 0, a signal, a time-out, or output that was lost.
    """
    sent_s = process.started_s
    events: list[RawEvent] = []
    error, timed_out = _follow(process, events, limits, sent_s)
    code = process.wait(_EXIT_S) if error is None else process.poll()
    done_s = now_s()
    if error is None and code != 0:
        error = process.exit_text + _last_words(process)
    if code is not None:
        events.append(RawEvent(done_s, json.dumps({"exit": code})))
    return StepCapture(name, sent_s, body, tuple(events), done_s, None, error, timed_out)


def event_of(chunk: Chunk) -> RawEvent:
    """The piece as an event (``CommandStep``): as text where it is whole UTF-8, else as hexadecimal digits."""
    try:
        row = {"stream": chunk.stream, "text": chunk.data.decode()}
    except UnicodeDecodeError:
        row = {"stream": chunk.stream, "hex": chunk.data.hex()}
    return RawEvent(chunk.t_s, json.dumps(row, ensure_ascii=False))


def _follow(process: EngineProcess, events: list[RawEvent], limits: Limits, sent_s: float) -> tuple[str | None, bool]:
    """Fill ``events``; why it was cut short, and whether by the clock."""
    heard_s, spoke, size = sent_s, False, 0
    while True:
        ended = process.poll() is not None
        quiet = limits.silence_s if spoke else limits.first_s
        until = min(heard_s + quiet, sent_s + limits.total_s)
        left = max(0.0, until - now_s())
        if ended:
            process.settle_output(min(_DRAIN_S, left))
        chunk = process.next_chunk(0.0 if ended else min(_LOOK_S, left))
        if chunk is not None:
            events.append(event_of(chunk))
            size += len(chunk.data)
            spoke = spoke or chunk.stream == "stdout"
            heard_s = chunk.t_s if spoke else sent_s
        if process.chunks_fault is not None:
            return process.chunks_fault, False
        if size > MAX_ANSWER_BYTES:
            return f"the command printed more than {MAX_ANSWER_BYTES} bytes", False
        if chunk is None and (ended or process.chunks_ended):
            return None, False
        if now_s() >= sent_s + limits.total_s:
            return f"not done within {limits.total_s:g} s", True
        if chunk is None and now_s() >= until:
            return (f"silent for {quiet:g} s" if spoke else f"nothing on standard output within {quiet:g} s"), True


def _last_words(process: EngineProcess) -> str:
    tail = process.log_tail(_LAST_LINES)
    return f"; its last words: {' | '.join(tail)}" if tail else ""
