"""A small matrix on the scripted engine: one block of a baseline, a draft and an n-gram cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestrator.matrix.types import Block, CheckSettings, Expansion, HostSettings, Matrix, RunSettings
from orchestrator.runner.execute import Job
from orchestrator.runner.survey import Survey, survey_cells, survey_engines
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.schema.record import SCHEMA_VERSION, RunHeader
from orchestrator.store.directory import RunDirectory

SETTINGS = RunSettings(
    preset="demo",
    sessions=2,
    trials=2,
    warmup=1,
    order="abba",
    order_seed=7,
    cache="cold",
    twin=True,
    silence_timeout_s=8.0,
    total_timeout_s=20.0,
    startup_timeout_s=60.0,
)
BASE, DRAFT, NGRAM = "fake/m/none/greedy/w", "fake/m/draft/greedy/w", "fake/m/ngram/greedy/w"
TWIN = BASE + "~twin"


def matrix_cells(
    folder: Path, pin: dict[str, str] | None = None, own_trials: int | None = None
) -> tuple[Cell, Cell, Cell, Cell]:
    model_file = folder / "model.bin"
    if not model_file.exists():
        model_file.write_bytes(b"weights")
    engine = EngineConfig("fake", "scripted", pin={"scripted": "1"} if pin is None else pin)
    model = ModelConfig("m", str(model_file), drafts={"d": str(model_file)})
    sampling = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
    workload = Workload("w", "demo-short", 12, EosPolicy.MASK, trials=own_trials)
    base = Cell(engine, model, Method("none", MethodKind.NONE), sampling, workload)
    draft = replace(base, method=Method("draft", MethodKind.DRAFT, 3, "d"))
    ngram = replace(base, method=Method("ngram", MethodKind.NGRAM, 3))
    return base, draft, ngram, replace(base, twin=True)


def make_job(
    adapter, folder: Path, selected=None, *, again=False, settings=SETTINGS, pin=None, without=(), own_trials=None
) -> Job:
    base, draft, ngram, twin = matrix_cells(folder, pin, own_trials)
    cells = tuple(cell for cell in (draft, ngram) if cell.id not in without)
    expansion = Expansion((Block(base.block_id, base, cells, twin if settings.twin else None),), ())
    adapters = {"scripted": adapter}
    engines = survey_engines([base.engine], adapters, folder)
    fates = survey_cells(expansion.cells, engines, adapters, settings, folder)
    matrix = Matrix(
        name="scripted",
        path=folder / "matrix.yaml",
        text="version: 1",
        engines={"fake": base.engine},
        models={},
        methods={},
        sampling={},
        workloads={},
        run=settings,
        host=HostSettings((), "everyday"),
        axes=None,
        exclude=(),
        include=(),
        checks=CheckSettings(True),
        language="en",
    )
    chosen = frozenset(cell.id for cell in expansion.cells) if selected is None else frozenset(selected)
    return Job(matrix, expansion, Survey(engines, fates), adapters, chosen, again)


def make_run(folder: Path) -> RunDirectory:
    header = RunHeader(SCHEMA_VERSION, "0", "r", "2026-01-01T00:00:00Z", "matrix.yaml", "version: 1", {}, "run")
    return RunDirectory.create(folder / "run", header)
