"""Raw truth of a trial: what was sent, what came back, and when; as plain data and as lines on disk.

``events.jsonl`` in a session's folder holds one JSON object a line:

* ``{"trial": 0, "step": "request", "kind": "sent", "t_s": 1.25, "body": "…"}``
* ``{"trial": 0, "step": "request", "kind": "event", "t_s": 1.31, "data": "…"}`` as often as needed
* ``{"trial": 0, "step": "request", "kind": "done", "t_s": 2.05, "http_status": 200, "error": null}``
* ``{"trial": 0, "kind": "log", "stderr_from": 120, "stderr_to": 4031}`` when the trial ended

``t_s`` are seconds of :func:`orchestrator.clock.now_s`. Steps before the first trial carry ``trial: -1``.
An unterminated last line is ignored, so a file cut at any byte yields only complete facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

READY_TRIAL = -1
PROMPTS_TRIAL = -2
"""The exchanges that tell which token ids the prompts become."""
"""The trial index under which steps before the first trial are recorded."""


@dataclass(frozen=True, slots=True)
class RawEvent:
    """A piece of an answer as it arrived: seconds of our clock, and the text unmodified."""

    t_s: float
    data: str


@dataclass(frozen=True, slots=True)
class StepCapture:
    """One exchange with the engine. ``done_s`` is ``None`` while the answer is incomplete."""

    name: str
    sent_s: float
    body: str
    events: tuple[RawEvent, ...] = ()
    done_s: float | None = None
    http_status: int | None = None
    error: str | None = None
    timed_out: bool = False

    @property
    def text(self) -> str:
        """The whole answer, for exchanges that are not streams."""
        return "".join(event.data for event in self.events)

    @property
    def complete(self) -> bool:
        """Whether the answer ended without an error."""
        return self.done_s is not None and self.error is None


@dataclass(frozen=True, slots=True)
class TrialCapture:
    """All exchanges of one trial, in order of their names, and the engine's log lines of that time."""

    index: int
    steps: dict[str, StepCapture] = field(default_factory=dict)
    log: str = ""
    complete: bool = False

    def step(self, name: str) -> StepCapture | None:
        """The exchange of that name when it is complete, else ``None``."""
        found = self.steps.get(name)
        return found if found is not None and found.complete else None


@dataclass(frozen=True, slots=True)
class SessionCapture:
    """Everything of one engine process: its exchanges by trial index, and its whole output."""

    trials: dict[int, TrialCapture]
    stdout: str = ""
    stderr: str = ""

    @property
    def ready(self) -> TrialCapture:
        """The exchanges between readiness and the first trial."""
        return self.trials.get(READY_TRIAL, TrialCapture(READY_TRIAL))


def step_lines(trial: int, step: StepCapture) -> Iterator[str]:
    """The lines of ``events.jsonl`` for one exchange, each with its newline."""
    head = {"trial": trial, "step": step.name}
    yield _line({**head, "kind": "sent", "t_s": step.sent_s, "body": step.body})
    for event in step.events:
        yield _line({**head, "kind": "event", "t_s": event.t_s, "data": event.data})
    if step.done_s is not None:
        done = {"kind": "done", "t_s": step.done_s, "http_status": step.http_status, "error": step.error}
        yield _line({**head, **done, "timed_out": step.timed_out})


def log_line(trial: int, stderr_from: int, stderr_to: int) -> str:
    """The line that ends a trial: which bytes of ``stderr.log`` belong to it."""
    return _line({"trial": trial, "kind": "log", "stderr_from": stderr_from, "stderr_to": stderr_to})


def read_session(events: str, stdout: str = "", stderr: bytes = b"") -> SessionCapture:
    """A session's capture from the text of its files; incomplete or foreign lines yield nothing."""
    steps: dict[int, dict[str, dict[str, Any]]] = {}
    logs: dict[int, str] = {}
    for row in _rows(events):
        trial, kind = row.get("trial"), row.get("kind")
        if not isinstance(trial, int):
            continue
        if kind == "log":
            logs[trial] = _slice(stderr, row.get("stderr_from"), row.get("stderr_to"))
            continue
        name = row.get("step")
        if not isinstance(name, str) or not isinstance(row.get("t_s"), float | int):
            continue
        slot = steps.setdefault(trial, {}).setdefault(name, {"events": []})
        if kind == "sent":
            slot["sent"] = row
        elif kind == "event" and isinstance(row.get("data"), str):
            slot["events"].append(RawEvent(float(row["t_s"]), row["data"]))
        elif kind == "done":
            slot["done"] = row
    trials = {}
    for index in sorted(set(steps) | set(logs)):
        found = {name: _step(name, slot) for name, slot in steps.get(index, {}).items() if "sent" in slot}
        trials[index] = TrialCapture(index, found, logs.get(index, ""), index in logs)
    return SessionCapture(trials, stdout, stderr.decode("utf-8", "replace"))


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _rows(text: str) -> Iterable[dict[str, Any]]:
    for line in text.split("\n")[:-1]:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _slice(stderr: bytes, start: object, stop: object) -> str:
    if isinstance(start, int) and isinstance(stop, int) and 0 <= start <= stop <= len(stderr):
        return stderr[start:stop].decode("utf-8", "replace")
    return ""


def _step(name: str, slot: dict[str, Any]) -> StepCapture:
    sent, done = slot["sent"], slot.get("done")
    status = done.get("http_status") if done else None
    error = done.get("error") if done else None
    return StepCapture(
        name,
        float(sent["t_s"]),
        str(sent.get("body", "")),
        tuple(slot["events"]),
        float(done["t_s"]) if done else None,
        status if isinstance(status, int) else None,
        error if isinstance(error, str) else None,
        bool(done and done.get("timed_out")),
    )
