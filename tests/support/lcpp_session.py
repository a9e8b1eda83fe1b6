"""One llama-cpp-python session through the adapter and the real worker, each trial read back from its lines."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.llama_cpp_python.adapter import ADAPTER
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

PYTHON_VARIABLE = "SPECMATRIX_LLAMA_CPP_PYTHON"
"""Names an interpreter in which llama-cpp-python is installed; it compiles, so nothing installs it by itself."""

GREEDY = Sampling("greedy", 0.0, 1, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
WARM = Sampling("warm", 0.8, 1, 40, 0.95, 0.05, 1.0, 0.0, 0.0)
NONE = Method("none", MethodKind.NONE)


def lookup(k: int, size: int = 2) -> Method:
    return Method(f"lookup-k{k}", MethodKind.NGRAM, k, options={"max_ngram_size": size})


def make_cell(
    target: Path | str,
    *,
    method: Method = NONE,
    sampling: Sampling = GREEDY,
    tokens: int = 48,
    eos: EosPolicy = EosPolicy.MASK,
    python: str | None = None,
    **options: Any,
) -> Cell:
    return Cell(
        EngineConfig(
            "lcp", "llama_cpp_python", python=python, options={"threads": 1, "context": 512, "batch": 64, **options}
        ),
        ModelConfig("tiny", str(target), drafts={"tiny": str(target)}),
        method,
        sampling,
        Workload("short", "demo-short", tokens, eos),
    )


class LookupSession:
    """A ready worker; ``lines`` are those of ``events.jsonl`` so far."""

    def __init__(self, cell: Cell, process: EngineProcess, channel: WorkerChannel, ready: dict[str, Any]) -> None:
        self.cell, self.process, self.channel, self.ready = cell, process, channel, ready
        self.lines: list[str] = []
        self.specs: list[TrialSpec] = []

    def trial(self, prompt: str, *, seed: int = 1, cell: Cell | None = None) -> TrialCapture:
        """One trial; ``cell`` may differ in what a request carries (sampling, workload)."""
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
def lookup_session(cell: Cell, folder: Path) -> Iterator[LookupSession]:
    with EngineProcess.start(ADAPTER.launch(cell, LaunchContext(0, folder)), folder) as process:
        channel = WorkerChannel(process)
        ready = channel.wait_ready(600)
        yield LookupSession(cell, process, channel, ready)
