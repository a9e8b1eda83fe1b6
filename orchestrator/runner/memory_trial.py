"""The untimed memory trial: one request per cell, with weights read into memory instead of mapped.

A mapped model file is in the resident set and not in the footprint, so that the larger of the two hides what a draft or
an MTP module adds. Here nothing is mapped where the engine allows that, and both arms are compared on one basis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.clock import utc_now
from orchestrator.runner.events import Said
from orchestrator.runner.framing import frame_of
from orchestrator.runner.plan import session_trials
from orchestrator.runner.session import SessionPlan, run_session
from orchestrator.schema.fit import ForeseesMemory
from orchestrator.schema.record import MemoryRecord, Place
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from orchestrator.runner.events import Listener
    from orchestrator.runner.execute import Job
    from orchestrator.schema.cell import Cell
    from orchestrator.store.directory import RunDirectory

KEPT = frozenset({"peak_unified", "peak_rss", "peak_footprint", "swap_delta", "engine_buffers"})
"""What a memory trial says; its times are of no use, since nothing was warmed up."""


def memory_trials(job: Job, directory: RunDirectory, listen: Listener) -> None:
    """One trial for every selected cell and its baseline that the journal has none of yet."""
    known = {(row.cell, row.fingerprint) for row in directory.records() if isinstance(row, MemoryRecord)}
    for block in job.expansion.blocks:
        cells = [cell for cell in block.cells if cell.id in job.selected]
        wanted = [block.baseline, *cells] if cells else []
        for cell in wanted:
            fate = job.survey.fates[cell.id]
            if fate.refusal is None and (cell.id, fate.fingerprint) not in known:
                _one(job, directory, cell, fate.fingerprint, listen)


def _one(job: Job, directory: RunDirectory, cell: Cell, fingerprint: str, listen: Listener) -> None:
    adapter = job.adapters[cell.engine.adapter]
    unmapped = adapter.unmapped(cell) if isinstance(adapter, ForeseesMemory) else None
    basis = (
        unmapped.basis if unmapped is not None else "weights mapped as in the measurement: this engine cannot do else"
    )
    settings = replace(job.matrix.run, trials=1, warmup=0, phases=False)
    lone = replace(cell, workload=replace(cell.workload, trials=None))  # one request, however many are timed
    trials = session_trials(load_prompts(*cell.workload.source), lone, settings, 0, frame=frame_of(cell, adapter))
    folder = directory.memory_folder(cell.id, fingerprint)
    relative = folder.relative_to(directory.path).as_posix()
    listen(Said(f"  {cell.id}: memory trial, untimed ({basis})"))
    place = Place(cell.id, fingerprint, cell.block_id, 0, 0, 0, 0)
    plan = SessionPlan(unmapped.cell if unmapped is not None else cell, place, trials, folder, relative, settings)
    done = run_session(plan, adapter, lambda _event: None).session
    found = tuple(one for one in done.observations if one.metric in KEPT)
    directory.append(MemoryRecord(cell.id, fingerprint, basis, done.status, done.reason, found, relative, utc_now()))
