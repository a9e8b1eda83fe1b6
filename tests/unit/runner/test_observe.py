"""The one function that turns arrivals into our clock's figures, with hand-computed answers."""

from __future__ import annotations

import dataclasses

import pytest
from llama_cells import make_cell

from orchestrator.runner.observe import observe_trial
from orchestrator.schema.adapter import Arrival, Arrivals, ParsedTrial
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.observation import Absence, observed

CELL = make_cell("stub", "/model")


class StubAdapter:
    """Answers what the test says; only the two methods that observe_trial may call."""

    def __init__(self, arrivals, observations=(), ids=None):
        self._arrivals, self._observations = arrivals, tuple(observations)
        found = tuple(token for a in (arrivals.tokens if arrivals else ()) for token in a.ids)
        self._ids = found if ids is None else ids

    def arrivals(self, cell, capture):
        return self._arrivals

    def parse_trial(self, cell, capture):
        return ParsedTrial(self._observations, self._ids, "text", "length")


def seen(tokens, done=2.0, observations=(), ids=None, source="engine"):
    arrivals = Arrivals(1.0, tuple(tokens), done, source)
    return observe_trial(StubAdapter(arrivals, observations, ids), CELL, TrialCapture(0))


def value(trial, name):
    return next(o.value for o in trial.observations if o.metric == name)


def reason(trial, name):
    return next(o.absent for o in trial.observations if o.metric == name)


# Three bursts: 1 token at 1.2, 3 tokens at 1.4, 2 tokens at 1.5; sent at 1.0, done at 2.0.
THREE = (
    Arrival(1.2, (10,), "a"),
    Arrival(1.4, (11,), "b"),
    Arrival(1.4001, (12,), "b"),
    Arrival(1.4002, (13,), "b"),
    Arrival(1.5, (14, 15), "c"),
)


def test_times_and_rates_of_a_known_curve():
    trial = seen(THREE)
    assert value(trial, "ttft") == pytest.approx(0.2)
    assert value(trial, "e2e_latency") == pytest.approx(1.0)
    assert value(trial, "decode_time") == pytest.approx(0.3)
    assert value(trial, "decode_rate") == pytest.approx(5 / 0.3)  # six tokens, one of them in the first burst
    assert value(trial, "tpot") == pytest.approx(0.06)
    assert value(trial, "burst_count") == 3
    assert value(trial, "burst_gap_p50") == pytest.approx(0.15)
    assert value(trial, "burst_gap_p95") == pytest.approx(0.2)
    assert trial.curve == ((pytest.approx(0.2), 1), (pytest.approx(0.4), 4), (pytest.approx(0.5), 6))
    assert trial.problems == ()


def test_a_first_burst_of_several_tokens_is_not_counted_into_the_rate():
    trial = seen((Arrival(1.5, (1, 2, 3), "r0"), Arrival(1.7, (4, 5), "r1")))
    assert value(trial, "decode_rate") == pytest.approx(2 / 0.2)


def test_time_to_n_is_the_arrival_of_that_token_and_absent_beyond_the_answer():
    tokens = [Arrival(1.0 + 0.01 * (i + 1), (i,), str(i)) for i in range(20)]
    trial = seen(tokens)
    assert value(trial, "time_to_16") == pytest.approx(0.16)
    assert reason(trial, "time_to_32") is Absence.NOT_APPLICABLE


@pytest.mark.parametrize("tokens", [THREE[:1], (Arrival(1.2, (1,), "a"), Arrival(1.2, (2,), "b"))])
def test_a_rate_over_no_interval_is_suppressed(tokens):
    trial = seen(tokens)
    for name in ("decode_time", "decode_rate", "tpot", "burst_gap_p50"):
        assert reason(trial, name) is Absence.SUPPRESSED


def test_no_token_gives_no_figure_of_ours():
    trial = observe_trial(StubAdapter(None), None, TrialCapture(0))
    assert trial.observations == ()
    assert trial.problems == ("no token arrived",)


def test_ids_that_differ_from_the_engines_answer_are_a_problem():
    assert any("token ids" in p for p in seen(THREE, ids=(10, 11)).problems)


def test_an_engine_rate_far_from_ours_is_a_problem_and_a_near_one_is_not():
    far = seen(THREE, observations=[observed("engine_decode_rate", 20.0, "x")])
    assert reason(far, "decode_rate") is Absence.SUPPRESSED  # a wrong rate is worse than none
    assert value(far, "ttft") == pytest.approx(0.2)
    near = seen(THREE, observations=[observed("engine_decode_rate", 16.8, "x")])
    assert any("decode rate" in p for p in far.problems)
    assert near.problems == ()


def test_passes_that_do_not_match_the_bursts_are_a_problem():
    assert any("passes" in p for p in seen(THREE, observations=[observed("target_passes", 7, "x")]).problems)
    assert seen(THREE, observations=[observed("target_passes", 2, "x")]).problems == ()


def test_inferred_bursts_say_so():
    notes = {o.note for o in seen(THREE, source="inferred").observations if o.metric == "decode_rate"}
    assert notes == {"bursts inferred from arrival gaps"}


def test_inferred_bursts_are_not_held_against_the_engines_passes():
    assert seen(THREE, observations=[observed("target_passes", 7, "x")], source="inferred").problems == ()


@pytest.mark.parametrize("cache", ["warm", "shared-prefix"])
def test_the_first_answer_of_a_cached_prompt_has_its_own_name(cache):
    counts = (observed("prompt_tokens", 8, "x"), observed("cached_tokens", 6, "x"))
    cell = dataclasses.replace(CELL, workload=dataclasses.replace(CELL.workload, cache=cache))
    found = observe_trial(StubAdapter(Arrivals(1.0, THREE, 2.0, "engine"), counts), cell, TrialCapture(0))
    assert value(found, "ttft_cached") == pytest.approx(0.2)
    assert value(found, "cached_share") == 0.75
    assert reason(found, "ttft") is Absence.NOT_APPLICABLE


def test_a_cold_prompt_has_no_cached_first_answer_and_no_share_without_counts():
    names = {one.metric for one in seen(THREE).observations}
    assert not names & {"ttft_cached", "cached_share"}
