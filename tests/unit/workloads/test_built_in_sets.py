"""The sets that come with the program: what is promised of them holds, and every task can be answered rightly."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise

import pytest

from orchestrator.workloads.built_in import CATEGORIES, DATA, SETS, built_in
from orchestrator.workloads.counts import TOKENIZERS, token_counts
from orchestrator.workloads.grading import grade
from orchestrator.workloads.load import known_names, load_prompts

FULL = load_prompts("full")
BY_ID = {prompt.id: prompt for name in SETS for prompt in built_in(name)}


def test_every_file_is_a_set_and_every_set_is_known():
    files = {path.stem for path in DATA.glob("*.jsonl")}
    assert files <= set(SETS)
    assert set(known_names()) == set(SETS)
    assert {"tasks-small", "entropy-ladder", "full", "context-1k", "context-4k", "context-16k", "context-32k"} <= set(
        SETS
    )
    for one in SETS.values():
        assert one.about
        assert load_prompts(one.name) == built_in(one.name) != ()


def test_an_id_means_one_prompt_in_all_sets():
    for name in SETS:
        prompts = built_in(name)
        assert len({prompt.id for prompt in prompts}) == len(prompts)
        for prompt in prompts:
            assert BY_ID[prompt.id] == prompt


def test_the_full_set_has_eight_prompts_of_every_category_and_language():
    counted = Counter((prompt.category, prompt.language) for prompt in FULL)
    assert set(counted) == {(category, language) for category in CATEGORIES for language in ("en", "ko")}
    assert min(counted.values()) >= 8
    assert len(FULL) == sum(len(built_in(category)) for category in CATEGORIES)


def test_most_of_the_full_set_has_a_task():
    assert sum(prompt.task is not None for prompt in FULL) > 0.8 * len(FULL)
    for category in set(CATEGORIES) - {"prose", "summary", "chat"}:
        assert all(prompt.task is not None for prompt in built_in(category)), category


def test_there_are_short_and_long_answers_in_every_category_where_they_make_sense():
    for language in ("en", "ko"):
        long = {prompt.category for prompt in FULL if (prompt.length, prompt.language) == ("long", language)}
        short = {prompt.category for prompt in FULL if (prompt.length, prompt.language) == ("short", language)}
        assert long >= set(CATEGORIES) - ({"translation"} if language == "ko" else set())
        assert short >= set(CATEGORIES) - {"reasoning"}
    assert set(built_in("full-short")) | set(built_in("full-long")) < set(FULL)
    assert {prompt.length for prompt in built_in("full-short")} == {"short"}
    assert {prompt.length for prompt in built_in("full-long")} == {"long"}
    assert {prompt.language for prompt in built_in("full-en")} == {"en"}
    assert Counter(built_in("full-en")) + Counter(built_in("full-ko")) == Counter(FULL)


@pytest.mark.parametrize("name", ["context-1k", "context-4k", "context-16k", "context-32k"])
def test_the_halves_of_a_context_class_are_its_languages(name):
    english, korean = built_in(f"{name}-en"), built_in(f"{name}-ko")
    assert (len(english), len(korean)) == (5, 5)
    assert Counter(english) + Counter(korean) == Counter(built_in(name))
    assert {prompt.language for prompt in english} == {"en"}
    assert {prompt.language for prompt in korean} == {"ko"}


def test_any_first_few_of_the_full_set_are_a_mixture():
    """A run takes the first prompts of a set: they must not be all of one kind."""
    assert {prompt.category for prompt in FULL[: len(CATEGORIES)]} == set(CATEGORIES)
    assert {prompt.language for prompt in FULL[: 2 * len(CATEGORIES)]} == {"en", "ko"}
    first, second, third, *_ = (prompt.category for prompt in built_in("tasks-small"))
    assert (first, second) == ("fact", "json")
    assert third in ("arithmetic", "copy")
    assert len({prompt.category for prompt in built_in("tasks-small")[:5]}) == 5


def test_the_rungs_of_the_ladder_are_dealt_out_in_turns():
    rungs = [int(prompt.category.split("-")[1]) for prompt in built_in("entropy-ladder")]
    assert rungs == [1, 2, 3, 4, 5, 6] * 8
    assert [prompt.language for prompt in built_in("entropy-ladder")] == ["en"] * 24 + ["ko"] * 24
    assert built_in("entropy-ladder-en") + built_in("entropy-ladder-ko") == built_in("entropy-ladder")
    assert {prompt.language for prompt in built_in("entropy-ladder-en")} == {"en"}


def test_a_korean_prompt_is_korean_and_an_english_one_is_not_only_korean():
    for prompt in FULL:
        hangul = len(re.findall("[가-힣]", prompt.text))
        if prompt.language == "ko":
            assert hangul >= 5, prompt.id
        else:
            assert len(re.findall("[A-Za-z]", prompt.text)) > 20, prompt.id


def test_no_prompt_begins_like_another_of_its_set_for_long():
    """A cache that lives for more than one request would answer the second from the first."""
    for name in ("context-1k", "context-4k", "context-16k", "context-32k"):
        for one, other in pairwise(sorted(prompt.text for prompt in built_in(name))):
            same = next(at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
            assert same < 160, name


def test_the_ladder_goes_from_copying_to_open_prose():
    ladder = built_in("entropy-ladder")
    rungs = Counter((prompt.category, prompt.language) for prompt in ladder)
    names = ["rung-1-copy", "rung-2-edit", "rung-3-series", "rung-4-code", "rung-5-explain", "rung-6-invent"]
    assert rungs == {(name, language): 4 for name in names for language in ("en", "ko")}
    for prompt in ladder:
        if prompt.category == "rung-1-copy":
            assert prompt.task is not None
            said = prompt.text.split("\n\n", 1)[1]
            times = 12 if "\uc5f4\ub450 \ubc88" in prompt.text else 4
            assert grade(prompt.task, "\n\n".join([said] * times), finish="stop").correct is True
            assert grade(prompt.task, said, finish="stop").correct is False
        assert (prompt.task is None) == (
            prompt.category in ("rung-3-series", "rung-5-explain", "rung-6-invent")
            or "past tense" in prompt.text
            or "-습니다" in prompt.text
        )


def test_the_small_tasks_are_short_and_all_have_a_task():
    small = built_in("tasks-small")
    assert len(small) == 12
    assert all(prompt.task is not None and prompt.length == "short" and prompt.language == "en" for prompt in small)
    assert {prompt.task.kind for prompt in small} == {"json", "regex"}


# What a right answer may look like, and one that is wrong, for tasks whose rules are not copied from the prompt.
RIGHT_AND_WRONG = {
    "small-json-1": ('{"name": "Ada", "age": 36}', '{"name": "Ada", "age": "36"}'),
    "small-json-2": ('```json\n{"city": "Rome"}\n```', '{"data": {"city": "Rome"}}'),
    "en-code-1": ("```python\ndef is_leap(year):\n    return year % 4 == 0\n```", "def is_leap(year) return"),
    "en-json-3": ('["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]', '["Monday"]'),
    "en-json-8": ('{"name": "set_timer", "arguments": {"minutes": 25, "label": "bread"}}', '{"name": "set_timer", "arguments": {"minutes": 52, "label": "bread"}}'),
    "en-arithmetic-6": ("The journey takes 197 minutes.", "The journey takes 3 hours and 17 minutes."),
    "en-extraction-5": ("Friday.", "Thursday"),
    "ko-extraction-4": ("월요일입니다.", "화요일"),
    "en-editing-5": ("The committee met on Monday. It elected a chair. It closed the meeting at nine.", "The committee met on Monday."),
    "en-reasoning-1": ("12 hens, 8 goats.\nAnswer: 8", "8 hens, 12 goats.\nAnswer: 12"),
    "en-reasoning-4": ("White, Red, Blue, Yellow, Green.\nAnswer: 3", "Answer: 2"),
    "ko-reasoning-3": ("50일 뒤는\n답: 화요일", "답: 월요일"),
    "en-chat-4": ("Pepper.", "Your cat is green."),
    "ko-chat-6": ("네.", "아니요"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT_AND_WRONG)
def test_a_right_answer_is_right_and_a_wrong_one_is_not(name):
    right, wrong = RIGHT_AND_WRONG[name]
    task = BY_ID[name].task
    assert task is not None
    found = grade(task, right, finish="stop")
    assert found.valid is True, found
    assert found.correct is not False, found
    assert grade(task, wrong, finish="stop").correct is False


def test_what_must_be_copied_stands_in_the_prompt():
    for prompt in FULL:
        if prompt.category == "extraction" and prompt.task.kind == "numeric":
            continue
        rules = json.loads(prompt.task.canonical) if prompt.task else {}
        if prompt.category == "editing" and "그대로 베껴" in prompt.text:
            assert rules["answer"][0] in prompt.text
        if prompt.id == "en-editing-1":
            assert rules["answer"][0] in prompt.text


@pytest.mark.parametrize("prompt", [p for p in FULL if p.category == "arithmetic"], ids=lambda p: p.id)
def test_the_sums_that_are_written_out_are_right(prompt):
    value = json.loads(prompt.task.canonical).get("value")
    found = re.search(r"(?<![\d ])(\d[\d ]*) ([-+×]) (\d+)\?", prompt.text)
    if found:
        left, sign, right = int(found[1].replace(" ", "")), found[2], int(found[3])
        assert value == {"+": left + right, "-": left - right, "×": left * right}[sign]
    listed = re.search(r"(?:alone|답하라): ((?:\d+, )+\d+)", prompt.text)
    if listed:
        assert value == sum(int(one) for one in listed[1].split(", "))


def test_every_prompt_has_a_token_count_of_both_tokenizers():
    counts = token_counts()
    assert set(counts) == set(BY_ID)
    for name, row in counts.items():
        assert set(row) == set(TOKENIZERS), name
        assert 0 < row["tiny"] <= len(BY_ID[name].text.encode())
        assert 0 < row["smollm2"] <= len(BY_ID[name].text.encode())
