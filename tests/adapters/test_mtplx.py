"""The MTPLX adapter: what tells its arms apart, what its server must say of itself, and what is never made a number."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from golden_cases import GOLDEN, load_case

from adapters.mtplx.adapter import ADAPTER
from orchestrator.schema.adapter import EngineIdentity, LaunchContext, ProbeOutput, Rule
from orchestrator.schema.capture import RawEvent, StepCapture, TrialCapture
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.schema.status import Status

NONE, MTP = Method("none", MethodKind.NONE), Method("mtp", MethodKind.MTP, 3)
GREEDY = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
HERE = EngineIdentity({"version": "2.12.2"}, "2.12.2")


def make_cell(method: Method = MTP, sampling: Sampling = GREEDY, eos=EosPolicy.STOP, **options) -> Cell:
    workload = Workload("plain", "demo-short", 24, eos)
    return Cell(
        EngineConfig("m", "mtplx", options=options), ModelConfig("t", "/models/tiny"), method, sampling, workload
    )


def ready(**said) -> TrialCapture:
    health = {"model_path": "/models/tiny", "generation_mode": "mtp", "mtp_enabled": True, "depth": 3, **said}
    step = StepCapture("health", 0.0, "", (RawEvent(0.1, json.dumps(health)),), 0.2, 200)
    return TrialCapture(-1, {"health": step})


def with_stats(name: str, **changed):
    """A golden trial whose closing event says something else."""
    case = load_case(GOLDEN / "mtplx" / name)
    capture = case.trial_of(case.capture())
    step = capture.steps["request"]
    events = []
    for event in step.events:
        text = event.data
        if "mtplx_stats" in text:
            data = json.loads(text.removeprefix("data:"))
            data["mtplx_stats"].update(changed)
            text = "data: " + json.dumps(data)
        events.append(RawEvent(event.t_s, text))
    steps = {**capture.steps, "request": dataclasses.replace(step, events=tuple(events))}
    return ADAPTER.parse_trial(case.cell, dataclasses.replace(capture, steps=steps))


def values(parsed) -> dict:
    return {one.metric: one.value for one in parsed.observations}


@pytest.mark.parametrize(("text", "version"), [("mtplx 2.12.2\n", "2.12.2"), ("mtplx 2.13 beta-1\n", None)])
def test_the_packaged_version_is_the_one_that_counts(text, version):
    found = ADAPTER.identify(EngineConfig("m", "mtplx"), {"version": ProbeOutput(0, text, "")})
    assert found.version == version
    assert (found.unavailable is None) is (version is not None)
    shown = ADAPTER.identify(EngineConfig("m", "mtplx"), {"version": ProbeOutput(0, "mtplx 3.0 (2.12.2)\n", "")})
    assert shown.facts == {"version": "2.12.2"}


def test_the_mode_alone_tells_the_arms_apart_and_nothing_else_drafts():
    on, off = (ADAPTER.launch(make_cell(method), LaunchContext(4321, Path("/s"))) for method in (MTP, NONE))
    assert on.env == off.env
    assert on.env["MTPLX_CONTEXT_COPY"] == "0"
    assert on.env["MTPLX_CONFIG"] == "/s/no-config.toml"
    assert [word for word in on.argv if word not in off.argv] == ["mtp", "--depth", "3"]
    assert [word for word in off.argv if word not in on.argv] == ["ar"]
    assert "--no-stats-footer" in off.argv, "else a line of the engine's own stands in the answer"


@pytest.mark.parametrize(
    ("method", "said", "status"),
    [
        (MTP, {}, None),
        (NONE, {"generation_mode": "ar"}, None),
        (NONE, {}, Status.NOT_ENGAGED),
        (MTP, {"generation_mode": "ar"}, Status.NOT_ENGAGED),
        (MTP, {"mtp_enabled": False}, Status.NOT_ENGAGED),
        (MTP, {"depth": 2}, Status.NOT_ENGAGED),
        (MTP, {"model_path": "/models/other"}, Status.CONTAMINATED),
        (MTP, {"warmup": {"error": "RuntimeError: no kernel"}}, Status.FAILED),
    ],
)
def test_what_the_server_says_of_itself_is_believed_not_its_banner(method, said, status):
    refusal = ADAPTER.check_ready(make_cell(method), ready(**said), "Mode  MTP", "")
    assert (None if refusal is None else refusal.status) is status
    assert refusal is None or refusal.reason


@pytest.mark.parametrize(
    "cell",
    [
        make_cell(Method("d", MethodKind.DRAFT, 4, "small")),
        make_cell(Method("m", MethodKind.MTP, 9)),
        make_cell(eos=EosPolicy.MASK),
        make_cell(sampling=dataclasses.replace(GREEDY, min_p=0.1)),
        make_cell(profile="fastest"),
    ],
)
def test_what_it_cannot_do_is_refused_in_words(cell):
    refusal = ADAPTER.supports(cell, HERE)
    assert refusal is not None
    assert refusal.status is Status.UNSUPPORTED
    assert refusal.remedy
    assert ADAPTER.supports(make_cell(), HERE) is None


def test_the_claim_says_whose_it_is():
    warm = dataclasses.replace(GREEDY, temperature=0.8)
    found = [ADAPTER.exactness(make_cell(*pair), HERE) for pair in ((NONE, GREEDY), (MTP, GREEDY), (MTP, warm))]
    assert [claim.rule for claim in found] == [Rule.NONE, Rule.GREEDY_MATCH, Rule.REJECTION]
    assert all("README" in claim.by for claim in found)
    assert "differ" in found[1].note


def test_the_first_token_comes_alone_and_no_id_is_made_up():
    case = load_case(GOLDEN / "mtplx" / "mtp")
    capture = case.trial_of(case.capture())
    found, parsed = ADAPTER.arrivals(case.cell, capture), ADAPTER.parse_trial(case.cell, capture)
    assert len(found.tokens[0].ids) == 1
    assert {token for one in found.tokens for token in one.ids} == {-1}
    assert sum(len(one.ids) for one in found.tokens) == values(parsed)["output_tokens"]
    assert parsed.token_ids == ()


def test_a_round_in_two_events_is_one_burst():
    case = load_case(GOLDEN / "mtplx" / "mtp")
    capture = case.trial_of(case.capture())
    pieces = len(ADAPTER.arrivals(case.cell, capture).tokens)
    step = capture.steps["request"]
    fewer = pieces - 4
    text = json.dumps({"verify_calls": fewer})
    events = tuple(
        RawEvent(one.t_s, one.data.replace('"verify_calls": ', text[1:-1] + ', "was": ', 1)) for one in step.events
    )
    changed = dataclasses.replace(capture, steps={"request": dataclasses.replace(step, events=events)})
    bursts = {one.burst for one in ADAPTER.arrivals(case.cell, changed).tokens}
    assert len(bursts) == fewer + 1


def test_the_counts_of_a_real_answer_add_up():
    found = values(with_stats("mtp"))
    assert found["output_tokens"] == 1 + found["verify_rounds"] + found["accepted_tokens"]
    assert sum(found["drafted_by_position"]) == found["drafted_tokens"]
    assert found["rejected_tokens"] + found["accepted_tokens"] + found["discarded_tokens"] == found["drafted_tokens"]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"context_copy_drafted_tokens": 4}, "from the prompt too"),
        ({"generation_mode": "ar"}, "decoded in mode ar"),
        ({"rejected_drafts": 10_000}, "refused"),
        ({"drafted_by_depth": [1, 1, 1]}, "sums up to 3"),
        ({"memory_stop": {"completion_tokens": 3}}, "cut the answer itself"),
    ],
)
def test_what_contradicts_itself_is_a_problem(changed, word):
    assert word in " ".join(with_stats("mtp", **changed).problems)
    assert with_stats("mtp").problems == ()


def test_a_baseline_that_drafts_says_so():
    assert values(with_stats("none", drafted_tokens=6))["drafted_tokens"] == 6
    assert values(with_stats("none"))["drafted_tokens"] is None
