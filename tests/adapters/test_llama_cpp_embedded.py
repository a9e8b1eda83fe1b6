"""The embedded path: what its interpreter says, what its worker is told, and how the worker refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from llama_cells import DRAFT, MTP, NGRAM, NONE, REJECTION, make_cell

from adapters.llama_cpp import server as llama_cpp
from adapters.llama_cpp.embedded import ADAPTER, WORKER
from adapters.llama_cpp.support import SPEC_CAPABILITY
from orchestrator.schema.adapter import LaunchContext, LineReady, ProbeOutput
from orchestrator.schema.cell import EngineConfig

CONFIG = EngineConfig("llama.cpp", "llama_cpp_embedded", python="/opt/engine/bin/python")
ANSWER = {"xllamacpp": "2026.10.11549", "python": "3.11.9", "kinds": ["none", "draft-mtp"], "devices": ["CPU"]}


def identify(stdout="", stderr="", code=0):
    return ADAPTER.identify(CONFIG, {"wheel": ProbeOutput(code, stdout, stderr)})


def settings(method, tmp_path, **how):
    launch = ADAPTER.launch(make_cell("llama_cpp_embedded", "/m/t.gguf", method, **how), LaunchContext(4321, tmp_path))
    return json.loads(launch.files["worker.json"])


def run_worker(*argv, flags=()):
    done = subprocess.run(
        [sys.executable, *flags, str(WORKER), *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_the_wheel_is_told_by_its_version():
    metal = {**ANSWER, "devices": ["BLAS", "MTL0"], "memory": [0, 115_448_725_504]}
    assert identify(json.dumps(metal)).gpu_limit_bytes == 115_448_725_504
    assert identify(json.dumps({**ANSWER, "memory": [25_276_510_208]})).gpu_limit_bytes is None  # RAM, not a GPU's
    found = identify("noise\n" + json.dumps(ANSWER) + "\n")
    assert dict(found.facts) == {"xllamacpp": "2026.10.11549", "python": "3.11.9"}
    assert (found.version, found.build, found.backend, found.unavailable) == ("2026.10.11549", None, "CPU", None)
    assert found.capabilities == {SPEC_CAPABILITY + "none", SPEC_CAPABILITY + "draft-mtp"}


def test_a_missing_wheel_is_unavailable_with_its_reason():
    found = identify("", "Traceback …\nModuleNotFoundError: No module named 'xllamacpp'\n", 1)
    assert "No module named 'xllamacpp'" in found.unavailable
    assert "/opt/engine/bin/python" in found.unavailable


def test_the_probe_and_the_worker_run_under_the_engines_own_interpreter(tmp_path):
    assert ADAPTER.probe_commands(CONFIG)[0].argv[0] == "/opt/engine/bin/python"
    launch = ADAPTER.launch(make_cell("llama_cpp_embedded", "t"), LaunchContext(1, tmp_path))
    assert launch.argv[0] == sys.executable
    assert Path(launch.argv[-2]).is_absolute()
    assert launch.argv[-1] == str(tmp_path / "worker.json")
    assert isinstance(launch.ready, LineReady)
    assert dict(launch.env) == {"LLAMA_TRACE": "1"}


def test_arms_differ_by_the_drafter_alone(tmp_path):
    base = settings(NONE, tmp_path)
    assert base["spec_type"] == "none"
    for method in (DRAFT, MTP, NGRAM):
        other = settings(method, tmp_path, draft="/m/d.gguf")
        assert {key: other[key] for key in base if key != "spec_type"} == {
            key: base[key] for key in base if key != "spec_type"
        }


def test_each_drafter_is_told_its_settings(tmp_path):
    assert settings(REJECTION, tmp_path, draft="/m/d.gguf")["draft"] == {
        "path": "/m/d.gguf",
        "n_max": 4,
        "n_min": 0,
        "p_min": 0.0,
        "probabilistic": True,
    }
    assert settings(MTP, tmp_path)["draft"]["path"] is None
    assert settings(MTP, tmp_path, mtp="/m/h.gguf")["draft"]["path"] == "/m/h.gguf"
    assert settings(NGRAM, tmp_path)["ngrams"] == {"ngram-simple": {"size_n": 2, "size_m": 8, "min_hits": 1}}


def test_both_paths_ask_and_read_alike():
    cell = make_cell("x", "t", DRAFT)
    assert llama_cpp.ADAPTER.name != ADAPTER.name
    assert llama_cpp.ADAPTER.engine_options is ADAPTER.engine_options
    assert llama_cpp.ADAPTER.method_options == ADAPTER.method_options
    assert llama_cpp.ADAPTER.ready_steps(cell) == ADAPTER.ready_steps(cell)


def test_the_worker_says_that_the_wheel_is_missing(tmp_path):
    path = tmp_path / "worker.json"
    path.write_text("{}")
    code, said = run_worker(str(path), flags=("-I", "-S"))
    assert code != 0
    assert [(line["event"], line["status"]) for line in said] == [("refused", "unavailable")]
    assert "xllamacpp" in said[0]["reason"]


@pytest.mark.parametrize("text", [None, "{", "[1, 2"])
def test_the_worker_refuses_settings_that_it_cannot_read(tmp_path, text):
    path = tmp_path / "worker.json"
    if text is not None:
        path.write_text(text)
    code, said = run_worker(str(path))
    assert code != 0
    assert [(line["event"], line["status"]) for line in said] == [("refused", "failed")]


def test_the_worker_without_settings_explains_itself():
    code, said = run_worker()
    assert code != 0
    assert "usage" in said[0]["reason"]
