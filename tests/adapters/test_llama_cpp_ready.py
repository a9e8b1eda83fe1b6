"""A llama.cpp server that came up healthy is still judged, in both directions."""

from __future__ import annotations

import dataclasses
import json

import pytest
from golden_cases import GOLDEN, load_case
from llama_cells import DRAFT, MTP, NGRAM, NONE, make_cell

from adapters.llama_cpp.server import ADAPTER
from orchestrator.schema.capture import READY_TRIAL, RawEvent, StepCapture, TrialCapture
from orchestrator.schema.status import Status

PROPS = {"model_path": "/m/t.gguf", "build_info": "b11434-x"}
ADDED = "0.00.1 I spec common_specu: adding speculative implementation '{}'\n"


def ready(slots, props=PROPS, status=200):
    steps = {
        name: StepCapture(name, 1.0, "", (RawEvent(1.1, json.dumps(body)),), 1.2, status)
        for name, body in (("slots", slots), ("props", props))
    }
    return TrialCapture(READY_TRIAL, steps, "", complete=True)


def judge(method, slots, stderr="", props=PROPS):
    cell = make_cell("llama_cpp", "/m/t.gguf", method, draft="/m/d.gguf")
    return ADAPTER.check_ready(cell, ready(slots, props), "", stderr)


def slot(speculative):
    return [{"id": 0, "n_ctx": 512, "speculative": speculative}]


@pytest.mark.parametrize("method", [DRAFT, MTP, NGRAM])
def test_no_speculation_where_it_is_asked_for(method):
    refusal = judge(method, slot(False), "0.00.1 E srv load_model: failed, for a reason\n0.00.2 W other\n")
    assert refusal.status is Status.NOT_ENGAGED
    assert "failed, for a reason" in refusal.reason
    assert "other" not in refusal.reason


def test_speculation_in_a_baseline():
    refusal = judge(NONE, slot(True), ADDED.format("ngram-mod"))
    assert refusal.status is Status.CONTAMINATED
    assert "ngram-mod" in refusal.reason


def test_all_well():
    assert judge(NONE, slot(False)) is None
    assert (
        judge(DRAFT, slot(True), ADDED.format("draft-simple") + "I spec common_specu: - n_max=4, n_min=0, p_min=0\n")
        is None
    )
    assert (
        judge(
            NGRAM, slot(True), ADDED.format("ngram-simple") + "I spec common_specu: - size_n=2, size_m=8, min_hits=1\n"
        )
        is None
    )


def test_a_second_drafter_is_another_measurement():
    refusal = judge(DRAFT, slot(True), ADDED.format("ngram-simple") + ADDED.format("draft-simple"))
    assert refusal.status is Status.CONTAMINATED


def test_a_shorter_draft_than_asked_for_is_told():
    refusal = judge(MTP, slot(True), ADDED.format("draft-mtp") + "I spec common_specu: - n_max=1, n_min=0\n")
    assert refusal.status is Status.UNSUPPORTED
    assert "at most 1" in refusal.reason


def test_another_server_on_the_port():
    assert judge(NONE, slot(False), props={"model_path": "/m/other.gguf"}).status is Status.CONTAMINATED


@pytest.mark.parametrize(
    ("slots", "status"),
    [
        ([], Status.FAILED),
        ({"error": 1}, Status.FAILED),
        ([None], Status.FAILED),
        (slot(False) * 2, Status.CONTAMINATED),
        ([{"id": 0}], Status.UNSUPPORTED),
    ],
)
def test_a_server_that_does_not_say(slots, status):
    assert judge(NONE, slots).status is status


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ("vocabulary-mismatch", Status.NOT_ENGAGED),
        ("baseline-speculates", Status.CONTAMINATED),
    ],
)
@pytest.mark.parametrize("adapter", ["llama_cpp", "llama_cpp_embedded"])
def test_real_servers(adapter, case, status):
    found = load_case(GOLDEN / adapter / case)
    session = found.capture()
    refusal = ADAPTER.check_ready(found.cell, session.ready, session.stdout, session.stderr)
    assert refusal.status is status
    fits = dataclasses.replace(found.cell, method=NONE if case == "vocabulary-mismatch" else NGRAM)
    assert ADAPTER.check_ready(fits, session.ready, session.stdout, session.stderr) is None
