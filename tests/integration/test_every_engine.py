"""A matrix of every engine there is, through the command line: what is not here says why and how to get it, and only that.

One engine runs for real on the tiny models; each other adapter of the registry is given a path at which nothing is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from orchestrator import registry
from orchestrator.runner.survey import how_to_get
from orchestrator.schema.adapter import EngineIdentity
from orchestrator.schema.cell import MethodKind
from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import Index

pytest.importorskip("xllamacpp") if not os.environ.get("SPECMATRIX_REQUIRE_ENGINES") else None
pytestmark = pytest.mark.engine

RUNS = "llama_cpp_embedded"
OTHERS = [name for name in registry.BUILT_IN if name != RUNS]
GREEDY = {
    "temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0, "repeat_penalty": 1, "presence_penalty": 0,
    "frequency_penalty": 0, "seed": 7,
}  # fmt: skip


def method_of(name: str) -> str:
    """The method that the default matrix would measure: MTP where the adapter has it."""
    known = registry.adapter(name).method_options
    return next(kind.value for kind in (MethodKind.MTP, MethodKind.NGRAM, MethodKind.DRAFT) if kind in known)


def write_matrix(folder):
    files = {"target": "models/absent", "mtp": "inside", "drafts": {"small": "models/absent-draft"}}
    nowhere = {"binary": "nowhere/engine", "python": "nowhere/python"}
    tiny = {"target": "demo:tiny-target-f16.gguf", "drafts": {"small": "demo:tiny-draft-f16.gguf"}}
    matrix = {
        "version": 1,
        "name": "every-engine",
        "engines": {
            RUNS: {"adapter": RUNS, "options": {"threads": 1, "context": 512}},
            **{name: {"adapter": name, **nowhere} for name in OTHERS},
        },
        "models": {"m": {RUNS: tiny, **dict.fromkeys(OTHERS, files)}},
        "methods": {
            "draft": {"method": "draft", "draft": "small", "n_max": 4},
            "mtp": {"method": "mtp", "n_max": 2},
            "ngram": {"method": "ngram", "n_max": 4},
        },
        "sampling": {"greedy": GREEDY},
        "workloads": {"w": {"prompts": "demo-short", "max_tokens": 16, "eos": "mask"}},
        "run": {"sessions": 2, "trials": 2, "warmup": 0, "twin": True},
        "matrix": {
            "include": [
                {"engine": RUNS, "model": "m", "method": "draft", "sampling": "greedy", "workload": "w"},
                *(
                    {"engine": name, "model": "m", "method": method_of(name), "sampling": "greedy", "workload": "w"}
                    for name in OTHERS
                ),
            ]
        },
    }
    (folder / "matrix.yaml").write_text(json.dumps(matrix), encoding="utf-8")


def specmatrix(folder, *argv):
    code = "from orchestrator.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *argv], cwd=folder, capture_output=True, text=True, check=False)


def test_every_engine_that_is_not_here_says_so_and_the_others_complete(tmp_path):
    write_matrix(tmp_path)
    done = specmatrix(tmp_path, "run")
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (path.parent for path in (tmp_path / "reports").glob("*/run.json"))
    index = Index.build(RunDirectory.open(run).records())
    ends = {name: {state.status.value for state in index.cells.values() if state.id.startswith(f"{name}/")}
            for name in registry.BUILT_IN}  # fmt: skip
    assert ends == {RUNS: {"ok"}, **{name: {"unavailable"} for name in OTHERS}}

    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.count('id="table/to-measure-c"') == 1
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert not [one for one in summary["reasons"] if set(one["about"]) & {s for s in index.cells if RUNS not in s}]
    for name in OTHERS:
        state = index.cells[f"{name}/m/{method_of(name)}/greedy/w"]
        identity = EngineIdentity(unavailable=state.reason)
        assert state.reason, name
        assert "nowhere/" in state.reason, name  # the engine's own sentence, not that of the model file
        assert state.remedy == how_to_get(identity, registry.adapter(name)), name
        assert state.remedy or "install" in state.reason or "git clone" in state.reason, name
        assert page.count(f'id="trouble/{state.id}"') == 1, name
    assert page.count('id="table/engines-c"') == 1
    assert "from source only" in page
    assert "verified against a real run" in page
    recorded = index.matrix.adapters
    assert {name: one["verified"] for name, one in recorded.items()} == {
        name: registry.adapter(name).verified.value for name in registry.BUILT_IN
    }

    checked = specmatrix(tmp_path, "check")
    assert checked.returncode == 0
    lines = checked.stdout.splitlines()
    for name in OTHERS:
        assert len([line for line in lines if line.startswith(f"{name}: 3 cells to be measured: ")]) == 1, name
        assert not [line for line in lines if line.startswith(f"{name}/")], name
    planned = specmatrix(tmp_path, "plan", "--new")
    assert not [name for name in OTHERS if f"{name}/" in planned.stdout]


def test_an_engine_that_is_here_names_the_file_that_is_not(tmp_path):
    write_matrix(tmp_path)
    text = (tmp_path / "matrix.yaml").read_text(encoding="utf-8")
    (tmp_path / "matrix.yaml").write_text(text.replace("demo:tiny-target-f16.gguf", "models/mine.gguf"), "utf-8")
    done = specmatrix(tmp_path, "check")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "there is no such file" in words
    assert "put the file there, or correct models.m in the matrix" in words.replace(" .", ".")
