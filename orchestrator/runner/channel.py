"""How a session's exchanges reach its engine: HTTP for servers, JSON lines for workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.client.http import EngineClient
from orchestrator.clock import now_s
from orchestrator.process.ports import owner_is
from orchestrator.process.worker import WorkerChannel
from orchestrator.schema.adapter import CommandStep, HttpReady, HttpStep, WorkerStep
from orchestrator.schema.capture import StepCapture
from orchestrator.schema.errors import EngineRefusal
from orchestrator.schema.status import Status

if TYPE_CHECKING:
    from orchestrator.matrix.types import RunSettings
    from orchestrator.process.spawn import EngineProcess
    from orchestrator.schema.adapter import Launch

LOG_TAIL_LINES = 12
"""Lines of the engine's log that are kept with a session."""
READY_POLL_S = 0.02


class Channel:
    """The one way to the engine of a running session."""

    def __init__(self, process: EngineProcess, launch: Launch, port: int, settings: RunSettings) -> None:
        self.process, self.launch, self.port, self.settings = process, launch, port, settings
        self.client: EngineClient | None = None
        self.worker: WorkerChannel | None = None

    def wait_ready(self) -> None:
        """Blocks until the engine is ready.

        Raises:
            EngineRefusal: it ended, refused, or was not ready in time.
        """
        if isinstance(self.launch.ready, HttpReady):
            self.client = EngineClient(f"http://127.0.0.1:{self.port}")
            self._wait_http(self.client, self.launch.ready.path)
            return
        self.worker = WorkerChannel(self.process)
        said = self.worker.wait_ready(self.settings.startup_timeout_s)
        base_url = said.get("base_url")
        if isinstance(base_url, str):
            self.client = EngineClient(base_url)

    def _wait_http(self, client: EngineClient, path: str) -> None:
        deadline = now_s() + self.settings.startup_timeout_s
        while not client.get_ready(path):
            if self.process.wait(READY_POLL_S) is not None:
                lines = [line for line in self.process.log_tail(LOG_TAIL_LINES) if line.strip()]
                last = f": {lines[-1]}" if lines else ""
                reason = f"the engine ended before it was ready ({self.process.exit_text}){last}"
                raise EngineRefusal(Status.FAILED, reason)
            if now_s() > deadline:
                reason = f"not ready within {self.settings.startup_timeout_s:g} s"
                raise EngineRefusal(Status.TIMEOUT, reason)
        self.process.note_children()
        if owner_is(self.process.pid, self.port) is False:
            reason = f"port {self.port} is answered by another process than the engine that was started"
            raise EngineRefusal(Status.CONTAMINATED, reason)

    def make(self, step: HttpStep | WorkerStep | CommandStep) -> StepCapture:
        """One exchange, within the time-outs of the matrix."""
        silence, total = self.settings.silence_timeout_s, self.settings.total_timeout_s
        if isinstance(step, HttpStep) and self.client is not None:
            return self.client.exchange(step, silence, total)
        if isinstance(step, WorkerStep) and self.worker is not None:
            return self.worker.call(step, silence, total)
        now = now_s()
        error = f"this engine offers no way to make a {type(step).__name__}"
        return StepCapture(step.name, now, "", (), now, None, error)
