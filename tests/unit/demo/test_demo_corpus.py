from __future__ import annotations

import ast
import hashlib
import json
import random
import re

import pytest

from orchestrator.demo import corpus, vocabulary

#: First lines of the first documents of three training seeds.
GOLDEN_FIRST_LINES = [
    'Record: "kind": "button", "colour": "warm", "count": 76, "ready": true => {"kind": "button", "colour": "warm", "count": 76, "ready": true}',
    'Record: "kind": "clock", "colour": "new", "count": 2, "ready": false => {"kind": "clock", "colour": "new", "count": 2, "ready": false}',
    "Copy: large basket old clock heavy basket => large basket old clock heavy basket",
]


def test_the_same_seed_gives_the_same_documents() -> None:
    assert list(corpus.documents(3, 20_000)) == list(corpus.documents(3, 20_000))
    assert list(corpus.documents(3, 20_000)) != list(corpus.documents(4, 20_000))


def test_the_text_is_the_one_the_models_were_trained_on() -> None:
    # A golden: whoever changes the generator changes what the committed weights know.
    first = [next(iter(corpus.documents(seed, 1))).split("\n")[0] for seed in (11, 12, 13)]
    assert first == GOLDEN_FIRST_LINES
    text = "\0".join(corpus.documents(11, 100_000))
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "9008efb2b1badd48da1f854d6526fa19816b74e578e5f0460fc4b2890bef9ce1"
    )


def test_the_categories_keep_their_shares() -> None:
    cues = {
        "Count": "count", "Copy": "copy", "Sum": "sum", "Record": "json", "Data": "json",
        "Code": "code", "Story": "prose-en", "이야기": "prose-ko",
    }  # fmt: skip
    sizes = dict.fromkeys(corpus.CATEGORIES, 0)
    for text in corpus.documents(5, 400_000):
        sizes[cues[re.split(r"[: ]", text, maxsplit=1)[0]]] += len(text)
    total = sum(sizes.values())
    for category, share in corpus.MIX:
        assert sizes[category] / total == pytest.approx(share, abs=0.02)
    assert sum(share for _, share in corpus.MIX) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(20))
def test_counting_answers_are_right(seed: int) -> None:
    prompt, answer = corpus.count_task(random.Random(seed))
    first, last = (int(number) for number in re.findall(r"\d+", prompt))
    assert [int(number) for number in re.findall(r"\d+", answer)] == list(range(first, last + 1))
    assert last <= corpus.LARGEST_COUNT
    assert answer.endswith(f" {last}.\n")


@pytest.mark.parametrize("times", [1, 2, 20])
def test_copying_answers_are_right(times: int) -> None:
    prompt, answer = corpus.copy_task(random.Random(times), times=times)
    items = prompt.split(": ")[1].removesuffix(" =>")
    assert len(items.split()) == corpus.COPY_WORDS
    assert answer.removesuffix("\n").split(" =>") == [f" {items}"] * times


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_right(seed: int) -> None:
    prompt, answer = corpus.sum_task(random.Random(seed))
    left, right = (int(number) for number in re.findall(r"\d+", prompt))
    assert int(answer) == left + right


@pytest.mark.parametrize("seed", range(20))
def test_records_hold_the_given_fields(seed: int) -> None:
    prompt, answer = corpus.record_task(random.Random(seed))
    given = json.loads("{" + prompt.removeprefix("Record: ").removesuffix(" =>") + "}")
    assert json.loads(answer) == given


@pytest.mark.parametrize("seed", range(5))
def test_code_parses_and_runs(seed: int) -> None:
    text = corpus.code(random.Random(seed), 4).removeprefix("Code:\n")
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert len(functions) == 4
    names: dict[str, object] = {}
    exec(compile(text, "corpus", "exec"), names)  # noqa: S102 - text of this repository's own generator
    function = names[functions[-1].name]
    assert callable(function)
    assert isinstance(function(2, 3), int)


@pytest.mark.parametrize("seed", range(5))
def test_random_records_are_json_lines(seed: int) -> None:
    cue, *lines = corpus.random_records(random.Random(seed), 3).splitlines()
    assert cue == "Data:"
    assert [sorted(json.loads(line)) for line in lines] == [["id", "kind", "size", "tags"]] * 3


def test_korean_particles_follow_the_last_syllable() -> None:
    assert [vocabulary.subject(word) for word in ("등불", "시계")] == ["등불이", "시계가"]
    assert [vocabulary.topic(word) for word in ("등불", "시계")] == ["등불은", "시계는"]
    assert [vocabulary.object_(word) for word in ("등불", "시계")] == ["등불을", "시계를"]


def test_tasks_are_balanced_reproducible_and_unique() -> None:
    tasks = list(corpus.tasks(9, 5))
    assert tasks == list(corpus.tasks(9, 5))
    assert [sum(task.category == name for task in tasks) for name in corpus.FIXED_CATEGORIES] == [5, 5, 5, 5]
    assert len({task.id for task in tasks}) == len(tasks)
    assert all(task.answer.endswith("\n") and not task.prompt.endswith(" ") for task in tasks)


def test_a_category_without_fixed_answers_is_refused() -> None:
    with pytest.raises(ValueError, match="'opera' has no fixed answers; expected one of count, copy, sum, json"):
        corpus.document(random.Random(1), "opera")
