"""A trial's answer becomes a grade, observations and something that can be written down."""

from __future__ import annotations

import json

import pytest

from orchestrator.runner.grading import grade_answer, storable, task_mark, task_of
from orchestrator.schema.metrics import Clock
from orchestrator.schema.observation import Absence
from orchestrator.schema.record import TrialGrade
from orchestrator.workloads.grading import parse_grader
from orchestrator.workloads.load import Prompt, load_prompts

PLAIN = Prompt("p", "prose", "en", "Write.")
SUM = Prompt("s", "arithmetic", "en", "6 + 1 =", task=parse_grader({"kind": "numeric", "value": 7}, "here"))
FORM = Prompt("j", "json", "en", "A list.", task=parse_grader({"kind": "json", "schema": {"type": "array"}}, "here"))
COUNT = Prompt("c", "count", "zxx", "Count from 1 to 3:", " 1, 2, 3.\n")


def test_a_prompt_without_a_task_is_said_to_have_none() -> None:
    found = grade_answer(PLAIN, "Once.", "eos")
    assert found.grade is None
    assert found.degenerate == ""
    assert {(item.metric, item.absent, item.note) for item in found.observations if item.value is None} == {
        ("task_valid", Absence.NOT_APPLICABLE, "the prompt states no task"),
        ("task_correct", Absence.NOT_APPLICABLE, "the prompt states no task"),
    }


def test_form_and_answer_are_two_observations_by_the_grader() -> None:
    found = grade_answer(SUM, "It is 8.", "eos")
    assert SUM.task is not None
    assert found.grade == TrialGrade(SUM.task.digest, "numeric", True, False, "8 where 7 is right")
    values = {item.metric: (item.value, item.clock, item.note) for item in found.observations}
    assert values == {
        "output_degenerate": (False, Clock.GRADER, None),
        "task_valid": (True, Clock.GRADER, None),
        "task_correct": (False, Clock.GRADER, "8 where 7 is right"),
    }


def test_a_task_that_only_asks_for_a_form_has_no_right_answer() -> None:
    found = grade_answer(FORM, "[1]", "eos")
    assert [(item.metric, item.value, item.absent) for item in found.observations] == [
        ("output_degenerate", False, None),
        ("task_valid", True, None),
        ("task_correct", None, Absence.NOT_APPLICABLE),
    ]


def test_the_one_right_continuation_is_a_task() -> None:
    right, wrong = grade_answer(COUNT, " 1, 2, 3.\nMore", "length"), grade_answer(COUNT, "1, 2, 4.\n", "eos")
    assert (right.grade is not None, wrong.grade is not None) == (True, True)
    assert [one.grade.correct for one in (right, wrong) if one.grade is not None] == [True, False]


def test_a_broken_answer_is_told_beside_its_grade() -> None:
    found = grade_answer(SUM, "7 " * 100, "length")
    assert found.degenerate == "loop: the last 200 of 200 characters repeat '7 '"
    assert found.grade is not None
    assert found.grade.correct is True
    assert found.observations[0].value is True
    assert found.observations[0].note == found.degenerate


def test_a_loop_that_is_right_throughout_is_no_loop() -> None:
    again = Prompt(
        "c", "copy", "en", "As often as you like:", task=parse_grader({"kind": "exact", "answer": "ab " * 60}, "here")
    )
    for text, finish, told in (
        ("ab " * 40, "length", ""),
        ("ab " * 60, "length", ""),
        ("ab " * 40 + "b ab " * 40, "length", "loop"),
    ):
        assert grade_answer(again, text, finish).degenerate.partition(":")[0] == told
    so_far = grade_answer(again, "ab " * 40, "length").grade
    assert so_far is not None
    assert (so_far.valid, so_far.correct, so_far.so_far) == (True, None, True)


@pytest.mark.parametrize("name", ["demo-short", "demo-long", "entropy-ladder", "editing"])
def test_right_answers_to_the_prompts_that_come_with_the_program_are_no_loops(name: str) -> None:
    for prompt in load_prompts(name):
        task = task_of(prompt)
        for answer in json.loads(task.canonical)["answer"] if task is not None and task.kind == "exact" else ():
            for text, finish in ((answer, "stop"), (answer, "length"), (answer[: len(answer) // 2], "length")):
                found = grade_answer(prompt, text, finish)
                assert found.degenerate == "", prompt.id
                assert found.grade is not None
                assert found.grade.correct is not False, prompt.id


def test_copies_that_no_grader_judges_are_no_loops() -> None:
    asked = [prompt for prompt in load_prompts("demo-long") if prompt.text.startswith("Copy ")]
    assert asked
    for prompt in asked:
        piece = prompt.text.partition(":")[2].removesuffix("=>")
        assert grade_answer(prompt, (piece.rstrip() + "\n") * 8, "length").degenerate == ""
        assert grade_answer(prompt, " wholly else and other" * 8, "length").degenerate.startswith("loop: ")


def test_tokens_tell_a_flood_and_an_echo_is_no_answer() -> None:
    assert grade_answer(PLAIN, "A text of some length.", "length", [7] * 48).degenerate.startswith("loop: 48 of 48")
    asked = "Is the number of them 7 or is it 8, would you say?"
    echo = Prompt("s", "sum", "en", asked, task=parse_grader({"kind": "numeric", "value": 7, "take": "first"}, "here"))
    found = grade_answer(echo, asked, "eos").grade
    assert found is not None
    assert found.correct is False


def test_another_task_is_another_fingerprint_and_none_leaves_it_as_it_was() -> None:
    other = Prompt("s", "arithmetic", "en", "6 + 1 =", task=parse_grader({"kind": "numeric", "value": 8}, "here"))
    assert task_mark(PLAIN) == ""
    assert len({task_mark(SUM), task_mark(other), task_mark(COUNT), ""}) == 4
    assert task_of(SUM) is SUM.task


def test_half_a_surrogate_pair_can_be_written_down() -> None:
    assert storable("a\ud800b\U0001f600") == "a\ufffdb\U0001f600"
    assert storable("plain") == "plain"
