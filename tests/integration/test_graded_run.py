"""A run of fixed tasks on a real engine: what the model answers is graded at the trial, and told wherever it is read."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import json
import os
import re

import pytest
from matrix_job import matrix_job
from rich.console import Console
from scripted_job import make_run

from orchestrator.cli.grades import print_grades
from orchestrator.report.analysis.analyse import analyse
from orchestrator.report.output.write import write_report
from orchestrator.runner.execute import execute
from orchestrator.schema.record import TrialRecord
from orchestrator.schema.status import Status
from orchestrator.store.frame import observations_frame
from orchestrator.store.index import Index
from orchestrator.workloads.grading import parse_grader

pytestmark = pytest.mark.engine
COUNT = {"kind": "exact", "answer": " 73, 74, 75,", "take": "start"}
SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "kind": {"type": "string"}, "tags": {"type": "array"}},
    "required": ["id", "kind", "tags"],
}
DATA = {"kind": "json", "schema": SCHEMA, "expect": {"/kind": "a kind that the model does not know"}}
PROMPTS = [
    {"id": "count", "category": "count", "language": "zxx", "text": "Count from 73 to 94:", "task": COUNT},
    {"id": "data", "category": "json", "language": "zxx", "text": 'Data:\n{"id": 70, "kind": "basket", "tags": ["old", "small"], "size": [50, 87]}\n',
     "task": DATA},
    {"id": "plain", "category": "prose", "language": "en", "text": "Copy: warm basket blue =>"},
]  # fmt: skip
BASE, DRAFT = "llama/tiny/none/greedy/tasks", "llama/tiny/draft/greedy/tasks"


@pytest.fixture(autouse=True)
def _engine():
    if importlib.util.find_spec("xllamacpp") is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail("xllamacpp is not installed")
        pytest.skip("xllamacpp is not installed")


def job_of(folder, prompts):
    (folder / "tasks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in prompts), encoding="utf-8")
    model = {"target": "demo:tiny-target-f32.gguf", "drafts": {"small": "demo:tiny-draft-f32.gguf"}}
    document = {
        "version": 1,
        "name": "tasks",
        "engines": {"llama": {"adapter": "llama_cpp_embedded", "options": {"threads": 1, "context": 512}}},
        "models": {"tiny": {"llama": model}},
        "methods": {"draft": {"method": "draft", "draft": "small", "n_max": 4}},
        "sampling": {"greedy": {"temperature": 0}},
        "workloads": {"tasks": {"prompts": "tasks.jsonl", "max_tokens": 40, "eos": "stop"}},
        "run": {"preset": "demo", "sessions": 1, "order": "random", "trials": 3, "warmup": 0, "twin": False},
        "matrix": {
            "axes": {
                "engine": ["llama"], "model": ["tiny"], "method": ["draft"], "sampling": ["greedy"],
                "workload": ["tasks"],
            }
        },
    }  # fmt: skip
    job = matrix_job(document, folder)
    return dataclasses.replace(job, selected=frozenset(cell.id for cell in job.expansion.cells))


def test_answers_of_a_real_engine_are_graded_once_and_told_everywhere(tmp_path):
    job = job_of(tmp_path, PROMPTS)
    directory = make_run(tmp_path)
    execute(job, directory, lambda _event: None)
    index = Index.build(directory.records())
    assert {state.status for state in index.cells.values()} == {Status.OK}
    trials = [one for one in directory.records() if isinstance(one, TrialRecord)]
    assert len(trials) == 2 * 3
    for one in trials:
        if one.prompt_id == "plain":
            assert one.grade is None
            continue
        task = COUNT if one.prompt_id == "count" else DATA
        assert one.grade is not None
        assert one.grade.grader == parse_grader(task, "here").digest
        # The tiny model was taught to count and to write such objects, so the form is right (the limit comes before it
        # has written a second one), and one answer is.
        expected = (True, True, "") if task is COUNT else (True, False, one.grade.reason)
        assert (one.grade.valid, one.grade.correct, one.grade.reason) == expected
        assert one.text.startswith(" 73, 74, 75,") if task is COUNT else one.text.lstrip().startswith("{")
    frame = observations_frame(index)
    right = frame[frame["metric"] == "task_correct"]
    assert set(right[right["prompt_id"] == "count"]["value"]) == {1.0}
    assert set(right[right["prompt_id"] == "data"]["value"]) == {0.0}
    assert set(right[right["prompt_id"] == "plain"]["absent"]) == {"not_applicable"}
    found = analyse(index, directory.header).by_id(DRAFT).quality
    assert found is not None
    assert found.valid is not None
    assert found.correct is not None
    assert (found.answers, found.graded, found.valid.on, found.correct.on, found.correct.off) == (3, 2, 2, 1, 1)
    assert [one.category for one in found.by_category] == ["count", "json", "prose"]
    page = write_report(directory.path).read_text(encoding="utf-8")
    assert re.search(r"right answers (<[^>]*>)*1/2", page)
    out = io.StringIO()
    print_grades(Console(file=out, width=200, color_system=None), index.cells[DRAFT].trials)
    assert 'where "a kind that the model does not know" is right' in out.getvalue()


def test_another_task_is_another_cell(tmp_path):
    def print_of(name, prompts):
        folder = tmp_path / name
        folder.mkdir()
        return job_of(folder, prompts).survey.fates[BASE].fingerprint

    changed = [{**PROMPTS[0], "task": {**COUNT, "answer": " 73, 74, 76,"}}, *PROMPTS[1:]]
    without = [{key: value for key, value in PROMPTS[0].items() if key != "task"}, *PROMPTS[1:]]
    prints = [print_of("one", PROMPTS), print_of("same", PROMPTS), print_of("two", changed), print_of("none", without)]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
