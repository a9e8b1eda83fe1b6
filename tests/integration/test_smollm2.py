"""SmolLM2-135M, a real model: it answers rightly, speculation changes nothing, and two engines agree on its weights."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest
from matrix_job import matrix_job
from scripted_job import make_run

from orchestrator.convert.write import to_folder, to_gguf
from orchestrator.demo.packaged import SMOLLM2
from orchestrator.runner.execute import execute
from orchestrator.schema.record import TrialRecord
from orchestrator.schema.status import Status
from orchestrator.store.index import Index

pytestmark = pytest.mark.engine

HERE = pathlib.Path(__file__).parent
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
TOKENS = 32


def chat(message: str) -> str:
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"


QUESTIONS = ("What is the capital of Germany?", "Write 12 + 3045 as words.")
"""One whose answer is short and certain, and one with digits, which the tokenizer splits one by one."""


@pytest.fixture(autouse=True)
def _model():
    missing = [name for name in ("xllamacpp", "mlx_lm") if importlib.util.find_spec(name) is None]
    if not SMOLLM2.path().is_file():
        missing.append(SMOLLM2.package)
    if missing:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail(f"{', '.join(missing)} not installed: {SMOLLM2.install_command}")
        pytest.skip(f"{', '.join(missing)} not installed")


def test_it_answers_and_its_draft_changes_no_token(tmp_path):
    prompts = [
        {"id": f"q{number}", "category": "chat", "language": "en", "text": question}
        for number, question in enumerate(QUESTIONS)
    ]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(one) + "\n" for one in prompts), encoding="utf-8")
    model = {"target": f"demo:{SMOLLM2.name}", "drafts": {"small": "demo:smollm2-draft-q8_0.gguf"}}
    document = {
        "version": 1,
        "name": "real",
        "engines": {"llama": {"adapter": "llama_cpp_embedded", "options": {"threads": 1, "context": 512}}},
        "models": {"smollm2": {"llama": model}},
        "methods": {
            "draft": {"method": "draft", "draft": "small", "n_max": 2},
            "ngram": {"method": "ngram", "n_max": 4, "options": {"size_n": 2}},
        },
        "sampling": {"greedy": {"temperature": 0}},
        "workloads": {"asked": {"prompts": "asked.jsonl", "max_tokens": TOKENS, "eos": "stop", "template": "chat"}},
        "run": {"preset": "demo", "sessions": 1, "order": "random", "trials": 2, "warmup": 0, "twin": False},
        "matrix": {
            "axes": {
                "engine": ["llama"], "model": ["smollm2"], "method": ["draft", "ngram"], "sampling": ["greedy"],
                "workload": ["asked"],
            }
        },
    }  # fmt: skip
    job = matrix_job(document, tmp_path)
    directory = make_run(tmp_path)
    selected = frozenset(cell.id for cell in job.expansion.cells)
    execute(type(job)(job.matrix, job.expansion, job.survey, job.adapters, selected, again=False), directory, print)
    index = Index.build(directory.records())
    assert {state.status for state in index.cells.values()} == {Status.OK}
    answers: dict[str, dict[str, tuple[int, ...]]] = {}
    texts: dict[str, str] = {}
    for record in directory.records():
        if isinstance(record, TrialRecord):
            answers.setdefault(record.place.cell.split("/")[2], {})[record.prompt_id] = tuple(record.token_ids)
            texts[record.prompt_id] = record.text
    assert "Berlin" in texts["q0"]
    assert set(answers) == {"none", "draft", "ngram"}
    assert answers["draft"] == answers["none"]
    assert answers["ngram"] == answers["none"]


@pytest.fixture
def converted(tmp_path):
    """The same numbers for both engines; a gigabyte, so it does not stay."""
    yield to_folder(SMOLLM2.path(), tmp_path / "folder", "f32"), to_gguf(SMOLLM2.path(), tmp_path / "wide.gguf", "f32")
    shutil.rmtree(tmp_path / "folder")
    (tmp_path / "wide.gguf").unlink()


def run(engine: str, target: pathlib.Path) -> list[dict[str, Any]]:
    request = {"speculation": "none", "tokens": TOKENS, "k": 0, "mask_eos": False, "exact": True}
    request |= {"target": str(target), "prompts": [chat(QUESTIONS[1])]}
    done = subprocess.run(
        [sys.executable, str(HERE / f"demo_{engine}_worker.py")],
        input=json.dumps(request),
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return found


def test_two_engines_write_the_same_tokens_with_its_weights_in_f32(converted):
    folder, wide = converted
    (llama,), (mlx,) = run("llama", wide), run("mlx", folder)
    assert llama["prompt_ids"] == mlx["prompt_ids"]
    assert len(llama["tokens"]) == TOKENS
    assert llama["tokens"] == mlx["tokens"]
