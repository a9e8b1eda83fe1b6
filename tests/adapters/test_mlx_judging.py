"""Judged places without mlx: which they are, what the worker keeps and refuses, what the adapter asks and reads."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from adapters.mlx_lm.adapter import ADAPTER
from adapters.mlx_lm.rounds import split_rounds
from orchestrator.schema.adapter import JudgesDrafts, TrialSpec
from orchestrator.schema.capture import TrialCapture, read_session
from orchestrator.schema.cell import (
    Cell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
)
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.judged import Judged
from orchestrator.schema.record import Phase

FILE = Path(__file__).resolve().parents[2] / "adapters" / "workers" / "mlx_lm_judging.py"
SPEC = importlib.util.spec_from_file_location("mlx_lm_judging", FILE)
assert SPEC is not None
assert SPEC.loader is not None
judging = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(judging)

SAMPLING = {
    "temperature": 0.8, "xtc_probability": 0.0, "repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0
}  # fmt: skip
REQUEST = {"num_draft_tokens": 3, "max_tokens": 5, "sampling": SAMPLING}
PLAIN = SimpleNamespace(config={"kv_bits": None})


@pytest.mark.parametrize(
    ("from_draft", "places", "passes"),
    [
        ((False, False), [(0, 0), (1, 3)], 6),  # two refusals: each is a correction
        ((True, True, True, False), [(0, 0), (1, 1), (2, 2)], 3),  # the token behind a whole draft was not proposed
        ((True, False, False), [(0, 0), (1, 1), (2, 3)], 6),
        ((True, True, True, False, True), [(0, 0), (1, 1), (2, 2), (4, 3)], 4),  # one draft only fits in the last round
        ((True, True), [(0, 0), (1, 1)], 3),  # end of text as a kept draft
        ((), [], 0),
    ],
)
def test_judged_places_of_short_answers(from_draft, places, passes):
    assert judging.judged_places(from_draft, REQUEST) == (places, passes)


def test_judged_places_are_those_of_the_rounds():
    """Against the adapter's rounds: every token but those behind a whole draft, each with its own draft pass."""
    generator = random.Random(4)
    for _ in range(300):
        limit, most = generator.randint(1, 12), generator.randint(1, 5)
        from_draft: list[bool] = []
        while len(from_draft) < limit:
            drafted = min(limit - len(from_draft), most)
            kept = generator.randint(0, drafted)
            from_draft += [True] * kept + [False] * (len(from_draft) + kept < limit)
        places, passes = judging.judged_places(from_draft, {"max_tokens": limit, "num_draft_tokens": most})
        expected, at, before = [], 0, 0
        for one in split_rounds(from_draft, limit, most):
            refused = one.closed and one.accepted < one.drafted
            expected += [(at + place, before + place) for place in range(one.accepted + refused)]
            at, before = at + one.emitted, before + one.drafted
        assert (places, passes) == (expected, before)


def test_scores_of_drafting_passes_are_kept_and_the_model_is_handed_through():
    class Model:
        args = "its own"

        def __call__(self, inputs, cache=None):
            return np.arange(inputs.shape[1] * 4).reshape(1, -1, 4) + cache

    drafts = judging.Drafts(6)
    watched = drafts.watch(Model())
    assert watched.args == "its own"
    for fed, cache in ((3, 0), (2, 0), (1, 100), (2, 200)):  # two parts of the prompt but its last token, two passes
        given = np.zeros((1, fed))
        assert (watched(given, cache=cache) == Model()(given, cache=cache)).all()
    assert [row.tolist() for row in drafts.scores] == [[100, 101, 102, 103], [204, 205, 206, 207]]


@pytest.mark.parametrize(
    ("change", "sampling", "kv_bits", "words"),
    [
        ({"num_draft_tokens": 0}, {}, None, "without a draft"),
        ({"phases": True}, {}, None, "instrumented"),
        ({"max_tokens": 65}, {}, None, "more than 64 tokens"),
        ({}, {"temperature": 0}, None, "nothing is drawn"),
        ({}, {"xtc_probability": 0.5}, None, "depends on a coin"),
        ({}, {"repeat_penalty": 1.1}, None, "with penalties"),
        ({}, {"presence_penalty": 0.1}, None, "with penalties"),
        ({}, {"frequency_penalty": 0.1}, None, "with penalties"),
        ({}, {}, 8, "quantised cache"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_words(change, sampling, kv_bits, words):
    asked = {**REQUEST, **change, "sampling": {**SAMPLING, **sampling}}
    assert words in judging.refusal(SimpleNamespace(config={"kv_bits": kv_bits}), asked)
    assert judging.refusal(PLAIN, REQUEST) == ""


def test_another_number_of_draft_passes_is_an_error():
    drafts = judging.Drafts(2)
    drafts.scores = [None] * 2
    rows = [(5, 0.0, False), (6, 0.0, False)]
    with pytest.raises(RuntimeError, match="the draft made 2 passes, an answer of this form has 6"):
        drafts.judged(None, SimpleNamespace(mx=None), REQUEST, [1, 2], rows)


def cell(kind=MethodKind.DRAFT, kv_bits=None, **sampling):
    settings = {
        "name": "warm", "temperature": 0.8, "seed": 1, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, **sampling,
    }  # fmt: skip
    options = {} if kv_bits is None else {"kv_bits": kv_bits}
    method = Method("draft", kind, 3, "d") if kind is MethodKind.DRAFT else Method("none", kind)
    return Cell(
        EngineConfig("mlx", "mlx_lm", options=options),
        ModelConfig("m", "target", drafts={"d": "draft"}),
        method,
        Sampling(**settings),
        Workload("w", "demo-short", 5, EosPolicy.MASK),
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": MethodKind.NONE}, "without a draft"),
        ({"temperature": 0.0}, "nothing is drawn"),
        ({"xtc_probability": 0.5, "xtc_threshold": 0.05}, "under XTC the distribution of a token depends on a coin"),
        ({"repeat_penalty": 1.1}, "with penalties"),
        ({"kv_bits": 8}, "with a quantised cache"),
    ],
)
def test_the_adapter_asks_for_nothing_that_the_worker_would_refuse(change, words):
    assert isinstance(ADAPTER, JudgesDrafts)
    assert words in ADAPTER.why_unjudged(cell(**change))
    assert ADAPTER.why_unjudged(cell()) == ""
    spec = TrialSpec(0, Phase.MEASURED.value, "p", "text", 1)
    (asked,), (plain,) = ADAPTER.judged_steps(cell(), spec), ADAPTER.trial_steps(cell(), spec)
    assert asked.message == {**plain.message, "judge": True}
    assert judging.refusal(PLAIN, asked.message) == ""
    (refused,) = ADAPTER.judged_steps(cell(**change), spec)
    assert words in judging.refusal(SimpleNamespace(config={"kv_bits": change.get("kv_bits")}), refused.message)


GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden" / "mlx_lm").glob("*/events.jsonl"))


def answered(judged, from_draft=(False, True, False, False, False)):
    """A capture of an answer as the worker gives it, taken from a committed one, with other tokens and places."""
    text = next(path for path in GOLDEN if path.parent.name.startswith("draft")).read_text(encoding="utf-8")
    trial = read_session(text).trials[0]
    step = trial.steps["generate"]
    answer = json.loads(step.events[-1].data)
    first = answer["tokens"][0]
    answer["tokens"] = [[first[0], first[1], flag] for flag in from_draft]
    answer |= {} if judged is None else {"judged": judged}
    event = dataclasses.replace(step.events[-1], data=json.dumps(answer))
    return TrialCapture(0, {"generate": dataclasses.replace(step, events=(event,))}, "", complete=True)


GOOD = [0.5, 0.25, 0.03, 0.75]


def test_told_places_are_read_when_they_are_those_of_the_rounds():
    assert ADAPTER.parse_judged(cell(), answered([GOOD] * 5)) == (Judged(*GOOD),) * 5


@pytest.mark.parametrize(
    ("judged", "words"),
    [
        (None, "Field required"),
        ([GOOD] * 4, "4 judged places told, its rounds have 5"),
        ([GOOD[:3]] * 5, "judged places"),
        ([[0.8, *GOOD[1:]]] + [GOOD] * 4, "impossible probabilities"),
        ([[0.5, 0.9, 0.03, 0.75]] + [GOOD] * 4, "impossible probabilities"),
        ([[0.5, 0.25, -0.01, 0.75]] + [GOOD] * 4, "impossible probabilities"),
        ([[0.5, 0.25, 0.26, 0.75]] + [GOOD] * 4, "impossible probabilities"),
        ([[0.5, 0.25, 0.03, 1.5]] + [GOOD] * 4, "impossible probabilities"),
    ],
)
def test_anything_else_is_no_figure(judged, words):
    with pytest.raises(CaptureError, match=words):
        ADAPTER.parse_judged(cell(), answered(judged))
