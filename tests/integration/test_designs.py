"""Blocked order with its canary, the adaptive stop and the confirmed winner, on an engine that keeps exact times."""

from __future__ import annotations

import dataclasses

import pytest
from scripted_adapter import ScriptedAdapter
from scripted_job import BASE, DRAFT, NGRAM, SETTINGS, TWIN, make_job, make_run

from orchestrator.matrix.types import Adaptive
from orchestrator.report.analysis.analyse import analyse
from orchestrator.report.analysis.findings import Advice
from orchestrator.runner.events import PreciseEnough, QueueGrew, RunStarted, SessionDone
from orchestrator.runner.execute import execute
from orchestrator.schema.record import AttemptRecord, CellRecord, Phase, SessionRecord, SetRecord, TrialRecord
from orchestrator.schema.result import Outcome
from orchestrator.schema.status import Status
from orchestrator.stats.stability import FlagKind
from orchestrator.store.index import Index
from orchestrator.store.outcome import exit_code, select_failed

BLOCKED = dataclasses.replace(SETTINGS, order="blocked_with_canary", trials=1)
ADAPTIVE = dataclasses.replace(SETTINGS, sessions=4, trials=1, twin=False, adaptive=Adaptive(0.02, 8))
CONFIRM = dataclasses.replace(SETTINGS, sessions=3, trials=1, confirm_winner=True)
JITTER = (0.0, 0.004, -0.003, 0.002, 0.001, -0.002, 0.003, -0.001)
"""Relative changes of a process's pace, so that sessions differ as they do on a machine."""


@pytest.fixture
def adapter():
    return ScriptedAdapter()


@pytest.fixture
def directory(tmp_path):
    return make_run(tmp_path)


def run(adapter, folder, directory, **how):
    events = []
    execute(make_job(adapter, folder, **how), directory, events.append)
    return Index.build(directory.records()), events


def sessions_of(directory):
    return [r.place.cell for r in directory.records() if isinstance(r, SessionRecord)]


def paced(**factors):
    """A pace by cell: a factor on 10 ms, and the jitter of the how-manieth launch."""
    names = {BASE: "base", TWIN: "twin", DRAFT: "draft", NGRAM: "ngram"}
    return lambda cell, number: (
        0.01 * factors.get(names[cell], 1.0) * (1 + JITTER[(number + 3 * len(cell)) % len(JITTER)])
    )


def test_blocked_order_runs_each_cell_in_a_row_and_the_baselines_twin_last(adapter, directory, tmp_path):
    index, events = run(adapter, tmp_path, directory, settings=BLOCKED)
    expected = [cell for cell in (BASE, DRAFT, NGRAM, TWIN) for _ in range(2)]
    assert sessions_of(directory) == expected
    assert list(events[0].queue) == expected
    assert isinstance(events[0], RunStarted)
    assert [(r.set_index, sorted(r.cells)) for r in directory.records() if isinstance(r, SetRecord)] == [
        (number, sorted((BASE, DRAFT, NGRAM, TWIN))) for number in (0, 1)
    ]
    assert {state.status for state in index.cells.values()} == {Status.OK}
    adapter.launched.clear()
    run(adapter, tmp_path, directory, settings=BLOCKED)
    assert adapter.launched == []


def test_a_baseline_that_moved_confounds_its_cells_until_they_are_measured_again(adapter, directory, tmp_path):
    adapter.pace = paced(twin=1.05)
    index, _ = run(adapter, tmp_path, directory, settings=BLOCKED)
    assert {name: state.status for name, state in index.cells.items()} == {
        BASE: Status.OK, TWIN: Status.OK, DRAFT: Status.CONFOUNDED, NGRAM: Status.CONFOUNDED,
    }  # fmt: skip
    assert "1.05× of its first value" in index.cells[DRAFT].reason
    assert index.cells[DRAFT].remedy
    assert exit_code(index.cells, (), False) == 0
    assert exit_code(index.cells, (DRAFT,), False) == 1
    assert select_failed(index.cells) == (DRAFT, NGRAM)
    found = analyse(index, directory.header)
    rows = found.by_id(DRAFT).comparisons
    assert {row.outcome for row in rows.values()} == {Outcome.NOT_COMPARABLE}
    assert "1.05× of its first value" in rows["e2e_latency"].reason
    assert found.by_id(DRAFT).summaries["e2e_latency"].n == 2

    adapter.pace = paced(twin=1.01)
    index, _ = run(adapter, tmp_path, directory, settings=BLOCKED, selected=[DRAFT], again=True)
    assert index.cells[DRAFT].status is Status.OK
    assert index.cells[NGRAM].status is Status.CONFOUNDED
    row = analyse(index, directory.header).by_id(DRAFT).comparisons["e2e_latency"]
    assert row.ratio is not None


def test_the_report_finds_a_moved_baseline_by_itself_and_for_each_metric(adapter, directory, tmp_path):
    adapter.pace = paced(twin=1.05)
    run(adapter, tmp_path, directory, settings=BLOCKED)
    kept = [r for r in directory.records() if not isinstance(r, CellRecord)]
    found = analyse(Index.build(kept), directory.header)
    rows = found.by_id(DRAFT).comparisons
    assert rows["e2e_latency"].outcome is Outcome.NOT_COMPARABLE
    assert rows["e2e_latency"].reason.startswith("confounded: the baseline measured 1.05×")
    assert rows["peak_unified"].outcome is not Outcome.NOT_COMPARABLE


def test_a_canary_that_failed_confounds_too(adapter, directory, tmp_path):
    adapter.faults = {TWIN: "crash"}
    index, _ = run(adapter, tmp_path, directory, settings=BLOCKED)
    assert index.cells[TWIN].status is Status.FAILED
    assert index.cells[DRAFT].status is Status.CONFOUNDED
    assert "the canary says nothing" in index.cells[DRAFT].reason


def test_an_interrupted_blocked_attempt_starts_anew_as_a_whole(adapter, directory, tmp_path):
    left = [5]

    def interrupt(event):
        if isinstance(event, SessionDone):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

    assert execute(make_job(adapter, tmp_path, settings=BLOCKED), directory, interrupt) is True
    index = Index.build(directory.records())
    assert index.cells[DRAFT].status is Status.ABORTED
    index, _ = run(adapter, tmp_path, directory, settings=BLOCKED)
    assert len(sessions_of(directory)) == 5 + 8
    assert {state.status for state in index.cells.values()} == {Status.OK}
    assert {s.place.take for state in index.cells.values() for s in state.sessions} == {1}


def test_an_adaptive_attempt_stops_when_it_is_precise_enough_and_is_complete(adapter, directory, tmp_path):
    adapter.pace = paced(draft=0.8)
    index, events = run(adapter, tmp_path, directory, settings=ADAPTIVE, without=[NGRAM])
    begun, stopped = [r for r in directory.records() if isinstance(r, AttemptRecord)]
    assert (begun.planned_sets, begun.max_sets, begun.stopped) == (8, 8, "")
    assert (stopped.planned_sets, stopped.max_sets) == (4, 8)
    assert stopped.stopped.startswith("widest interval ±")
    assert [(event.sets_spared, set(event.cells)) for event in events if isinstance(event, PreciseEnough)] == [
        (4, {BASE, DRAFT})
    ]
    assert {state.status for state in index.cells.values()} == {Status.OK}
    assert (index.cells[DRAFT].sets_done, index.cells[DRAFT].sets_planned) == (4, 4)
    assert index.attempts[index.cells[DRAFT].block][0].stopped == stopped.stopped
    adapter.launched.clear()
    before = list(directory.records())
    run(adapter, tmp_path, directory, settings=ADAPTIVE, without=[NGRAM])
    assert adapter.launched == []
    assert list(directory.records()) == before


def test_an_adaptive_attempt_that_stays_noisy_goes_on_in_pairs_of_sets_to_its_limit(adapter, directory, tmp_path):
    wild = (0.0, 0.2, -0.1, 0.3, -0.2, 0.1)
    adapter.pace = lambda cell, number: 0.01 * (1 + (wild[number % 6] if cell == DRAFT else 0))
    settings = dataclasses.replace(ADAPTIVE, adaptive=Adaptive(0.02, 6))
    index, events = run(adapter, tmp_path, directory, settings=settings, without=[NGRAM])
    assert adapter.launched.count(DRAFT) == 6
    assert not [event for event in events if isinstance(event, PreciseEnough)]
    assert index.cells[DRAFT].status is Status.OK
    assert len([r for r in directory.records() if isinstance(r, AttemptRecord)]) == 1


def test_a_run_killed_before_it_wrote_that_it_may_stop_asks_again(adapter, directory, tmp_path):
    adapter.pace = paced(draft=0.8)
    left = [8]

    def interrupt(event):
        assert not isinstance(event, PreciseEnough)
        if isinstance(event, SessionDone):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt

    wide = dataclasses.replace(ADAPTIVE, adaptive=Adaptive(0.0001, 8))
    assert execute(make_job(adapter, tmp_path, settings=wide, without=[NGRAM]), directory, interrupt) is True
    assert len([r for r in directory.records() if isinstance(r, SetRecord)]) == 4
    adapter.launched.clear()
    # The same attempt under a limit that its four sets keep; only the fingerprint is held fixed for the test.
    job = make_job(adapter, tmp_path, settings=wide, without=[NGRAM])
    job = dataclasses.replace(job, matrix=dataclasses.replace(job.matrix, run=ADAPTIVE))
    execute(job, directory, lambda _: None)
    index = Index.build(directory.records())
    assert adapter.launched == []
    assert index.cells[DRAFT].status is Status.OK
    assert (index.cells[DRAFT].sets_done, index.cells[DRAFT].sets_planned) == (4, 4)


def test_the_best_of_several_faster_cells_is_measured_anew_and_only_then_called_best(adapter, directory, tmp_path):
    adapter.pace = paced(draft=2.0, ngram=2.2)
    settings = dataclasses.replace(CONFIRM, confirm_winner=False)
    index, _ = run(adapter, tmp_path, directory, settings=settings)
    found = analyse(index, directory.header)
    waits = {cell: found.by_id(cell).comparisons["e2e_latency"] for cell in (DRAFT, NGRAM)}
    assert {row.outcome for row in waits.values()} == {Outcome.LOWER}
    advice = found.recommendations[0].by_sampling[0]
    assert (advice.advice, advice.best.id, advice.confirmed) == (Advice.ON, DRAFT, False)

    adapter.launched.clear()
    index, events = run(adapter, tmp_path, directory, settings=CONFIRM)
    grown = [event for event in events if isinstance(event, QueueGrew)]
    assert [sorted(set(event.queue)) for event in grown] == [sorted((BASE, DRAFT, TWIN))]
    assert sorted(adapter.launched) == sorted([BASE, DRAFT, TWIN] * 3)
    assert [r.purpose for r in directory.records() if isinstance(r, AttemptRecord)] == ["", "confirm"]
    assert {name: state.attempt for name, state in index.cells.items()} == {BASE: 2, DRAFT: 2, NGRAM: 1, TWIN: 2}
    advice = analyse(index, directory.header).recommendations[0].by_sampling[0]
    assert (advice.best.id, advice.confirmed) == (DRAFT, True)

    adapter.launched.clear()
    run(adapter, tmp_path, directory, settings=CONFIRM)
    assert adapter.launched == []


def test_one_faster_cell_needs_no_confirmation(adapter, directory, tmp_path):
    adapter.pace = paced(draft=2.0, ngram=4.5)
    index, events = run(adapter, tmp_path, directory, settings=CONFIRM)
    assert not [event for event in events if isinstance(event, QueueGrew)]
    advice = analyse(index, directory.header).recommendations[0].by_sampling[0]
    assert (advice.best.id, advice.confirmed) == (DRAFT, None)


TURNING = dataclasses.replace(SETTINGS, sessions=4, trials=3)


def prompts_by_set(directory, cell):
    found = {}
    for record in directory.records():
        if isinstance(record, TrialRecord) and record.place.cell == cell and record.phase is Phase.MEASURED:
            found.setdefault(record.place.set_index, []).append(record.prompt_id)
    return found


def test_each_set_begins_with_another_prompt_in_all_arms_alike(adapter, directory, tmp_path):
    run(adapter, tmp_path, directory, settings=TURNING)
    orders = prompts_by_set(directory, BASE)
    first, second, third = orders[0]
    assert orders == {0: [first, second, third], 1: [second, third, first], 2: [third, first, second], 3: orders[0]}
    assert all(prompts_by_set(directory, cell) == orders for cell in (DRAFT, NGRAM, TWIN))


def test_a_drafter_with_a_memory_keeps_its_block_in_one_order(adapter, directory, tmp_path):
    adapter.remembers = NGRAM
    run(adapter, tmp_path, directory, settings=TURNING)
    for cell in (BASE, DRAFT, NGRAM, TWIN):
        orders = prompts_by_set(directory, cell)
        assert list(orders.values()) == [orders[0]] * 4


def test_a_first_answer_that_is_slow_in_every_process_is_flagged(adapter, directory, tmp_path):
    adapter.pace, adapter.slow = paced(), (1, 1.4)  # after one warm-up
    index, _ = run(adapter, tmp_path, directory, settings=TURNING)
    kinds = {flag.kind for flag in analyse(index, directory.header).by_id(DRAFT).flags}
    assert FlagKind.SLOW_FIRST in kinds
