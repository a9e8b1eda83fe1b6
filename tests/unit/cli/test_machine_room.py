"""What one engine is told of the GPU's limit holds for every cell of the machine."""

from __future__ import annotations

import pytest
import yaml

from orchestrator.cli import workspace
from orchestrator.host.fit import Budget
from orchestrator.runner.survey import EngineFinding
from orchestrator.schema.adapter import EngineIdentity
from orchestrator.schema.cell import EngineConfig

RAM, METAL = 128 * 2**30, 110_100 * 2**20
AXES = {"engine": "e", "model": "m", "method": "none", "sampling": "greedy", "workload": "w"}
DOCUMENT = {
    "version": 1,
    "name": "room",
    "engines": {"e": {"adapter": "llama_cpp_embedded"}},
    "models": {"m": {"e": {"target": "gone.gguf"}}},
    "sampling": {"greedy": {"temperature": 0}},
    "workloads": {"w": {"prompts": "demo-short", "max_tokens": 8}},
    "matrix": {"axes": AXES},
}


@pytest.mark.parametrize(("told", "limit"), [((METAL, None), METAL), ((None, None), 96 * 2**30)])
def test_the_limit_that_an_engine_tells_takes_the_place_of_the_estimate(monkeypatch, tmp_path, told, limit):
    (tmp_path / "matrix.yaml").write_text(yaml.safe_dump(DOCUMENT), encoding="utf-8")
    found = {
        name: EngineFinding(EngineConfig(name, "a"), EngineIdentity(gpu_limit_bytes=one), False, None)
        for name, one in zip(("e", "other"), told, strict=True)
    }
    monkeypatch.setattr(workspace, "survey_engines", lambda *_: found)
    monkeypatch.setattr(workspace, "budget", lambda _: Budget(RAM, 0, 0, 96 * 2**30, "guess", gpu_estimated=True))
    opened = workspace.open_workspace(tmp_path / "matrix.yaml", tmp_path / "reports")
    room = opened.survey.host["budget"]
    assert (room["gpu_limit_bytes"], room["gpu_limit_estimated"]) == (limit, told[0] is None)
