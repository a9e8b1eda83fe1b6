"""Prompt files in the shapes of public benchmarks, which the user has on disk; none of their content is here."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

from orchestrator.workloads.grading import parse_grader
from orchestrator.workloads.prompt import Prompt
from orchestrator.workloads.reading import content, label, lines_of, object_of, refuse

SPEC_BENCH_KEYS = ("question_id", "category", "turns")
HUMANEVAL_KEYS = ("task_id", "prompt", "entry_point")


def from_spec_bench(path: pathlib.Path) -> list[tuple[int, Prompt]]:
    """The first turn of every question, with its line number.

    Only the first: a later turn asks about the answer to the one before, which differs between models. Fields that
    the shape does not name are left alone, such as `reference`.

    Source: hemingkx/Spec-Bench, data/spec_bench/question.jsonl, which is MT-bench's shape.

    Raises:
        WorkloadError: The file or one of its lines cannot be read.
    """
    return [(number, _question(line, f"{path}:{number}")) for number, line in lines_of(path)]


def from_humaneval(path: pathlib.Path) -> list[tuple[int, Prompt]]:
    """Every problem, with its line number; prompt and answer together, or the answer alone, must define the function.

    They are parsed and never executed.

    `test` and `canonical_solution` are not used: running what a model wrote is not this program's business, and an
    answer may be right without being the canonical one.

    Source: openai/human-eval, data/HumanEval.jsonl.

    Raises:
        WorkloadError: The file or one of its lines cannot be read.
    """
    return [(number, _problem(line, f"{path}:{number}")) for number, line in lines_of(path)]


def _question(line: str, where: str) -> Prompt:
    fields = object_of(line, where, ", ".join(SPEC_BENCH_KEYS))
    _need(fields, SPEC_BENCH_KEYS, where, "spec-bench")
    number = fields["question_id"]
    if isinstance(number, bool) or not isinstance(number, int | str):
        refuse(where, "'question_id' must be a number or a text")
    turns = fields["turns"]
    if not isinstance(turns, list) or not turns:
        refuse(where, "'turns' must be a list of texts that is not empty")
    category = label(fields["category"], "category", where)
    return Prompt(label(str(number), "question_id", where), category, "und", content(turns[0], "turns[0]", where))


def _problem(line: str, where: str) -> Prompt:
    fields = object_of(line, where, ", ".join(HUMANEVAL_KEYS))
    _need(fields, HUMANEVAL_KEYS, where, "humaneval")
    name = label(fields["task_id"], "task_id", where)
    text = content(fields["prompt"], "prompt", where)
    function = label(fields["entry_point"], "entry_point", where)
    if not function.isidentifier():
        refuse(where, "'entry_point' must be the name of a function")
    task = parse_grader({"kind": "python", "prefix": text, "defines": function}, where)
    return Prompt(name, "code", "en", text, task=task)


def _need(fields: Mapping[str, Any], keys: tuple[str, ...], where: str, form: str) -> None:
    missing = [key for key in keys if key not in fields]
    if missing:
        refuse(where, f"format {form} needs {', '.join(keys)}; missing {', '.join(missing)}")
