"""Which faults a run would have caught, from what was really looked at."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from orchestrator.exactness.coverage import CAUGHT_BY, CROSS_SCORING, Fault, Gate, active_gates, coverage
from orchestrator.exactness.scoring import CROSS_SCORING as NAME
from orchestrator.schema.observation import Absence, absent, observed
from orchestrator.schema.record import Engagement, Phase
from orchestrator.schema.result import CheckResult, Verdict

METRICS = ("cached_tokens", "output_tokens", "accepted_tokens", "target_passes", "burst_count", "engine_decode_rate")
GREEDY = CheckResult("greedy identity", Verdict.PASS, "bit-exact")


def trial(*without: str, ids: tuple[int, ...] = (1, 2)) -> SimpleNamespace:
    told = [observed(name, 1, "x") for name in METRICS if name not in without]
    told += [absent(name, Absence.NOT_REPORTED, "-") for name in without]
    return SimpleNamespace(phase=Phase.MEASURED, observations=tuple(told), token_ids=ids)


def gates(*trials: SimpleNamespace, kind="draft", engaged=Engagement.ENGAGED, checks=(GREEDY,), replays=True):
    state = SimpleNamespace(trials=trials, settings={"method": {"kind": kind}}, engagement=engaged)
    return active_gates(state, checks, replays=replays)


def test_every_fault_but_the_control_has_a_row_and_one_nothing_can_catch() -> None:
    assert set(CAUGHT_BY) == set(Fault) - {Fault.CONTROL}
    everything = {one.fault: one.caught for one in coverage(Gate)}
    assert [fault for fault, caught in everything.items() if not caught] == [Fault.HIDDEN_CACHE]
    assert not any(one.caught for one in coverage(()))
    assert CROSS_SCORING == NAME


def test_a_cell_that_tells_everything_at_temperature_0() -> None:
    on = gates(trial(), trial())
    assert on == set(Gate) - {Gate.CROSS_SCORING, Gate.DISTRIBUTION}
    caught = {one.fault for one in coverage(on) if one.caught}
    assert caught == set(Fault) - {Fault.CONTROL, Fault.HIDDEN_CACHE}


def test_nothing_measured_nothing_looked_at() -> None:
    assert gates() == frozenset()


@pytest.mark.parametrize(
    ("lost", "how"),
    [
        (Gate.ENGAGEMENT, {"kind": "ngram"}),
        (Gate.ENGAGEMENT, {"engaged": Engagement.UNVERIFIABLE}),
        (Gate.GREEDY_IDENTITY, {"replays": False}),
        (Gate.GREEDY_IDENTITY, {"checks": (replace(GREEDY, verdict=Verdict.UNINFORMATIVE),)}),
        (Gate.GREEDY_IDENTITY, {"checks": ()}),
    ],
)
def test_a_gate_that_did_not_look_is_not_active(lost: Gate, how: dict) -> None:
    assert gates(trial()) - gates(trial(), **how) == {lost}


@pytest.mark.parametrize(
    ("lost", "metric"),
    [
        (Gate.CONTAMINATION, "cached_tokens"),
        (Gate.STREAM, "output_tokens"),
        (Gate.COUNTS, "target_passes"),
        (Gate.CLOCKS, "engine_decode_rate"),
    ],
)
def test_one_answer_that_does_not_tell_takes_its_gate_away(lost: Gate, metric: str) -> None:
    assert gates(trial(), trial()) - gates(trial(), trial(metric)) == {lost}


def test_above_temperature_0_the_scored_text_decides() -> None:
    scoring = CheckResult(CROSS_SCORING, Verdict.PASS, "")
    open_one = CheckResult("distribution", Verdict.NOT_TESTED, "")
    by = {one.fault: one for one in coverage(gates(trial(), checks=(open_one, scoring)))}
    assert by[Fault.LENIENT].by == (Gate.CROSS_SCORING,)
    assert by[Fault.LENIENT].missing == (Gate.GREEDY_IDENTITY, Gate.DISTRIBUTION)
    assert not {one.fault: one for one in coverage(gates(trial(), checks=(open_one,)))}[Fault.LENIENT].caught
