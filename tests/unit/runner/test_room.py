"""A prompt that cannot fit into the context is refused before an engine starts, and no other one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from scripted_job import matrix_cells

from orchestrator.runner.room import crowded, longest, room_refusal
from orchestrator.schema.status import Status
from orchestrator.workloads.prompt import Prompt

WORDS = dict(enumerate(["word ", *"word "]))


class Knowing:
    """An adapter that knows a vocabulary, and counts how often it is asked."""

    name = "knowing"

    def __init__(self, texts):
        self.texts, self.asked = texts, 0

    def token_texts(self, cell, ids):
        self.asked += 1
        return {number: self.texts[number] for number in ids if number in self.texts}


def prompt(words, name="p"):
    return Prompt(name, "c", "en", "word " * words)


def cell_with(folder, context):
    base = matrix_cells(folder)[0]
    options = {} if context is None else {"context": context}
    return replace(base, engine=replace(base.engine, options=options))


def refusal(folder, context, prompts, texts=WORDS, adapter=None):
    cell = cell_with(folder, context)
    return room_refusal(cell, longest(cell, adapter or Knowing(texts), prompts))


def test_a_prompt_that_cannot_fit_is_refused_with_what_to_write(tmp_path):
    found = refusal(tmp_path, 512, [prompt(3), prompt(600, "long"), prompt(550)])
    assert found is not None
    assert found.status is Status.UNSUPPORTED
    assert found.reason == (
        "prompt long of workload w is at least 600 tokens by the model's vocabulary, the context holds 512"
    )
    assert found.remedy == "set engines.fake.options.context to 768 or more, or take shorter prompts"


@pytest.mark.parametrize(("words", "refused"), [(511, False), (512, True)])
def test_the_last_token_of_the_context_is_for_the_answer(tmp_path, words, refused):
    assert (refusal(tmp_path, 512, [prompt(words)]) is not None) is refused


@pytest.mark.parametrize(("context", "words", "refused"), [(400, 511, False), (400, 512, True), (1, 255, False)])
def test_a_context_counts_as_rounded_up_since_an_engine_may_round_it(tmp_path, context, words, refused):
    assert (refusal(tmp_path, context, [prompt(words)]) is not None) is refused


@pytest.mark.parametrize("context", [None, 0, "4k"])
def test_a_context_that_is_not_known_is_not_judged(tmp_path, context):
    assert refusal(tmp_path, context, [prompt(100_000)]) is None


def test_a_vocabulary_that_is_not_known_is_not_judged(tmp_path):
    assert refusal(tmp_path, 256, [prompt(1000)], {}) is None
    assert refusal(tmp_path, 256, [prompt(1000)], adapter=SimpleNamespace(name="knows none")) is None


def test_the_vocabulary_is_read_once_and_only_where_the_length_does_not_settle_it(tmp_path):
    adapter = Knowing(WORDS)
    assert refusal(tmp_path, 512, [prompt(100)], adapter=adapter) is None
    assert adapter.asked == 0
    assert refusal(tmp_path, 512, [prompt(500)], adapter=adapter) is None
    assert refusal(tmp_path, 512, [prompt(600)], adapter=adapter) is not None
    assert adapter.asked == 1


@pytest.mark.parametrize(("words", "said"), [(500, False), (501, True), (511, True), (512, False)])
def test_an_answer_that_has_no_room_after_the_prompt_is_told(tmp_path, words, said):
    """Of a prompt that does not fit at all, the refusal speaks."""
    cell = cell_with(tmp_path, 512)
    assert cell.workload.max_tokens == 12
    sentence = crowded(cell, longest(cell, Knowing(WORDS), [prompt(words)]))
    assert bool(sentence) is said
    if words == 501:
        assert sentence == (
            "prompt p of workload w is at least 501 tokens by the model's vocabulary: with the 12 of max_tokens that is "
            "more than the context of 512, so answers may be cut; set engines.fake.options.context to 768 or more, or "
            "lower max_tokens"
        )


def test_nothing_is_told_where_nothing_is_known(tmp_path):
    assert crowded(cell_with(tmp_path, 512), None) == ""
