"""What is no answer, and what only looks like none."""

from __future__ import annotations

import json

import pytest

from orchestrator.workloads.grading import degenerate


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n\n\t ", "empty"),
        ("\x00\x00\u200b", "empty"),
        ("\ufffd" * 20, "unreadable"),
        ("ok \x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15", "unreadable"),
        ("!" * 64, "loop"),
        ("!" * 48, "loop"),
        ("가" * 48, "loop"),
        ("the " * 15, "loop"),
        (" the" * 15, "loop"),
        ("The answer is " + "@" * 80, "loop"),
        ("the " * 40, "loop"),
        ("I am a student. I like tea. " * 6, "loop"),
        ("안녕하세요. " * 20, "loop"),
        ('{"a": 0}, ' * 30, "loop"),
        ("ab" * 200_000, "loop"),
        ("x" * 400_000 + "y" * 400_000, "loop"),
    ],
)
def test_broken_answers_are_told(text: str, kind: str) -> None:
    assert degenerate(text, prompt="Say something.", finish="length").partition(":")[0] == kind


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        (", ".join(map(str, range(73, 120))), "Count from 73:"),
        ("\n".join(" ".join(str((7 * row + column**2) % 10) for column in range(8)) for row in range(20)), "A table:"),
        (json.dumps([{"id": number, "kind": "basket", "size": [number, 2]} for number in range(12)]), "List them."),
        ("a " * 60, "Copy: a a a a a a a a"),
        ("la la la, " * 20, "Sing: la la la, la la la, la la la, and on"),
        ("Yes.", "Is it?"),
        ("7", "6 + 1 ="),
        ("!" * 23, "Shout."),
        ("Here is a line: " + "-" * 48, "A line, please."),
        ("la di da, " * 5, "Sing."),
        ("A long and honest sentence that says what there is to say of it. " + "-" * 64, "Write, then a line."),
        ("Once there was a river. It ran to the sea. Nobody knew why it ran to the sea, and it ran on. " * 3, "Tell."),
    ],
)
def test_honest_answers_are_not(text: str, prompt: str) -> None:
    assert degenerate(text, prompt=prompt, finish="length") == ""


def test_what_ends_by_itself_is_a_loop_only_when_it_is_a_flood() -> None:
    text = "0, " * 50
    assert degenerate(text, prompt="Fifty zeros:", finish="eos") == ""
    assert (
        degenerate(text, prompt="Fifty zeros:", finish="length") == "loop: the last 150 of 150 characters repeat '0, '"
    )
    assert degenerate("the " * 500, prompt="Say something.", finish="stop") == (
        "loop: the last 2000 of 2000 characters repeat 'the '"
    )
    assert degenerate("Well. " * 5 + "the " * 500, prompt="Say something.", finish="stop").startswith("loop: ")
    assert degenerate("An answer. " * 12 + "the " * 100 + "An end.", prompt="Say something.", finish="stop") == ""


@pytest.mark.parametrize(
    ("tokens", "finish", "told"),
    [
        ([7] * 16, "length", "loop: 16 of 16 tokens are the same"),
        ([7] * 15, "length", ""),
        ([1, 2, *[7] * 30], "length", "loop: 30 of 32 tokens are the same"),
        ([1, 2, 3, *[5, 6] * 10], "length", "loop: the last 20 of 23 tokens repeat 2 of them"),
        ([5, 6, 7, 8] * 5, "length", "loop: the last 20 of 20 tokens repeat 4 of them"),
        ([5, 6, 7, 8, 9] * 5, "length", ""),
        ([*range(20), *[5, 6] * 10], "length", ""),
        (list(range(40)), "length", ""),
        ([7] * 60 + [2], "eos", ""),
        ([5, 6] * 80 + [2], "eos", "loop: the last 160 of 160 tokens repeat 2 of them"),
        ([], "length", ""),
    ],
)
def test_a_flood_is_told_by_its_tokens_too(tokens: list[int], finish: str, told: str) -> None:
    text = "An answer whose characters do not say it."
    assert degenerate(text, prompt="Say something.", finish=finish, token_ids=tokens) == told


def test_what_a_grader_found_right_throughout_is_no_loop() -> None:
    assert degenerate("1" * 60, prompt="Sixty ones:", finish="length", right=True) == ""
    assert degenerate(" " * 60, prompt="Sixty spaces:", finish="length", right=True).startswith("empty: ")


@pytest.mark.parametrize(
    ("text", "prompt", "told"),
    [
        (" mirror old feather ladder\n" * 10, "Copy 16 times: mirror old feather ladder =>", False),
        (" mirror old feather ladder;" * 10, "Copy 16 times: mirror old feather ladder =>", False),
        (" mirror old feather ladder\n" * 10, "I saw a mirror old feather ladder. What is it?", True),
        (" feather feather" * 20, "Copy 16 times: mirror old feather ladder =>", False),
        ("the " * 40, "Copy this: the old ladder of the house!", True),
        ("!" * 64, "Copy this: hello!", True),
        ("새벽에 불이 켜진다.\n" * 12, "다음 줄을 열두 번 그대로 써라.\n\n새벽에 불이 켜진다.", False),
        ("1월: 31일\n2월: 28일\n3월: 31일\n" * 5, "달마다 날수를 쓰고 다섯 번 되풀이하라. 예: 1월: 31일", False),
        ("1월: 31일\n2월: 28일\n3월: 31일\n" * 5, "달마다 날수를 써라. 예: 1월: 31일", True),
    ],
)
def test_a_prompt_that_asks_for_copies_shows_the_piece_once(text: str, prompt: str, told: bool) -> None:
    assert bool(degenerate(text, prompt=prompt, finish="length")) is told


def test_the_prompt_shows_a_piece_however_it_is_turned() -> None:
    assert degenerate("abc" * 40, prompt="Go on: cabcabcab", finish="length") == ""
    assert degenerate("abc" * 40, prompt="Go on: cabcab", finish="length").startswith("loop: ")
