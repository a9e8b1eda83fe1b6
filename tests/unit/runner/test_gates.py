"""What an exchange that did not come to its end makes of a trial."""

from __future__ import annotations

import json

import pytest

from orchestrator.runner.gates import judge_exchange
from orchestrator.schema.capture import RawEvent, StepCapture, TrialCapture
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
