"""An engine that runs once per exchange: what a session needs of a process, over a row of short-lived ones.

One command at a time, each seen to its end before the next begins: engines of this kind refuse to start twice.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.clock import now_s
from orchestrator.host.memory import MemorySampler
from orchestrator.process import logs
from orchestrator.process.command import Limits, record
from orchestrator.process.spawn import STDERR, STDOUT, EngineProcess
from orchestrator.schema.adapter import FOLDER, CommandStep, HttpStep, WorkerStep, command_folder
from orchestrator.schema.capture import StepCapture
from orchestrator.schema.observation import Observation

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.matrix.types import RunSettings
    from orchestrator.schema.adapter import Launch

SUMMED = "swap_delta"
"""Grows over the whole session; of every other figure of memory the largest command counts."""


class Commands:
    """The commands of one session, in the place of a process and of the channel to it.

    Attributes:
        stderr_path: standard error of all commands so far, one after the other.
        exit_code: of the last one.
    """

    def __init__(self, launch: Launch, folder: Path, settings: RunSettings) -> None:
        self.launch, self.folder = launch, folder.resolve()
        self.stderr_path, self.stdout_path = self.folder / STDERR, self.folder / STDOUT
        self.exit_code: int | None = None
        self._limits = Limits(
            settings.startup_timeout_s + settings.silence_timeout_s,
            settings.silence_timeout_s,
            settings.startup_timeout_s + settings.total_timeout_s,
        )
        self._trial = 0
        self._seen: list[tuple[Observation, ...]] = []
        for path in (self.stderr_path, self.stdout_path):
            path.touch()

    def begin(self, trial: int) -> None:
        """The exchanges that follow belong to this trial."""
        self._trial = trial

    def make(self, step: HttpStep | WorkerStep | CommandStep) -> StepCapture:
        """Run the command once, to its end; nothing of it is left behind."""
        if not isinstance(step, CommandStep):
            now = now_s()
            error = f"this engine offers no way to make a {type(step).__name__}"
            return StepCapture(step.name, now, "", (), now, None, error)
        folder = self.folder / command_folder(self._trial, step.name)
        body = json.dumps({"args": list(step.args), "files": dict(step.files)}, ensure_ascii=False)
        args = tuple(word.replace(FOLDER, str(self.folder)) for word in step.args)
        launch = replace(self.launch, argv=(*self.launch.argv, *args), files=step.files)
        with EngineProcess.start(launch, folder) as process:
            sampler = MemorySampler(process.pid, folder / "memory.jsonl")
            sampler.start()
            try:
                capture = record(process, step.name, body, self._limits)
            finally:
                self._seen.append(sampler.stop().observations)
                self.exit_code = process.stop().exit_code
        for path in (self.stderr_path, self.stdout_path):
            with path.open("ab") as file:
                file.write(logs.read(folder / path.name))
        return capture

    def memory(self) -> tuple[Observation, ...]:
        """Of each figure of memory the largest command's; of the growth of swap the sum."""
        found: dict[str, list[Observation]] = {}
        for item in (one for seen in self._seen for one in seen):
            found.setdefault(item.metric, []).append(item)
        return tuple(_of_all(items) for items in found.values())

    def poll(self) -> int | None:
        """``None``: a next command can always be started."""
        return None

    @property
    def exit_text(self) -> str:
        """How the last command ended, in words."""
        return f"exit code {self.exit_code}"

    def stderr_size(self) -> int:
        """Bytes of standard error so far."""
        return logs.size(self.stderr_path)

    @property
    def stdout(self) -> str:
        """Standard output so far, undecodable bytes replaced."""
        return logs.read(self.stdout_path).decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error so far, undecodable bytes replaced."""
        return logs.read(self.stderr_path).decode("utf-8", "replace")

    def log_tail(self, n: int = 20, max_bytes: int = 65536) -> tuple[str, ...]:
        """The last lines of standard error, fit for a terminal."""
        return logs.tail(self.stderr_path, n, max_bytes)

    def wait_for_log(self, pattern: str, since: int, timeout_s: float) -> bool:
        """Whether standard error after byte ``since`` has a line that matches; every command has ended by now."""
        return logs.wait_for(self.stderr_path, pattern, since, timeout_s, lambda: True)


def _of_all(items: list[Observation]) -> Observation:
    told = [item for item in items if isinstance(item.value, int | float)]
    if not told:
        return items[-1]
    if items[0].metric == SUMMED:
        total = sum(item.value for item in told if isinstance(item.value, int | float))
        return replace(told[-1], value=total, note=_note(f"the sum over {len(told)} commands", told[-1]))
    largest = max(told, key=lambda item: float(item.value) if isinstance(item.value, int | float) else 0.0)
    return replace(largest, note=_note(f"the largest of {len(told)} commands", largest))


def _note(words: str, item: Observation) -> str:
    return words if item.note is None else f"{words}; {item.note}"
