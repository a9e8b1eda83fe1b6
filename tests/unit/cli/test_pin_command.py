"""``specmatrix pin`` on engines that a test can make: found, missing, unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.cli.pin import pin_engines
from orchestrator.schema.adapter import EngineIdentity
from orchestrator.schema.errors import SpecmatrixError

MATRIX = """\
version: 1
name: t
engines:
  one: {adapter: llama_cpp_embedded}   # found
  two: {adapter: mlx_lm}               # perhaps
models:
  m: {one: {target: t.gguf}, two: {target: t}}
sampling: {greedy: {temperature: 0}}
workloads: {w: {prompts: demo-short, max_tokens: 8}}
matrix: {axes: {engine: [one, two], model: m, method: none, sampling: greedy, workload: w}}
"""
FOUND = EngineIdentity(facts={"xllamacpp": "5.0", "python": "3.11", "device": "cpu"}, version="5.0")
GONE = EngineIdentity(unavailable="it is not installed")


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "m.yaml"
    path.write_text(MATRIX, encoding="utf-8")
    return path


def engines(monkeypatch: pytest.MonkeyPatch, one: EngineIdentity, two: EngineIdentity) -> None:
    for name, identity in (("llama_cpp_embedded", one), ("mlx_lm", two)):
        adapter = registry.adapter(name)
        monkeypatch.setattr(type(adapter), "probe_commands", lambda *_: ())
        monkeypatch.setattr(type(adapter), "identify", lambda *_, found=identity: found)


def test_found_engines_are_pinned_and_missing_ones_left_alone(monkeypatch, matrix, tmp_path, capsys):
    engines(monkeypatch, FOUND, GONE)
    matrix.chmod(0o640)
    pin_engines(matrix, tmp_path / "reports", [])
    assert matrix.read_text(encoding="utf-8") == MATRIX.replace(
        "llama_cpp_embedded}", "llama_cpp_embedded, pin: {xllamacpp: 5.0}}"
    )
    assert matrix.stat().st_mode & 0o777 == 0o640
    assert "left as it is: it is not installed" in " ".join(capsys.readouterr().out.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.yaml", "reports"]


def test_a_named_engine_that_is_missing_is_refused_and_nothing_written(monkeypatch, matrix, tmp_path):
    engines(monkeypatch, FOUND, GONE)
    with pytest.raises(SpecmatrixError, match="cannot pin what is not on this machine: two: it is not installed"):
        pin_engines(matrix, tmp_path / "reports", ["one", "two"])
    assert matrix.read_text(encoding="utf-8") == MATRIX


def test_only_the_named_engine_is_pinned(monkeypatch, matrix, tmp_path):
    engines(monkeypatch, FOUND, EngineIdentity(facts={"mlx-lm": "1"}))
    pin_engines(matrix, tmp_path / "reports", ["two"])
    assert matrix.read_text(encoding="utf-8") == MATRIX.replace("mlx_lm}", "mlx_lm, pin: {mlx-lm: 1}}")


def test_an_engine_that_the_matrix_does_not_have_is_refused(monkeypatch, matrix, tmp_path):
    engines(monkeypatch, FOUND, GONE)
    with pytest.raises(SpecmatrixError, match="no engine three; there are: one, two"):
        pin_engines(matrix, tmp_path / "reports", ["three"])
