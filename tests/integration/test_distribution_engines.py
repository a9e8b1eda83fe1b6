"""Distribution checks on real engines, end to end through the runner, at the full size of ``screen``.

On MLX-LM the one-layer model is the target and a copy of it with another rotation base the drafter, because its larger
one takes many minutes: checks of that pair are committed under ``docs/evidence`` with the command that made them.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import shutil
import sys

import pytest
from matrix_job import matrix_job
from scripted_job import make_run

from orchestrator.clock import utc_now
from orchestrator.demo.export import resolve
from orchestrator.exactness.checking import TOKENS, judge_check
from orchestrator.exactness.distribution import SCREEN
from orchestrator.runner.check_run import planned_checks, run_checks
from orchestrator.runner.execute import execute
from orchestrator.schema.record import CheckPlanRecord
from orchestrator.schema.result import Verdict
from orchestrator.schema.status import Status
from orchestrator.store.index import Index
from orchestrator.workloads.load import load_prompts

pytestmark = pytest.mark.engine


def llama(_folder):
    """Engine, model files and the contexts that a pilot at full size chose: 1 to 3 nat, a lower temperature shows."""
    engine = {"adapter": "llama_cpp_embedded", "options": {"threads": 1, "context": 512}}
    files = {"target": "demo:tiny-target-f32.gguf", "drafts": {"small": "demo:tiny-draft-f32.gguf"}}
    return engine, files, {"sum-1": 10, "code-1": 11}


def mlx(folder):
    drafter = folder / "drafter"
    shutil.copytree(resolve("tiny-draft-f32"), drafter)
    config = json.loads((drafter / "config.json").read_text(encoding="utf-8"))
    (drafter / "config.json").write_text(json.dumps(config | {"rope_theta": 50.0}), encoding="utf-8")
    engine = {"adapter": "mlx_lm", "python": sys.executable, "options": {"dtype": "float32"}}
    files = {"target": "demo:tiny-draft-f32", "drafts": {"small": str(drafter)}}
    return engine, files, {"prose-ko-1": 10, "code-1": 11}


ENGINES = {"xllamacpp": llama, "mlx_lm": mlx}


def make_job(engine, files, folder):
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
    return dataclasses.replace(job, selected=frozenset(check.id for check in job.expansion.checks))


@pytest.mark.parametrize("package", list(ENGINES))
def test_an_exact_method_passes_with_both_controls(package, tmp_path):
    if importlib.util.find_spec(package) is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail(f"{package} is not installed")
        pytest.skip(f"{package} is not installed")
    engine, files, places = ENGINES[package](tmp_path)
    job = make_job(engine, files, tmp_path)
    directory = make_run(tmp_path)
    execute(dataclasses.replace(job, selected=frozenset()), directory, lambda _: None)
    texts = {prompt.id: prompt.text for prompt in load_prompts("demo-short")}
    contexts = {f"{name}@{length}": texts[name][:length] for name, length in places.items()}
    (planned,) = planned_checks(job, directory)
    with directory.lock():
        directory.append(
            CheckPlanRecord(planned.block, planned.base, 1, "screen", contexts, SCREEN.per_arm, TOKENS, {}, utc_now())
        )
        run_checks(job, directory, lambda _: None, {"screen": SCREEN})
    index = Index.build(directory.records())
    (state,) = index.checks.values()
    assert state.status is Status.OK, state.reason
    outcome = judge_check(state, index.cells[state.cell].claim)
    results = {one.check: one for one in outcome.results}
    assert results["distribution"].verdict is Verdict.PASS, results["distribution"].evidence
    assert "the negative control was" in results["distribution"].evidence
    directed = results["draft-directed z"]
    told = (Verdict.PASS, "tokens do not follow the draft: z ") if package == "mlx_lm" else (
        Verdict.NOT_APPLICABLE, "not available: the engine reports no draft probabilities"
    )  # fmt: skip
    assert directed.verdict is told[0], directed.evidence
    assert directed.evidence.startswith(told[1])
    if package == "xllamacpp":
        # One draw per emitted token and exact arithmetic: the same seed gives the same tokens, on or off.
        assert results["seed-coupled equality"].verdict is Verdict.PASS, results["seed-coupled equality"].evidence
