"""mlx-vlm on the demo's hybrid and its MTP module: on against off, counts against independent counts, refusals.

One worker answers both arms of most comparisons: a request without a block size runs the loop without a drafter.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cells
import pytest
from engine_job import engine_job, run_job
from engine_session import drive
from vlm_session import BARE, GREEDY, NONE, WARM, VlmSession, make_cell, mtp, vlm_session

from adapters.mlx_vlm.adapter import ADAPTER
from orchestrator import registry
from orchestrator.demo.export import ensure_exported
from orchestrator.demo.tensors import Tensor, read_safetensors, safetensors_bytes
from orchestrator.runner.observe import observe_trial
from orchestrator.schema.adapter import EngineIdentity, Honoured
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, EosPolicy
from orchestrator.schema.errors import EngineRefusal
from orchestrator.schema.record import TrialRecord
from orchestrator.schema.replay import ReplaySpec, Width
from orchestrator.schema.status import Status
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine

SUPPORT = Path(__file__).resolve().parents[1] / "support"
PROMPTS = tuple(prompt.text for prompt in load_prompts("demo-short"))
COPY = "Copy: warm basket blue bright warm cold =>"
FEW = (PROMPTS[0], COPY)
TARGET, DRAFTER = "tiny-mtp-vlm-f32", "tiny-mtp-vlm-drafter-f32"
GGUF = "tiny-mtp-f32.gguf"
BY_POSITION: dict[str, Any] = {"seeding": "position", "prefill_step_size": None}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mlx_vlm") is None:
        message = "mlx_vlm is not installed"
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return ensure_exported(tmp_path_factory.mktemp("demo"), (TARGET, DRAFTER, GGUF)).directory


def cell_of(demo: Path, **settings: Any) -> Cell:
    return make_cell(demo / TARGET, demo / DRAFTER, **settings)


@pytest.fixture(scope="module")
def counting(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VlmSession]:
    """A worker with the drafter that counts its target's passes besides."""
    folder = tmp_path_factory.mktemp("counting")
    with vlm_session(cell_of(demo, method=mtp(2)), folder, SUPPORT / "vlm_counting_worker.py") as session:
        yield session


@pytest.fixture(scope="module")
def inside(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vision model with the MTP module in its own folder, as Qwen3.5 comes; of the same weights otherwise.

    Its tokeniser splits numbers into digits: transformers goes by the model's type, not by the file alone.
    """
    folder = tmp_path_factory.mktemp("inside") / "model"
    maker = (sys.executable, str(SUPPORT / "vlm_inside_maker.py"))
    subprocess.run([*maker, str(demo / TARGET), str(demo / DRAFTER), str(folder)], check=True, timeout=600)
    return folder


@pytest.fixture(scope="module")
def by_position(inside: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VlmSession]:
    """A worker on that model, which seeds by position and shows the drafter the whole prompt."""
    cell = make_cell(inside, None, method=mtp(2), **BY_POSITION)
    with vlm_session(cell, tmp_path_factory.mktemp("position")) as session:
        yield session


def run(session: VlmSession, cell: Cell, prompt: str, seed: int = 1) -> Any:
    seen = observe_trial(ADAPTER, cell, session.trial(prompt, seed=seed, cell=cell))
    assert [word for word in seen.problems if "clock" not in word and "disagree:" not in word] == [], cell.id
    return seen


def values(seen: Any) -> dict[str, Any]:
    return {item.metric: item.value for item in seen.observations}


def calls(session: VlmSession) -> list[list[Any]]:
    """The passes of the last answer, as (tokens, judges a draft)."""
    found = json.loads((Path(session.process.stderr_path).parent / "calls.jsonl").read_text().splitlines()[-1])
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("eos", list(EosPolicy), ids=lambda one: one.value)
def test_greedy_output_is_the_baselines_token_for_token_and_passes_are_those_counted(
    demo: Path, counting: VlmSession, eos: EosPolicy
) -> None:
    refused = 0
    for prompt in FEW:
        plain = run(counting, cell_of(demo, tokens=28, eos=eos), prompt)
        told = values(plain)
        # The prompt in two passes, one a token after the first, and one under way that nobody waits for.
        assert len(calls(counting)) == told["target_passes"] + 3
        assert not any(judges for _, judges in calls(counting))
        for k in (1, 4):
            cell = cell_of(demo, method=mtp(k), tokens=28, eos=eos)
            seen = run(counting, cell, prompt)
            assert seen.token_ids == plain.token_ids, (k, prompt)
            assert seen.text == plain.text
            told, judged = values(seen), [width for width, judges in calls(counting) if judges]
            assert told["verify_rounds"] == told["target_passes"] == len(judged)
            assert told["drafted_tokens"] == sum(width - 1 for width in judged)
            assert told["burst_count"] == told["target_passes"] + 1
            assert 0 < told["accepted_tokens"] <= told["drafted_tokens"]
            refused += told["rejected_tokens"]
            emitted = 1 + told["accepted_tokens"] + told["verify_rounds"]
            assert emitted - len(seen.token_ids) in range(k + 1)
            assert told["accepted_by_position"][0] >= told["accepted_by_position"][-1]
            assert sum(told["accepted_by_position"]) == told["accepted_tokens"]
            assert sum(told["drafted_by_position"]) == told["drafted_tokens"]
    assert refused > 0


def test_an_answer_that_ends_inside_a_round_says_what_was_accepted_beyond(demo: Path, counting: VlmSession) -> None:
    cell = cell_of(demo, method=mtp(2), tokens=64)
    seen = run(counting, cell, COPY)
    told = {item.metric: item for item in seen.observations}
    assert told["finish_reason"].value == "eos"
    assert told["cut_rounds"].value == 1
    assert "after end of text" in (told["accepted_tokens"].note or "")
    parsed = ADAPTER.parse_trial(cell, counting.read().trials[counting.specs[-1].index])
    assert parsed.token_ids[-1] == 0


def test_an_answer_of_one_token_has_no_round_and_takes_none_from_the_answer_before(
    demo: Path, counting: VlmSession
) -> None:
    run(counting, cell_of(demo, method=mtp(2), tokens=24), PROMPTS[0])
    told = values(run(counting, cell_of(demo, method=mtp(2), tokens=1), PROMPTS[0]))
    assert (told["drafted_tokens"], told["verify_rounds"], told["output_tokens"]) == (0, 0, 1)
    assert told["acceptance_rate"] is None


@pytest.mark.parametrize("sampling", [WARM, BARE], ids=lambda one: one.name)
def test_sampled_output_is_the_baselines_under_one_stream_of_random_numbers(
    demo: Path, counting: VlmSession, sampling: Any
) -> None:
    """The target draws once per emitted token, as plain decoding does, and the drafter's draws are taken back."""
    texts = set()
    for seed in range(3):
        base = cell_of(demo, sampling=sampling, eos=EosPolicy.MASK, tokens=20)
        plain = run(counting, base, PROMPTS[6], seed)
        seen = run(counting, replace(base, method=mtp(2)), PROMPTS[6], seed)
        assert seen.token_ids == plain.token_ids
        texts.add(plain.token_ids)
    assert len(texts) > 1


@pytest.mark.parametrize("eos", [EosPolicy.STOP, EosPolicy.MASK])
def test_sampled_output_is_the_baselines_where_each_place_has_a_key(
    inside: Path, by_position: VlmSession, eos: EosPolicy
) -> None:
    texts = set()
    base = make_cell(inside, None, sampling=BARE, eos=eos, tokens=20, **BY_POSITION)
    cell = replace(base, method=mtp(2))
    for seed in range(3):
        plain = run(by_position, base, PROMPTS[6], seed)
        seen = run(by_position, cell, PROMPTS[6], seed)
        assert seen.token_ids == plain.token_ids
        texts.add(plain.token_ids)
    assert len(texts) > 1
    found = {one.name: one for one in ADAPTER.conditions(cell, by_position.read().trials[by_position.specs[-1].index])}
    assert all(one.verdict is Honoured.HONOURED for one in found.values())
    shown, of, total = found["prompt_shown_to_drafter"].effective.split()[:3]
    assert (shown, of) == (total, "of")
    assert found["draft_sampling"].effective == "greedy"


def test_a_module_inside_the_target_speaks_as_the_one_beside_it(
    demo: Path, inside: Path, counting: VlmSession, by_position: VlmSession
) -> None:
    cell = make_cell(inside, None, method=mtp(2), tokens=20, **BY_POSITION)
    assert ADAPTER.supports(cell, EngineIdentity()) is None
    assert by_position.ready["draft_type"] == "qwen3_5_mtp"
    seen = run(by_position, cell, COPY)
    assert seen.token_ids == run(counting, cell_of(demo, tokens=20), COPY).token_ids
    assert values(seen)["accepted_tokens"] > 0


def test_penalties_are_dropped_while_it_speculates(demo: Path, counting: VlmSession) -> None:
    """Why `supports` refuses them: past the first token the answer is the one without a penalty."""
    base = cell_of(demo, tokens=20, sampling=GREEDY)
    punished = replace(base, sampling=replace(GREEDY, name="punished", repeat_penalty=1.5))
    plain, slower = run(counting, base, COPY), run(counting, punished, COPY)
    seen = run(counting, replace(punished, method=mtp(2)), COPY)
    assert slower.token_ids != plain.token_ids
    assert seen.token_ids == plain.token_ids


def test_a_replay_ranks_the_baselines_own_text_first(demo: Path, counting: VlmSession) -> None:
    base = cell_of(demo, tokens=24, eos=EosPolicy.MASK)
    ids = run(counting, base, PROMPTS[0]).token_ids
    for width in Width:
        spec = ReplaySpec(900, PROMPTS[0], ids, tuple(range(len(ids))), width, full=True)
        (step,) = ADAPTER.replay_steps(base, spec)
        ranked = ADAPTER.parse_replay(base, spec, TrialCapture(900, {"score": counting.channel.call(step, 300, 600)}))
        assert [one.rank for one in ranked] == [1] * 24
        assert tuple(one.top[0][0] for one in ranked) == ids
        assert all(one.entropy is not None and one.entropy > 0 for one in ranked)


def test_the_same_weights_say_the_same_in_llama_cpp(demo: Path, counting: VlmSession, tmp_path: Path) -> None:
    """f32 in both: what the export renames and reshapes is what llama.cpp computes with."""
    adapter = registry.adapter("llama_cpp_embedded")
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    cell = llama_cells.make_cell(adapter.name, demo / GGUF, method=llama_cells.NONE, tokens=24, eos=EosPolicy.MASK)
    trials = [llama_cells.make_trial(place, text) for place, text in enumerate(PROMPTS[:3])]
    driven = drive(adapter, cell, trials, tmp_path)
    for place, prompt in enumerate(PROMPTS[:3]):
        theirs = adapter.parse_trial(cell, driven.capture.trials[place]).token_ids
        assert run(counting, cell_of(demo, tokens=24, eos=EosPolicy.MASK), prompt).token_ids == theirs


def smaller(source: Path, folder: Path) -> Path:
    """A drafter of zeros made for a target half as wide."""
    shutil.copytree(source, folder)
    told = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    told["text_config"]["hidden_size"] = 64
    (folder / "config.json").write_text(json.dumps(told), encoding="utf-8")
    found = {}
    for name, tensor in read_safetensors(folder / "model.safetensors").items():
        rows, *columns = tensor.shape
        rows = 64 if name.split(".")[-2] not in {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"} else rows
        if "q_norm" in name or "k_norm" in name:
            rows = 32
        columns = [size if name.split(".")[-2] in {"o_proj", "down_proj"} else size // 2 for size in columns]
        shape = (rows, *columns)
        found[name] = Tensor("f32", shape, bytes(4 * math.prod(shape)))
    (folder / "model.safetensors").write_bytes(safetensors_bytes(found))
    return folder


def test_a_drafter_of_another_size_is_refused_before_the_start_and_by_the_worker(demo: Path, tmp_path: Path) -> None:
    """mlx-vlm's own command line would go on without it, and exit with 0."""
    cell = make_cell(demo / TARGET, smaller(demo / DRAFTER, tmp_path / "small"), method=mtp(2))
    refusal = ADAPTER.supports(cell, EngineIdentity())
    assert refusal is not None
    assert refusal.status is Status.UNSUPPORTED
    assert "hidden size 64" in refusal.reason
    with pytest.raises(EngineRefusal) as caught, vlm_session(cell, tmp_path / "session"):
        pass
    assert "mlx-vlm finds the drafter incompatible, and its command line would go on without it" in str(caught.value)


def test_a_model_that_is_no_mtp_drafter_is_refused_before_the_start_and_by_the_worker(
    demo: Path, tmp_path: Path
) -> None:
    """The target's own folder, which has no MTP module in it: mlx-vlm would take it for another kind of drafter."""
    cell = make_cell(demo / TARGET, demo / TARGET, method=mtp(2))
    refusal = ADAPTER.supports(cell, EngineIdentity())
    assert refusal is not None
    assert "takes no MTP module out of a qwen3_5_text model's own folder" in refusal.reason
    with pytest.raises(EngineRefusal) as caught, vlm_session(cell, tmp_path):
        pass
    assert "kind dflash, not mtp" in str(caught.value)


def test_the_runner_measures_both_arms_and_finds_them_alike(demo: Path, tmp_path: Path) -> None:
    base = cell_of(demo, tokens=24, eos=EosPolicy.MASK, sampling=GREEDY, method=NONE)
    cell = replace(base, method=mtp(2))
    job = engine_job(ADAPTER, base, [cell], tmp_path / "scratch")
    directory, index = run_job(job, tmp_path / "run")
    assert {state.status for state in index.cells.values()} == {Status.OK}
    trials = [one for one in directory.records() if isinstance(one, TrialRecord)]
    texts = {
        name: {
            one.prompt_id: one.token_ids for one in trials if one.place.cell == name and one.phase.value == "measured"
        }
        for name in (base.id, cell.id)
    }
    assert texts[base.id] == texts[cell.id]
    assert len(texts[base.id]) == 2
    drafted = [
        item.value for one in trials if one.place.cell == cell.id for item in one.observations
        if item.metric == "drafted_tokens"
    ]  # fmt: skip
    assert all(isinstance(count, int) and count > 0 for count in drafted)
