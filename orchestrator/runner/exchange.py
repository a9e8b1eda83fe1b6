"""A trial's exchanges with a running engine, and their record on disk, written when they are over."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.runner.commands import Commands
from orchestrator.schema.adapter import LogStep
from orchestrator.schema.capture import StepCapture, TrialCapture, log_line, step_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from orchestrator.process.spawn import EngineProcess
    from orchestrator.runner.channel import Channel
    from orchestrator.schema.adapter import Step


def exchange(
    channel: Channel | Commands,
    process: EngineProcess | Commands,
    trial: int,
    steps: Sequence[Step],
    events: Path,
) -> TrialCapture:
    """Makes the exchanges, and only then writes them down: nothing touches the disk beside the engine.

    Args:
        channel: what makes a step.
        process: whose log belongs to the trial.
        trial: its number; negative ones are not measured.
        steps: in order; the first that fails is the last that is made.
        events: the file that they are appended to.
    """
    log_from = process.stderr_size()
    captures: list[StepCapture] = []
    if isinstance(channel, Commands):
        channel.begin(trial)
    try:
        with _no_collection():
            for step in steps:
                if isinstance(step, LogStep):
                    process.wait_for_log(step.pattern, log_from, step.timeout_s)
                    continue
                captures.append(channel.make(step))
                if captures[-1].error is not None:
                    break
    finally:
        log_to = process.stderr_size()
        with events.open("a", encoding="utf-8") as file:
            for capture in captures:
                file.writelines(step_lines(trial, capture))
            file.write(log_line(trial, log_from, log_to))
    with process.stderr_path.open("rb") as stderr:
        stderr.seek(log_from)
        log = stderr.read(log_to - log_from).decode("utf-8", "replace")
    return TrialCapture(trial, {capture.name: capture for capture in captures}, log, complete=True)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Our garbage collector does not run meanwhile: it would stamp what arrives late."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
