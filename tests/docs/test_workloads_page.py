"""docs/workloads.md tells the sets, formats and limits as they are, and its example file loads."""

from __future__ import annotations

import json
import re
from pathlib import Path

from orchestrator.workloads import contexts, reading
from orchestrator.workloads.built_in import CATEGORIES, SETS, built_in
from orchestrator.workloads.counts import token_counts
from orchestrator.workloads.grading.grader import _KINDS
from orchestrator.workloads.load import FORMATS, load_prompts
from orchestrator.workloads.own import _KEYS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")


def counts_of(row: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", row.split("|")[2])]


def test_every_set_is_there_with_its_number_of_prompts():
    for name in SETS:
        row = next(line for line in PAGE.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1])
        numbers, count = counts_of(row), len(built_in(name))
        names = re.findall(r"`([^`]+)`", row.split("|")[1])
        if "–" in row.split("|")[2]:
            assert numbers[0] <= count <= numbers[1], name
        elif len(numbers) == len(names):
            assert numbers[names.index(name)] == count, name
        else:
            assert numbers == [count], name
    assert f"trials: {len(built_in('full'))}" in PAGE
    tasks = sum(prompt.task is not None for prompt in built_in("full"))
    assert f"{tasks} of the {len(built_in('full'))} prompts" in PAGE
    rules = [json.loads(prompt.task.canonical) for prompt in built_in("full") if prompt.task is not None]
    form = [
        one
        for one in rules
        if one["judges"] == "form"
        or one["kind"] == "python"
        or (one["kind"] == "json" and not {"equals", "expect"} & set(one))
    ]
    assert f"{tasks - len(form)} of the {tasks} say what is right" in " ".join(PAGE.split())
    assert all(f"`{name}`" in PAGE for name in CATEGORIES)


def test_every_format_field_and_kind_of_task_is_there():
    assert all(f"| `{form}` |" in PAGE for form in FORMATS)
    assert all(f"`{key}`" in PAGE for key in _KEYS)
    assert all(f'"{kind}"' in PAGE for kind in _KINDS)


def test_the_limits_are_those_of_the_reader():
    assert f"{reading.MAX_FILE_BYTES >> 20} MiB" in PAGE
    assert f"{reading.MAX_LINE_CHARACTERS >> 20} Mi characters" in PAGE
    assert f"{reading.MAX_PROMPTS:,}".replace(",", " ") + " prompts" in PAGE
    assert f"1/{contexts.ASCII_PER_TOKEN:g}" in PAGE
    assert f"1/{contexts.HANGUL_PER_TOKEN:g}" in PAGE


def test_the_measured_lengths_of_contexts_are_the_counted_ones():
    counts = token_counts()
    for tokenizer, name in (("smollm2", "SmolLM2"), ("tiny", "the tiny models")):
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {name},"))
        told = re.findall(r"(\d\.\d\d)–(\d\.\d\d)", row)
        for language, (low, high) in zip(("en", "ko"), told, strict=True):
            shares = [
                counts[prompt.id][tokenizer] / tokens
                for tokens in contexts.CLASSES[1:]
                for prompt in built_in(f"context-{tokens // 1024}k")
                if prompt.language == language
            ]
            assert (f"{min(shares):.2f}", f"{max(shares):.2f}") == (low, high), (name, language)


def test_the_example_file_loads(tmp_path):
    text = re.search(r"```json\n(.+?)```", PAGE, re.DOTALL)
    assert text is not None
    path = tmp_path / "example.jsonl"
    path.write_text(text[1], encoding="utf-8")
    capital, order, talk = load_prompts(path)
    assert (capital.task.kind, order.task.kind, talk.task) == ("regex", "json", None)
    assert len(talk.messages) == 2
