"""A real vocabulary against a real context: the fate that a matrix has before anything starts is what an engine does."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import replace

import pytest
from matrix_job import matrix_job
from scripted_job import make_run

from orchestrator.runner.execute import execute
from orchestrator.schema.record import TrialRecord
from orchestrator.schema.status import Status
from orchestrator.store.index import Index

pytestmark = pytest.mark.engine

CONTEXT = 512


@pytest.fixture(autouse=True)
def _engine():
    if importlib.util.find_spec("xllamacpp") is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail("xllamacpp is not installed")
        pytest.skip("xllamacpp is not installed")


def job_of(folder, words):
    (folder / "long.txt").write_text(f"{'Sum: 1 + 1 = 2. ' * words}\n", encoding="utf-8")
    document = {
        "version": 1,
        "name": "room",
        "engines": {"llama": {"adapter": "llama_cpp_embedded", "options": {"threads": 1, "context": CONTEXT}}},
        "models": {"tiny": {"llama": {"target": "demo:tiny-target-f16.gguf"}}},
        "methods": {"ngram": {"method": "ngram", "n_max": 4}},
        "workloads": {"long": {"prompts": "long.txt", "max_tokens": 64, "eos": "mask"}},
        "run": {"preset": "quick", "sessions": 1, "order": "random", "trials": 1, "warmup": 0, "twin": False},
        "matrix": {"axes": {"engine": "llama", "model": "tiny", "method": "none", "sampling": "greedy", "workload": "long"}},
    }  # fmt: skip
    return matrix_job(document, folder)


def run(job, folder):
    directory = make_run(folder)
    everything = frozenset(cell.id for cell in job.expansion.cells)
    execute(replace(job, selected=everything), directory, lambda _: None)
    (state,) = Index.build(directory.records()).cells.values()
    return state, [record for record in directory.records() if isinstance(record, TrialRecord)]


def test_an_answer_that_is_foretold_to_have_no_room_is_cut(tmp_path):
    job = job_of(tmp_path, 50)
    (fate,) = job.survey.fates.values()
    assert fate.refusal is None
    assert fate.crowded.startswith("prompt long-1 of workload long is at least 450 tokens ")
    state, trials = run(job, tmp_path)
    assert state.status is Status.OK
    (trial,) = trials
    assert len(trial.token_ids) < 64
    assert any(problem.startswith("the context was full before the answer ended") for problem in trial.problems)


def test_a_prompt_that_is_refused_fails_on_the_engine_too(tmp_path):
    job = job_of(tmp_path, 60)
    (fate,) = job.survey.fates.values()
    assert fate.refusal is not None
    assert fate.refusal.status is Status.UNSUPPORTED
    assert "is at least 540 tokens" in fate.refusal.reason
    tried = replace(job.survey, fates={fate.cell.id: replace(fate, refusal=None)})
    state, trials = run(replace(job, survey=tried), tmp_path)
    assert state.status is Status.FAILED
    assert [trial.status for trial in trials] == [Status.FAILED]
    assert "exceeds the available context size (512 tokens)" in state.reason
