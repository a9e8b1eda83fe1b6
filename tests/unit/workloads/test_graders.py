"""Every kind of task against right, wrong and hostile answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import pytest

from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.grading import Grade, answer_grader, grade, parse_grader, schema
from orchestrator.workloads.grading.verdict import UnjudgedError

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^[A-Z]"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
JSON_TASK = {"kind": "json", "schema": PERSON, "expect": {"/name": "Ada"}}
CALL_TASK = {
    "kind": "tool_call",
    "tools": {"weather": WEATHER, "time": {}},
    "name": "weather",
    "equals": {"city": "Seoul"},
}


def graded(task: Mapping[str, object], text: str, finish: str = "eos") -> Grade:
    return grade(parse_grader(task, "here"), text, finish=finish)


def verdict(task: Mapping[str, object], text: str, finish: str = "eos") -> tuple[bool | None, bool | None]:
    found = graded(task, text, finish)
    assert bool(found.reason) == (found.valid is not True or found.correct is not True)
    return found.valid, found.correct


EXACT = {"kind": "exact", "answer": ["Paris", "the city of Paris"]}
LOOSE = {"kind": "exact", "answer": "Paris", "normalise": ["nfc", "case", "space", "punctuation"]}
START = {"kind": "exact", "answer": "7", "take": "start"}
LAST = {"kind": "exact", "answer": "42", "take": "last_line", "after": "Answer:"}
METRES = {"kind": "numeric", "value": 1234.5, "absolute": 0.5, "units": ["km", "kilometres"]}
TWELVE = {"kind": "numeric", "value": 12}
ONLY = {"kind": "numeric", "value": -3, "take": "only"}
DATE = {"kind": "regex", "pattern": "^2026-0[1-9]-[0-9]{2}$", "form": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "match": "full"}
CODE = {"kind": "python", "defines": ["double"]}
FORM_LIST = {"kind": "json", "schema": {"type": "object"}}
CALL = '{"name": "weather", "arguments": {"city": "Seoul"}}'
TWICE = {"kind": "python", "prefix": 'def twice(x):\n    """Two times x."""\n', "defines": "twice"}
FORM_ONLY = {"kind": "json", "schema": {"type": "array", "items": {"type": "number"}, "uniqueItems": True}}


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        (EXACT, " Paris\n", (True, True)),
        (EXACT, "the  city of\tParis", (True, True)),
        (EXACT, "paris", (True, False)),
        (EXACT, "Paris is it", (True, False)),
        (EXACT, " \n", (False, False)),
        (LOOSE, "**paris.**", (True, True)),
        ({"kind": "exact", "answer": "e\u0301te\u0301"}, "\u00e9t\u00e9", (True, True)),
        (START, "7 days", (True, True)),
        (START, "73", (True, False)),
        (START, "7.5", (True, False)),
        (START, "7. Then", (True, True)),
        (START, "7th", (True, False)),
        (LAST, "6 × 7\nAnswer: no\nAnswer:\n 42 \n", (True, True)),
        (LAST, "42", (False, False)),
        ({"kind": "exact", "answer": "A", "take": "first_line"}, "\n A\nB", (True, True)),
        (METRES, "about 1,234.2 km.", (True, True)),
        (METRES, "1234.5kilometres", (True, True)),
        (METRES, "1233 km", (True, False)),
        (METRES, "1234.5 miles", (False, False)),
        (METRES, "1234.5 kmh", (False, False)),
        (METRES, "거리는 1234.5km입니다", (True, True)),
        (METRES, "far", (False, False)),
        ({"kind": "numeric", "value": 2, "take": "first"}, "2, then 3", (True, True)),
        ({"kind": "numeric", "value": 3}, "1,2,3", (True, True)),
        ({"kind": "numeric", "value": 1.5e3}, "v1.2.9 gives 1.5e3", (True, True)),
        ({"kind": "numeric", "value": 0.1}, "0.1", (True, True)),
        ({"kind": "numeric", "value": 100, "relative": 0.01}, "101", (True, True)),
        ({"kind": "numeric", "value": 100, "relative": 0.01}, "101.01", (True, False)),
        ({"kind": "numeric", "value": 5}, "3-5", (True, True)),
        (ONLY, "It is −3, so −3.0.", (True, True)),
        (ONLY, "3 or -3", (False, False)),
        (DATE, " 2026-03-09 ", (True, True)),
        (DATE, "2025-03-09", (True, False)),
        (DATE, "9 March", (False, False)),
        ({"kind": "regex", "pattern": "seoul", "ignore_case": True}, "In SEOUL.", (True, True)),
        ({"kind": "regex", "pattern": "a.b"}, "a\nb", (True, False)),
        ({"kind": "regex", "pattern": "a.b", "dot_all": True}, "a\nb", (True, True)),
        (JSON_TASK, 'Sure:\n```json\n{"name": "Ada", "age": 36}\n```', (True, True)),
        (JSON_TASK, '{"name": "Ada", "age": 36.0}', (True, True)),
        (JSON_TASK, '{"name": "Bob", "age": 36}', (True, False)),
        (JSON_TASK, '{"name": "ada", "age": 36}', (False, False)),
        (JSON_TASK, '{"name": "Ada"}', (False, False)),
        (JSON_TASK, '{"name": "Ada", "age": 3, "x": 1}', (False, False)),
        (JSON_TASK, '{"name": "Ada", "age": true}', (False, False)),
        (JSON_TASK, '{"name": "Ada", "name": "Ada", "age": 3}', (False, False)),
        (JSON_TASK, '{"name": "Ada", "age": 3', (False, False)),
        (JSON_TASK, "{name: 'Ada'}", (False, False)),
        (JSON_TASK, '{"name": "A\\"}", "age": 3}', (True, False)),
        (FORM_LIST, '[{"a": 1}, {"a": 2}]', (False, False)),
        (FORM_LIST, 'As in [1]: {"a": 1}', (False, False)),
        (FORM_LIST, 'See [the note] first: {"a": 1} and [this].', (True, None)),
        (FORM_LIST, '{"a": 1} no wait {"a": 2}', (False, False)),
        (FORM_LIST, '{"a": 1} [x} no wait {"a": 2}', (False, False)),
        (FORM_LIST, '{"a": 1} (open { and [ only) {"a": 2}', (False, False)),
        (FORM_LIST, '{"a": 1} {"b": 2', (True, None)),
        (FORM_LIST, '{"a": 1}\n{"b": [2], "c": {"d": 3}, "e', (True, None)),
        (FORM_LIST, '{"a": 1}' + "[" * 500 + '{"a": 2}', (False, False)),
        ({"kind": "json", "schema": {"type": "array"}}, '{"days": ["Monday"]}', (False, False)),
        ({"kind": "json", "schema": {"type": ["object", "null"]}}, 'So: {"a": 1}', (True, None)),
        ({"kind": "json", "schema": {"type": ["object", "array"]}}, "So: [1]", (True, None)),
        ({"kind": "json", "schema": {"type": ["object", "null"]}}, "[1]", (False, False)),
        ({**JSON_TASK, "take": "whole"}, 'x {"name": "Ada", "age": 3}', (False, False)),
        ({**JSON_TASK, "take": "whole"}, ' {"name": "Ada", "age": 3}\n', (True, True)),
        (FORM_ONLY, "[1, 2.5]", (True, None)),
        (FORM_ONLY, "[1, 1.0]", (False, False)),
        ({"kind": "json", "schema": {"type": "array"}, "equals": [1, {"a": True}]}, '[1.0, {"a": true}]', (True, True)),
        ({"kind": "json", "schema": {"type": "array"}, "equals": [1]}, "[true]", (True, False)),
        ({"kind": "json", "schema": {"type": "array"}, "expect": {"/1/a~1b": 2}}, '[0, {"a/b": 2}]', (True, True)),
        ({"kind": "json", "schema": {"type": "array"}, "expect": {"/9": 2}}, "[0]", (True, False)),
        ({"kind": "json", "schema": {"type": "string"}, "take": "whole"}, '"x"', (True, None)),
        (CALL_TASK, '<tool_call>{"name": "weather", "arguments": {"city": "Seoul"}}</tool_call>', (True, True)),
        (CALL_TASK, '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Busan"}}]', (True, False)),
        (CALL_TASK, '{"name": "weather", "parameters": {"city": "Seoul"}}', (True, True)),
        (
            CALL_TASK,
            '{"tool_calls": [{"function": {"name": "weather", "arguments": "{\\"city\\": \\"Seoul\\"}"}}]}',
            (True, True),
        ),
        (CALL_TASK, '{"name": "time", "arguments": {}}', (True, False)),
        (CALL_TASK, '{"name": "weather", "arguments": {}}', (False, False)),
        (CALL_TASK, '{"name": "news", "arguments": {}}', (False, False)),
        (CALL_TASK, '{"name": "weather"}', (False, False)),
        (CALL_TASK, "<tool_call>{}</tool_call><tool_call>{}</tool_call>", (False, False)),
        (CALL_TASK, '<tool_call>{"name": "weather"', (False, False)),
        (CALL_TASK, "[TOOL_CALLS][]", (False, False)),
        (CALL_TASK, "It is sunny.", (False, False)),
        (CALL_TASK, f"{CALL} {CALL}", (False, False)),
        (CALL_TASK, f"[{CALL}, {CALL}]", (False, False)),
        (CALL_TASK, f"[{CALL}]", (True, True)),
        (CALL_TASK, f"[TOOL_CALLS][{CALL}][{CALL}]", (False, False)),
        (CALL_TASK, f"I call {CALL} now.", (True, True)),
        ({**CALL_TASK, "formats": ["tagged"]}, '{"name": "weather", "arguments": {"city": "Seoul"}}', (False, False)),
        ({"kind": "tool_call", "tools": {"time": {}}}, '{"name": "time", "arguments": {}}', (True, None)),
        (CODE, "Here:\n```python\ndef double(x):\n    return 2 * x\n```\nDone.", (True, None)),
        (CODE, "def double(x): return 2 * x", (True, None)),
        (CODE, "```sh\nls\n```\n```\ndef double(x):\n    pass\n```", (True, None)),
        (CODE, "```python\ndef double(x):\n    return 2 * x", (True, None)),
        (CODE, "def triple(x): return 3 * x", (False, False)),
        (CODE, "def double(x) return", (False, False)),
        (CODE, "raise SystemExit(1)\ndef double(x): pass", (True, None)),
        ({"kind": "python"}, "\n\n", (False, False)),
        ({"kind": "python", "prefix": "def f(x):\n"}, "    return x\n\nprint(f(", (True, None)),
        ({"kind": "python", "prefix": "def f(x):\n"}, "return x +", (False, False)),
        ({"kind": "python", "prefix": "def f(x):\n    y = x\n"}, "   return y\n    # done", (True, None)),
        ({"kind": "python", "prefix": "def f(x):\n    y = x\n"}, "  return y", (False, False)),
        (CODE, 'def double(x):\n    """Two times x."""\n    ...', (False, False)),
        ({"kind": "python", "defines": ["E"]}, 'class E(Exception):\n    """An error."""', (True, None)),
        (TWICE, "    return 2 * x\n", (True, None)),
        (TWICE, "   return 2 * x\n", (True, None)),
        (TWICE, "# sorry, I cannot", (False, False)),
        (TWICE, "x = 1", (False, False)),
        (TWICE, "```python\ndef twice(x):\n    return 2 * x\n```", (True, None)),
        (TWICE, "Here:\n```\n    return 2 * x\n```\nDone.", (True, None)),
        (TWICE, "def twice(x):\n    return 2 * x\n", (True, None)),
        (TWICE, "import math\n\ndef twice(x):\n    return 2 * x\n", (True, None)),
        (TWICE, "```python\ndef thrice(x):\n    return 3 * x\n```", (False, False)),
    ],
)  # fmt: skip
def test_right_and_wrong_answers(task: dict[str, object], text: str, expected: tuple[bool | None, bool | None]) -> None:
    assert verdict(task, text) == expected


def test_an_answer_cut_while_it_was_right_is_neither_right_nor_wrong() -> None:
    counted = answer_grader(" 73, 74, 75.\n")
    assert grade(counted, " 73, 74", finish="length") == Grade(
        True, None, "right as far as it goes, and cut at the output limit before the answer ended", True, True
    )
    assert grade(counted, " 73, 74", finish="eos").correct is False
    assert grade(counted, " 73, 75", finish="length").correct is False
    assert grade(counted, " 73, 74, 75.\nAnd so on", finish="length").correct is True
    assert grade(counted, "73, 74, 75.\n", finish="length").correct is True
    assert grade(counted, " 73, 74, 75.", finish="eos").correct is True
    assert grade(counted, " 73, 74, 75.", finish="length").correct is None
    whole = {"kind": "exact", "answer": "one two\nthree"}
    assert graded(whole, "one two\n", "length").so_far is True
    assert graded(whole, "one two\n", "eos").correct is False
    assert graded({**whole, "take": "first_line"}, "one", "length").so_far is True
    assert graded({**whole, "take": "first_line"}, "one\n", "length").correct is False
    assert graded({**whole, "take": "last_line"}, "one", "length").correct is False
    assert "cut at the output limit" in graded(JSON_TASK, '{"name": "Ada', "length").reason


@pytest.mark.parametrize(
    ("task", "text", "right", "so_far"),
    [
        (TWELVE, "The total is 12", None, True),
        (TWELVE, "The total is 12.", None, True),
        (TWELVE, "The total is 12,", None, True),
        (TWELVE, "The total is 1", None, True),
        (TWELVE, "The total is 13", False, False),
        (TWELVE, "The total is 3", False, False),
        (TWELVE, "The total is 12.\n", True, False),
        (TWELVE, "The total is 12 and", True, False),
        ({**TWELVE, "take": "first"}, "12, or 7 + 5", True, False),
        ({**TWELVE, "take": "only"}, "12", None, True),
        ({"kind": "numeric", "value": 1234}, "It is 1,23", None, True),
        ({"kind": "numeric", "value": 1234}, "It is 1.2", False, False),
        ({"kind": "numeric", "value": 1.25}, "It is 1.2", None, True),
        ({"kind": "numeric", "value": 0.5}, "0.", None, True),
        ({"kind": "numeric", "value": 100, "absolute": 1}, "It is 9", None, True),
        ({"kind": "numeric", "value": -120}, "It is -12", None, True),
        ({"kind": "numeric", "value": -120}, "It is 12", False, False),
        ({"kind": "numeric", "value": 3}, "1, 2, 3", None, True),
        (METRES, "1234.5", None, True),
        (METRES, "1234.5 k", None, True),
        (METRES, "1234.5 km", None, True),
        (METRES, "1234.5 km.", True, False),
        (METRES, "1234.5 m", False, False),
        (START, "7", None, True),
        (START, "7.", None, True),
        (START, "7 ", True, False),
        (START, "7\n", True, False),
        (START, "7.\n", True, False),
        ({**START, "answer": "Paris"}, "Paris", None, True),
        ({**START, "answer": "Paris"}, "Paris.", True, False),
        ({**LOOSE, "take": "start"}, "**Paris**", True, False),
        (EXACT, "Paris", None, True),
        ({**EXACT, "take": "last_line"}, "Is it?\nParis", None, True),
        ({**EXACT, "take": "last_line"}, "Is it?\nParis\n", True, False),
    ],
)
def test_what_ends_right_at_the_output_limit_may_go_on(
    task: dict[str, object], text: str, right: bool | None, so_far: bool
) -> None:
    found = graded(task, text, "length")
    assert (found.correct, found.so_far) == (right, so_far)
    # Where an answer ended by itself nothing is open.
    assert graded(task, text, "eos").so_far is False


@pytest.mark.parametrize(
    ("value", "text", "right"),
    [
        (5, "–5", False),
        (-5, "It is –5.", True),
        (-5, "It is −5.", True),
        (-5, "It is ‑5.", True),
        (5, "Bishops sit on 3–5", True),
        (5, "9 – 4 = 5", True),
        (5, "the answer—5", True),
        (1234, "1 234", True),
        (1234567, "1\u202f234\u202f567 people", True),
        (1234, "1’234", True),
        (1234.5, "1 234.5", True),
        (-1234, "−1 234", True),
        (234, "1\u00a0234", False),
        (234, "1,234", False),
        (234, "1 234", None),
        (300, "100 200 300", None),
        (7, "1 234", False),
        (106, " ".join(str(number) for number in range(100, 107)), True),
        (234, "0 234", True),
        (234, "12 1234 234", True),
        (123, "1234 123", True),
    ],
)
def test_signs_and_thousands_are_read_as_they_are_written(value: float, text: str, right: bool | None) -> None:
    found = graded({"kind": "numeric", "value": value}, text)
    assert found.correct is right
    assert (found.valid is None) == (right is None)
    assert found.so_far is False


HOSTILE = (
    "",
    "\x00" * 50,
    "\ud800",
    "\udfff{\ud800",
    "\u202etxt.exe\u202c \u2066",
    "a" * 399_999 + "!",
    "x" * 3_000_000,
    "{" * 100_000,
    "[" * 60 + "{" * 60,
    '{"a":' * 5_000,
    "[" + "1," * 200_000 + "1]",
    '{"name": "' + "a" * 390_000 + '"}',
    '{"name": "\\ud800", "age": 1}',
    '{"age": ' + "9" * 100_000 + "}",
    '{"age": 1e999}',
    '{"age": NaN}',
    '"' * 100_000,
    "\\" * 100_000,
    "<tool_call>" * 30_000,
    "[TOOL_CALLS]" * 30_000,
    "<tool_call>" + "[" * 50_000,
    "9" * 399_000,
    "1," * 199_000,
    "-" * 60_000 + "1",
    "not " * 16_000 + "x",
    "(" * 50_000,
    "x" + ".a" * 30_000,
    "x = " + "1+" * 30_000 + "1",
    "f" + "(1)" * 20_000,
    "if x:\n pass\n" + "elif x:\n pass\n" * 4_000,
    "x" + " if x else x" * 5_000,
    "f'" + "{" * 49,
    "```" * 100_000,
    "```python\n" * 30_000,
    "```" + "a" * 390_000,
    "```" + " " * 390_000,
    ("```" + "a" * 2_000 + "\n") * 150,
    "[" * 60 + '"' + "\\" * 300_000,
    '["' * 150_000,
    "{} " * 100_000,
    "\n" * 390_000,
)
TASKS = (
    EXACT,
    LOOSE,
    START,
    LAST,
    METRES,
    ONLY,
    DATE,
    {"kind": "regex", "pattern": "^(a+)+$"},
    {"kind": "regex", "pattern": "(a|a?)+(b|c|d)*$", "form": "(x+x+)+y", "match": "full"},
    JSON_TASK,
    FORM_ONLY,
    {"kind": "json", "schema": {"type": "object", "properties": {"name": {"pattern": "^(a+)+b$"}}}},
    CALL_TASK,
    CODE,
    {"kind": "python", "prefix": "def f():\n"},
)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task['kind']}-{len(json.dumps(task))}")
def test_hostile_answers_get_a_grade_and_nothing_else_happens(task: dict[str, object]) -> None:
    for text in HOSTILE:
        found = graded(task, text, "length")
        assert found.correct is not True or task.get("pattern") == "^(a+)+$"
        assert len(found.reason) <= 241
        found.reason.encode("utf-8")  # a lone surrogate in a reason could not be written down
        assert "\u202e" not in found.reason


def test_what_a_backtracking_engine_would_never_finish_is_answered() -> None:
    bomb = {"kind": "regex", "pattern": "^(a+)+$"}
    assert verdict(bomb, "a" * 100_000) == (True, True)
    assert verdict(bomb, "a" * 100_000 + "b") == (True, False)


def test_many_items_are_compared_in_no_more_than_linear_time() -> None:
    items: list[object] = [{}, *range(9_000)]
    task = {"kind": "json", "schema": {"type": "array", "uniqueItems": True}}
    assert verdict(task, json.dumps(items)) == (True, None)
    assert verdict(task, json.dumps([*items, 8_999.0])) == (False, False)


def test_a_lone_surrogate_in_json_is_data_and_stops_nothing() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": "^.$"}}, "patternProperties": {"^b": {"type": "null"}}}
    assert verdict({"kind": "json", "schema": schema}, '{"a": "\\ud800", "\\udfff": 1}') == (True, None)


def loop(inner: object, times: int) -> object:
    for _ in range(times):
        inner = {"items": inner}
    return inner


DOUBLING = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(20)}


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ({}, "'kind' must be one of exact, numeric, regex, json, tool_call, python"),
        ({"kind": "essay"}, "'kind' must be one of"),
        ({"kind": "exact"}, "'answer' must be a text, or a list of texts"),
        ({"kind": "exact", "answer": []}, "'answer' must be a text, or a list of texts"),
        ({"kind": "exact", "answer": "x", "anser": "y"}, "unknown field anser"),
        ({"kind": "exact", "answer": "...", "normalise": ["punctuation"]}, "is empty after punctuation"),
        ({"kind": "exact", "answer": "x", "normalise": ["lower"]}, "'normalise' must be a list of nfc, nfkc"),
        ({"kind": "exact", "answer": "x", "normalise": [1]}, "'normalise' must be a list of nfc, nfkc"),
        ({"kind": "exact", "answer": "x", "take": "middle"}, "'take' must be one of whole, start"),
        ({"kind": "exact", "answer": "x", "after": ""}, "'after' must be a text"),
        ({"kind": "numeric", "value": "4"}, "'value' must be a number"),
        ({"kind": "numeric", "value": True}, "'value' must be a number"),
        ({"kind": "numeric", "value": float("nan")}, "'value' must be a number"),
        ({"kind": "numeric", "value": 10**400}, "'value' is beyond what a number can hold"),
        ({"kind": "numeric", "value": 1, "absolute": 10**400}, "'absolute' is beyond what a number can hold"),
        ({"kind": "numeric", "value": 1, "judges": "style"}, "'judges' must be one of answer, form"),
        ({"kind": "json", "schema": {"$schema": 5}}, "$schema must be"),
        ({"kind": "json", "schema": {"type": ["string", "null"]}}, "'take' first needs a schema of type object or arr"),
        ({"kind": "json", "schema": {"type": {"a": 1}}}, "is not valid under any of the given schemas"),
        ({"kind": "json", "schema": {"$defs": {"a b": {}}, "$ref": "#/$defs/a%20b"}}, "has a %"),
        ({"kind": "numeric", "value": 4, "absolute": -1}, "'absolute' must not be negative"),
        ({"kind": "numeric", "value": 4, "units": []}, "'units' must be a text, or a list"),
        ({"kind": "regex", "pattern": "("}, "'pattern': RE2 does not take it"),
        ({"kind": "regex", "pattern": "(?=x)"}, "no look-around and no back-references"),
        ({"kind": "regex", "pattern": r"(a)\1"}, "no look-around and no back-references"),
        ({"kind": "regex", "pattern": "\ud800"}, "RE2 does not take it"),
        ({"kind": "regex", "pattern": "a" * 5_000}, "longer than 4,000 characters"),
        ({"kind": "regex", "pattern": "((((a{1,100}){1,100}){1,100}){1,100})"}, "RE2 does not take it"),
        ({"kind": "regex", "pattern": "a", "ignore_case": "yes"}, "'ignore_case' must be true or false"),
        ({"kind": "json"}, "'schema' must be an object"),
        ({"kind": "json", "schema": {"type": "objekt"}}, "'objekt' is not valid"),
        ({"kind": "json", "schema": {"type": "string"}}, "'take' first needs a schema of type object or array"),
        ({"kind": "json", "schema": {"type": "object", "format": "date"}}, "say it with 'pattern'"),
        ({"kind": "json", "schema": {"type": "object", "unevaluatedProperties": False}}, "not one that tasks may use"),
        ({"kind": "json", "schema": {"$ref": "https://example.com/x"}}, "a reference must stay inside the schema"),
        ({"kind": "json", "schema": {"$ref": "#/$defs/no"}}, "there is no #/$defs/no"),
        ({"kind": "json", "schema": {"$ref": "#"}}, "leads back to itself"),
        (
            {"kind": "json", "schema": {"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}},
            "leads back to itself",
        ),
        (
            {"kind": "json", "schema": {"$defs": {**DOUBLING, "d20": {}}, "$ref": "#/$defs/d0"}},
            "more than 10,000 subschemas",
        ),
        ({"kind": "json", "schema": {"properties": {"a": {"pattern": "(?<!x)y"}}}}, "no look-around"),
        ({"kind": "json", "schema": {"patternProperties": {"(": {}}}}, "RE2 does not take it"),
        ({"kind": "json", "schema": {"$schema": "http://json-schema.org/draft-04/schema#"}}, "$schema must be"),
        ({"kind": "json", "schema": {"items": 3}}, "a schema is an object, true or false"),
        ({"kind": "json", "schema": loop({}, 100)}, "nested deeper than 64 levels"),
        ({"kind": "json", "schema": {"enum": list(range(20_000))}}, "more than 10,000 values"),
        ({"kind": "json", "schema": {"type": "array"}, "equals": 1, "expect": {"/a": 1}}, "exclude each other"),
        ({"kind": "json", "schema": {"type": "array"}, "expect": {"a": 1}}, "by JSON pointer"),
        ({"kind": "json", "schema": {"type": "array"}, "equals": float("inf")}, "is not JSON"),
        ({"kind": "tool_call", "tools": {}}, "'tools' must name at least one tool"),
        ({"kind": "tool_call", "tools": {"a": 1}}, "expected the schema of its arguments"),
        ({"kind": "tool_call", "tools": {"a": {}}, "name": "b"}, "'name' 'b' is none of the tools: a"),
        ({"kind": "tool_call", "tools": {"a": {}}, "equals": {}}, "'name' must say which tool"),
        ({"kind": "tool_call", "tools": {"a": {}}, "formats": []}, "'formats' must name at least one"),
        ({"kind": "python", "defines": [3]}, "'defines' must be a text, or a list"),
    ],
)
def test_a_task_that_cannot_be_kept_is_refused_with_its_place(task: dict[str, object], why: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_grader(task, "tasks.jsonl:12")
    assert str(caught.value).startswith("tasks.jsonl:12: task: ")
    assert why in str(caught.value)


def test_a_grader_is_its_rules_and_nothing_else() -> None:
    one = parse_grader({"kind": "numeric", "value": 4, "absolute": 0}, "a:1")
    other = parse_grader({"absolute": 0, "value": 4, "take": "last", "kind": "numeric"}, "b:2")
    assert one == other
    assert hash(one) == hash(other)
    assert one.digest == other.digest
    assert len(one.digest) == 16
    assert json.loads(one.canonical)["take"] == "last"
    assert parse_grader({"kind": "numeric", "value": 5, "absolute": 0}, "a:1").digest != one.digest


def test_references_inside_a_schema_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/small"}, "b": {"$ref": "#/$defs/small"}},
        "$defs": {"small": {"type": "integer", "maximum": 9}},
    }
    assert verdict({"kind": "json", "schema": schema}, '{"a": 1, "b": 9}') == (True, None)
    assert verdict({"kind": "json", "schema": schema}, '{"a": 1, "b": 10}') == (False, False)


KEYWORD = {"kind": "regex", "pattern": "library", "judges": "form"}


@pytest.mark.parametrize(
    ("task", "text", "finish", "expected"),
    [
        (KEYWORD, "The library is open.", "eos", (True, None)),
        (KEYWORD, "The museum is open.", "eos", (False, None)),
        (KEYWORD, "", "eos", (False, None)),
        ({**KEYWORD, "judges": "answer"}, "The library is open.", "eos", (True, True)),
        ({**JSON_TASK, "judges": "form"}, '{"name": "Bob", "age": 36}', "eos", (False, None)),
        ({**START, "judges": "form", "answer": "7 days"}, "7 d", "length", (None, None)),
        ({**LAST, "judges": "form"}, "no mark", "eos", (False, None)),
    ],
)
def test_a_task_that_judges_the_form_alone_says_nothing_on_what_is_right(
    task: dict[str, object], text: str, finish: str, expected: tuple[bool | None, bool | None]
) -> None:
    found = graded(task, text, finish)
    assert (found.valid, found.correct) == expected
    assert found.reason or task["judges"] == "answer"


def test_what_a_task_judges_is_part_of_it() -> None:
    assert parse_grader(KEYWORD, "here").digest != parse_grader({**KEYWORD, "judges": "answer"}, "here").digest


THINKING = "<think>\nIs it 41? Perhaps.\n</think>\n"


def test_thinking_is_no_part_of_the_answer() -> None:
    first = {"kind": "numeric", "value": 42, "take": "first"}
    assert verdict(first, f"{THINKING}42") == (True, True)
    assert verdict(first, f" \n{THINKING}41") == (True, False)
    assert verdict(first, f"So {THINKING}42") == (True, False)
    assert verdict({**first, "after": "</think>"}, f"{THINKING}42") == (True, True)
    cut_off = graded(first, "<think>42, I think", "length")
    assert cut_off == Grade(None, None, "cut at the output limit within its thinking")
    assert verdict(first, "<think>42, I think", "eos") == (False, False)


QUESTION = "Is the sky blue or green? Say it in one word.\nAnswer:"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (" blue", True),
        (QUESTION, False),
        ("Is the sky blue or green? Say it in one word.", False),
        (f"{QUESTION} blue", True),
        (f"{QUESTION} red\n{QUESTION}", False),
    ],
)
def test_the_prompt_said_once_more_is_no_answer(text: str, right: bool) -> None:
    task = parse_grader({"kind": "regex", "pattern": "blue"}, "here")
    assert grade(task, text, finish="eos", prompt=QUESTION).correct is right


def test_a_short_prompt_and_a_copy_are_no_echo() -> None:
    sum_task = parse_grader({"kind": "numeric", "value": 6, "take": "first"}, "here")
    assert grade(sum_task, "6 + 1 =", finish="eos", prompt="6 + 1 =").correct is True
    copied = parse_grader({"kind": "exact", "answer": QUESTION}, "here")
    assert grade(copied, QUESTION, finish="eos", prompt=QUESTION).correct is True


def test_a_schema_that_cannot_be_applied_judges_nothing() -> None:
    deep: dict[str, object] = {}
    for _ in range(30):
        deep = {"allOf": [deep]}
    deeply = {"type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": deep}}
    task = parse_grader({"kind": "json", "schema": deeply}, "here")
    before = sys.getrecursionlimit()
    grade(task, "[1]", finish="eos")
    sys.setrecursionlimit(depth() + 60)
    try:
        found = grade(task, "[1]", finish="eos")
    finally:
        sys.setrecursionlimit(before)
    assert (found.valid, found.correct) == (None, None)
    assert found.reason.startswith("not judged: ")


def test_a_reference_that_leads_nowhere_judges_nothing() -> None:
    with pytest.raises(UnjudgedError, match="a reference of the schema leads nowhere"):
        schema.failure('{"$ref": "#/$defs/none"}', 1)


def depth() -> int:
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]
    return count


def test_a_reason_can_be_written_down_whatever_the_answer_holds() -> None:
    task = {"kind": "json", "schema": {"type": "object", "additionalProperties": {"type": "null"}}}
    for key, shown in (("\\ud800", "\\ud800"), ("\\u202e", "\\u202e"), ("\\u0007", "\\x07")):
        reason = graded(task, f'{{"{key}": 1}}').reason
        assert reason.startswith(f"/{shown}: ")
        assert reason.isprintable()
