"""The one act of the page: ``specmatrix rerun CELL`` as a child process, one at a time, never beside another run."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.process.spawn import EngineProcess
from orchestrator.schema.adapter import HttpReady, Launch
from orchestrator.schema.errors import SelectionError, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection

    from orchestrator.store.directory import RunDirectory

KEPT = ("PYTHONPATH", "VIRTUAL_ENV")
KEPT_PREFIX = "SPECMATRIX_"
STOP_GRACE_S = 30.0
"""A run that is told to end first writes down what it has."""
TAIL_LINES = 12


@dataclass(frozen=True, slots=True)
class Job:
    """The newest re-run: of which cell, how it ended (``None`` while it goes on), and what it said last."""

    cell: str
    exit_code: int | None
    said: tuple[str, ...]

    @property
    def running(self) -> bool:
        """Whether it still goes on."""
        return self.exit_code is None


@dataclass
class Rerunner:
    """Starts re-runs of one run directory; leaving the program stops the one that goes on.

    Args:
        directory: the run.
        matrix: the run's matrix file.
        scratch: a folder for the children's output, made when needed.
        command: what runs specmatrix, without its arguments.
    """

    directory: RunDirectory
    matrix: Path
    scratch: Path
    command: tuple[str, ...] = (sys.executable, "-m", "orchestrator")
    _cell: str = ""
    _process: EngineProcess | None = field(default=None, repr=False)

    @property
    def job(self) -> Job | None:
        """The newest re-run, if there was one."""
        if self._process is None:
            return None
        return Job(self._cell, self._process.poll(), self._process.log_tail(TAIL_LINES))

    def start(self, cell: str, known: Collection[str]) -> None:
        """Starts measuring the cell anew.

        Raises:
            SelectionError: there is no such cell.
            StoreError: the run is in use, or the matrix is not where it was.
            LaunchError: the child cannot be started.
        """
        if cell not in known:
            raise SelectionError(f"no cell {cell!r} in this run")
        holder = self.directory.holder
        if holder is not None:
            raise StoreError(f"the run is in use by process {holder.pid} since {holder.since_utc}; wait for its end")
        job = self.job
        if job is not None and job.running:
            raise StoreError(f"{job.cell} is being measured again; wait for its end")
        if not self.matrix.is_file():
            raise StoreError(f"{self.matrix}: the run's matrix is not there; start serve with --matrix")
        if self._process is not None:
            self._process.stop()
        self._cell = cell
        self._process = EngineProcess.start(self._launch(cell), self.scratch)

    def close(self) -> None:
        """Ends the re-run that goes on; what it has measured is kept, as after Ctrl-C."""
        if self._process is not None:
            self._process.stop(("TERM", "KILL"), STOP_GRACE_S)

    def _launch(self, cell: str) -> Launch:
        run = self.directory.path.resolve()
        argv = (
            *self.command, "rerun", "--matrix", str(self.matrix.resolve()), "--reports", str(run.parent),
            "--run", str(run), "--", cell,
        )  # fmt: skip
        kept = tuple(name for name in os.environ if name in KEPT or name.startswith(KEPT_PREFIX))
        return Launch(argv, {}, HttpReady(), keep_env=kept)
