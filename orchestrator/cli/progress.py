"""Shows a run's events with Rich: what is done, what runs now, how long it will still take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from orchestrator.runner.events import (
    BatchDone,
    CellGivenUp,
    PreciseEnough,
    QueueGrew,
    RunStarted,
    Said,
    SessionDone,
    SessionStarted,
    TrialDone,
)
from orchestrator.schema.status import STATUS_RULES, Status
from orchestrator.schema.units import seconds
from orchestrator.store.durations import expected_s

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from orchestrator.runner.events import Event


class ProgressView:
    """A listener for :func:`orchestrator.runner.execute.execute`; use it as a context manager.

    On a terminal it draws a bar; elsewhere it writes one line per session.
    """

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console, self._verbose = console, verbose
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._queue: list[str] = []
        self._done = 0
        self._spent_s: dict[str, list[float]] = {}

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            # Few redraws: what draws here takes time from the engine that is measured.
            self._bar = Progress(
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("sessions"),
                TimeElapsedColumn(),
                TextColumn("{task.description}"),
                console=self._console,
                refresh_per_second=2,
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Shows one event."""
        match event:
            case RunStarted():
                self._start(event)
            case SessionStarted():
                text = f"{event.cell} · set {event.set_index + 1} of {event.planned_sets}"
                self._describe(f"{text} · {self._left()}")
            case TrialDone():
                self._trial(event)
            case SessionDone():
                self._session(event)
            case CellGivenUp():
                self._queue = [cell for cell in self._queue if cell != event.cell]
                self._say(f"  {event.cell}: left out of the {event.sessions_left_out} remaining sets")
            case PreciseEnough():
                self._queue = [cell for cell in self._queue if cell not in event.cells]
                self._say(f"  {event.block}: precise enough, {event.sets_spared} sets spared ({event.why})")
            case QueueGrew():
                self._queue += event.queue
                self._say(f"  {event.why}: {len(event.queue)} more sessions")
            case BatchDone():
                left = seconds(event.spent_s / event.made * (event.wanted - event.made))
                self._describe(f"{event.cell} · {event.arm}: {event.made} of {event.wanted} · about {left} left")
            case Said():
                self._say(event.text)

    def _start(self, event: RunStarted) -> None:
        self._queue = list(event.queue)
        cells = len(set(event.queue))
        refused = f", {event.refused} cells cannot be measured here" if event.refused else ""
        self._say(f"{cells} cells to measure in {len(event.queue)} sessions{refused}")
        if self._bar is not None:
            self._task = self._bar.add_task("", total=len(event.queue))

    def _trial(self, event: TrialDone) -> None:
        if not self._verbose:
            return
        wait = seconds(event.wait_s) if event.wait_s is not None else event.status.value
        self._say(f"    {event.phase} {event.trial}: {wait}   {event.engine_line}")

    def _session(self, event: SessionDone) -> None:
        self._done += 1
        self._spent_s.setdefault(event.cell, []).append(event.duration_s)
        if event.cell in self._queue:
            self._queue.remove(event.cell)
        if event.status is not Status.OK:
            self._say(f"  {event.cell}: {STATUS_RULES[event.status].word}: {event.reason}")
        elif self._bar is None:
            count = f"{self._done}/{self._done + len(self._queue)}"
            self._say(f"  [{count}] {event.cell}  {seconds(event.duration_s)} · {self._left()}")
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, total=self._done + len(self._queue))

    def _left(self) -> str:
        if not self._done:
            return "time left: known after the first session"
        if not self._queue:
            return "the last one"
        return f"about {seconds(expected_s(self._queue, self._spent_s))} left"

    def _describe(self, text: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=escape(text))

    def _say(self, text: str) -> None:
        self._console.print(escape(text), highlight=False, soft_wrap=True)
