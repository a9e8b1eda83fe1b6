"""Distribution checks end to end on a fake engine that samples: verdicts, early stop, resume, rerun, failures."""

from __future__ import annotations

from collections import Counter

import pytest
from sampling_job import BAD, GOOD, LARGER, SMALL, SamplingAdapter, make_sampling_job
from scripted_job import make_run

from orchestrator.exactness.checking import judge_check
from orchestrator.exactness.groups import Mark
from orchestrator.report.analysis.checks import run_checks as report_checks
from orchestrator.runner.arm import Arm
from orchestrator.runner.check_run import planned_checks, run_checks
from orchestrator.runner.events import Said
from orchestrator.runner.execute import execute
from orchestrator.schema.record import CheckArm, CheckEndRecord, CheckPlanRecord, CheckRecord
from orchestrator.schema.result import Group, Verdict
from orchestrator.schema.status import Status
from orchestrator.store.index import Index
from orchestrator.store.outcome import exit_code, select_failed


def new_run(adapter, folder):
    made = make_run(folder)
    execute(make_sampling_job(adapter, folder, ()), made, lambda _: None)  # writes the matrix, measures nothing
    return made


@pytest.fixture
def adapter():
    return SamplingAdapter()


@pytest.fixture
def directory(tmp_path, adapter):
    return new_run(adapter, tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One run of both checks, which several tests look at: (adapter, directory, index)."""
    folder, adapter = tmp_path_factory.mktemp("whole"), SamplingAdapter()
    directory = new_run(adapter, folder)
    return adapter, directory, check(adapter, folder, directory, LARGER)


def check(adapter, folder, directory, presets=SMALL, listen=lambda _: None, **how):
    with directory.lock():
        run_checks(make_sampling_job(adapter, folder, **how), directory, listen, presets)
    return Index.build(directory.records())


def batches(directory):
    return [one for one in directory.records() if isinstance(one, CheckRecord)]


def outcome(index, name):
    return judge_check(index.checks[name], index.cells[index.checks[name].cell].claim)


def generations(directory):
    made = Counter()
    for one in batches(directory):
        made[one.arm, one.cell] += len(one.tokens)
    return made


def test_an_exact_cell_passes_a_lenient_one_is_contradicted_and_off_arms_are_shared(whole):
    adapter, directory, index = whole
    assert [index.checks[name].status for name in (GOOD, BAD)] == [Status.OK, Status.OK]
    good, bad = outcome(index, GOOD), outcome(index, BAD)
    assert (good.results[0].verdict, bad.results[0].verdict) == (Verdict.PASS, Verdict.FAIL)
    assert "would have been seen with 90 % power" in good.results[0].evidence
    assert [look[0] for look in good.looks] == [200, 300, 600]
    # Caught at the second look (the first has too few behind any prefix): half of what the exact one generated.
    made, base = generations(directory), "fake/m/none/t1/w"
    assert [look[0] for look in bad.looks] == [200, 300]
    assert made[CheckArm.ON, "fake/m/bad/t1/w"] == 300
    assert made[CheckArm.ON, "fake/m/good/t1/w"] == 600
    assert [made[arm, base] for arm in (CheckArm.OFF, CheckArm.OFF_AGAIN, CheckArm.CONTROL)] == [600, 600, 600]
    assert adapter.launched == ["none", "none", "none", "good", "bad", "none"]  # one process per arm
    placed = report_checks(index)
    assert placed.placements["fake/m/bad/t1/w"].group is Group.CONTRADICTED
    assert placed.placements["fake/m/good/t1/w"].group is Group.EXACT
    assert placed.marks["fake/m/good/t1/w"] is Mark.PASSED
    assert "total variation of" in placed.placements["fake/m/good/t1/w"].sentence
    assert exit_code(index.checks.values(), {GOOD, BAD}, True) == 0


def test_what_goes_with_the_verdict_is_said(whole):
    index = whole[2]
    beside = {one.check: one for one in outcome(index, GOOD).results[1:]}
    assert beside["seed-coupled equality"].verdict is Verdict.PASS
    assert beside["seed-coupled equality"].evidence.startswith("100/100 generations")
    assert beside["draft-directed z"].evidence.startswith("not available")


def test_seeds_differ_between_arms_and_are_those_of_off_in_the_coupled_arm(whole):
    directory = whole[1]
    seeds = {}
    for one in batches(directory):
        seeds.setdefault((one.arm, one.cell), []).extend(one.seeds)
    coupled = seeds.pop((CheckArm.COUPLED, "fake/m/good/t1/w"))
    drawn = [seed for found in seeds.values() for seed in found]
    assert len(set(drawn)) == len(drawn)
    assert set(coupled) < set(seeds[CheckArm.OFF, "fake/m/none/t1/w"])
    assert all(len(one.seeds) == len(one.tokens) <= 100 for one in batches(directory))


def test_contexts_come_from_the_pilot_with_a_reason(whole):
    directory = whole[1]
    (plan,) = [one for one in directory.records() if isinstance(one, CheckPlanRecord)]
    assert len(plan.contexts) == 1
    for context, text in plan.contexts.items():
        assert plan.why[context].endswith("(50 generations of the baseline)")
        assert text
    pilot = [one for one in batches(directory) if one.arm is CheckArm.PILOT]
    assert (len(pilot), {len(one.tokens) for one in pilot}) == (6, {50})


def test_an_interrupted_check_goes_on_with_the_batches_that_are_missing(adapter, directory, tmp_path, monkeypatch):
    real, made = Arm.batch, []

    def interrupted(arm, *args, **how):
        if len(made) == 12:
            raise KeyboardInterrupt
        made.append(args)
        return real(arm, *args, **how)

    monkeypatch.setattr(Arm, "batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check(adapter, tmp_path, directory, selected=(GOOD,))
    before = batches(directory)
    assert len(before) == 12
    monkeypatch.undo()
    index = Index.build(directory.records())
    assert index.checks[GOOD].status is Status.ABORTED
    (planned,) = planned_checks(make_sampling_job(adapter, tmp_path, (GOOD,)), directory)
    assert (planned.attempt, planned.is_new) == (1, False)
    index = check(adapter, tmp_path, directory, selected=(GOOD,))
    after = batches(directory)
    assert after[:12] == before
    keys = [(one.arm, one.cell, one.context, one.batch) for one in after]
    assert len(set(keys)) == len(keys)
    assert outcome(index, GOOD).results[0].verdict is Verdict.PASS


def test_a_decided_check_is_left_alone_and_a_rerun_is_a_new_experiment(adapter, directory, tmp_path):
    check(adapter, tmp_path, directory, selected=(BAD,))
    before, launched = list(directory.records()), len(adapter.launched)
    check(adapter, tmp_path, directory, selected=(BAD,))
    assert list(directory.records()) == before
    assert len(adapter.launched) == launched
    adapter.rules["bad"] = "sample_match"
    said = []
    index = check(adapter, tmp_path, directory, listen=said.append, selected=(BAD,), again=True)
    state = index.checks[BAD]
    assert (state.attempt, state.earlier) == (2, (1,))
    assert [one.attempt for one in state.before] == [1]
    found = outcome(index, BAD).results[0]
    # What failed clearly is not undone by repeating it with a mended engine under the same fingerprint.
    assert found.verdict is Verdict.FAIL
    assert "experiment 1 failed (p " in found.evidence
    assert "; experiment 2 passed (p " in found.evidence
    assert found.evidence.endswith("; experiment 1 failed at 0.01 ÷ 2 experiments too")
    assert report_checks(index).placements[state.cell].group is Group.CONTRADICTED
    assert any("experiment 1 failed" in one.text for one in said if isinstance(one, Said))
    first, second = ({s for b in batches(directory) if b.attempt == n for s in b.seeds} for n in (1, 2))
    assert not first & second


def test_an_engine_that_dies_fails_its_check_alone(adapter, directory, tmp_path):
    adapter.crash_at = {"bad": 120}
    index = check(adapter, tmp_path, directory)
    assert index.checks[GOOD].status is Status.OK
    assert index.checks[BAD].status is Status.FAILED
    assert "generation" in index.checks[BAD].reason
    assert outcome(index, BAD).results[0].verdict is Verdict.NOT_TESTED
    assert select_failed(index.checks) == (BAD,)
    assert exit_code(index.checks, (), False) == 1


def test_a_baseline_that_dies_fails_every_check_of_its_block(adapter, directory, tmp_path):
    adapter.crash_at = {"none": 320}
    index = check(adapter, tmp_path, directory)
    assert {state.status for state in index.checks.values()} == {Status.FAILED}
    assert sum(isinstance(one, CheckEndRecord) for one in directory.records()) == 2


def test_a_drafter_that_proposes_nothing_proves_nothing(adapter, directory, tmp_path):
    adapter.rules["good"] = "idle"
    index = check(adapter, tmp_path, directory, selected=(GOOD,))
    found = outcome(index, GOOD).results[0]
    assert found.verdict is Verdict.UNDERPOWERED
    assert found.evidence.startswith("nothing was drafted")
    assert CheckArm.CONTROL not in index.checks[GOOD].arms


def test_a_baseline_that_differs_from_itself_ends_the_check_before_speculation(adapter, directory, tmp_path):
    adapter.sharp_launch = 3  # pilot, off, off again
    index = check(adapter, tmp_path, directory, selected=(GOOD,))
    found = outcome(index, GOOD).results[0]
    assert found.verdict is Verdict.UNDERPOWERED
    assert found.evidence.startswith("the baseline differs from itself")
    assert adapter.launched == ["none"] * 3
