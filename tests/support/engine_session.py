"""Drives one session of an HTTP-driven adapter against its real engine, writing the session's files as a run does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.client.http import EngineClient
from orchestrator.clock import now_s
from orchestrator.process.ports import free_port
from orchestrator.process.spawn import EngineProcess
from orchestrator.process.worker import WorkerChannel
from orchestrator.schema.adapter import HttpReady, HttpStep, LaunchContext, LogStep
from orchestrator.schema.capture import READY_TRIAL, SessionCapture, log_line, read_session, step_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.schema.adapter import Adapter, Launch, Refusal, Step, TrialSpec
    from orchestrator.schema.cell import Cell

SILENCE_S, TOTAL_S, START_S, STOP_S = 120.0, 600.0, 600.0, 60.0
EVENTS = "events.jsonl"


@dataclass(frozen=True)
class Driven:
    """What a session left behind; ``refusal`` is the adapter's word after readiness."""

    capture: SessionCapture
    refusal: Refusal | None
    exit_code: int | None
    launch: Launch


def drive(adapter: Adapter, cell: Cell, trials: Sequence[TrialSpec], folder: Path) -> Driven:
    """Starts the engine, asks what is asked after readiness, makes the trials unless refused, and stops it."""
    port = free_port()
    launch = adapter.launch(cell, LaunchContext(port, folder))
    lines: list[str] = []
    with EngineProcess.start(launch, folder) as process:
        client = _client(process, launch, port)
        lines += _exchange(process, client, READY_TRIAL, adapter.ready_steps(cell))
        ready = read_session("".join(lines), process.stdout, process.stderr_path.read_bytes()).ready
        refusal = adapter.check_ready(cell, ready, process.stdout, process.stderr)
        for trial in trials if refusal is None else ():
            lines += _exchange(process, client, trial.index, adapter.trial_steps(cell, trial))
        exit_code = process.stop(grace_s=STOP_S).exit_code
        stdout, stderr = process.stdout, process.stderr_path.read_bytes()
    (folder / EVENTS).write_text("".join(lines), encoding="utf-8")
    return Driven(read_session("".join(lines), stdout, stderr), refusal, exit_code, launch)


def _client(process: EngineProcess, launch: Launch, port: int) -> EngineClient:
    if not isinstance(launch.ready, HttpReady):
        return EngineClient(WorkerChannel(process).wait_ready(START_S)["base_url"])
    client, deadline = EngineClient(f"http://127.0.0.1:{port}"), now_s() + START_S
    while not client.get_ready(launch.ready.path):
        if process.wait(0.05) is not None or now_s() > deadline:
            raise RuntimeError(f"not ready ({process.exit_text}): {process.log_tail(3)}")
    return client


def _exchange(process: EngineProcess, client: EngineClient, trial: int, steps: Sequence[Step]) -> list[str]:
    start = process.stderr_size()
    lines: list[str] = []
    for step in steps:
        if isinstance(step, LogStep):
            process.wait_for_log(step.pattern, start, step.timeout_s)
        elif isinstance(step, HttpStep):
            lines += step_lines(trial, client.exchange(step, SILENCE_S, TOTAL_S))
        else:
            raise TypeError(f"{step.name}: this driver speaks HTTP alone")
    return [*lines, log_line(trial, start, process.stderr_size())]
