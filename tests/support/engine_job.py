"""A job of one or more blocks on a real adapter, run by the real runner: the shortest way to a journal with replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.matrix.types import Block, CheckSettings, Expansion, HostSettings, Matrix, RunSettings
from orchestrator.runner.execute import Job, execute
from orchestrator.runner.survey import Survey, survey_cells, survey_engines
from orchestrator.schema.record import SCHEMA_VERSION, RunHeader
from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import Index

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.runner.events import Listener
    from orchestrator.schema.adapter import Adapter
    from orchestrator.schema.cell import Cell


def engine_job(
    adapter: Adapter, base: Cell, cells: Sequence[Cell], folder: Path, *, trials: int = 2, scoring: bool = False
) -> Job:
    """One session of a baseline and of each speculative cell; folder holds what probes wrote."""
    settings = RunSettings("demo", 1, trials, 0, "abba", 7, "cold", False, 120.0, 600.0, 600.0)
    expansion = Expansion((Block(base.block_id, base, tuple(cells), None),), ())
    adapters = {adapter.name: adapter}
    folder.mkdir(parents=True, exist_ok=True)
    engines = survey_engines([base.engine], adapters, folder)
    checks = CheckSettings(greedy_identity=True, cross_scoring=scoring)
    matrix = Matrix(
        "engine-job",
        folder / "matrix.yaml",
        "version: 1",
        {base.engine.name: base.engine},
        {},
        {},
        {},
        {},
        settings,
        HostSettings((), "everyday"),
        None,
        (),
        (),
        checks,
        "en",
    )
    fates = survey_cells(expansion.cells, engines, adapters, settings, folder)
    return Job(
        matrix, expansion, Survey(engines, fates), adapters, frozenset(cell.id for cell in expansion.cells), again=False
    )


def run_job(job: Job, folder: Path, listen: Listener = lambda _event: None) -> tuple[RunDirectory, Index]:
    """Runs the job in ``folder``, which is new, or goes on there."""
    if (folder / "run.json").exists():
        directory = RunDirectory.open(folder)
    else:
        header = RunHeader(SCHEMA_VERSION, "0", "r", "2026-01-01T00:00:00Z", "matrix.yaml", "version: 1", {}, "run")
        directory = RunDirectory.create(folder, header)
    execute(job, directory, listen)
    return directory, Index.build(directory.records())
