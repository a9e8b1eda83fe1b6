"""What an exchange that did not come to its end makes of a trial."""

from __future__ import annotations

import dataclasses
import json

import pytest
from llama_cells import make_cell

from orchestrator.runner.gates import judge_exchange, judge_trial
from orchestrator.schema.capture import RawEvent, StepCapture, TrialCapture
from orchestrator.schema.observation import Absence, absent, observed
from orchestrator.schema.record import Phase
from orchestrator.schema.status import Status


def judged(line, *, error="the window is full", timed_out=False):
    step = StepCapture("generate", 0.0, "{}", (RawEvent(1.0, line),), 2.0, None, error, timed_out)
    return judge_exchange(TrialCapture(0, {"generate": step})).status


def said(**fields):
    return json.dumps({"event": "error", "kind": "refused", "type": "unsupported", "message": "x", **fields})


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (said(), Status.UNSUPPORTED),
        (said(type="protocol"), Status.FAILED),
        (said(kind="exception"), Status.FAILED),
        (said(event="done"), Status.FAILED),
        (said(type="ok"), Status.FAILED),
        ("[" * 100_000, Status.FAILED),
        ("no JSON", Status.FAILED),
    ],
)
def test_only_a_refusal_in_words_is_unsupported(line, status):
    assert judged(line) is status


def test_a_time_out_stays_one_whatever_was_said():
    assert judged(said(), timed_out=True) is Status.TIMEOUT


def counted(cache, cached, prompt=40, phase=Phase.MEASURED, shared=None):
    cell = make_cell("x", "/m")
    cell = dataclasses.replace(cell, workload=dataclasses.replace(cell.workload, cache=cache))
    counts = [observed("prompt_tokens", prompt, "x")]
    told = (
        absent("cached_tokens", Absence.NOT_REPORTED, "x") if cached is None else observed("cached_tokens", cached, "x")
    )
    return judge_trial(cell, [*counts, told], phase, shared)


@pytest.mark.parametrize(
    ("cache", "cached", "shared", "status"),
    [
        ("cold", 0, None, Status.OK),
        ("cold", None, None, Status.OK),
        ("cold", 1, None, Status.CONTAMINATED),
        ("warm", 39, None, Status.OK),
        ("warm", 1, None, Status.CONTAMINATED),
        ("warm", 30, None, Status.CONTAMINATED),
        ("warm", 0, None, Status.CONTAMINATED),
        ("warm", None, None, Status.CONTAMINATED),
        ("shared-prefix", 20, 20, Status.OK),
        ("shared-prefix", 1, 20, Status.CONTAMINATED),
        ("shared-prefix", 1, None, Status.OK),
        ("shared-prefix", 0, 0, Status.CONTAMINATED),
    ],
)
def test_a_prompt_must_be_as_warm_as_its_cell_asks_for(cache, cached, shared, status):
    assert counted(cache, cached, shared=shared).status is status


def test_what_warms_the_cache_may_be_cold_itself_and_an_uncounted_one_says_so():
    assert counted("warm", 0, phase=Phase.PRIME).status is Status.OK
    assert "does not count cached" in counted("warm", None).reason
