"""What every command starts from: the matrix as this machine has it, and the run directory it belongs to."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator import __version__, registry
from orchestrator.clock import utc_now
from orchestrator.demo.export import resolve as resolve_demo
from orchestrator.host.fit import Budget, budget
from orchestrator.host.machine import facts
from orchestrator.host.others import largest_others
from orchestrator.host.unavailable import UnavailableError
from orchestrator.matrix.expand import default_resolver, expand
from orchestrator.matrix.load import load_matrix
from orchestrator.matrix.select import select
from orchestrator.runner.execute import Job
from orchestrator.runner.survey import EngineFinding, Survey, survey_cells, survey_engines
from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import SCHEMA_VERSION, RunHeader
from orchestrator.store.directory import RunDirectory, new_run_name
from orchestrator.workloads.load import known_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from orchestrator.matrix.types import Expansion, Matrix
    from orchestrator.schema.cell import Cell, CheckCell

SCRATCH = ".specmatrix"
"""Beside the runs: hashes of model files, and what probes wrote."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A matrix, expanded and surveyed."""

    matrix: Matrix
    expansion: Expansion
    survey: Survey
    reports: Path

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, each block's baseline first and its twin last."""
        return self.expansion.cells

    def job(self, selected: Sequence[Cell | CheckCell], *, again: bool) -> Job:
        """A job for these cells and checks."""
        return Job(
            self.matrix,
            self.expansion,
            self.survey,
            registry.adapters(),
            frozenset(cell.id for cell in selected),
            again,
        )

    def select(self, patterns: Sequence[str]) -> tuple[Cell | CheckCell, ...]:
        """The cells and distribution checks that any pattern names; all of them without a pattern."""
        everything: tuple[Cell | CheckCell, ...] = (*self.cells, *self.expansion.checks)
        return select(everything, patterns) if patterns else everything

    def newest_run(self) -> Path | None:
        """The newest run of a matrix with this name, if there is one."""
        return newest_run(self.reports, self.matrix.name)

    def create_run(self) -> RunDirectory:
        """A new run directory with its header written."""
        now = utc_now()
        name = new_run_name(self.matrix.name, now)
        header = RunHeader(
            SCHEMA_VERSION,
            __version__,
            name,
            now,
            str(self.matrix.path),
            self.matrix.text,
            facts(),
            shlex.join(["specmatrix", *sys.argv[1:]]),
            {
                "matrix": self.matrix.name,
                "environment": self.matrix.host.environment,
                "largest_others": self.survey.host.get("largest_others", []),
            },
        )
        return RunDirectory.create(self.reports / name, header)


def open_workspace(matrix_path: Path, reports: Path) -> Workspace:
    """Loads, expands and surveys a matrix.

    Raises:
        MatrixError: the file has faults; all of them are in the message.
    """
    adapters = registry.adapters()
    matrix = load_matrix(matrix_path, adapters, known_names())
    expansion = expand(matrix, default_resolver(matrix_path.resolve().parent, resolve_demo))
    scratch = reports / SCRATCH
    scratch.mkdir(parents=True, exist_ok=True)
    used = {cell.engine.name: cell.engine for cell in expansion.cells}
    configs = [used.get(name, config) for name, config in matrix.engines.items()]
    engines = survey_engines(configs, adapters, scratch)
    room = _room(matrix, engines)
    fates = survey_cells(expansion.cells, engines, adapters, matrix.run, scratch, room)
    host = {"budget": room.plain() if room is not None else None, "largest_others": largest_others()}
    return Workspace(matrix, expansion, Survey(engines, fates, host), reports)


def _room(matrix: Matrix, engines: Mapping[str, EngineFinding]) -> Budget | None:
    """The machine's memory now; ``None`` where the system does not tell, and then no cell is judged by it.

    What any engine is told of the GPU's limit holds for all of them: they share that GPU.
    """
    told = {name: found.identity.gpu_limit_bytes for name, found in engines.items()}
    try:
        room = budget([item.bytes for item in matrix.host.reserve])
    except UnavailableError:
        return None
    return room.told({name: limit for name, limit in told.items() if limit is not None})


def newest_run(reports: Path, matrix_name: str | None = None) -> Path | None:
    """The newest run under ``reports``; of the matrix of that name when one is given."""
    found: list[tuple[str, Path]] = []
    for header_file in reports.glob("*/run.json"):
        header = RunDirectory.open(header_file.parent).header
        if matrix_name is None or header.extra.get("matrix") == matrix_name:
            found.append((header.created_utc, header_file.parent))
    return max(found)[1] if found else None


def open_run(run: Path | None, reports: Path) -> RunDirectory:
    """The run that was named, or the newest one.

    Raises:
        StoreError: there is none.
    """
    path = run if run is not None else newest_run(reports)
    if path is None:
        raise StoreError(f"{reports}: there is no run yet; start one with `specmatrix run`")
    return RunDirectory.open(path)
