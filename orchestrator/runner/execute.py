"""The run itself: attempts, sets, sessions, one after the other, each finished piece appended to the journal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.clock import utc_now
from orchestrator.exactness.coverage import REPLAYS
from orchestrator.process.awake import awake
from orchestrator.runner.events import (
    CellGivenUp,
    PreciseEnough,
    QueueGrew,
    RunStarted,
    Said,
    SessionDone,
    SessionStarted,
)
from orchestrator.runner.framing import frame_of
from orchestrator.runner.memory_trial import memory_trials
from orchestrator.runner.plan import (
    PlannedAttempt,
    PlannedSet,
    instrumented,
    plan_attempts,
    plan_confirmation,
    session_trials,
)
from orchestrator.runner.replay import replay_blocks
from orchestrator.runner.resolved import matrix_record
from orchestrator.runner.session import SessionPlan, run_session
from orchestrator.runner.survey import prompts_digest
from orchestrator.runner.token_texts import record_token_texts
from orchestrator.schema.adapter import keeps_state
from orchestrator.schema.cell import Role
from orchestrator.schema.record import AttemptRecord, CellRecord, MatrixRecord, NoteRecord, Place, SetRecord
from orchestrator.schema.replay import Replayer
from orchestrator.schema.status import Status
from orchestrator.store.index import Index
from orchestrator.store.running import Running, announced, own_pid
from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.matrix.types import Expansion, Matrix, RunSettings
    from orchestrator.runner.events import Listener
    from orchestrator.runner.survey import Survey
    from orchestrator.schema.adapter import Adapter
    from orchestrator.schema.cell import Cell
    from orchestrator.store.directory import RunDirectory


MIN_SETS = 4
"""Complete sets below which no adaptive attempt stops (docs/methodology, and :mod:`orchestrator.stats.stopping`)."""


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
    with directory.lock(), awake():
        index = Index.build(directory.records())
        _write_matrix(job, directory, index)
        _write_refusals(job, directory, index)
        index = Index.build(directory.records())
        attempts = plan_attempts(
            job.expansion.blocks, job.survey.fates, index, job.matrix.run, selected=job.selected, again=job.again
        )
        refused = sum(fate.refusal is not None for fate in job.survey.fates.values())
        queue = tuple(cell.id for attempt in attempts for _, cell in attempt.sequence)
        listen(RunStarted(queue, refused))
        try:
            for attempt in attempts:
                _run_attempt(job, directory, attempt, listen)
            if job.matrix.run.confirm_winner and not job.again:
                _confirm_winners(job, directory, listen)
            replay_blocks(job, directory, listen)
            if job.matrix.checks.greedy_identity:
                record_token_texts(job, directory)
            if job.expansion.checks:
                from orchestrator.runner.check_run import run_checks  # noqa: PLC0415  (loads SciPy)

                run_checks(job, directory, listen)
            if job.matrix.checks.memory_trial:
                memory_trials(job, directory, listen)
        except KeyboardInterrupt:
            directory.append(NoteRecord("interrupted", "stopped by the user; the running set starts anew", utc_now()))
            return True
    return False


def _run_attempt(job: Job, directory: RunDirectory, attempt: PlannedAttempt, listen: Listener) -> None:
    prints = {cell.id: job.survey.fates[cell.id].fingerprint for cell in attempt.cells}
    settings = job.matrix.run
    if attempt.is_new:
        directory.append(_attempt_record(attempt, prints, settings))
    else:
        text = f"{attempt.block}: attempt {attempt.attempt} goes on with {len(attempt.sets)} missing sets"
        directory.append(NoteRecord("resumed", text, utc_now()))
    if attempt.blocked:
        _run_blocked(job, directory, attempt, prints, listen)
    else:
        _run_interleaved(job, directory, attempt, prints, listen)


def _attempt_record(
    attempt: PlannedAttempt, prints: Mapping[str, str], settings: RunSettings, *, sets: int | None = None, why: str = ""
) -> AttemptRecord:
    """The attempt as it begins; with ``sets`` and ``why`` as it ends when fewer were enough."""
    return AttemptRecord(
        attempt.block,
        attempt.attempt,
        prints,
        attempt.planned_sets if sets is None else sets,
        attempt.cells[0].workload.trials or settings.trials,  # a block is of one workload
        settings.order,
        settings.order_seed,
        utc_now(),
        max_sets=settings.adaptive.max_sessions if settings.adaptive is not None else None,
        stopped=why,
        purpose=attempt.purpose,
    )


def _run_interleaved(
    job: Job, directory: RunDirectory, attempt: PlannedAttempt, prints: Mapping[str, str], listen: Listener
) -> None:
    given_up: set[str] = set()
    for number, one in enumerate(attempt.sets):
        # Asked before a set rather than after one, so that a run that was killed in between asks it too.
        if _enough(job, directory, attempt, prints, number, listen):
            return
        # A session that was killed leaves a folder and no record, so the disk is asked as well as the journal.
        take = max(one.take, directory.next_take(prints, attempt.attempt, one.set_index))
        done = _run_set(job, directory, attempt, replace(one, take=take), given_up, listen)
        directory.append(SetRecord(attempt.block, attempt.attempt, one.set_index, take, done, utc_now()))
        left = len(attempt.sets) - number - 1
        for cell in sorted(set(done) & given_up):
            listen(CellGivenUp(cell, left))


def _enough(
    job: Job,
    directory: RunDirectory,
    attempt: PlannedAttempt,
    prints: Mapping[str, str],
    number: int,
    listen: Listener,
) -> bool:
    """Whether an adaptive attempt stops before its set ``number`` of those planned; written down when it does."""
    settings, done = job.matrix.run, attempt.sets[number].set_index
    whole_design = settings.order != "abba" or done % 2 == 0  # a set without its mirror image would lean one way
    if settings.adaptive is None or done < max(settings.sessions, MIN_SETS) or not whole_design:
        return False
    from orchestrator.runner.precision import precise_enough  # noqa: PLC0415  (loads SciPy, which most runs do not need)

    index = Index.build(directory.records())
    stop, why = precise_enough(index, attempt.block, attempt.attempt, settings.adaptive)
    if stop:
        purpose = next(one.purpose for one in index.attempts[attempt.block] if one.attempt == attempt.attempt)
        directory.append(_attempt_record(replace(attempt, purpose=purpose), prints, settings, sets=done, why=why))
        cells = tuple(cell.id for cell in attempt.cells)
        listen(PreciseEnough(attempt.block, cells, len(attempt.sets) - number, why))
    return stop


def _run_blocked(
    job: Job, directory: RunDirectory, attempt: PlannedAttempt, prints: Mapping[str, str], listen: Listener
) -> None:
    """All sessions of each cell in a row, the baseline first and its twin last; the sets are complete at the end.

    Interrupted, the whole attempt starts anew: a pause within it would part cells from their baseline.
    """
    takes = {
        one.set_index: max(one.take, directory.next_take(prints, attempt.attempt, one.set_index))
        for one in attempt.sets
    }
    done: dict[int, dict[str, str]] = {one.set_index: {} for one in attempt.sets}
    for order, cell in enumerate(attempt.cells):
        mine = [one for one in attempt.sets if cell in one.cells]
        for number, one in enumerate(mine):
            index, print_ = one.set_index, prints[cell.id]
            place = Place(cell.id, print_, attempt.block, attempt.attempt, index, takes[index], order)
            status = _run_one(job, directory, cell, place, attempt, listen)
            done[index][cell.id] = print_
            if status is not Status.OK:
                listen(CellGivenUp(cell.id, len(mine) - number - 1))
                break
    for one in attempt.sets:
        index = one.set_index
        directory.append(SetRecord(attempt.block, attempt.attempt, index, takes[index], done[index], utc_now()))
    _judge_canary(directory, attempt, prints, listen)


def _judge_canary(
    directory: RunDirectory, attempt: PlannedAttempt, prints: Mapping[str, str], listen: Listener
) -> None:
    """Marks the cells of a blocked attempt as confounded when the baseline did not stay what it was."""
    from orchestrator.runner.precision import steady_baseline  # noqa: PLC0415  (loads SciPy)

    index = Index.build(directory.records())
    steady, why = steady_baseline(index, attempt.block, attempt.attempt)
    if steady:
        return
    listen(Said(f"  {attempt.block}: confounded: {why}"))
    for cell in attempt.cells:
        state = index.cells[cell.id]
        if state.role is Role.SPECULATIVE and state.status is Status.OK:
            remedy = "measure again when the machine is quiet and cool, or choose order abba"
            directory.append(CellRecord(cell.id, prints[cell.id], Status.CONFOUNDED, why, remedy, utc_now()))


def _confirm_winners(job: Job, directory: RunDirectory, listen: Listener) -> None:
    """Where several cells of a block are faster, measures the best anew: the best of several is partly luck."""
    from orchestrator.runner.precision import winner_to_confirm  # noqa: PLC0415  (loads SciPy)

    index = Index.build(directory.records())
    for block in job.expansion.blocks:
        winner = winner_to_confirm(index, block.id) if job.selected & {cell.id for cell in block.cells} else None
        attempt = plan_confirmation(block, winner, index, job.matrix.run) if winner is not None else None
        if attempt is not None:
            queue = tuple(cell.id for _, cell in attempt.sequence)
            listen(QueueGrew(queue, f"{winner} is the best of several faster cells and is measured anew"))
            _run_attempt(job, directory, attempt, listen)


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
        status = _run_one(job, directory, cell, place, attempt, listen)
        done[cell.id] = place.fingerprint
        if status is not Status.OK:
            given_up.add(cell.id)
    return done


def _run_one(
    job: Job, directory: RunDirectory, cell: Cell, place: Place, attempt: PlannedAttempt, listen: Listener
) -> Status:
    settings = job.matrix.run
    adapter = job.adapters[cell.engine.adapter]
    surveyed = job.survey.fates[cell.id].facts.get("prompts")
    if surveyed is not None and surveyed != prompts_digest(cell, adapter):
        raise WorkloadError(f"the prompts of workload {cell.workload.name} changed while the run went on: run it again")
    prompts, phases = load_prompts(*cell.workload.source), instrumented(adapter, cell, settings)
    # All arms of a block in one order; one fixed order where a drafter's memory makes the counts depend on it.
    turn = not any(keeps_state(job.adapters[one.engine.adapter], one) for one in attempt.cells)
    frame = frame_of(cell, adapter)
    trials = session_trials(prompts, cell, settings, place.set_index, phases=phases, turn=turn, frame=frame)
    folder = directory.session_folder(cell.id, place.fingerprint, place.attempt, place.set_index, place.take)
    relative = folder.relative_to(directory.path).as_posix()
    listen(SessionStarted(cell.id, place.set_index, attempt.planned_sets, len(trials)))
    plan = SessionPlan(cell, place, trials, folder, relative, settings)
    now = Running(
        own_pid(), cell.id, place.attempt, place.set_index, attempt.planned_sets, len(trials), utc_now()
    )  # fmt: skip
    with announced(directory.path, now):
        result = run_session(plan, adapter, listen)
    for record in result.trials:
        directory.append(record)
    directory.append(result.session)
    listen(SessionDone(cell.id, result.session.status, result.session.reason, result.duration_s))
    return result.session.status


def _write_matrix(job: Job, directory: RunDirectory, index: Index) -> None:
    record = matrix_record(job.matrix, job.expansion, job.survey)
    able = sorted({c.engine.name for c in job.expansion.cells if isinstance(job.adapters[c.engine.adapter], Replayer)})
    adapters = {name: _adapter_facts(job.adapters[one.adapter]) for name, one in job.matrix.engines.items()}
    record = replace(record, run_settings={**record.run_settings, REPLAYS: able}, adapters=adapters)
    known = index.matrix
    if known is None or _comparable(known) != _comparable(record):
        directory.append(record)


def _adapter_facts(adapter: Adapter) -> dict[str, str]:
    """What a report says of an adapter, which it must not import."""
    return {
        "adapter": adapter.name,
        "title": adapter.title,
        "shape": adapter.shape.value,
        "verified": adapter.verified.value,
    }


def _comparable(record: MatrixRecord) -> tuple[object, ...]:
    return (
        record.text, record.cells, record.checks, dict(record.engines), dict(record.claims), dict(record.run_settings)
    )  # fmt: skip


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
