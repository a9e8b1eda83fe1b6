"""One mlx-vlm session through the adapter and the real worker, each trial read back from its lines on disk."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.mlx_vlm.adapter import ADAPTER
from orchestrator.process.spawn import EngineProcess
from orchestrator.process.worker import WorkerChannel
from orchestrator.schema.adapter import LaunchContext, TrialSpec, WorkerStep
from orchestrator.schema.capture import TrialCapture, log_line, read_session, step_lines
from orchestrator.schema.cell import (
    Cell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

GREEDY = Sampling("greedy", 0.0, 1, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
WARM = Sampling("warm", 0.8, 1, 40, 0.95, 0.05, 1.0, 0.0, 0.0)
BARE = Sampling("bare", 0.8, 1, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
NONE = Method("none", MethodKind.NONE)


def mtp(k: int) -> Method:
    return Method(f"mtp-k{k}", MethodKind.MTP, k)


def make_cell(
    target: Path | str,
    drafter: Path | str | None,
    *,
    method: Method = NONE,
    sampling: Sampling = GREEDY,
    tokens: int = 32,
    eos: EosPolicy = EosPolicy.STOP,
    **options: Any,
) -> Cell:
    return Cell(
        EngineConfig("vlm", "mlx_vlm", python=sys.executable, options=options),
        ModelConfig("tiny", str(target), mtp=None if drafter is None else str(drafter)),
        method,
        sampling,
        Workload("short", "demo-short", tokens, eos),
    )


class VlmSession:
    """A ready worker; ``lines`` are those of ``events.jsonl`` so far."""

    def __init__(self, cell: Cell, process: EngineProcess, channel: WorkerChannel, ready: dict[str, Any]) -> None:
        self.cell, self.process, self.channel, self.ready = cell, process, channel, ready
        self.lines: list[str] = []
        self.specs: list[TrialSpec] = []

    def trial(self, prompt: str, *, seed: int = 1, cell: Cell | None = None) -> TrialCapture:
        """One trial; ``cell`` may differ in what a request carries (block size, sampling, workload)."""
        spec = TrialSpec(len(self.specs), "measured", f"p{len(self.specs)}", prompt, seed)
        self.specs.append(spec)
        before = self.process.stderr_size()
        for step in ADAPTER.trial_steps(cell or self.cell, spec):
            assert isinstance(step, WorkerStep)
            self.lines += step_lines(spec.index, self.channel.call(step, 300, 600))
        self.lines.append(log_line(spec.index, before, self.process.stderr_size()))
        return self.read().trials[spec.index]

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The last line of the answer to any message at all."""
        capture = self.channel.call(WorkerStep("ask", message), 300, 600)
        answer = json.loads(capture.events[-1].data)
        assert isinstance(answer, dict)
        return answer

    def read(self) -> Any:
        return read_session("".join(self.lines), self.process.stdout, self.process.stderr_path.read_bytes())


@contextlib.contextmanager
def vlm_session(cell: Cell, folder: Path, worker: Path | None = None) -> Iterator[VlmSession]:
    """A session of ``cell``; another ``worker`` script may wrap the real one."""
    launch = ADAPTER.launch(cell, LaunchContext(0, folder))
    if worker is not None:
        argv = tuple(str(worker) if word.endswith("mlx_vlm_worker.py") else word for word in launch.argv)
        launch = replace(launch, argv=argv)
    with EngineProcess.start(launch, folder) as process:
        channel = WorkerChannel(process)
        ready = channel.wait_ready(600)
        yield VlmSession(cell, process, channel, ready)
