"""Memory through a whole run on the scripted engine: the refusal, what each trial says, and the untimed memory trial."""

from __future__ import annotations

from dataclasses import replace

from scripted_adapter import ScriptedAdapter
from scripted_job import BASE, DRAFT, NGRAM, SETTINGS, make_job, make_run, matrix_cells

from orchestrator.host.fit import Budget
from orchestrator.matrix.types import CheckSettings
from orchestrator.runner.execute import execute
from orchestrator.runner.survey import survey_cells, survey_engines
from orchestrator.schema.cell import MethodKind
from orchestrator.schema.fit import MemoryNeed, MemoryPart, Unmapped
from orchestrator.schema.record import AttemptRecord, MatrixRecord, MemoryRecord, SessionRecord, TrialRecord
from orchestrator.schema.status import Status
from orchestrator.store.index import Index


class Foreseeing(ScriptedAdapter):
    """The scripted engine, of which a draft needs more than there is."""

    def __init__(self):
        super().__init__()
        self.unmapped_cells = []

    def memory(self, cell):
        size = 10**12 if cell.method.kind is MethodKind.DRAFT else 1000
        return MemoryNeed((MemoryPart("weights", size, "the test"),))

    def unmapped(self, cell):
        self.unmapped_cells.append(cell.id)
        return Unmapped(cell, "read, not mapped")


def test_a_cell_that_cannot_fit_is_unsupported_unless_forced(tmp_path):
    adapter = Foreseeing()
    cells = matrix_cells(tmp_path)
    engines = survey_engines([cells[0].engine], {"scripted": adapter}, tmp_path)
    room = Budget(10**11, 0, 0)
    fates = survey_cells(cells, engines, {"scripted": adapter}, SETTINGS, tmp_path, room)
    assert {name: fate.refusal.status if fate.refusal else None for name, fate in fates.items()} == {
        BASE: None, DRAFT: Status.UNSUPPORTED, NGRAM: None, BASE + "~twin": None,
    }  # fmt: skip
    assert fates[DRAFT].refusal.reason.startswith("memory: needs 1000 GB (weights 1000 GB); at most 100 GB of 100 GB")
    forced = survey_cells(cells, engines, {"scripted": adapter}, replace(SETTINGS, force_fit=True), tmp_path, room)
    assert forced[DRAFT].refusal is None
    assert forced[DRAFT].fit.verdict.value == "does not fit"


def test_a_run_records_memory_of_trials_sessions_the_matrix_and_the_memory_trial(tmp_path):
    adapter = Foreseeing()
    settings = replace(SETTINGS, sessions=1, trials=1, warmup=0, twin=False)
    job = make_job(adapter, tmp_path, settings=settings, without=(NGRAM,))
    job = replace(
        job,
        matrix=replace(job.matrix, checks=CheckSettings(True, memory_trial=True)),
        survey=replace(job.survey, host={"budget": None, "largest_others": [{"name": "x", "rss_bytes": 1}]}),
    )
    directory = make_run(tmp_path)
    assert execute(job, directory, lambda _event: None) is False
    records = list(directory.records())
    matrix = next(record for record in records if isinstance(record, MatrixRecord))
    assert {row["id"]: row["memory"]["total_bytes"] for row in matrix.cells} == {BASE: 1000, DRAFT: 10**12}
    assert matrix.host["largest_others"] == [{"name": "x", "rss_bytes": 1}]
    trials = [record for record in records if isinstance(record, TrialRecord)]
    for trial in trials:
        told = [item.metric for item in trial.observations]
        assert told.count("memory_pressure") == told.count("memory_stall") == told.count("trial_swap_delta") == 1
    sessions = [record for record in records if isinstance(record, SessionRecord)]
    assert len(trials) == len(sessions) == 2
    assert all(set(session.host) == {"start", "end"} for session in sessions)
    memory = [record for record in records if isinstance(record, MemoryRecord)]
    assert [(record.cell, record.basis, record.status) for record in memory] == [
        (BASE, "read, not mapped", Status.OK),
        (DRAFT, "read, not mapped", Status.OK),
    ]
    assert all("peak_unified" in {item.metric for item in record.observations} for record in memory)
    assert all((directory.path / record.folder / "launch.json").is_file() for record in memory)
    assert set(Index.build(records).memory) == {BASE, DRAFT}
    execute(job, directory, lambda _event: None)
    assert sum(isinstance(record, MemoryRecord) for record in directory.records()) == 2


def test_a_workloads_own_trials_stand_in_the_attempt_and_leave_the_memory_trial_one_request(tmp_path):
    asked = []

    class Asked(Foreseeing):
        def trial_steps(self, cell, trial):
            asked.append((cell.id, trial.phase))
            return super().trial_steps(cell, trial)

    settings = replace(SETTINGS, sessions=1, trials=1, warmup=0, twin=False)
    job = make_job(Asked(), tmp_path, settings=settings, without=(NGRAM,), own_trials=2)
    job = replace(
        job,
        matrix=replace(job.matrix, checks=CheckSettings(False, memory_trial=True)),
        survey=replace(job.survey, host={"budget": None, "largest_others": []}),
    )
    directory = make_run(tmp_path)
    assert execute(job, directory, lambda _event: None) is False
    records = list(directory.records())
    timed = [record for record in records if isinstance(record, TrialRecord)]
    assert [record.trials_per_session for record in records if isinstance(record, AttemptRecord)] == [2]
    assert len(timed) == 2 * 2
    assert len(asked) == len(timed) + sum(isinstance(record, MemoryRecord) for record in records) == 6
