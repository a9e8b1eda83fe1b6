"""The exported demo models in the real engines."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from orchestrator.demo import corpus
from orchestrator.demo.export import DemoFiles, ensure_exported
from orchestrator.workloads.load import load_prompts

pytestmark = pytest.mark.engine

HERE = pathlib.Path(__file__).parent
MODULES = {"llama": "xllamacpp", "mlx": "mlx_lm"}
PROMPTS = tuple(prompt.text for prompt in load_prompts("demo-short"))
TOKENS = 96
K = 4


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoFiles:
    return ensure_exported(tmp_path_factory.mktemp("demo"))


@dataclasses.dataclass(frozen=True)
class Outcome:
    results: list[dict[str, Any]]
    speculative: bool | None
    log: str

    @property
    def tokens(self) -> list[list[int]]:
        return [result["tokens"] for result in self.results]


def run(engine: str, target: pathlib.Path, *, prompts: tuple[str, ...] = PROMPTS, **changes: Any) -> Outcome:
    if importlib.util.find_spec(MODULES[engine]) is None:
        message = f"{MODULES[engine]} is not installed"
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    request: dict[str, Any] = {"speculation": "none", "tokens": TOKENS, "k": K, "mask_eos": True, "exact": True}
    request |= {"target": str(target), "prompts": prompts, **changes}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")}
    completed = subprocess.run(
        [sys.executable, str(HERE / f"demo_{engine}_worker.py")],
        input=json.dumps(request),
        env=clean | {"XDG_CONFIG_HOME": str(HERE / "no-such-directory"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    answer = json.loads(completed.stdout)
    return Outcome(answer["results"], answer.get("speculative"), completed.stderr)


def acceptance(result: dict[str, Any]) -> float:
    return float(result["accepted"] / result["drafted"])


def test_both_engines_emit_the_same_tokens(demo: DemoFiles) -> None:
    llama = run("llama", demo.paths["tiny-target-f32.gguf"])
    mlx = run("mlx", demo.paths["tiny-target-f32"])
    assert [r["prompt_ids"] for r in llama.results] == [r["prompt_ids"] for r in mlx.results]
    assert [len(tokens) for tokens in llama.tokens] == [TOKENS] * len(PROMPTS)
    assert llama.tokens == mlx.tokens


def test_a_draft_model_changes_nothing_in_llama_cpp(demo: DemoFiles) -> None:
    target, draft = demo.paths["tiny-target-f32.gguf"], demo.paths["tiny-draft-f32.gguf"]
    plain = run("llama", target)
    drafted = run("llama", target, speculation="draft", draft=str(draft))
    assert (plain.speculative, drafted.speculative) == (False, True)
    assert plain.tokens == drafted.tokens


def test_a_draft_model_changes_nothing_in_mlx_lm(demo: DemoFiles) -> None:
    target, draft = demo.paths["tiny-target-f32"], demo.paths["tiny-draft-f32"]
    plain = run("mlx", target)
    drafted = run("mlx", target, speculation="draft", draft=str(draft))
    assert plain.tokens == drafted.tokens
    assert any(any(result["from_draft"]) for result in drafted.results)


def test_the_draft_helps_with_some_texts_and_not_with_others(demo: DemoFiles) -> None:
    target, draft = demo.paths["tiny-target-f16.gguf"], demo.paths["tiny-draft-f16.gguf"]
    rates = [acceptance(result) for result in run("llama", target, speculation="draft", draft=str(draft)).results]
    first, second, third = rates[:3]
    assert first >= 0.8
    assert first > second > third
    assert third <= 0.5


def test_the_mtp_block_drafts_usefully_and_changes_nothing(demo: DemoFiles) -> None:
    target = demo.paths["tiny-mtp-f32.gguf"]
    plain = run("llama", target)
    drafted = run("llama", target, speculation="mtp")
    assert (plain.speculative, drafted.speculative) == (False, True)
    assert plain.tokens == drafted.tokens
    rate = sum(r["accepted"] for r in drafted.results) / sum(r["drafted"] for r in drafted.results)
    assert 0.2 < rate < 0.95


def test_llama_cpp_refuses_the_incompatible_draft(demo: DemoFiles) -> None:
    target, draft = demo.paths["tiny-target-f16.gguf"], demo.paths["tiny-incompatible-f16.gguf"]
    outcome = run("llama", target, prompts=PROMPTS[:1], speculation="draft", draft=str(draft))
    assert outcome.speculative is False
    assert "the target and draft vocabs are not compatible" in outcome.log


def test_the_incompatible_draft_is_a_good_model_of_its_own(demo: DemoFiles) -> None:
    # Numbering tokens backwards changes no text, so the refusal is about the vocabulary and nothing else.
    texts = [
        [result["text"] for result in run("llama", demo.paths[name], exact=False).results]
        for name in ("tiny-draft-f16.gguf", "tiny-incompatible-f16.gguf")
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["tiny-target-f16", "tiny-draft-f16", "tiny-incompatible-f16"])
def test_every_other_folder_loads_in_mlx_lm(demo: DemoFiles, name: str) -> None:
    outcome = run("mlx", demo.paths[name], prompts=PROMPTS[:1], tokens=8)
    assert [len(tokens) for tokens in outcome.tokens] == [8]


def test_the_target_counts_copies_and_adds(demo: DemoFiles) -> None:
    tasks = list(corpus.tasks(seed=777, each=10))
    outcome = run(
        "llama",
        demo.paths["tiny-target-f16.gguf"],
        prompts=tuple(task.prompt for task in tasks),
        mask_eos=False,
        exact=False,
    )
    right = dict.fromkeys(corpus.FIXED_CATEGORIES, 0)
    for task, result in zip(tasks, outcome.results, strict=True):
        right[task.category] += result["text"].startswith(task.answer)
    assert min(right[category] for category in ("count", "copy", "sum")) >= 9, right


def test_the_long_prompts_have_long_natural_answers(demo: DemoFiles) -> None:
    prompts = tuple(prompt.text for prompt in load_prompts("demo-long"))
    outcome = run("llama", demo.paths["tiny-target-f16.gguf"], prompts=prompts, mask_eos=False, exact=False, tokens=160)
    assert all(len(tokens) >= 128 for tokens in outcome.tokens)
