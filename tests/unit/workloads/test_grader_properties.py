"""Whatever a model writes, a grader gives a verdict that can be written down."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.workloads.grading import degenerate, grade, parse_grader

PIECES = st.sampled_from([
    "{", "}", "[", "]", '"', "\\", ",", ":", "```", "```python\n", "\n", " ", "<tool_call>", "</tool_call>", "1", "-",
    "−", "–", "1,234", " 234", ".5", "1e9", "e", "def f(", "):", "    return ", "\x00", "\ud800", "\u202e", "한국어", "a", "true", "NaN",
    "[TOOL_CALLS]", "name", "arguments", "Answer:", "\ufffd",
])  # fmt: skip
ANSWERS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=80).map("".join))
TASKS = [
    {"kind": "exact", "answer": "a", "take": "start"},
    {"kind": "exact", "answer": "a", "take": "last_line", "normalise": ["nfkc", "case", "punctuation"]},
    {"kind": "numeric", "value": 1234, "units": ["km"], "take": "only"},
    {"kind": "regex", "pattern": "(a|b)*1", "form": "."},
    {"kind": "json", "schema": {"type": "object", "properties": {"name": {"pattern": "a"}}}, "expect": {"/name/0": 1}},
    {"kind": "json", "schema": {}, "take": "whole", "equals": None, "after": "Answer:"},
    {"kind": "tool_call", "tools": {"a": {"type": "object"}}, "name": "a", "equals": {}},
    {"kind": "python", "defines": ["f"]},
    {"kind": "python", "prefix": "def f():\n"},
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["kind"])
@settings(max_examples=150, deadline=None)
@given(text=ANSWERS, finish=st.sampled_from(["eos", "length"]))
def test_any_text_gets_the_same_verdict_twice(task: dict[str, object], text: str, finish: str) -> None:
    grader = parse_grader(task, "here")
    found = grade(grader, text, finish=finish)
    assert found == grade(grader, text, finish=finish)
    assert (found.valid is False) <= (found.correct is False)
    assert bool(found.reason) == (found.valid is not True or found.correct is not True)
    found.reason.encode("utf-8")


@settings(max_examples=300, deadline=None)
@given(text=ANSWERS, prompt=ANSWERS, finish=st.sampled_from(["eos", "length"]))
def test_any_text_is_an_answer_or_is_said_why_not(text: str, prompt: str, finish: str) -> None:
    found = degenerate(text, prompt=prompt, finish=finish)
    assert found.partition(":")[0] in ("", "empty", "unreadable", "loop")
    found.encode("utf-8")


@settings(max_examples=100, deadline=None)
@given(piece=st.text("abc .\n안", min_size=1, max_size=30).filter(str.strip), times=st.integers(4, 40))
def test_a_piece_over_and_over_is_a_loop(piece: str, times: int) -> None:
    text = piece * max(times, 64 // len(piece) + 1)
    assert degenerate(text, prompt="Say something.", finish="length").startswith("loop: ")
    assert degenerate(text, prompt=piece * 9, finish="length") == ""
