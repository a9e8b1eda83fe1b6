from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.process.spawn import EngineProcess
from orchestrator.schema.adapter import HttpReady, Launch, LineReady

FAKES = Path(__file__).parents[2] / "fake_engines"
WORKER = str(FAKES / "fault_worker.py")
SERVER = str(FAKES / "fault_server.py")

Start = Callable[..., EngineProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts processes in the test's folder and stops them at its end."""
    running: list[EngineProcess] = []

    def begin(*argv: str, server: bool = False, env: dict[str, str] | None = None, **more: object) -> EngineProcess:
        ready = HttpReady() if server else LineReady()
        process = EngineProcess.start(Launch(argv, env or {}, ready, **more), tmp_path / f"session-{len(running)}")
        running.append(process)
        return process

    yield begin
    for process in running:
        process.stop(("KILL",), 0)


@pytest.fixture
def worker(start: Start) -> Start:
    """Starts the fault worker in a mode."""
    return lambda mode="ready", **more: start(sys.executable, WORKER, mode, **more)


@pytest.fixture
def server(start: Start) -> Start:
    """Starts the fault server on a port."""
    return lambda port, **more: start(sys.executable, SERVER, "--port", str(port), server=True, **more)
