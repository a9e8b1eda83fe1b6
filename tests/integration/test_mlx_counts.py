"""MLX-LM on the demo models: what the adapter counts against independent counts, and on against off."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mlx_session import GREEDY, NONE, WARM, drafting, make_cell, mlx_session

from adapters.mlx_lm.adapter import ADAPTER
from orchestrator.demo.export import ensure_exported
from orchestrator.runner.gates import judge_exchange
from orchestrator.runner.observe import observe_trial
from orchestrator.schema.adapter import Honoured
from orchestrator.schema.cell import EosPolicy
from orchestrator.schema.errors import EngineRefusal
from orchestrator.schema.observation import Absence
from orchestrator.schema.status import Status
from orchestrator.workloads.load import load_prompts

pytestmark = pytest.mark.engine

SUPPORT = Path(__file__).resolve().parents[1] / "support"
PROMPTS = tuple(prompt.text for prompt in load_prompts("demo-short"))
FEW = (PROMPTS[0], PROMPTS[2], PROMPTS[6])
LENGTHS = (1, 2, 4, 8)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mlx_lm") is None:
        message = "mlx_lm is not installed"
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    names = ("tiny-target-f16", "tiny-target-f32", "tiny-draft-f16", "tiny-draft-f32", "tiny-incompatible-f16")
    return ensure_exported(tmp_path_factory.mktemp("demo"), names).directory


def values(parsed: Any) -> dict[str, Any]:
    return {item.metric: item.value for item in parsed.observations}


def variant(source: Path, folder: Path, **config: Any) -> Path:
    """A copy of a model folder with other settings in its config."""
    shutil.copytree(source, folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | config), encoding="utf-8")
    return folder


def layers(folder: Path) -> int:
    found = json.loads((folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_greedy_output_is_the_baselines_token_for_token(demo: Path, tmp_path: Path, kind: str) -> None:
    target, draft = demo / f"tiny-target-{kind}", demo / f"tiny-draft-{kind}"
    base = make_cell(target, draft, tokens=32)
    with mlx_session(base, tmp_path / "base") as off:
        expected = [ADAPTER.parse_trial(base, off.trial(prompt)) for prompt in FEW]
    cells = [make_cell(target, draft, method=drafting(k), tokens=32) for k in LENGTHS]
    compared = 0
    with mlx_session(cells[0], tmp_path / "on") as on:
        for cell in cells:
            for prompt, plain in zip(FEW, expected, strict=True):
                parsed = ADAPTER.parse_trial(cell, on.trial(prompt, cell=cell))
                assert parsed.token_ids == plain.token_ids, (cell.method.name, prompt)
                assert parsed.text == plain.text
                assert parsed.problems == ()
                compared += 1
    assert compared == len(LENGTHS) * len(FEW)


def passes_of(calls: list[list[int]], model: int, prompt_tokens: int) -> list[tuple[int, int]]:
    """(rows, cache length before) of a model's passes after its prefill, which is one call for a short prompt."""
    own = [(rows, length) for depth, rows, length in calls if depth == model]
    assert own[0] == (prompt_tokens - 1, 0)
    return own[1:]


@pytest.mark.parametrize(
    ("sampling", "eos"), [(GREEDY, EosPolicy.CONTINUE), (WARM, EosPolicy.CONTINUE), (GREEDY, EosPolicy.MASK)]
)
def test_rounds_are_those_of_an_independent_count(demo: Path, tmp_path: Path, sampling: Any, eos: EosPolicy) -> None:
    target, draft = demo / "tiny-target-f16", demo / "tiny-draft-f16"
    base = make_cell(target, draft, sampling=sampling, eos=eos, tokens=30)
    cells = [replace(base, method=drafting(k)) for k in LENGTHS]
    results: list[tuple[Any, Any]] = []
    with mlx_session(cells[0], tmp_path, SUPPORT / "mlx_counting_worker.py") as session:
        for cell in (base, *cells):
            results += [(cell, ADAPTER.parse_trial(cell, session.trial(prompt, cell=cell))) for prompt in FEW]
        log = session.read().stderr
    assert "a stray line" in log, "what a library prints must reach stderr, not the protocol"
    rows = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
    counted = [row for row in rows if row["event"] == "done"]
    assert len(counted) == len(results) == 15
    deep, shallow = layers(target), layers(draft)
    for (cell, parsed), count in zip(results, counted, strict=True):
        seen = values(parsed)
        verifies = passes_of(count["calls"], deep, seen["prompt_tokens"])
        if cell.method is NONE:
            # The pass after the last token is dispatched before mlx-lm knows that nobody wants it.
            assert len(verifies) == seen["target_passes"] + 1 == len(parsed.token_ids) + 1
            continue
        drafts = passes_of(count["calls"], shallow, seen["prompt_tokens"])
        ends = [length for _, length in verifies[1:]] + [count["lengths"][str(deep)]]
        accepted = [after - before - 1 for (_, before), after in zip(verifies, ends, strict=True)]
        assert seen["target_passes"] == seen["verify_rounds"] == len(verifies)
        assert seen["drafted_tokens"] == len(drafts) == sum(width - 1 for width, _ in verifies)
        assert seen["accepted_tokens"] == sum(accepted)
        assert seen["accepted_by_position"] == tuple(
            sum(kept > place for kept in accepted) for place in range(cell.method.n_max or 0)
        )
        assert len(parsed.token_ids) == seen["accepted_tokens"] + seen["target_passes"] - seen["cut_rounds"]
        assert parsed.problems == ()


@pytest.mark.parametrize(("k", "tokens"), [(1, 1), (8, 1), (8, 8), (16, 6), (1, 2)])
def test_a_draft_as_long_as_the_answer_or_longer(demo: Path, tmp_path: Path, k: int, tokens: int) -> None:
    """The last rounds draft what is left of the limit; nothing is emitted or counted beyond it."""
    base = make_cell(demo / "tiny-target-f32", demo / "tiny-draft-f32", tokens=tokens, eos=EosPolicy.CONTINUE)
    cell = replace(base, method=drafting(k))
    with mlx_session(cell, tmp_path, SUPPORT / "mlx_counting_worker.py") as session:
        plain = ADAPTER.parse_trial(base, session.trial(PROMPTS[0], cell=base))
        parsed = ADAPTER.parse_trial(cell, session.trial(PROMPTS[0]))
    calls = json.loads((tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines()[-1])["calls"]
    seen = values(parsed)
    verifies = passes_of(calls, layers(demo / "tiny-target-f32"), seen["prompt_tokens"])
    assert parsed.token_ids == plain.token_ids
    assert len(parsed.token_ids) == tokens
    assert parsed.problems == ()
    assert verifies[0][0] == min(k, tokens) + 1
    assert (seen["verify_rounds"], seen["drafted_tokens"]) == (len(verifies), sum(rows - 1 for rows, _ in verifies))


def test_an_instrumented_repeat_gives_the_same_tokens_and_leaves_nothing_behind(demo: Path, tmp_path: Path) -> None:
    base = make_cell(demo / "tiny-target-f32", demo / "tiny-draft-f32", tokens=24, eos=EosPolicy.CONTINUE)
    cell = replace(base, method=drafting(4))
    with mlx_session(cell, tmp_path, SUPPORT / "mlx_counting_worker.py") as session:
        before = ADAPTER.parse_trial(cell, session.trial(PROMPTS[2]))
        captured = session.trial(PROMPTS[2], phase="phases")
        after = ADAPTER.parse_trial(cell, session.trial(PROMPTS[2]))
        refused = session.trial(PROMPTS[2], cell=base, phase="phases")
    timed = ADAPTER.parse_trial(cell, captured)
    assert before.token_ids == timed.token_ids == after.token_ids
    assert timed.problems == before.problems == after.problems == ()
    assert "without a draft there are no phases" in str(refused.steps["generate"].error)
    rows = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
    counted = [row for row in rows if row["event"] == "done"]
    assert len(counted) == 3
    deep = layers(demo / "tiny-target-f32")
    passes = [len(passes_of(one["calls"], deep, values(timed)["prompt_tokens"])) for one in counted]
    assert passes == [values(timed)["verify_rounds"]] * 3
    phases = json.loads(captured.steps["generate"].events[-1].data)["phases"]
    assert (phases["verify_passes"], phases["draft_passes"]) == (passes[0], values(timed)["drafted_tokens"])
    assert min(phases["draft_s"], phases["verify_s"], phases["rollback_s"]) > 0
    assert values(before)["draft_time"] is values(after)["draft_time"] is None


@pytest.mark.parametrize("bits", [4, 8])
def test_a_quantised_cache_is_that_of_both_models_and_on_equals_off(demo: Path, tmp_path: Path, bits: int) -> None:
    """Quantised from the first token in both arms; a difference would be the engine's, so that it is asserted here."""
    target, draft = demo / "tiny-target-f32", demo / "tiny-draft-f32"
    base = make_cell(target, draft, tokens=16, eos=EosPolicy.CONTINUE, kv_bits=bits, kv_group_size=32)
    cell = replace(base, method=drafting(4))
    with mlx_session(cell, tmp_path) as session:
        pairs = [(ADAPTER.parse_trial(base, session.trial(prompt, cell=base)), session.trial(prompt)) for prompt in FEW]
    for plain, capture in pairs:
        parsed = ADAPTER.parse_trial(cell, capture)
        assert parsed.problems == ()
        assert parsed.token_ids == plain.token_ids
        conditions = {item.name: (item.effective, item.verdict) for item in ADAPTER.conditions(cell, capture)}
        assert conditions["kv_bits"] == (str(bits), Honoured.HONOURED)
        assert conditions["kv_group_size"] == ("32", Honoured.HONOURED)


def test_xtc_reaches_the_engine(demo: Path, tmp_path: Path) -> None:
    """At probability 1 the best of several likely tokens is never chosen, so that answers differ from those without."""
    warm = replace(WARM, temperature=0.01, top_k=0, top_p=1.0, min_p=0.0)
    plain = make_cell(demo / "tiny-target-f32", "", sampling=warm, tokens=24, eos=EosPolicy.CONTINUE)
    always = replace(plain, sampling=replace(warm, xtc_probability=1.0, xtc_threshold=0.02))
    never = replace(plain, sampling=replace(warm, xtc_probability=1.0, xtc_threshold=0.5))
    with mlx_session(plain, tmp_path) as session:
        parsed = {}
        for name, cell in (("plain", plain), ("always", always), ("never", never)):
            capture = session.trial(PROMPTS[3], cell=cell)
            parsed[name] = ADAPTER.parse_trial(cell, capture).token_ids
            assert {item.verdict for item in ADAPTER.conditions(cell, capture)} == {Honoured.HONOURED}
    assert parsed["plain"] == parsed["never"], "two tokens cannot both be likelier than a half"
    assert parsed["plain"] != parsed["always"]


def test_a_burst_is_a_round_and_our_clock_sees_them(demo: Path, tmp_path: Path) -> None:
    cell = make_cell(demo / "tiny-target-f16", demo / "tiny-draft-f16", method=drafting(4), tokens=32)
    with mlx_session(cell, tmp_path) as session:
        seen = observe_trial(ADAPTER, cell, session.trial(PROMPTS[0]))
        arrivals = ADAPTER.arrivals(cell, session.read().trials[0])
    found = values(seen)
    assert [word for word in seen.problems if "disagree:" not in word] == []  # a busy machine stamps late
    assert found["burst_count"] == found["verify_rounds"]
    assert arrivals is not None
    assert all(before.t_s <= after.t_s for before, after in pairwise(arrivals.tokens))
    assert 0 < found["ttft"] < found["e2e_latency"]
    assert found["time_to_32"] <= found["e2e_latency"]


def test_a_seed_decides_a_sampled_answer(demo: Path, tmp_path: Path) -> None:
    cell = make_cell(demo / "tiny-target-f16", demo / "tiny-draft-f16", method=drafting(4), sampling=WARM, tokens=24)
    with mlx_session(cell, tmp_path) as session:
        ids = [ADAPTER.parse_trial(cell, session.trial(PROMPTS[1], seed=seed)).token_ids for seed in (7, 7, 8, 9, 10)]
        conditions = {item.name: item for item in ADAPTER.conditions(cell, session.read().trials[2])}
    assert ids[0] == ids[1]
    assert len(set(ids)) > 1
    assert (conditions["seed"].effective, conditions["top_k"].effective) == ("8", "40")
    assert {item.verdict for item in conditions.values()} == {Honoured.HONOURED}


def test_policies_for_end_of_text_differ_as_described(demo: Path, tmp_path: Path) -> None:
    """A token that the target surely emits is declared an end of text, so that the test holds for any weights."""
    plain, draft = demo / "tiny-target-f32", demo / "tiny-draft-f32"
    free = make_cell(plain, draft, method=drafting(4), eos=EosPolicy.CONTINUE, tokens=32)
    with mlx_session(free, tmp_path / "free") as session:
        capture = session.trial(PROMPTS[0])
    ordinary = ADAPTER.parse_trial(free, capture).token_ids
    drafted = [flag for _, _, flag in json.loads(capture.steps["generate"].events[-1].data)["tokens"]]
    at = next(i for i in range(2, 32) if drafted[i] and drafted[i - 1] and ordinary[i] not in ordinary[:i])
    end = ordinary[at]
    target = variant(plain, tmp_path / "target", eos_token_id=[0, end])
    for method in (NONE, drafting(4)):
        cells = {policy: make_cell(target, draft, method=method, eos=policy, tokens=32) for policy in EosPolicy}
        with mlx_session(cells[EosPolicy.STOP], tmp_path / method.name) as session:
            parsed = {
                policy: ADAPTER.parse_trial(cell, session.trial(PROMPTS[0], cell=cell))
                for policy, cell in cells.items()
            }
        stop, go, mask = parsed[EosPolicy.STOP], parsed[EosPolicy.CONTINUE], parsed[EosPolicy.MASK]
        assert all(item.problems == () for item in parsed.values())
        assert (stop.token_ids, stop.finish_reason) == (ordinary[: at + 1], "eos")
        assert (go.token_ids, go.finish_reason) == (ordinary, "length")
        assert mask.token_ids[:at] == ordinary[:at]
        assert end not in mask.token_ids
        assert len(mask.token_ids) == 32
        if method is not NONE:
            assert values(stop)["cut_rounds"] == 1
            noted = [item.note for item in stop.observations if item.metric == "accepted_tokens"]
            assert "end of text" in str(noted[0])


def refusal_of(cell: Any, folder: Path) -> EngineRefusal:
    with pytest.raises(EngineRefusal) as caught, mlx_session(cell, folder):
        pass
    return caught.value


def test_a_draft_with_the_same_vocabulary_in_another_order_is_refused(demo: Path, tmp_path: Path) -> None:
    cell = make_cell(demo / "tiny-target-f16", demo / "tiny-incompatible-f16", method=drafting(4))
    assert ADAPTER.supports(cell, ADAPTER.identify(cell.engine, {})) is None
    refusal = refusal_of(cell, tmp_path)
    assert refusal.status == Status.UNSUPPORTED
    assert "token id" in refusal.reason
    assert "sizes 1024 and 1024" in refusal.reason


def test_a_folder_that_is_gone_and_a_broken_one(demo: Path, tmp_path: Path) -> None:
    gone = refusal_of(make_cell(tmp_path / "nowhere", ""), tmp_path / "a")
    assert (gone.status, "does not exist" in gone.reason) == (Status.UNAVAILABLE, True)
    torn = variant(demo / "tiny-target-f16", tmp_path / "torn")
    weights = torn / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    broken = refusal_of(make_cell(torn, ""), tmp_path / "b")
    assert (broken.status, broken.reason.startswith("loading failed: RuntimeError")) == (Status.FAILED, True)


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_cache_that_cannot_be_trimmed_is_refused_with_a_draft_only(demo: Path, tmp_path: Path, role: str) -> None:
    mamba = tmp_path / "mamba"
    shutil.copytree(demo / "tiny-target-f16", mamba)
    subprocess.run([sys.executable, str(SUPPORT / "mlx_mamba_maker.py"), str(mamba)], check=True, timeout=600)
    pair = {"target": demo / "tiny-target-f16", "draft": demo / "tiny-draft-f16"} | {role: mamba}
    refusal = refusal_of(make_cell(pair["target"], pair["draft"], method=drafting(4)), tmp_path / "on")
    assert refusal.status == Status.UNSUPPORTED
    assert f"the {role}'s prompt cache (ArraysCache)" in refusal.reason
    alone = make_cell(mamba, "", tokens=4, eos=EosPolicy.CONTINUE)
    with mlx_session(alone, tmp_path / "off") as session:
        assert len(ADAPTER.parse_trial(alone, session.trial(PROMPTS[0])).token_ids) == 4


def sliding(demo: Path, tmp_path: Path, window: int) -> Path:
    source = demo / "tiny-target-f32"
    kinds = ["full_attention"] + ["sliding_attention"] * (layers(source) - 1)
    return variant(source, tmp_path / f"window-{window}", layer_types=kinds, sliding_window=window)


def test_a_window_is_refused_where_it_would_fill_and_right_where_not(demo: Path, tmp_path: Path) -> None:
    target, draft = sliding(demo, tmp_path, 64), demo / "tiny-draft-f32"
    base = make_cell(target, draft, tokens=40)
    cell = replace(base, method=drafting(4))
    identity = ADAPTER.identify(cell.engine, {})
    assert ADAPTER.supports(cell, identity) is None
    longer = replace(cell, workload=replace(cell.workload, max_tokens=60))
    refused = ADAPTER.supports(longer, identity)
    assert refused is not None
    assert "window of 64" in refused.reason
    with mlx_session(base, tmp_path / "off") as session:
        expected = ADAPTER.parse_trial(base, session.trial(PROMPTS[0])).token_ids
        overfull = replace(base, workload=longer.workload)
        assert len(ADAPTER.parse_trial(overfull, session.trial(PROMPTS[0], cell=overfull)).token_ids) > 40
    with mlx_session(cell, tmp_path / "on") as session:
        assert session.ready["window"] == 64
        assert session.ready["prompt_cache"] == ["KVCache", "RotatingKVCache"]
        assert ADAPTER.parse_trial(cell, session.trial(PROMPTS[0])).token_ids == expected
        full = session.trial(PROMPTS[0] * 4)
        assert "fill the attention window of 64" in str(full.steps["generate"].error)
        assert judge_exchange(full).status is Status.UNSUPPORTED
        assert ADAPTER.parse_trial(cell, session.trial(PROMPTS[0])).token_ids == expected


def test_a_cache_that_gives_back_too_little_is_a_problem(demo: Path, tmp_path: Path) -> None:
    """Without our refusal mlx-lm goes on after the window is full; the second line of defence must see it."""
    cell = make_cell(sliding(demo, tmp_path, 24), demo / "tiny-draft-f32", method=drafting(8), tokens=48)
    cell = replace(cell, workload=replace(cell.workload, eos=EosPolicy.MASK))
    with mlx_session(cell, tmp_path / "on", SUPPORT / "mlx_unguarded_worker.py") as session:
        parsed = [ADAPTER.parse_trial(cell, session.trial(prompt)) for prompt in FEW]
    assert any("gave back less than was refused" in word for one in parsed for word in one.problems)


def test_a_bad_request_leaves_the_worker_able_to_serve(demo: Path, tmp_path: Path) -> None:
    cell = make_cell(demo / "tiny-target-f16", "", tokens=4)
    with mlx_session(cell, tmp_path) as session:
        assert session.ask({"op": "dance"})["type"] == "protocol"
        assert session.ask({"op": "generate"})["type"] == "KeyError"
        wild = replace(cell, sampling=replace(WARM, top_k=5000))
        failed = session.trial(PROMPTS[0], cell=wild)
        assert "top_k" in str(failed.steps["generate"].error)
        undrafted = session.trial(PROMPTS[0], cell=replace(cell, method=drafting(4)))
        assert "no draft was loaded" in str(undrafted.steps["generate"].error)
        assert len(ADAPTER.parse_trial(cell, session.trial(PROMPTS[0])).token_ids) == 4
        assert session.process.stop(grace_s=60.0).exit_code == 0


def test_engine_options_reach_the_engine(demo: Path, tmp_path: Path) -> None:
    cell = make_cell(
        demo / "tiny-target-f16",
        demo / "tiny-draft-f16",
        method=drafting(2),
        tokens=12,
        dtype="float32",
        kv_bits=8,
        kv_group_size=32,
        prefill_step_size=4,
    )
    assert ADAPTER.supports(cell, ADAPTER.identify(cell.engine, {})) is None
    coarse = replace(cell, engine=replace(cell.engine, options={"kv_bits": 8}))
    refused = ADAPTER.supports(coarse, ADAPTER.identify(cell.engine, {}))
    assert refused is not None
    assert "groups of 64" in refused.reason
    with mlx_session(cell, tmp_path) as session:
        capture = session.trial(PROMPTS[0])
        assert session.ready["dtype"] == session.ready["draft_dtype"] == ["float32"]
    conditions = {item.name: (item.effective, item.verdict) for item in ADAPTER.conditions(cell, capture)}
    for name, wanted in {"dtype": "float32", "kv_bits": "8", "kv_group_size": "32", "prefill_step_size": "4"}.items():
        assert conditions[name] == (wanted, Honoured.HONOURED)


def test_penalties_see_the_prompt_without_a_draft_only(demo: Path) -> None:
    """Why a cell with penalties and a draft is not claimed to be exact."""
    prompt = [5, 6, 7, 8, 9]
    job = json.dumps([str(demo / "tiny-target-f16"), str(demo / "tiny-draft-f16"), prompt])
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "mlx_penalty_probe.py")],
        input=job,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert json.loads(done.stdout) == [prompt, prompt[-1:]]


def test_memory_is_of_the_trial_and_never_below_what_was_held(demo: Path, tmp_path: Path) -> None:
    cell = make_cell(demo / "tiny-target-f32", "", tokens=4, eos=EosPolicy.CONTINUE)
    with mlx_session(cell, tmp_path) as session:
        parsed = [ADAPTER.parse_trial(cell, session.trial(prompt)) for prompt in (PROMPTS[0] * 40, PROMPTS[0])]
    large, small = (values(one)["engine_peak_memory"] for one in parsed)
    assert large > small >= (demo / "tiny-target-f32" / "model.safetensors").stat().st_size * 0.9


def test_a_baseline_has_no_figure_of_speculation(demo: Path, tmp_path: Path) -> None:
    cell = make_cell(demo / "tiny-target-f16", "", tokens=6)
    with mlx_session(cell, tmp_path) as session:
        parsed = ADAPTER.parse_trial(cell, session.trial(PROMPTS[0]))
    reasons = {item.metric: item.absent for item in parsed.observations if item.absent is not None}
    for name in ("drafted_tokens", "accepted_tokens", "acceptance_rate", "verify_rounds", "tokens_per_round"):
        assert reasons[name] is Absence.NOT_APPLICABLE
