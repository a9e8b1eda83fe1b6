"""What a cell's numbers depend on is hashed whole: every file of a split model, and the program wherever it was found."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from scripted_adapter import ScriptedAdapter
from scripted_job import SETTINGS, matrix_cells

from orchestrator import registry
from orchestrator.runner.survey import EngineFinding, survey_cells, survey_engines
from orchestrator.schema.adapter import EngineIdentity
from orchestrator.schema.cell import EngineConfig, ModelConfig
from orchestrator.schema.shards import shards
from orchestrator.schema.status import Status

FIRST, SECOND = "big-00001-of-00002.gguf", "big-00002-of-00002.gguf"


def fate(cell, folder):
    found = EngineFinding(cell.engine, EngineIdentity(), False, None)
    adapters = {cell.engine.adapter: ScriptedAdapter()}
    return survey_cells([cell], {cell.engine.name: found}, adapters, SETTINGS, folder / "scratch")[cell.id]


@pytest.fixture
def split(tmp_path):
    base = matrix_cells(tmp_path)[0]
    for name in (FIRST, SECOND):
        (tmp_path / name).write_bytes(name.encode())
    return replace(base, model=replace(base.model, target=str(tmp_path / FIRST)))


def test_a_change_in_any_file_of_a_split_model_changes_what_its_figures_depend_on(split, tmp_path):
    before = fate(split, tmp_path)
    assert before.refusal is None
    assert {name for name in before.facts if name.startswith("file.")} == {"file.0", "file.1"}
    (tmp_path / SECOND).write_bytes(b"other weights")
    after = fate(split, tmp_path)
    assert {name for name in after.facts if after.facts[name] != before.facts[name]} == {"file.1"}
    assert after.fingerprint != before.fingerprint


def test_a_missing_file_of_a_split_model_is_said_before_the_engine_is_started(split, tmp_path):
    (tmp_path / SECOND).unlink()
    refusal = fate(split, tmp_path).refusal
    assert refusal is not None
    assert refusal.status is Status.UNAVAILABLE
    assert refusal.reason == f"{tmp_path / SECOND}: there is no such file"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/m/a-00001-of-00003.gguf", [f"/m/a-0000{number}-of-00003.gguf" for number in (1, 2, 3)]),
        ("/m/a-00002-of-00002.gguf", ["/m/a-00001-of-00002.gguf", "/m/a-00002-of-00002.gguf"]),
        ("a-00001-of-00001.gguf", ["a-00001-of-00001.gguf"]),
        ("./m/a.gguf", ["./m/a.gguf"]),
        ("/m/a-00000-of-00002.gguf", ["/m/a-00000-of-00002.gguf"]),
        ("/m/a-00003-of-00002.gguf", ["/m/a-00003-of-00002.gguf"]),
        ("/m/a-1-of-2.gguf", ["/m/a-1-of-2.gguf"]),
        ("/m/a-00001-of-00002", ["/m/a-00001-of-00002"]),  # a folder
    ],
)
def test_the_files_of_a_model_are_told_by_its_name(path, found):
    assert list(shards(path)) == found


def test_a_split_draft_counts_with_all_its_files(tmp_path):
    model = ModelConfig("m", "/m/t.gguf", drafts={"d": f"/m/{FIRST}"})
    cell = replace(matrix_cells(tmp_path)[1], model=model)
    assert cell.files == ("/m/t.gguf", f"/m/{FIRST}", f"/m/{SECOND}")


@pytest.mark.parametrize(("adapter", "command"), [("ds4", "ds4"), ("llama_cpp", "llama-server"), ("mtplx", "mtplx")])
def test_a_program_that_is_found_on_the_path_is_hashed_as_one_that_is_named(monkeypatch, tmp_path, adapter, command):
    program = tmp_path / "bin" / command
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho hello\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    wanted = hashlib.sha256(program.read_bytes()).hexdigest()
    for config in (EngineConfig("e", adapter), EngineConfig("e", adapter, binary=str(program))):
        found = survey_engines([config], {adapter: registry.adapter(adapter)}, tmp_path)["e"].identity
        assert found.binary_sha256 == found.facts["sha256"] == wanted


def test_an_engine_that_is_a_package_of_an_interpreter_has_no_binary(tmp_path):
    config = EngineConfig("e", "mlx_lm", python=str(tmp_path / "gone"))
    assert (
        survey_engines([config], {"mlx_lm": registry.adapter("mlx_lm")}, tmp_path)["e"].identity.binary_sha256 is None
    )
