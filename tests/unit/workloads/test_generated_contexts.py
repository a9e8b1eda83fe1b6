"""Generated contexts: the same for everybody, of the length asked for, made of sentences, with a known answer."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import pairwise

import pytest

from orchestrator.workloads import contexts
from orchestrator.workloads.context_words import ENGLISH, KOREAN
from orchestrator.workloads.contexts import CLASSES, estimated_tokens, particle, prompts, report
from orchestrator.workloads.counts import token_counts
from orchestrator.workloads.grading import grade

KINDS = ("number", "seal", "json", "copy", "retell")


def test_the_same_class_gives_the_same_texts_everywhere():
    """The digests are those of the first release: a change of these texts is a change of the workload."""
    texts = "\x00".join(prompt.text for prompt in prompts(1024))
    assert hashlib.sha256(texts.encode()).hexdigest()[:16] == "9793707f20c843e6"
    assert prompts(1024) == prompts(1024)


@pytest.mark.parametrize("tokens", CLASSES)
def test_a_class_has_ten_prompts_of_its_length(tokens):
    made = prompts(tokens)
    assert [(p.category, p.language) for p in made] == [
        (f"context-{kind}", one) for kind in KINDS for one in ("en", "ko")
    ]
    for prompt in made:
        assert prompt.context_tokens == tokens
        assert prompt.id.startswith(f"context-{tokens // 1024}k-")
        # An entry is about 60 tokens; the estimate never exceeds the class.
        assert tokens - 160 <= estimated_tokens(prompt.text) <= tokens
        assert (prompt.task is None) == (prompt.category == "context-retell")
        assert prompt.length == {"context-retell": "long", "context-copy": None}.get(prompt.category, "short")


def test_the_length_can_be_steered_by_any_tokenizer():
    words = prompts(2000, lambda text: len(text.split()))
    for prompt in words:
        assert 1900 < len(prompt.text.split()) <= 2000
    with pytest.raises(ValueError, match="no room for a report in 1"):
        prompts(150)


def test_english_is_as_long_as_its_class_by_a_real_tokenizer():
    counts = token_counts()
    for tokens in CLASSES:
        for prompt in prompts(tokens):
            if prompt.language == "en":
                # An entry is never cut, which is a seventh of the smallest class at most.
                least = 0.85 if tokens == 1024 else 0.9
                assert least <= counts[prompt.id]["smollm2"] / tokens <= 1.02, prompt.id


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_report_is_made_of_sentences_and_its_entries_are_its_facts(language):
    text, entries = report("test", language, 4000, estimated_tokens)
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert len({entry.seal for entry in entries}) == len(entries)
    assert text.split("\n\n")[1:] == [entry.text for entry in entries]
    words = {"en": ENGLISH, "ko": KOREAN}[language]
    for entry in entries:
        assert "{" not in entry.text
        assert f"{entry.crates} crates" in entry.text or f"{entry.crates}상자" in entry.text
        assert entry.seal in entry.text
        assert entry.goods in words.goods
        assert entry.goods in entry.text
        sentences = re.findall(r"[^.]+\.(?= |$)", entry.text)
        assert 4 <= len(sentences) <= 6
        if language == "en":
            assert not any(sentence.strip()[0].islower() for sentence in sentences)
        else:
            assert not re.search(r"[가-힣](이/가|은/는|을/를)", entry.text)


def test_the_text_repeats_sentences_but_no_paragraph():
    """Random tokens would be no text, and one paragraph again and again no context."""
    text, entries = report("variety", "en", 16_000, estimated_tokens)
    assert len({entry.text.split(". ", 1)[1] for entry in entries}) == len(entries)
    sentences = [s for entry in entries for s in re.split(r"(?<=\.) ", entry.text)[1:]]
    assert 0.5 < len(set(sentences)) / len(sentences) < 1
    runs = (
        max(sum(1 for _ in pair) for pair in pairwise(sentences) if pair[0] == pair[1])
        if any(a == b for a, b in pairwise(sentences))
        else 0
    )
    assert runs <= 2
    assert len(text) > 50_000


@pytest.mark.parametrize(
    ("word", "pair", "form"),
    [
        ("사과", ("을", "를"), "를"), ("꿀", ("을", "를"), "을"), ("다락", ("은", "는"), "은"), ("창고", ("이", "가"), "가"),
        ("돌 지하실", ("으로", "로"), "로"), ("동쪽 광", ("으로", "로"), "으로"), ("북쪽 창고", ("으로", "로"), "로"),
    ],
)  # fmt: skip
def test_korean_particles_fit_their_word(word, pair, form):
    assert particle(word, *pair) == form


def answers(prompt):
    """The right answer, found in the text by other means than the generator's, and a wrong one."""
    report_text, question = prompt.text.rsplit("\n\n", 1)
    number = re.search(r"(?:entry (\d+))|(?:(\d+)번)", question)
    wanted = number[1] or number[2]
    mark = f"Entry {wanted}. " if prompt.language == "en" else f"{wanted}번 기록. "
    (entry,) = [part for part in report_text.split("\n\n") if part.startswith(mark)]
    crates = re.search(r"(\d+) crates|(\d+)상자", entry)
    seal = re.search(r"[B-Z]{2}-\d{4}", entry)[0]
    return entry, int(crates[1] or crates[2]), seal


@pytest.mark.parametrize("tokens", [1024, 4096])
def test_the_known_answers_are_the_texts_own(tokens):
    for prompt in prompts(tokens):
        if prompt.category == "context-retell":
            continue
        entry, crates, seal = answers(prompt)
        rules = json.loads(prompt.task.canonical)
        right, wrong = {
            "context-number": (str(crates), str(crates + 1)),
            "context-seal": (f"{seal}.", "AB-0000"),
            "context-json": (json.dumps(rules.get("equals")), "{}"),
            "context-copy": (entry, entry[:-10]),
        }[prompt.category]
        assert grade(prompt.task, right, finish="stop").correct is True
        assert grade(prompt.task, wrong, finish="stop").correct is False
        if prompt.category == "context-json":
            assert (rules["equals"]["crates"], rules["equals"]["seal"]) == (crates, seal)
            assert rules["equals"]["goods"] in entry


@pytest.mark.parametrize("tokens", CLASSES)
def test_figures_may_stand_in_a_sentence_that_names_the_entry_and_no_other_figure(tokens):
    for prompt in prompts(tokens):
        if prompt.category not in ("context-number", "context-seal"):
            continue
        entry, crates, seal = answers(prompt)
        number = re.search(r"\d+", entry)[0]
        fact, other = (str(crates), str(crates + 1)) if prompt.category == "context-number" else (seal, "AB-1234")
        right = [
            fact, f" {fact}.", f"**{fact}**", f"{fact}\n\nEntry 99. On 3 May", f"Entry {number} counted {fact} crates.",
            f"The answer is {fact}, in entry {number}.",
        ]  # fmt: skip
        wrong = [
            other, f"{other}\n{fact}", f"Entry {number} counted {other} crates.", f"{other} or {fact}", f"1{fact}", f"{fact}0",
            f"{fact}.5", f"-{fact}", f"Entry {number}", entry, prompt.text, prompt.text.rsplit("\n\n", 1)[1],
        ]  # fmt: skip
        if prompt.language == "ko":
            right = [fact, f"{fact}이다.", f"{number}번 기록에는 {fact}라고 적혀 있다.", f"답: {fact}\n\n99번 기록"]
            wrong = [one.replace("Entry ", "").replace(" counted", "번 기록은") for one in wrong]
        assert [one for one in right if grade(prompt.task, one, finish="stop").correct is not True] == []
        assert [one for one in wrong if grade(prompt.task, one, finish="stop").correct is not False] == []


def test_remarks_on_the_weather_make_sense_together_and_in_any_season():
    """Every weather stands for every remark that names one, so each must be a hindrance; an entry has one weather."""
    fine = ("sun", "warm", "clear", "still", "snow", "frost", "해가", "따뜻", "맑", "눈 ", "서리")
    for language, words in (("en", ENGLISH), ("ko", KOREAN)):
        assert not [one for one in words.weather if any(word in one for word in fine)]
        assert len(set(words.weather)) == 10
        _, entries = report("weather", language, 30_000, estimated_tokens)
        told = [{one for one in words.weather if one.lower() in entry.text.lower()} for entry in entries]
        assert max(map(len, told)) == 1
        assert set().union(*told) == set(words.weather)


def test_the_estimate_counts_digits_letters_and_hangul_apart():
    assert estimated_tokens("") == 0
    assert estimated_tokens("12345") == 5
    assert estimated_tokens("abcd" * 81) == pytest.approx(324 / contexts.ASCII_PER_TOKEN)
    assert estimated_tokens("가" * 97) == pytest.approx(100)
