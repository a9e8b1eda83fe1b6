"""When a trial counts as measured under memory pressure, and which cells are refused for memory."""

from __future__ import annotations

import pytest

from orchestrator.host.fit import Fit, Verdict
from orchestrator.runner.foresight import refuse_unfit
from orchestrator.runner.gates import judge_memory
from orchestrator.schema.observation import Absence, absent, observed
from orchestrator.schema.status import Status


@pytest.mark.parametrize(
    ("metric", "value", "status"),
    [
        ("memory_pressure", "critical", Status.MEMORY_PRESSURE),
        ("memory_pressure", "warning", Status.OK),
        ("memory_pressure", "full stalls", Status.OK),
        ("trial_swap_delta", 500_000_000, Status.MEMORY_PRESSURE),
        ("trial_swap_delta", 499_999_999, Status.OK),
        ("trial_swap_delta", -10, Status.OK),
        ("memory_stall", 0.1, Status.MEMORY_PRESSURE),
        ("memory_stall", 0.099, Status.OK),
    ],
)
def test_the_gate_of_a_trial_that_took_two_seconds(metric, value, status):
    assert judge_memory([observed(metric, value, "os")], 2.0).status is status


def test_what_is_absent_or_has_no_time_to_compare_with_says_nothing():
    missing = [absent("memory_stall", Absence.NOT_REPORTED, "no counters")]
    assert judge_memory(missing, 2.0).status is Status.OK
    assert judge_memory([observed("memory_stall", 9.0, "os")], None).status is Status.OK


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("forced", [False, True])
def test_only_what_cannot_fit_is_refused_and_only_unforced(verdict, forced):
    refusal = refuse_unfit(Fit(verdict, "needs 9 GB"), forced=forced)
    assert (refusal is not None) is (verdict is Verdict.DOES_NOT_FIT and not forced)
    if refusal is not None:
        assert refusal.status is Status.UNSUPPORTED
        assert refusal.reason == "memory: needs 9 GB"
        assert "run.force_fit: true" in refusal.remedy
    assert refuse_unfit(None, forced=forced) is None


def test_a_short_trial_is_not_judged_by_the_noise_of_the_counter():
    assert judge_memory([observed("memory_stall", 0.019, "os")], 0.05).status is Status.OK
    assert judge_memory([observed("memory_stall", 0.021, "os")], 0.05).status is Status.MEMORY_PRESSURE
