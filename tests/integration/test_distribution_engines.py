"""Distribution checks on real engines, end to end through the runner, at a reduced size.

400 generations after each of two contexts on llama.cpp, 300 after one on MLX-LM with a coarser control: sizes for a
test run. MLX-LM takes many minutes on a CPU and runs only where SPECMATRIX_LONG_TESTS is set; it has not been seen
to end yet. The checks at full size are committed under ``docs/evidence`` with the command that made them.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys

import pytest
from matrix_job import matrix_job
from scripted_job import make_run

from orchestrator.clock import utc_now
from orchestrator.exactness.checking import TOKENS, judge_check
from orchestrator.exactness.distribution import Preset
from orchestrator.runner.check_run import planned_checks, run_checks
from orchestrator.runner.execute import execute
from orchestrator.schema.record import CheckPlanRecord
from orchestrator.schema.result import Verdict
from orchestrator.schema.status import Status
from orchestrator.store.index import Index
from orchestrator.workloads.load import load_prompts

pytestmark = pytest.mark.engine
REQUIRED = os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1"
ENGINES = {
    "xllamacpp": (
        {"adapter": "llama_cpp_embedded", "options": {"threads": 1, "context": 512}},
        {"target": "demo:tiny-target-f32.gguf", "drafts": {"small": "demo:tiny-draft-f32.gguf"}},
        Preset("screen", 400, 2, 0.8),
    ),
    "mlx_lm": (
        {"adapter": "mlx_lm", "python": sys.executable, "options": {"dtype": "float32"}},
        {"target": "demo:tiny-target-f32", "drafts": {"small": "demo:tiny-draft-f32"}},
        Preset("screen", 300, 1, 0.5),
    ),
}
CONTEXTS = {"sum-1": 10, "code-1": 11}
"""Chosen by a pilot at full size: 1 to 3 nat, and a lower temperature shows."""


def make_job(package, folder):
    engine, files, preset = ENGINES[package]
    document = {
        "version": 1,
        "name": "check",
        "engines": {"engine": engine},
        "models": {"tiny": {"engine": files}},
        "methods": {"draft-k4": {"method": "draft", "draft": "small", "n_max": 4}},
        "sampling": {"t0.8": {"temperature": 0.8}},
        "workloads": {"short": {"prompts": "demo-short", "max_tokens": 16, "eos": "mask"}},
        "run": {"preset": "quick", "twin": False},
        "checks": {"distribution": "screen"},
        "matrix": {
            "axes": {"engine": "engine", "model": "tiny", "method": "draft-k4", "sampling": "t0.8", "workload": "short"}
        },
    }
    job = matrix_job(document, folder)
    return dataclasses.replace(job, selected=frozenset(check.id for check in job.expansion.checks)), preset


@pytest.mark.parametrize("package", list(ENGINES))
def test_an_exact_method_passes_with_both_controls(package, tmp_path):
    if package == "mlx_lm" and not os.environ.get("SPECMATRIX_LONG_TESTS"):
        pytest.skip("takes many minutes on a CPU: set SPECMATRIX_LONG_TESTS=1")
    if importlib.util.find_spec(package) is None:
        if REQUIRED:
            pytest.fail(f"{package} is not installed")
        pytest.skip(f"{package} is not installed")
    job, preset = make_job(package, tmp_path)
    directory = make_run(tmp_path)
    execute(dataclasses.replace(job, selected=frozenset()), directory, lambda _: None)
    texts = {prompt.id: prompt.text for prompt in load_prompts("demo-short")}
    chosen = list(CONTEXTS.items())[: preset.contexts]
    contexts = {f"{name}@{length}": texts[name][:length] for name, length in chosen}
    (planned,) = planned_checks(job, directory)
    with directory.lock():
        directory.append(
            CheckPlanRecord(planned.block, planned.base, 1, "screen", contexts, preset.per_arm, TOKENS, {}, utc_now())
        )
        run_checks(job, directory, lambda _: None, {"screen": preset})
    index = Index.build(directory.records())
    (state,) = index.checks.values()
    assert state.status is Status.OK, state.reason
    outcome = judge_check(state, index.cells[state.cell].claim)
    results = {one.check: one for one in outcome.results}
    assert results["distribution"].verdict is Verdict.PASS, results["distribution"].evidence
    assert "the negative control was" in results["distribution"].evidence
    if package == "xllamacpp":
        # One draw per emitted token and exact arithmetic: the same seed gives the same tokens, on or off.
        assert results["seed-coupled equality"].verdict is Verdict.PASS, results["seed-coupled equality"].evidence
