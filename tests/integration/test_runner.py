"""The runner on an engine that fails on demand: each fault its own status, the others run on, nothing is lost."""

from __future__ import annotations

import dataclasses

import pytest
from liveness import is_dead
from scripted_adapter import ScriptedAdapter
from scripted_job import BASE, DRAFT, NGRAM, SETTINGS, TWIN, make_job, make_run

from orchestrator.process.ladder import DEFAULT_LADDER
from orchestrator.process.spawn import EngineProcess
from orchestrator.runner.events import SessionDone, TrialDone
from orchestrator.runner.execute import execute
from orchestrator.schema.record import Engagement, Phase, SessionRecord, SetRecord, TrialRecord
from orchestrator.schema.status import Status
from orchestrator.store.index import Index
from orchestrator.store.outcome import exit_code, select_failed


def run(adapter, folder, directory, **how):
    events = []
    interrupted = execute(make_job(adapter, folder, **how), directory, events.append)
    return Index.build(directory.records()), events, interrupted


@pytest.fixture
def adapter():
    return ScriptedAdapter()


@pytest.fixture
def directory(tmp_path):
    return make_run(tmp_path)


def statuses(index):
    return {name: state.status for name, state in index.cells.items()}


def test_a_whole_run_interleaves_keeps_warm_ups_and_pools_complete_sets(adapter, directory, tmp_path):
    index, _, interrupted = run(adapter, tmp_path, directory)
    assert not interrupted
    assert statuses(index) == dict.fromkeys((BASE, DRAFT, NGRAM, TWIN), Status.OK)
    order = [r.place.cell for r in directory.records() if isinstance(r, SessionRecord)]
    assert order == [BASE, DRAFT, NGRAM, TWIN, TWIN, NGRAM, DRAFT, BASE]
    trials = [r for r in directory.records() if isinstance(r, TrialRecord)]
    assert len(trials) == 8 * 3
    assert sum(trial.phase is Phase.WARMUP for trial in trials) == 8
    for session in {(t.place.set_index, t.place.cell) for t in trials}:
        prompts = [t.prompt_id for t in trials if (t.place.set_index, t.place.cell) == session]
        assert len(prompts) == len(set(prompts))
    seeds = {(t.place.set_index, t.prompt_id): set() for t in trials}
    for trial in trials:
        seeds[trial.place.set_index, trial.prompt_id].add(trial.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({found.copy().pop() for found in seeds.values()}) == len(seeds)
    assert index.cells[DRAFT].engagement is Engagement.ENGAGED
    assert index.cells[BASE].engagement is Engagement.OFF


def test_a_second_run_measures_nothing(adapter, directory, tmp_path):
    run(adapter, tmp_path, directory)
    before = list(directory.records())
    adapter.launched.clear()
    run(adapter, tmp_path, directory)
    assert adapter.launched == []
    assert list(directory.records()) == before


FAULTS = {
    "crash": Status.FAILED,
    "hang": Status.TIMEOUT,
    "garbage": Status.FAILED,
    "unreadable": Status.UNPARSED,
    "error": Status.FAILED,
    "exit_at_start": Status.FAILED,
    "refused": Status.UNSUPPORTED,
    "drafter_off": Status.NOT_ENGAGED,
    "cached": Status.CONTAMINATED,
}


@pytest.mark.parametrize(("fault", "status"), FAULTS.items())
def test_each_fault_has_its_status_and_the_others_run_on(adapter, directory, tmp_path, fault, status):
    adapter.faults = {DRAFT: fault}
    index, _, _ = run(adapter, tmp_path, directory)
    found = statuses(index)
    assert found.pop(DRAFT) is status
    assert found == dict.fromkeys((BASE, NGRAM, TWIN), Status.OK)
    assert index.cells[DRAFT].reason
    assert adapter.launched.count(DRAFT) == 1  # given up after its first session
    assert exit_code(index.cells, (), False) == (0 if status is Status.UNSUPPORTED else 1)


def test_an_ngram_drafter_that_found_nothing_is_a_result(adapter, directory, tmp_path):
    adapter.faults = {NGRAM: "drafter_off"}
    index, _, _ = run(adapter, tmp_path, directory)
    assert index.cells[NGRAM].status is Status.OK
    assert index.cells[NGRAM].engagement is Engagement.IDLE


def test_anything_drafted_in_a_baseline_is_a_failure(adapter, directory, tmp_path):
    adapter.faults = {BASE: "drafts_in_baseline"}
    index, _, _ = run(adapter, tmp_path, directory)
    assert index.cells[BASE].status is Status.CONTAMINATED


def test_a_slow_start_is_a_time_out(adapter, directory, tmp_path):
    adapter.faults = {DRAFT: "hang_at_start"}
    settings = dataclasses.replace(SETTINGS, startup_timeout_s=8.0)
    index, _, _ = run(adapter, tmp_path, directory, settings=settings)
    assert index.cells[DRAFT].status is Status.TIMEOUT
    assert "not ready within 8 s" in index.cells[DRAFT].reason


def test_a_child_that_ignores_every_signal_does_not_survive(adapter, directory, tmp_path, monkeypatch):
    monkeypatch.setattr(EngineProcess.stop, "__defaults__", (DEFAULT_LADDER, 0.5))  # every rung is waited for in full
    adapter.faults = {DRAFT: "child"}
    index, _, _ = run(adapter, tmp_path, directory)
    assert index.cells[DRAFT].status is Status.OK
    pids = [int(path.read_text()) for path in directory.path.rglob("child.pid")]
    assert len(pids) == 2
    for pid in pids:
        assert is_dead(pid)


def test_rerun_of_a_repaired_cell_brings_its_baseline_and_leaves_the_others(adapter, directory, tmp_path):
    adapter.faults = {DRAFT: "crash"}
    index, _, _ = run(adapter, tmp_path, directory)
    assert select_failed(index.cells) == (DRAFT,)
    adapter.faults, adapter.launched = {}, []
    index, _, _ = run(adapter, tmp_path, directory, selected=[DRAFT], again=True)
    assert sorted(set(adapter.launched)) == sorted({BASE, DRAFT, TWIN})
    assert statuses(index) == dict.fromkeys((BASE, DRAFT, NGRAM, TWIN), Status.OK)
    assert index.cells[DRAFT].attempt == 2
    assert index.cells[BASE].attempt == 2
    assert index.cells[NGRAM].attempt == 1
    assert exit_code(index.cells, (), False) == 0


class Interrupt:
    """A listener that presses Ctrl-C at the n-th event of a kind."""

    def __init__(self, kind, at):
        self.kind, self.left = kind, at

    def __call__(self, event):
        if isinstance(event, self.kind):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize(("kind", "at"), [(TrialDone, 1), (TrialDone, 5), (SessionDone, 4), (SessionDone, 6)])
def test_an_interrupted_run_goes_on_without_repeating_a_complete_set(adapter, directory, tmp_path, kind, at):
    job = make_job(adapter, tmp_path)
    assert execute(job, directory, Interrupt(kind, at)) is True
    complete = {r.set_index for r in directory.records() if isinstance(r, SetRecord)}
    kept = list(directory.records())
    index, _, interrupted = run(adapter, tmp_path, directory)
    assert not interrupted
    assert list(directory.records())[: len(kept)] == kept
    assert statuses(index) == dict.fromkeys((BASE, DRAFT, NGRAM, TWIN), Status.OK)
    finished = [r.set_index for r in directory.records() if isinstance(r, SetRecord)]
    assert sorted(finished) == [0, 1]
    assert all(index.cells[cell].attempt == 1 for cell in (BASE, DRAFT))
    for number in complete:
        sessions = [r for r in directory.records() if isinstance(r, SessionRecord) and r.place.set_index == number]
        assert len(sessions) == 4
    assert [note.what for note in index.notes][:2] == ["interrupted", "resumed"]


def test_a_wrong_pin_is_unavailable_and_says_both_versions(adapter, directory, tmp_path):
    index, _, _ = run(adapter, tmp_path, directory, pin={"scripted": "2"})
    assert statuses(index) == dict.fromkeys((BASE, DRAFT, NGRAM, TWIN), Status.UNAVAILABLE)
    assert "scripted is 1, pinned 2" in index.cells[DRAFT].reason
    assert adapter.launched == []
    assert exit_code(index.cells, (), False) == 0
    assert exit_code(index.cells, (), True) == 1
    assert exit_code(index.cells, (DRAFT,), False) == 1


def test_a_missing_file_becomes_available_on_the_next_run(adapter, directory, tmp_path):
    run(adapter, tmp_path, directory, without=[NGRAM])
    (tmp_path / "model.bin").rename(tmp_path / "away.bin")
    job = make_job(adapter, tmp_path)
    (tmp_path / "away.bin").rename(tmp_path / "model.bin")
    assert job.survey.fates[NGRAM].refusal is None  # the fixture writes the file when it is missing
    index, _, _ = run(adapter, tmp_path, directory)
    assert index.cells[NGRAM].status is Status.OK


def test_a_changed_model_file_makes_the_old_figures_stale_and_is_measured_anew(adapter, directory, tmp_path):
    before, _, _ = run(adapter, tmp_path, directory)
    (tmp_path / "model.bin").write_bytes(b"other weights")
    index, _, _ = run(adapter, tmp_path, directory)
    facts = before.cells[BASE].facts, index.cells[BASE].facts
    assert {name for name in facts[1] if facts[0][name] != facts[1][name]} == {"file.0"}
    assert {"methodology", "prompts", "run"} <= facts[1].keys()
    assert {state.attempt for state in index.cells.values()} == {2}
    prints = {r.place.fingerprint for r in directory.records() if isinstance(r, TrialRecord) and r.place.cell == BASE}
    assert len(prints) == 2
    assert {t.place.fingerprint for t in index.cells[BASE].trials} == {index.cells[BASE].fingerprint}
