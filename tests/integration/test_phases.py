"""The instrumented repeat: asked for where the matrix and the adapter both can, kept, and never pooled."""

from __future__ import annotations

import dataclasses

import pytest
from scripted_adapter import ScriptedAdapter
from scripted_job import BASE, DRAFT, NGRAM, SETTINGS, make_job, make_run

from orchestrator.report.analysis.measures import arm_of, phase_times, summaries
from orchestrator.runner.execute import execute
from orchestrator.schema.cell import MethodKind
from orchestrator.schema.observation import observed
from orchestrator.schema.record import Phase, TrialRecord
from orchestrator.schema.status import Status
from orchestrator.store.index import Index

PLAIN = dataclasses.replace(SETTINGS, twin=False)
ASKED = dataclasses.replace(PLAIN, phases=True)


class Instrumented(ScriptedAdapter):
    """Can time the parts of a round for method ``draft``; ``broken`` makes it give up in such a request."""

    phase_methods = frozenset({MethodKind.DRAFT})

    def __init__(self, broken=False):
        super().__init__()
        self.broken = broken
        self.instrumented = set()

    def trial_steps(self, cell, trial):
        if trial.phase == Phase.PHASES.value:
            self.instrumented.add(trial.index)
            if self.broken:
                return (dataclasses.replace(super().trial_steps(cell, trial)[0], message={"nonsense": 1}),)
        return super().trial_steps(cell, trial)

    def parse_trial(self, cell, capture):
        parsed = super().parse_trial(cell, capture)
        if capture.index not in self.instrumented or cell.id != DRAFT:
            return parsed
        parts = (("draft_time", 0.25), ("verify_time", 0.5), ("rollback_time", 0.125))
        times = tuple(observed(name, seconds, "test", definition="test:instrumented") for name, seconds in parts)
        return dataclasses.replace(parsed, observations=(*parsed.observations, *times))


def measured(adapter, folder, settings):
    directory = make_run(folder)
    execute(make_job(adapter, folder, settings=settings, without=(NGRAM,)), directory, lambda _: None)
    return Index.build(directory.records()), [r for r in directory.records() if isinstance(r, TrialRecord)]


def test_the_last_session_repeats_what_was_measured_and_nothing_of_it_is_pooled(tmp_path):
    index, trials = measured(Instrumented(), tmp_path, ASKED)
    repeated = [trial for trial in trials if trial.phase is Phase.PHASES]
    assert {(trial.place.cell, trial.place.set_index) for trial in repeated} == {(DRAFT, 1)}
    own = [trial for trial in trials if trial.place == repeated[0].place]
    assert [trial.phase for trial in own] == [Phase.WARMUP, *[Phase.MEASURED] * 2, *[Phase.PHASES] * 2]
    assert [t.prompt_id for t in own if t.phase is Phase.PHASES] == [
        t.prompt_id for t in own if t.phase is Phase.MEASURED
    ]
    state = index.cells[DRAFT]
    arm = arm_of(state, state.attempt)
    assert len(arm.trials) == 4
    assert "draft_time" not in summaries(arm)
    times = phase_times(state, arm)
    assert {name: (one.median, one.n) for name, one in times.items()} == {
        "draft_time": (0.25, 2), "verify_time": (0.5, 2), "rollback_time": (0.125, 2),
    }  # fmt: skip
    assert phase_times(index.cells[BASE], arm_of(index.cells[BASE], state.attempt)) == {}


@pytest.mark.parametrize(("adapter", "settings"), [(Instrumented, PLAIN), (ScriptedAdapter, ASKED)])
def test_without_the_matrix_or_the_adapter_there_is_none(tmp_path, adapter, settings):
    _, trials = measured(adapter(), tmp_path, settings)
    assert len(trials) == 4 * 3
    assert Phase.PHASES not in {trial.phase for trial in trials}


def test_a_repeat_that_fails_is_kept_and_takes_nothing_from_what_was_measured(tmp_path):
    index, trials = measured(Instrumented(broken=True), tmp_path, ASKED)
    repeated = [trial for trial in trials if trial.phase is Phase.PHASES]
    assert repeated
    assert all(trial.status is not Status.OK for trial in repeated)
    assert {name: state.status for name, state in index.cells.items()} == dict.fromkeys((BASE, DRAFT), Status.OK)
    state = index.cells[DRAFT]
    assert phase_times(state, arm_of(state, state.attempt)) == {}


def test_only_cells_that_are_instrumented_are_measured_anew_for_it(tmp_path):
    adapter = Instrumented()
    before, after = (make_job(adapter, tmp_path, settings=settings).survey.fates for settings in (PLAIN, ASKED))
    assert {name for name in before if before[name].fingerprint != after[name].fingerprint} == {DRAFT}
