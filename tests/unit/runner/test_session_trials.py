"""What a session asks: seeds that every arm shares, and a warm-up that is none of the measured prompts."""

from __future__ import annotations

import dataclasses

import pytest

from orchestrator.matrix.types import RunSettings
from orchestrator.runner.plan import WARMUP_TEXT, session_trials
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.workloads.grading import parse_grader
from orchestrator.workloads.load import Message, Prompt, known_names, load_prompts

BASE = Cell(
    EngineConfig("one", "a"),
    ModelConfig("m", "/m"),
    Method("none", MethodKind.NONE),
    Sampling("t0.8", 0.8, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0),
    Workload("w", "demo-short", 64, EosPolicy.MASK),
)
ARMS = {
    "baseline": BASE,
    "twin": dataclasses.replace(BASE, twin=True),
    "draft": dataclasses.replace(BASE, method=Method("d", MethodKind.DRAFT, 4, "x")),
    "ngram": dataclasses.replace(BASE, method=Method("n", MethodKind.NGRAM, 8)),
    "another engine": dataclasses.replace(BASE, engine=EngineConfig("two", "b")),
    "another model": dataclasses.replace(BASE, model=ModelConfig("k", "/k")),
    "another limit": dataclasses.replace(BASE, workload=dataclasses.replace(BASE.workload, max_tokens=8)),
}
PROMPTS = load_prompts("demo-short")


def settings(**more):
    given = {
        "preset": "demo", "sessions": 4, "trials": 3, "warmup": 2, "order": "abba", "order_seed": 7, "cache": "cold",
        "twin": True, "silence_timeout_s": 1.0, "total_timeout_s": 1.0, "startup_timeout_s": 1.0,
    }  # fmt: skip
    return RunSettings(**{**given, **more})


def seeds(cell, set_index, prompts=PROMPTS, **more):
    """Seed by prompt of the measured trials."""
    trials = session_trials(prompts, cell, settings(**more), set_index)
    return {spec.prompt_id: spec.seed for spec, _ in trials if spec.phase == "measured"}


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("set_index", [0, 1, 5])
def test_a_prompt_has_one_seed_in_a_session_whatever_the_arm(arm, set_index):
    assert seeds(ARMS[arm], set_index) == seeds(BASE, set_index)
    assert session_trials(PROMPTS, ARMS[arm], settings(), set_index) == session_trials(
        PROMPTS, BASE, settings(), set_index
    )


def test_seeds_differ_between_prompts_and_between_sessions():
    found = [seed for set_index in range(8) for seed in seeds(BASE, set_index, trials=9).values()]
    assert len(found) == 72
    assert len(set(found)) == 72
    assert all(0 <= seed < 2**31 for seed in found)


def test_a_seed_belongs_to_its_prompt_not_to_its_place():
    turned = tuple(reversed(PROMPTS))
    assert seeds(BASE, 2, turned, trials=9) == seeds(BASE, 2, trials=9)
    assert seeds(BASE, 2, trials=2).items() <= seeds(BASE, 2, trials=9).items()


def test_another_seed_of_the_policy_gives_others_and_the_rest_of_it_does_not():
    other = dataclasses.replace(BASE, sampling=dataclasses.replace(BASE.sampling, seed=8))
    assert set(seeds(other, 0).values()).isdisjoint(seeds(BASE, 0).values())
    hotter = dataclasses.replace(BASE, sampling=dataclasses.replace(BASE.sampling, temperature=1.0, top_k=40))
    assert seeds(hotter, 0) == seeds(BASE, 0)


def test_the_seeds_are_those_of_earlier_releases():
    """Runs are compared over months: a seed that changed would be another text."""
    assert seeds(BASE, 0, trials=3) == {"count-1": 574794914, "json-data-1": 634261565, "copy-1": 1354549524}


RICH = Prompt(
    "only", "chat", "ko", "질문", "답", parse_grader({"kind": "exact", "answer": "답"}, "x"), (Message("user", "질문"),), "short", 4096
)  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_set_without_a_prompt_to_spare_is_warmed_up_by_another_text(count):
    prompts = tuple(dataclasses.replace(RICH, id=f"p{number}", text=f"질문 {number}") for number in range(count))
    trials = session_trials(prompts, BASE, settings(trials=count), 0)
    warm = [prompt for spec, prompt in trials if spec.phase == "warmup"]
    measured = [prompt for spec, prompt in trials if spec.phase == "measured"]
    assert measured == list(prompts)
    assert len(warm) == 2
    for prompt in warm:
        assert prompt.text == WARMUP_TEXT
        assert (prompt.answer, prompt.task, prompt.messages, prompt.context_tokens) == (None, None, None, None)
        assert prompt.conversation == (Message("user", WARMUP_TEXT),)


@pytest.mark.parametrize("name", known_names())
@pytest.mark.parametrize("trials", [1, 3])
def test_no_set_warms_up_on_what_it_measures(name, trials):
    prompts = load_prompts(name)
    found = session_trials(prompts, BASE, settings(trials=trials), 0)
    measured = [spec for spec, _ in found if spec.phase == "measured"]
    warm = [spec for spec, _ in found if spec.phase == "warmup"]
    assert (len(measured), len(warm)) == (trials, 2)
    assert {spec.prompt for spec in measured}.isdisjoint(spec.prompt for spec in warm)
    assert [spec.prompt for spec in measured] == [prompt.text for prompt in prompts[:trials]]


def framed(**workload):
    return dataclasses.replace(BASE, workload=dataclasses.replace(BASE.workload, **workload))


def test_a_workload_may_have_its_own_number_of_trials():
    phases = [spec.phase for spec, _ in session_trials(PROMPTS, framed(trials=5), settings(trials=3), 0)]
    assert phases.count("measured") == 5


def test_what_warms_a_cache_goes_before_and_draws_another_answer():
    warm = session_trials(PROMPTS, framed(cache="warm"), settings(warmup=1), 0)
    assert [spec.phase for spec, _ in warm] == ["warmup", *["prime", "measured"] * 3]
    for (prime, _), (measured, _) in zip(warm[1::2], warm[2::2], strict=True):
        assert (prime.prompt, prime.prompt_id) == (measured.prompt, measured.prompt_id)
        assert prime.seed != measured.seed
    shared = session_trials(PROMPTS, framed(cache="shared-prefix", prefix="P"), settings(warmup=0), 0)
    assert [spec.phase for spec, _ in shared] == ["prime", *["measured"] * 3]
    assert shared[0][0].prompt_id not in {spec.prompt_id for spec, _ in shared[1:]}


def test_every_prompt_goes_out_in_its_frame_the_warm_up_too():
    def frame(prompt):
        return dataclasses.replace(prompt, text=f"<{prompt.text}>")

    for spec, prompt in session_trials(PROMPTS[:3], BASE, settings(), 0, frame=frame):
        assert spec.prompt == prompt.text
        assert (spec.prompt[0], spec.prompt[-1]) == ("<", ">")


def test_each_set_begins_with_the_next_prompt_and_every_prompt_keeps_its_seed():
    def order(set_index, *, turn):
        trials = session_trials(PROMPTS, BASE, settings(), set_index, turn=turn)
        return [(spec.prompt_id, spec.seed) for spec, _ in trials if spec.phase == "measured"]

    names = [[name for name, _ in order(i, turn=True)] for i in range(4)]
    first, second, third = names[0]
    assert names[1:] == [[second, third, first], [third, first, second], names[0]]
    for set_index in range(4):
        assert sorted(order(set_index, turn=True)) == sorted(order(set_index, turn=False))
    assert [name for name, _ in order(1, turn=False)] == names[0]
