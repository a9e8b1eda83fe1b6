"""Puts each fault into the stream of a small real cell, and says by which gate it was caught, if at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.clock import utc_now
from orchestrator.demo.export import resolve
from orchestrator.exactness.coverage import CAUGHT_BY, REPLAYS, Fault, Gate, active_gates
from orchestrator.matrix.types import Block, CheckSettings, Expansion, HostSettings, Matrix, RunSettings
from orchestrator.report.analysis.checks import run_checks
from orchestrator.runner.execute import Job, execute
from orchestrator.runner.survey import Survey, survey_cells, survey_engines
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.schema.errors import SpecmatrixError
from orchestrator.schema.record import SCHEMA_VERSION, RunHeader
from orchestrator.schema.result import Verdict
from orchestrator.schema.status import Status
from orchestrator.selftest.adapter import ADAPTER, DRAFT, method_of
from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import Index

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.report.analysis.checks import Checks
    from orchestrator.runner.events import Listener
    from orchestrator.store.states import CellState

TRIALS = 2
TOKENS = 40
MADE: tuple[Fault, ...] = tuple(fault for fault in Fault if fault is not Fault.HIDDEN_CACHE)
"""Faults that the proxy makes; what nothing can see is not worth making."""

_BY_STATUS = {
    Status.NOT_ENGAGED: Gate.ENGAGEMENT,
    Status.CONTAMINATED: Gate.CONTAMINATION,
    Status.UNPARSED: Gate.STREAM,
}
_CLOCKS = "our decode rate and the engine's disagree"
_STREAM = ("token ids received, the engine counts", "tokens came, the limit is", "token ids arrived in time order")
_SAMPLINGS = (
    Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0),
    Sampling("t0.8", 0.8, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0),
)


@dataclass(frozen=True, slots=True)
class Result:
    """One fault under one sampling policy.

    Args:
        caught_by: gates that raised the alarm; ``said`` what they said, one sentence each.
        expected: gates that were active in the control and are made for this fault: any one of them must have.
        broke: what became of a cell that ended otherwise than by a gate; empty where none did. Its fault is not caught:
            an engine that crashes shows nothing of the instrument.
    """

    fault: Fault
    sampling: str
    caught_by: tuple[Gate, ...]
    said: tuple[str, ...]
    expected: tuple[Gate, ...]
    broke: str = ""

    @property
    def is_control(self) -> bool:
        """Whether nothing was corrupted."""
        return self.fault is Fault.CONTROL

    @property
    def good(self) -> bool:
        """The control is clean; a fault that must be caught is; and every cell was measured or stopped by a gate."""
        if self.broke:
            return False
        if self.is_control:
            return not self.caught_by
        return not self.expected or bool(set(self.caught_by) & set(CAUGHT_BY[self.fault]))


def selftest(
    folder: Path,
    checks: CheckSettings,
    listen: Listener,
    *,
    greedy: Sequence[Fault] = MADE,
    drawn: Sequence[Fault] = MADE,
) -> list[Result]:
    """Runs every fault; a run directory with all the evidence is left in ``folder``.

    Args:
        folder: an empty or new folder.
        checks: the settings to test, as the matrix has them.
        listen: told of the progress.
        greedy: the faults to make at temperature 0; none leaves the whole policy out, else the control comes first.
        drawn: likewise above it.

    Raises:
        SpecmatrixError: the embedded llama.cpp is not here, or the run was interrupted.
    """
    chosen = [(Fault.CONTROL, *(one for one in faults if one is not Fault.CONTROL)) for faults in (greedy, drawn)]
    plan = [(sampling, faults) for sampling, faults in zip(_SAMPLINGS, chosen, strict=True) if len(faults) > 1]
    job = _job(folder, checks, plan)
    header = RunHeader(SCHEMA_VERSION, "selftest", "selftest", utc_now(), "-", job.matrix.text, {}, "selftest")
    directory = RunDirectory.create(folder / "run", header)
    if execute(job, directory, listen):
        raise SpecmatrixError(f"interrupted; what was made is in {folder}")
    index = Index.build(directory.records())
    judged = run_checks(index)
    replays = index.matrix is not None and job.expansion.blocks[
        0
    ].baseline.engine.name in index.matrix.run_settings.get(REPLAYS, ())
    results = []
    for block, (_, made) in zip(job.expansion.blocks, plan, strict=True):
        control = index.cells[next(cell.id for cell in block.cells if cell.method.name == "control")]
        placement = judged.placements[control.id]
        on = active_gates(control, placement.checks, replays=replays)
        results += [
            _result(fault, cell, index.cells[cell.id], judged, on)
            for fault, cell in zip(made, block.cells, strict=True)
        ]
    return results


def _result(fault: Fault, cell: Cell, state: CellState, judged: Checks, on: frozenset[Gate]) -> Result:
    found: dict[Gate, str] = {}
    broke, told = "", f"{state.status.value}: {state.reason}"
    if state.status in _BY_STATUS:
        found[_BY_STATUS[state.status]] = told
    elif state.status is not Status.OK:
        broke = told
    trials = (*state.trials, *state.failed_trials)
    for problem in (problem for trial in trials for problem in trial.problems):
        found.setdefault(_gate_of(problem), problem)
    for check in judged.placements[state.id].checks:
        if check.verdict is Verdict.FAIL:
            found.setdefault(_GATES_OF_CHECKS[check.check], check.evidence)
    if fault is not Fault.STALLED and not _everywhere(trials):
        found.pop(Gate.CLOCKS, None)  # a busy machine wakes us late now and then: one answer is no alarm
    expected = tuple(gate for gate in CAUGHT_BY.get(fault, ()) if gate in on)
    return Result(fault, cell.sampling.name, tuple(found), tuple(found.values()), expected, broke)


_GATES_OF_CHECKS = {
    "greedy identity": Gate.GREEDY_IDENTITY,
    "cross-scoring": Gate.CROSS_SCORING,
    "distribution": Gate.DISTRIBUTION,
}


def _gate_of(problem: str) -> Gate:
    if problem.startswith(_CLOCKS):
        return Gate.CLOCKS
    return Gate.STREAM if any(part in problem for part in _STREAM) else Gate.COUNTS


def _everywhere(trials: Sequence[object]) -> bool:
    return bool(trials) and all(
        any(problem.startswith(_CLOCKS) for problem in getattr(trial, "problems", ())) for trial in trials
    )


def _job(folder: Path, checks: CheckSettings, plan: Sequence[tuple[Sampling, Sequence[Fault]]]) -> Job:
    engine = EngineConfig("llama.cpp", ADAPTER.name, options={"threads": 1, "context": 512})
    target, draft = str(resolve("tiny-target-f16.gguf")), str(resolve("tiny-draft-f16.gguf"))
    model = ModelConfig("tiny", target, drafts={DRAFT: draft})
    workload = Workload("short", "demo-short", TOKENS, EosPolicy.MASK)
    blocks = []
    for sampling, faults in plan:
        base = Cell(engine, model, Method("none", MethodKind.NONE), sampling, workload)
        cells = tuple(Cell(engine, model, method_of(fault), sampling, workload) for fault in faults)
        blocks.append(Block(base.block_id, base, cells, None))
    expansion = Expansion(tuple(blocks), ())
    settings = RunSettings(
        preset="demo",
        sessions=1,
        trials=TRIALS,
        warmup=0,
        order="abba",
        order_seed=7,
        cache="cold",
        twin=False,
        silence_timeout_s=60.0,
        total_timeout_s=120.0,
        startup_timeout_s=120.0,
    )
    adapters = {ADAPTER.name: ADAPTER}
    folder.mkdir(parents=True, exist_ok=True)
    engines = survey_engines([engine], adapters, folder)
    unavailable = engines[engine.name].identity.unavailable
    if unavailable is not None:
        raise SpecmatrixError(f"the self-test needs the embedded llama.cpp: {unavailable}; {ADAPTER.install_hint}")
    matrix = Matrix(
        name="selftest",
        path=folder / "matrix.yaml",
        text="# made by specmatrix selftest\n",
        engines={engine.name: engine},
        models={},
        methods={},
        sampling={},
        workloads={},
        run=settings,
        host=HostSettings((), "everyday"),
        axes=None,
        exclude=(),
        include=(),
        checks=checks,
        language="en",
    )
    fates = survey_cells(expansion.cells, engines, adapters, settings, folder)
    selected = frozenset(cell.id for cell in expansion.cells)
    return Job(matrix, expansion, Survey(engines, fates), adapters, selected, again=False)
