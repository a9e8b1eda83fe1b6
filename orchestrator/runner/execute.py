"""The run itself: attempts, sets, sessions, one after the other, each finished piece appended to the journal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.clock import utc_now
from orchestrator.runner.events import CellGivenUp, RunStarted, SessionDone, SessionStarted
from orchestrator.runner.plan import PlannedAttempt, PlannedSet, plan_attempts, session_trials
from orchestrator.runner.session import SessionPlan, run_session
from orchestrator.schema.record import AttemptRecord, CellRecord, MatrixRecord, NoteRecord, Place, SetRecord
from orchestrator.schema.status import Status
from orchestrator.store.index import Index
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.matrix.types import Expansion, Matrix
    from orchestrator.runner.events import Listener
    from orchestrator.runner.survey import Survey
    from orchestrator.schema.adapter import Adapter
    from orchestrator.schema.cell import Cell
    from orchestrator.store.directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Job:
    """What to run: a matrix as this machine has it, and which of its cells.

    Args:
        selected: ids of the cells to measure.
        again: measure them anew although they are measured (``rerun``).
    """

    matrix: Matrix
    expansion: Expansion
    survey: Survey
    adapters: Mapping[str, Adapter]
    selected: frozenset[str]
    again: bool


def execute(job: Job, directory: RunDirectory, listen: Listener) -> bool:
    """Runs the job; every finished session, set and refusal is in the journal when this returns.

    Returns:
        Whether it was interrupted (Ctrl-C or SIGTERM); what was measured is kept.
    """
    with directory.lock():
        index = Index.build(directory.records())
        _write_matrix(job, directory, index)
        _write_refusals(job, directory, index)
        index = Index.build(directory.records())
        attempts = plan_attempts(
            job.expansion.blocks, job.survey.fates, index, job.matrix.run, selected=job.selected, again=job.again
        )
        refused = sum(fate.refusal is not None for fate in job.survey.fates.values())
        queue = tuple(cell.id for attempt in attempts for one in attempt.sets for cell in one.cells)
        listen(RunStarted(queue, refused))
        try:
            for attempt in attempts:
                _run_attempt(job, directory, attempt, listen)
        except KeyboardInterrupt:
            directory.append(NoteRecord("interrupted", "stopped by the user; the running set starts anew", utc_now()))
            return True
    return False


def _run_attempt(job: Job, directory: RunDirectory, attempt: PlannedAttempt, listen: Listener) -> None:
    prints = {cell.id: job.survey.fates[cell.id].fingerprint for cell in attempt.cells}
    settings = job.matrix.run
    if attempt.is_new:
        directory.append(
            AttemptRecord(
                attempt.block,
                attempt.attempt,
                prints,
                attempt.planned_sets,
                settings.trials,
                settings.order,
                settings.order_seed,
                utc_now(),
            )
        )
    else:
        text = f"{attempt.block}: attempt {attempt.attempt} goes on with {len(attempt.sets)} missing sets"
        directory.append(NoteRecord("resumed", text, utc_now()))
    given_up: set[str] = set()
    for number, one in enumerate(attempt.sets):
        # A session that was killed leaves a folder and no record, so the disk is asked as well as the journal.
        take = max(one.take, directory.next_take(prints, attempt.attempt, one.set_index))
        done = _run_set(job, directory, attempt, replace(one, take=take), given_up, listen)
        directory.append(SetRecord(attempt.block, attempt.attempt, one.set_index, take, done, utc_now()))
        left = len(attempt.sets) - number - 1
        for cell in sorted(set(done) & given_up):
            listen(CellGivenUp(cell, left))


def _run_set(
    job: Job, directory: RunDirectory, attempt: PlannedAttempt, one: PlannedSet, given_up: set[str], listen: Listener
) -> dict[str, str]:
    """Runs one session of each cell; adds cells that failed to ``given_up``. Returns fingerprints by cell run."""
    done: dict[str, str] = {}
    for order, cell in enumerate(one.cells):
        if cell.id in given_up:
            continue
        place = Place(
            cell.id,
            job.survey.fates[cell.id].fingerprint,
            attempt.block,
            attempt.attempt,
            one.set_index,
            one.take,
            order,
        )
        status = _run_one(job, directory, cell, place, attempt.planned_sets, listen)
        done[cell.id] = place.fingerprint
        if status is not Status.OK:
            given_up.add(cell.id)
    return done


def _run_one(
    job: Job, directory: RunDirectory, cell: Cell, place: Place, planned_sets: int, listen: Listener
) -> Status:
    settings = job.matrix.run
    trials = session_trials(load_prompts(cell.workload.prompts), cell, settings, place.set_index)
    folder = directory.session_folder(cell.id, place.fingerprint, place.attempt, place.set_index, place.take)
    relative = folder.relative_to(directory.path).as_posix()
    listen(SessionStarted(cell.id, place.set_index, planned_sets, len(trials)))
    plan = SessionPlan(cell, place, trials, folder, relative, settings)
    result = run_session(plan, job.adapters[cell.engine.adapter], listen)
    for record in result.trials:
        directory.append(record)
    directory.append(result.session)
    listen(SessionDone(cell.id, result.session.status, result.session.reason, result.duration_s))
    return result.session.status


def _write_matrix(job: Job, directory: RunDirectory, index: Index) -> None:
    record = matrix_record(job.matrix, job.expansion, job.survey)
    known = index.matrix
    if known is None or _comparable(known) != _comparable(record):
        directory.append(record)


def _comparable(record: MatrixRecord) -> tuple[object, ...]:
    return record.text, record.cells, dict(record.engines), dict(record.claims), dict(record.run_settings)


def matrix_record(matrix: Matrix, expansion: Expansion, survey: Survey) -> MatrixRecord:
    """The matrix as resolved on this machine, so that a report needs neither the file nor the engines."""
    cells = []
    for block in expansion.blocks:
        for cell in block.members:
            fate = survey.fates[cell.id]
            cells.append(
                {
                    "id": cell.id,
                    "fingerprint": fate.fingerprint,
                    "block": block.id,
                    "role": cell.role.value,
                    "baseline": block.baseline.id,
                    "settings": _plain(cell.settings()),
                }
            )
    run = matrix.run
    settings = {
        "matrix": matrix.name,
        "preset": run.preset,
        "sessions": run.sessions,
        "trials": run.trials,
        "warmup": run.warmup,
        "order": run.order,
        "order_seed": run.order_seed,
        "cache": run.cache,
        "twin": run.twin,
        "silence_timeout_s": run.silence_timeout_s,
        "total_timeout_s": run.total_timeout_s,
        "environment": matrix.host.environment,
        "reserve": [{"name": item.name, "bytes": item.bytes} for item in matrix.host.reserve],
        "language": matrix.language,
        "unpinned": list(survey.unpinned),
        "pins": {name: dict(found.config.pin) for name, found in survey.engines.items()},
        "mismatches": {name: found.mismatch for name, found in survey.engines.items() if found.mismatch},
        "not_formed": [list(item) for item in expansion.not_formed],
        "demo_models": sorted({model for model, files in matrix.models.items() if "demo:" in repr(files)}),
    }
    return MatrixRecord(
        matrix.text,
        tuple(cells),
        {name: found.identity for name, found in survey.engines.items()},
        {cell_id: fate.claim for cell_id, fate in survey.fates.items()},
        settings,
        utc_now(),
    )


def _plain(value: object) -> object:
    """The value with enums and tuples as JSON has them, so that a record equals itself after a round trip."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.value if hasattr(value, "value") else value


def _write_refusals(job: Job, directory: RunDirectory, index: Index) -> None:
    for fate in job.survey.fates.values():
        refusal = fate.refusal
        if refusal is None:
            continue
        state = index.cells.get(fate.cell.id)
        known = (state.status, state.reason, state.fingerprint) if state is not None else None
        if known != (refusal.status, refusal.reason, fate.fingerprint):
            directory.append(
                CellRecord(fate.cell.id, fate.fingerprint, refusal.status, refusal.reason, refusal.remedy, utc_now())
            )
