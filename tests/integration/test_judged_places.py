"""Judged places from a fake engine that tells them: asked for in arm ``on`` alone, kept, pooled into a verdict."""

from __future__ import annotations

import dataclasses

import pytest
from sampling_job import BAD, GOOD, LARGER, SMALL, SamplingAdapter, TellingAdapter, make_sampling_job
from scripted_job import make_run

from orchestrator.exactness.checking import judge_check
from orchestrator.exactness.groups import Mark, mark, place
from orchestrator.runner.check_run import run_checks
from orchestrator.runner.execute import execute
from orchestrator.schema.adapter import JudgesDrafts
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.judged import unflattened
from orchestrator.schema.record import CheckArm, CheckRecord
from orchestrator.schema.result import Group, Verdict
from orchestrator.schema.status import Status
from orchestrator.store.index import Index


def check(adapter, folder, selected, presets):
    directory = make_run(folder)
    execute(make_sampling_job(adapter, folder, ()), directory, lambda _: None)  # writes the matrix, measures nothing
    said = []
    with directory.lock():
        run_checks(make_sampling_job(adapter, folder, selected), directory, said.append, presets)
    index = Index.build(directory.records())
    results = {
        name: {
            one.check: one
            for one in judge_check(index.checks[name], index.cells[index.checks[name].cell].claim).results
        }
        for name in selected
    }
    return index, results, [one for one in directory.records() if isinstance(one, CheckRecord)], said


def directed(results, name):
    return results[name]["draft-directed z"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    adapter = TellingAdapter()
    return adapter, *check(adapter, tmp_path_factory.mktemp("told"), (GOOD, BAD), LARGER)


def test_an_exact_cell_passes_and_one_drawn_to_the_draft_is_contradicted(whole):
    _, index, results, _, said = whole
    good, bad = directed(results, GOOD), directed(results, BAD)
    assert (good.verdict, bad.verdict) == (Verdict.PASS, Verdict.FAIL), (good, bad)
    assert "2400 judged places" in good.evidence
    assert bad.evidence.startswith("tokens are drawn towards the draft: z ")
    assert results[GOOD]["distribution"].verdict is Verdict.PASS
    claim = index.cells[index.checks[GOOD].cell].claim
    assert mark(tuple(results[GOOD].values()), engaged=True) is Mark.PASSED
    assert place("good", claim, (directed(results, GOOD),), engaged=True).group is Group.EXACT
    assert place("bad", claim, (directed(results, BAD),), engaged=True).group is Group.CONTRADICTED
    assert any("draft-directed z: pass" in one.text for one in said if hasattr(one, "text"))


def test_only_the_arm_with_speculation_is_asked_and_its_records_hold_every_generation(whole):
    adapter, _, _, records, _ = whole
    on = [one for one in records if one.arm is CheckArm.ON]
    assert on
    assert len(adapter.asked) == sum(len(one.tokens) for one in on)
    assert set(adapter.asked) == {"good", "bad"}
    for one in records:
        assert one.unjudged == ""
        if one.arm is not CheckArm.ON:
            assert one.judged == ()
            continue
        assert len(one.judged) == len(one.tokens)
        for tokens, numbers in zip(one.tokens, one.judged, strict=True):
            places = unflattened(numbers)
            assert len(places) == len(tokens) - 1
            assert all(0 <= place.q <= place.favourite <= 1 and place.expected <= 1 for place in places)
    assert {one.arm for one in records} >= {CheckArm.OFF, CheckArm.CONTROL, CheckArm.COUPLED}


@pytest.mark.parametrize("telling", [True, False])
def test_why_places_are_not_told_is_kept_and_said(telling, tmp_path):
    adapter = TellingAdapter() if telling else SamplingAdapter()
    if telling:
        adapter.unjudged = "under XTC the distribution of a token depends on a coin"
    assert isinstance(adapter, JudgesDrafts) is telling
    _, results, records, _ = check(adapter, tmp_path, (BAD,), SMALL)
    why = adapter.unjudged if telling else "the engine reports no draft probabilities"
    assert {one.unjudged for one in records if one.arm is CheckArm.ON} == {why}
    assert {(one.unjudged, one.judged) for one in records if one.arm is not CheckArm.ON} == {("", ())}
    found = directed(results, BAD)
    assert (found.verdict, found.evidence) == (Verdict.NOT_APPLICABLE, f"not available: {why}")
    assert not telling or adapter.asked == []


def test_records_of_an_older_version_hold_none(whole):
    _, index, _, _, _ = whole
    state = index.checks[GOOD]
    old = {
        arm: {name: tuple(dataclasses.replace(one, judged=()) for one in batches) for name, batches in by.items()}
        for arm, by in state.arms.items()
    }
    found = judge_check(dataclasses.replace(state, arms=old), index.cells[state.cell].claim).results[1]
    assert found.evidence == "not available: these records hold no draft probabilities"
    mixed = {
        **state.arms,
        CheckArm.ON: {k: (v[0], *old[CheckArm.ON][k][1:]) for k, v in state.arms[CheckArm.ON].items()},
    }
    found = judge_check(dataclasses.replace(state, arms=mixed), index.cells[state.cell].claim).results[1]
    assert found.evidence.endswith("; 100 of 600 generations tell them")


def test_an_answer_without_its_places_ends_the_check(tmp_path):
    class Broken(TellingAdapter):
        def parse_judged(self, cell, capture):
            raise CaptureError("the worker's answer has no judged places")

    index, _, records, _ = check(Broken(), tmp_path, (BAD,), SMALL)
    assert index.checks[BAD].status is Status.UNPARSED
    assert "no judged places" in index.checks[BAD].reason
    assert not [one for one in records if one.arm is CheckArm.ON]
