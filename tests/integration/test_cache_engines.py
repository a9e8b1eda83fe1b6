"""Cold, warm and shared-prefix prompts on real llama.cpp: each with its own first-answer time, by the engine's counts."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys

import pytest
from matrix_job import matrix_job
from scripted_job import make_run

from orchestrator.runner.execute import execute
from orchestrator.schema.observation import Absence
from orchestrator.schema.record import Phase, SessionRecord, TrialRecord
from orchestrator.schema.status import Status

pytestmark = pytest.mark.engine
PREFIX = "Story: In the evening the small candle stood near the old table. The child saw a bright bird.\n"
DRAFT = {"method": "draft", "draft": "small", "n_max": 2}
WORKLOADS = {
    "cold": {},
    "warm": {"cache": "warm"},
    "shared": {"cache": "shared-prefix", "prefix": PREFIX},
}


def need(package):
    """Skips without the package, or fails where engines are required."""
    if importlib.util.find_spec(package) is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail(f"{package} is not installed")
        pytest.skip(f"{package} is not installed")


@pytest.fixture(autouse=True)
def _engine():
    need("xllamacpp")


def job_of(folder, workloads=tuple(WORKLOADS), model="tiny-target-f32.gguf", engine="llama", method=DRAFT):
    engines = {
        "llama": {"adapter": "llama_cpp_embedded", "options": {"threads": 1, "context": 512}},
        "mlx": {"adapter": "mlx_lm", "python": sys.executable},
    }
    files = {
        "llama": {"target": f"demo:{model}", "drafts": {"small": "demo:tiny-draft-f32.gguf"}},
        "mlx": {"target": "demo:tiny-target-f32", "drafts": {"small": "demo:tiny-draft-f32"}},
    }
    document = {
        "version": 1,
        "name": "caches",
        "engines": {engine: engines[engine]},
        "models": {"tiny": {engine: files[engine]}},
        "methods": {"draft-k2": method},
        "sampling": {"greedy": {"temperature": 0}},
        "workloads": {
            name: {"prompts": "demo-short", "max_tokens": 12, "eos": "mask", "trials": 3, **WORKLOADS[name]} for name in workloads
        },
        "run": {"preset": "demo", "sessions": 1, "trials": 2, "warmup": 0, "twin": False, "order": "random"},
        "matrix": {
            "axes": {
                "engine": [engine], "model": ["tiny"], "method": ["draft-k2"], "sampling": ["greedy"],
                "workload": list(workloads),
            }
        },
    }  # fmt: skip
    job = matrix_job(document, folder)
    return dataclasses.replace(job, selected=frozenset(cell.id for cell in job.expansion.cells))


def told(trial, metric):
    return next((one for one in trial.observations if one.metric == metric), None)


def test_each_kind_of_prompt_is_what_it_says_and_has_its_own_first_answer(tmp_path):
    directory = make_run(tmp_path)
    execute(job_of(tmp_path), directory, lambda _event: None)
    records = list(directory.records())
    sessions = [one for one in records if isinstance(one, SessionRecord)]
    assert len(sessions) == 6
    assert {one.status for one in sessions} <= {Status.OK, Status.MEMORY_PRESSURE}
    trials = {name: [] for name in WORKLOADS}
    for one in records:
        if isinstance(one, TrialRecord):
            trials[one.place.cell.rsplit("/", 1)[1]].append(one)
    seeds = {(one.phase, one.prompt_id, one.seed) for one in trials["warm"]}
    assert (
        len({seed for _, prompt, seed in seeds if prompt == trials["warm"][0].prompt_id}) == 2
    )  # an answer of its own
    primed = {name: sum(one.phase is Phase.PRIME for one in found) for name, found in trials.items()}
    assert primed == {"cold": 0, "warm": 6, "shared": 2}  # one before each measured prompt, one a session
    for name, found in trials.items():
        for trial in (one for one in found if one.phase is Phase.MEASURED):
            cached, prompt = told(trial, "cached_tokens").value, told(trial, "prompt_tokens").value
            assert told(trial, "cached_share").value == cached / prompt
            assert not [why for why in trial.problems if "cache" in why]
            if name == "cold":
                assert cached == 0
                assert told(trial, "ttft").value > 0
                assert told(trial, "ttft_cached") is None
                continue
            assert told(trial, "ttft").absent is Absence.NOT_APPLICABLE
            assert told(trial, "ttft_cached").value > 0
            if name == "warm":
                assert cached == prompt - 1  # the last token is evaluated again: somebody must say what comes next
            else:
                assert 10 < cached < prompt - 1
    texts = {(one.place.cell.split("/")[2], one.prompt_id): one.token_ids for one in trials["warm"]}
    cold = {(one.place.cell.split("/")[2], one.prompt_id): one.token_ids for one in trials["cold"]}
    assert texts == cold  # f32: a cache that is right changes no answer


def test_a_cache_that_gave_nothing_is_no_warm_measurement(tmp_path):
    """The hybrid model's state cannot be cut back, so that its second prompt is cold although the cell asks for warm."""
    job = job_of(tmp_path, ("warm",), model="tiny-mtp-f32.gguf")
    directory = make_run(tmp_path)
    execute(job, directory, lambda _event: None)
    baseline = next(one for one in directory.records() if isinstance(one, SessionRecord) and "/none/" in one.place.cell)
    assert baseline.status is Status.CONTAMINATED
    assert "no prompt token came from the cache; the cell asks for a warm one" in baseline.reason


def test_a_drafter_that_would_remember_the_warming_answer_is_refused(tmp_path):
    job = job_of(tmp_path, ("warm",), method={"method": "ngram", "n_max": 8, "options": {"drafter": "cache"}})
    (cell,) = [one for one in job.expansion.cells if one.method.name != "none"]
    refusal = job.survey.fates[cell.id].refusal
    assert refusal.status is Status.UNSUPPORTED
    assert "remembers the answer" in refusal.reason


def test_an_engine_path_without_a_cache_is_refused_in_words(tmp_path):
    need("mlx_lm")
    job = job_of(tmp_path, ("warm", "shared"), engine="mlx")
    refusals = [job.survey.fates[cell.id].refusal for cell in job.expansion.cells]
    assert {one.status for one in refusals} == {Status.UNSUPPORTED}
    assert all("cold prompts only" in one.reason and "cache: cold" in one.remedy for one in refusals)
