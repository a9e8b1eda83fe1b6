"""Files in the shapes of Spec-Bench and HumanEval; the contents here are made up."""

from __future__ import annotations

import gzip
import json

import pytest

from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.grading import grade
from orchestrator.workloads.load import Prompt, load_prompts

QUESTIONS = [
    {"question_id": 81, "category": "writing", "turns": ["Write a postcard.", "Make it shorter."]},
    {"question_id": "r-2", "category": "math", "turns": ["What is 6 × 7?"], "reference": ["42"]},
]
PROBLEM = {
    "task_id": "Made/0",
    "prompt": 'def twice(x):\n    """Return x two times."""\n',
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    "entry_point": "twice",
}


def written(tmp_path, *rows):
    path = tmp_path / "question.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", [None, "spec-bench"])
def test_spec_bench_gives_the_first_turn_of_every_question(tmp_path, form):
    assert load_prompts(written(tmp_path, *QUESTIONS), form) == (
        Prompt("81", "writing", "und", "Write a postcard."),
        Prompt("r-2", "math", "und", "What is 6 × 7?"),
    )


@pytest.mark.parametrize("form", [None, "humaneval"])
def test_humaneval_asks_for_code_that_parses_behind_its_prompt(tmp_path, form):
    (prompt,) = load_prompts(written(tmp_path, PROBLEM), form)
    assert (prompt.id, prompt.category, prompt.language, prompt.text) == ("Made/0", "code", "en", PROBLEM["prompt"])
    assert prompt.answer is None
    assert prompt.task is not None
    right = grade(prompt.task, PROBLEM["canonical_solution"], finish="stop")
    wrong = grade(prompt.task, "    return 2 *\n", finish="stop")
    assert (right.valid, right.correct) == (True, None)
    assert (wrong.valid, wrong.correct) == (False, False)
    for nothing in ("# sorry, I cannot", "x = 1"):
        assert grade(prompt.task, nothing, finish="stop").valid is False
    fenced = f"```python\n{PROBLEM['prompt']}{PROBLEM['canonical_solution']}```"
    assert grade(prompt.task, fenced, finish="stop", prompt=prompt.text).valid is True


def test_the_code_is_parsed_and_never_executed(tmp_path):
    mark = tmp_path / "executed"
    (prompt,) = load_prompts(written(tmp_path, PROBLEM))
    assert prompt.task is not None
    assert grade(prompt.task, f"    return open({str(mark)!r}, 'w')\n\ntwice(1)\n", finish="stop").valid is True
    assert not mark.exists()


@pytest.mark.parametrize(
    ("form", "row", "message"),
    [
        ("spec-bench", {"question_id": 1, "turns": ["a"]}, "format spec-bench needs .*; missing category"),
        (
            "spec-bench",
            {"question_id": 1.5, "category": "c", "turns": ["a"]},
            "'question_id' must be a number or a text",
        ),
        (
            "spec-bench",
            {"question_id": True, "category": "c", "turns": ["a"]},
            "'question_id' must be a number or a text",
        ),
        ("spec-bench", {"question_id": 1, "category": "c", "turns": "a"}, "'turns' must be a list of texts"),
        ("spec-bench", {"question_id": 1, "category": "c", "turns": []}, "'turns' must be a list of texts"),
        ("spec-bench", {"question_id": 1, "category": "c", "turns": [1]}, r"'turns\[0\]' must be a text"),
        ("spec-bench", {"question_id": 1, "category": 3, "turns": ["a"]}, "'category' must be a text"),
        ("humaneval", {**PROBLEM, "prompt": None}, "'prompt' must be a text"),
        ("humaneval", {**PROBLEM, "task_id": 3}, "'task_id' must be a text"),
        ("humaneval", {**PROBLEM, "entry_point": ""}, "'entry_point' must be a text"),
        ("humaneval", {**PROBLEM, "entry_point": "a b"}, "'entry_point' must be the name of a function"),
        ("humaneval", {"task_id": "x"}, "format humaneval needs .*; missing prompt, entry_point"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, form, row, message):
    good = QUESTIONS[0] if form == "spec-bench" else PROBLEM
    path = written(tmp_path, good, row)
    with pytest.raises(WorkloadError, match=rf"question\.jsonl:2: .*{message}"):
        load_prompts(path, form)


@pytest.mark.parametrize("form", [None, "humaneval"])
def test_a_compressed_file_is_to_be_unpacked(tmp_path, form):
    path = tmp_path / "HumanEval.jsonl"
    path.write_bytes(gzip.compress(json.dumps(PROBLEM).encode()))
    with pytest.raises(WorkloadError, match=r"HumanEval\.jsonl: is compressed; unpack it first"):
        load_prompts(path, form)


def test_the_same_question_twice_is_refused(tmp_path):
    with pytest.raises(WorkloadError, match=r"question\.jsonl:2: id '81' is already used in line 1"):
        load_prompts(written(tmp_path, QUESTIONS[0], QUESTIONS[0]))


def test_another_shape_is_read_as_ones_own(tmp_path):
    row = {"id": "a", "text": "t", "category": "c", "language": "en"}
    assert load_prompts(written(tmp_path, row)) == (Prompt("a", "c", "en", "t"),)
    with pytest.raises(WorkloadError, match=r":1: unknown field title; expected id, text"):
        load_prompts(written(tmp_path, {**row, "title": 1}))
    with pytest.raises(WorkloadError, match="format spec-bench needs"):
        load_prompts(written(tmp_path, row), "spec-bench")
