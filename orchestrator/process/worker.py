"""Talking to a worker: one JSON line in, JSON lines out until one says ``done`` or ``error``."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.clock import now_s
from orchestrator.process.errors import LaunchError
from orchestrator.process.spawn import EngineProcess
from orchestrator.schema.adapter import WorkerStep
from orchestrator.schema.capture import RawEvent, StepCapture
from orchestrator.schema.errors import EngineRefusal
from orchestrator.schema.status import Status

MAX_ANSWER_BYTES = 256 * 1024 * 1024

_LOOK_S = 0.25
"""How often a silent worker is looked at: its death is not always the end of its pipe, which a child may hold."""
_DRAIN_S = 10.0
"""How long a child that holds its pipe and goes on writing may keep us from its last lines."""
_SHOWN_CHARS = 200


class WorkerChannel:
    """The one conversation with a worker process.

    After a time-out, garbage or the worker's death what comes next belongs to no question, so every later call fails
    at once and says why.
    """

    def __init__(self, process: EngineProcess) -> None:
        """The process must have been launched with ``LineReady``."""
        self._process = process
        self._broken: str | None = None

    def wait_ready(self, timeout_s: float) -> dict[str, Any]:
        """The JSON of the line with ``"event": "ready"``; other output before it is ignored, and kept in the log.

        Raises:
            EngineRefusal: a line with ``"event": "refused"`` came instead, with its status and reason.
            LaunchError: the process ended, or was not ready in time (seconds).
        """
        deadline = now_s() + timeout_s
        while True:
            line = self._next(deadline, deadline)
            if line is None or line.t_s > deadline:
                raise self._not_ready(timeout_s)
            message = _parsed(line.data)
            event = message.get("event") if message is not None else None
            if message is not None and event == "ready":
                self._process.note_children()
                return message
            if message is not None and event == "refused":
                raise EngineRefusal(_status(message.get("status")), _reason(message, "the worker gave no reason"))

    def call(self, step: WorkerStep, silence_timeout_s: float, total_timeout_s: float) -> StepCapture:
        """Send the step's message and record every line of the answer with its arrival.

        Args:
            step: what to send.
            silence_timeout_s: longest time without a line, seconds.
            total_timeout_s: longest time for the whole answer, seconds.

        Returns:
            The capture; ``error`` is set by an error line, garbage, a time-out, or the worker's death.
        """
        body = json.dumps(dict(step.message), ensure_ascii=False)
        data = body.encode("utf-8", "surrogatepass") + b"\n"
        sent_s = now_s()
        events: list[RawEvent] = []
        error, timed_out = self._broken, False
        if error is None:
            error, timed_out = self._converse(data, sent_s, events, silence_timeout_s, total_timeout_s)
        done_s = events[-1].t_s if error is None else now_s()
        return StepCapture(step.name, sent_s, body, tuple(events), done_s, None, error, timed_out)

    def _converse(
        self, data: bytes, sent_s: float, events: list[RawEvent], silence_s: float, total_s: float
    ) -> tuple[str | None, bool]:
        deadline = sent_s + total_s
        try:
            self._process.send(data, min(silence_s, total_s))
        except TimeoutError as err:
            return self._break(f"the worker does not read its input: {err}"), True
        except OSError:
            return self._break(self._death()), False
        size = 0
        while True:
            line = self._next(now_s() + silence_s, deadline)
            if line is None:
                return self._silent(silence_s, total_s, deadline)
            events.append(line)
            if line.t_s > deadline:  # a flood of lines never lets the wait time out
                return self._break(_late(total_s)), True
            size += len(line.data)
            message = _parsed(line.data)
            if message is None:
                return self._break(f"the worker printed a line that is no JSON object: {_shown(line.data)}"), False
            if message.get("event") == "done":
                return None, False
            if message.get("event") == "error":
                return _reason(message, "the worker reported an error without a reason"), False
            if size > MAX_ANSWER_BYTES:
                return self._break(f"the answer is larger than {MAX_ANSWER_BYTES} bytes"), False

    def _next(self, silent_until: float, deadline: float) -> RawEvent | None:
        """The next line; ``None`` when the time is over or none can come any more."""
        until = min(silent_until, deadline)
        while True:
            ended = self._process.poll() is not None
            left = max(0.0, until - now_s())
            if ended:
                self._process.settle_output(min(_DRAIN_S, left))
            line = self._process.next_line(0.0 if ended else min(_LOOK_S, left))
            if line is not None:
                return line
            if ended or self._process.lines_ended or self._process.lines_fault or now_s() >= until:
                return None

    def _silent(self, silence_s: float, total_s: float, deadline: float) -> tuple[str, bool]:
        if self._process.lines_fault is not None:  # first: a worker whose lines were lost may have ended well
            return self._break(self._process.lines_fault), False
        if self._process.lines_ended or self._process.poll() is not None:
            return self._break(self._death()), False
        if now_s() >= deadline:
            return self._break(_late(total_s)), True
        return self._break(f"silent for {silence_s:g} s"), True

    def _death(self) -> str:
        """What became of the worker; its exit may trail the end of its pipe by a moment."""
        ended = self._process.wait(2.0) is not None
        what = f"the worker ended ({self._process.exit_text})" if ended else "the worker closed its output"
        return what + self._last_words()

    def _last_words(self) -> str:
        tail = self._process.log_tail(3)
        return f"; its last words: {' | '.join(tail)}" if tail else ""

    def _break(self, why: str) -> str:
        self._broken = f"an earlier exchange broke the conversation: {why}"
        return why

    def _not_ready(self, timeout_s: float) -> LaunchError:
        where = str(self._process.folder)
        if self._process.lines_ended or self._process.poll() is not None:
            return LaunchError(f"before it was ready, {self._death()}", where, "read stderr.log in that folder")
        return LaunchError(
            f"the worker was not ready within {timeout_s:g} s{self._last_words()}",
            where,
            "read stderr.log in that folder, or allow more time to start",
            timed_out=True,
        )


def _late(total_s: float) -> str:
    return f"not done within {total_s:g} s"


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _reason(message: dict[str, Any], fallback: str) -> str:
    for key in ("reason", "message", "error"):
        value = message.get(key)
        if isinstance(value, str) and value:
            return value
    return fallback


def _status(value: object) -> str:
    return value if isinstance(value, str) and value in {status.value for status in Status} else Status.FAILED.value


def _shown(line: str) -> str:
    return repr(line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + "…")
