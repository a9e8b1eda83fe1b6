"""The self-test on the real embedded llama.cpp: each fault caught by the gate that is made for it, the control clean."""

from __future__ import annotations

import importlib.util
import os

import pytest

from orchestrator.exactness.coverage import Fault, Gate
from orchestrator.matrix.types import CheckSettings
from orchestrator.selftest.run import selftest
from orchestrator.store.directory import RunDirectory

pytestmark = pytest.mark.engine

MADE = (Fault.DROPPED_DRAFTER, Fault.CACHED_PROMPT, Fault.LENIENT, Fault.DUPLICATED, Fault.INJECTED, Fault.STALLED)
COUNTS = (Fault.COUNT_IN_ANSWER, Fault.COUNT_IN_METRICS)
MUST = {
    Fault.DROPPED_DRAFTER: Gate.ENGAGEMENT,
    Fault.CACHED_PROMPT: Gate.CONTAMINATION,
    Fault.DUPLICATED: Gate.STREAM,
    Fault.STALLED: Gate.CLOCKS,
    Fault.COUNT_IN_ANSWER: Gate.COUNTS,
    Fault.COUNT_IN_METRICS: Gate.COUNTS,
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    if importlib.util.find_spec("xllamacpp") is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail("xllamacpp is not installed")
        pytest.skip("xllamacpp is not installed")
    folder = tmp_path_factory.mktemp("selftest")
    checks = CheckSettings(greedy_identity=True, cross_scoring=True)
    found = selftest(folder, checks, lambda _event: None, drawn=(Fault.LENIENT, Fault.INJECTED))
    replays = [r for r in RunDirectory.open(folder / "run").records() if r.kind == "replay"]
    return {(one.sampling, one.fault): one for one in found}, replays


@pytest.mark.parametrize("sampling", ["greedy", "t0.8"])
def test_the_control_is_clean(results, sampling):
    control = results[0][sampling, Fault.CONTROL]
    assert set(control.caught_by) <= {Gate.CLOCKS}, control.said  # a machine this busy may wake us late every time


@pytest.mark.parametrize("fault", MUST)
def test_a_fault_is_caught_by_its_own_gate(results, fault):
    found = results[0]["greedy", fault]
    assert MUST[fault] in found.expected
    assert MUST[fault] in found.caught_by, found.said
    assert found.good


def test_changed_text_is_caught_by_replay_and_by_scoring_at_temperature_0_and_by_scoring_above(results):
    for fault in (Fault.LENIENT, Fault.INJECTED):
        cold, warm = results[0]["greedy", fault], results[0]["t0.8", fault]
        assert {Gate.GREEDY_IDENTITY, Gate.CROSS_SCORING} <= set(cold.caught_by)
        assert Gate.CROSS_SCORING in warm.caught_by
        assert Gate.GREEDY_IDENTITY not in warm.caught_by
        assert cold.good
        assert warm.good


def test_every_fault_was_made_and_the_evidence_is_in_the_journal(results):
    found, replays = results
    assert {fault for _, fault in found} == {Fault.CONTROL, *MADE, *COUNTS}
    assert len(found) == (1 + len(MADE) + len(COUNTS)) + (1 + 2)
    assert {one.status.value for one in replays} == {"ok"}
    assert {one.purpose.value for one in replays} == {"divergence", "jitter", "scoring"}
    assert all(one.cell.split("/")[2] == "none" for one in replays)  # only a baseline is ever asked


def test_without_the_checks_that_see_it_a_lenient_acceptance_is_not_caught_and_that_is_said(results, tmp_path):
    blind = CheckSettings(greedy_identity=False, cross_scoring=False)
    control, lenient = selftest(tmp_path, blind, lambda _event: None, greedy=(), drawn=(Fault.LENIENT,))
    assert (control.is_control, lenient.fault, lenient.sampling) == (True, Fault.LENIENT, "t0.8")
    assert lenient.expected == ()
    assert set(lenient.caught_by) <= {Gate.CLOCKS}, lenient.said  # late stamps of a busy machine, nothing of the text
    assert lenient.good
