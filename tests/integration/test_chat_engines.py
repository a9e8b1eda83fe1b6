"""A conversation on two real engines: one text for both, the same token ids, and the ledger says so."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys

import pytest
from chat_models import TEMPLATE, folder_with_template, gguf_with_template
from matrix_job import matrix_job
from scripted_job import make_run

from orchestrator.runner.execute import execute
from orchestrator.schema.adapter import Honoured
from orchestrator.schema.chat_template import ChatTemplate
from orchestrator.schema.record import SessionRecord, TrialRecord
from orchestrator.schema.status import Status

pytestmark = pytest.mark.engine
PAIR = {"draft-k2": {"method": "draft", "draft": "small", "n_max": 2}}


@pytest.fixture(autouse=True)
def _engines():
    for package in ("xllamacpp", "mlx_lm"):
        if importlib.util.find_spec(package) is None:
            if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
                pytest.fail(f"{package} is not installed")
            pytest.skip(f"{package} is not installed")


def job_of(folder, llama, mlx, workload):
    document = {
        "version": 1,
        "name": "chat",
        "engines": {
            "llama": {"adapter": "llama_cpp_embedded", "options": {"threads": 1, "context": 512}},
            "mlx": {"adapter": "mlx_lm", "python": sys.executable, "options": {"dtype": "float32"}},
        },
        "models": {
            "tiny": {
                "llama": {"target": str(llama), "drafts": {"small": "demo:tiny-draft-f32.gguf"}},
                "mlx": {"target": str(mlx), "drafts": {"small": "demo:tiny-draft-f32"}},
            }
        },
        "methods": PAIR,
        "sampling": {"greedy": {"temperature": 0}},
        "workloads": {"talk": {"prompts": "demo-short", "max_tokens": 12, "eos": "mask", **workload}},
        "run": {"preset": "demo", "sessions": 1, "trials": 2, "warmup": 1, "twin": False, "order": "random"},
        "matrix": {
            "axes": {
                "engine": ["llama", "mlx"], "model": ["tiny"], "method": ["draft-k2"], "sampling": ["greedy"],
                "workload": ["talk"],
            }
        },
    }  # fmt: skip
    job = matrix_job(document, folder)
    return dataclasses.replace(job, selected=frozenset(cell.id for cell in job.expansion.cells))


def test_every_arm_of_every_engine_is_given_the_same_conversation(tmp_path):
    llama, mlx = gguf_with_template(tmp_path / "chat.gguf"), folder_with_template(tmp_path / "chat")
    job = job_of(tmp_path, llama, mlx, {"template": "chat", "system": "Be brief.", "thinking": False})
    directory = make_run(tmp_path)
    execute(job, directory, lambda _event: None)
    records = list(directory.records())
    sessions = [one for one in records if isinstance(one, SessionRecord)]
    assert len(sessions) == 4
    assert {one.status for one in sessions} <= {Status.OK, Status.MEMORY_PRESSURE}  # the machine may be short of it
    ledgers = [{item.name: item for item in one.conditions} for one in sessions]
    for ledger in ledgers:
        assert [item.name for item in sessions[0].conditions].count("chat_template") == 1
        assert ledger["chat_template"].requested == "chat"
        assert f"sha256 {ChatTemplate(TEMPLATE, '').sha256}" in ledger["chat_template"].effective
        assert ledger["system_prompt"].effective == "Be brief."
        assert ledger["thinking"].verdict is Honoured.UNSUPPORTED  # the template does not know the word
        assert ledger["prompt_ids"].verdict is Honoured.HONOURED
    assert len({ledger["prompt_ids"].effective for ledger in ledgers}) == 1
    counted = {
        (one.prompt_id, item.value)
        for one in records
        if isinstance(one, TrialRecord)
        for item in one.observations
        if item.metric == "prompt_tokens"
    }
    assert len(counted) == len({prompt for prompt, _ in counted})  # one number per prompt, whichever engine counted


def test_raw_prompts_have_the_same_ids_too_and_a_plain_ledger(tmp_path):
    job = job_of(tmp_path, "demo:tiny-target-f32.gguf", "demo:tiny-target-f32", {})
    directory = make_run(tmp_path)
    execute(job, directory, lambda _event: None)
    ledgers = [{i.name: i for i in one.conditions} for one in directory.records() if isinstance(one, SessionRecord)]
    assert len({ledger["prompt_ids"].effective for ledger in ledgers}) == 1
    assert {ledger["chat_template"].effective for ledger in ledgers} == {"none: the prompt is sent as it is"}
    assert all("system_prompt" not in ledger for ledger in ledgers)


def test_a_model_without_a_template_is_refused_before_anything_starts(tmp_path):
    broken = gguf_with_template(tmp_path / "broken.gguf", "{{ raise_exception('no system prompts here') }}")
    job = job_of(tmp_path, broken, "demo:tiny-target-f32", {"template": "chat"})
    fates = {cell.engine.name: job.survey.fates[cell.id].refusal for cell in job.expansion.cells}
    assert {fate.status for fate in fates.values()} == {Status.UNSUPPORTED}
    assert "no system prompts here" in fates["llama"].reason
    assert "finds no chat template" in fates["mlx"].reason
    assert "template: raw" in fates["mlx"].remedy


def test_a_template_in_a_file_of_its_own_goes_first(tmp_path):
    folder = folder_with_template(tmp_path / "own", "{{ messages[0].content }}", own_file=True)
    job = job_of(tmp_path, gguf_with_template(tmp_path / "c.gguf"), folder, {"template": "chat"})
    cells = {cell.engine.name: cell for cell in job.expansion.cells}
    adapter = job.adapters["mlx_lm"]
    assert adapter.chat_template(cells["mlx"]).source == "{{ messages[0].content }}"
    # Another template is another question: the two engines' cells differ in what their numbers hang on.
    assert job.survey.fates[cells["mlx"].id].facts["prompts"] != job.survey.fates[cells["llama"].id].facts["prompts"]
