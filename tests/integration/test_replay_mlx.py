"""Replays on a real MLX-LM baseline, and cross-scoring that finds a window which was not rolled back."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlx_session import GREEDY, WARM, MlxSession, drafting, make_cell, mlx_session

from adapters.mlx_lm.adapter import ADAPTER
from orchestrator.demo.export import ensure_exported
from orchestrator.exactness.cross import cross_scored
from orchestrator.exactness.replays import Replayed
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, EosPolicy
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.record import ReplayRecord
from orchestrator.schema.replay import Purpose, Ranked, ReplaySpec, Width
from orchestrator.schema.result import CheckResult, Verdict
from orchestrator.schema.status import Status
from orchestrator.workloads.load import load_prompts

pytestmark = pytest.mark.engine

UNGUARDED = Path(__file__).resolve().parents[1] / "support" / "mlx_unguarded_worker.py"
PROMPT = load_prompts("demo-short")[0].text


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mlx_lm") is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail("mlx_lm is not installed")
        pytest.skip("mlx_lm is not installed")
    names = ("tiny-target-f32", "tiny-draft-f32")
    return ensure_exported(tmp_path_factory.mktemp("demo"), names).directory


def replay(session: MlxSession, cell: Cell, ids: tuple[int, ...], width: Width, *, full: bool) -> tuple[Ranked, ...]:
    spec = ReplaySpec(900, PROMPT, ids, tuple(range(len(ids))), width, full)
    (step,) = ADAPTER.replay_steps(cell, spec)
    return ADAPTER.parse_replay(cell, spec, TrialCapture(900, {"score": session.channel.call(step, 300, 600)}))


def test_the_baselines_own_text_is_its_best_at_every_place_one_token_a_pass_or_all_at_once(demo, tmp_path) -> None:
    cell = make_cell(demo / "tiny-target-f32", "", tokens=24, eos=EosPolicy.MASK)
    with mlx_session(cell, tmp_path) as session:
        ids = ADAPTER.parse_trial(cell, session.trial(PROMPT)).token_ids
        single = replay(session, cell, ids, Width.SINGLE, full=True)
        batched = replay(session, cell, ids, Width.BATCHED, full=True)
        again = ADAPTER.parse_trial(cell, session.trial(PROMPT)).token_ids
    assert [one.rank for one in single] == [one.rank for one in batched] == [1] * 24
    assert [one.top[0][0] for one in single] == list(ids) == list(again)
    for one, other in zip(single, batched, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-3)
        assert one.entropy == pytest.approx(other.entropy, abs=1e-3)
        assert 0 not in dict(one.top)  # end of text is masked, as in generation


def test_above_temperature_0_the_distribution_is_the_samplers_own(demo, tmp_path) -> None:
    cell = make_cell(demo / "tiny-target-f32", "", sampling=WARM, tokens=24, eos=EosPolicy.MASK)
    with mlx_session(cell, tmp_path) as session:
        ids = ADAPTER.parse_trial(cell, session.trial(PROMPT, seed=3)).token_ids
        found = replay(session, cell, ids, Width.BATCHED, full=True)
    assert all(one.rank is not None and one.rank <= WARM.top_k for one in found)
    assert all(len(one.top) <= 16 for one in found)
    sure = [one for one in found if len(one.top) == 1]  # top_p and min_p left one token, so it has probability 1
    assert sure
    assert all(
        one.entropy == pytest.approx(0, abs=1e-6) and one.top[0][1] == pytest.approx(0, abs=1e-6) for one in sure
    )


def test_what_cannot_be_replayed_is_refused_and_garbage_is_no_ranking(demo) -> None:
    cell = make_cell(demo / "tiny-target-f32", demo / "tiny-draft-f32")
    spec = ReplaySpec(0, PROMPT, (1,), (0,), Width.SINGLE, False)
    for bad in (
        replace(cell, method=drafting(4)),
        replace(cell, sampling=replace(GREEDY, repeat_penalty=1.1)),
    ):
        with pytest.raises(ValueError):
            ADAPTER.replay_steps(bad, spec)
    with pytest.raises(CaptureError):
        ADAPTER.parse_replay(cell, spec, TrialCapture(0))


class State:
    """As much of a cell's state as cross-scoring reads."""

    id, baseline = "on", "off"
    settings = {"sampling": {"temperature": 0.0}}


def judged(
    own: tuple[Ranked, ...], theirs: tuple[Ranked, ...], off: tuple[int, ...], on: tuple[int, ...]
) -> CheckResult:
    records = tuple(
        ReplayRecord(
            "b",
            1,
            "off",
            "f",
            Purpose.SCORING,
            about,
            "p",
            ids,
            tuple(range(len(ids))),
            Width.BATCHED,
            False,
            ranked,
            Status.OK,
            "",
            0.0,
            "-",
            "-",
        )
        for about, ids, ranked in (("off", off, own), ("on", on, theirs))
    )
    texts = {"off": [("p", off)], "on": [("p", on)]}
    state: Any = State
    return cross_scored(state, Replayed((), None, (), records), texts)


@pytest.mark.parametrize(("window", "verdict"), [(24, Verdict.FAIL), (160, Verdict.PASS)])
def test_a_full_attention_window_is_caught_by_cross_scoring(demo, tmp_path, window: int, verdict: Verdict) -> None:
    """The adapter refuses a cell past its window. With the refusal off mlx-lm goes on, and its text is wrong."""
    target = tmp_path / "target"
    shutil.copytree(demo / "tiny-target-f32", target)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    kinds = ["full_attention"] + ["sliding_attention"] * (config["num_hidden_layers"] - 1)
    config |= {"layer_types": kinds, "sliding_window": window}
    (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
    base = make_cell(target, demo / "tiny-draft-f32", tokens=64, eos=EosPolicy.MASK)
    cell = replace(base, method=drafting(8))
    with mlx_session(base, tmp_path / "off") as session:
        off = ADAPTER.parse_trial(base, session.trial(PROMPT)).token_ids
        with mlx_session(cell, tmp_path / "on", UNGUARDED) as other:
            on = ADAPTER.parse_trial(cell, other.trial(PROMPT)).token_ids
        own = replay(session, base, off, Width.BATCHED, full=False)
        theirs = replay(session, base, on, Width.BATCHED, full=False)
    found = judged(own, theirs, off, on)
    assert found.verdict is verdict, found.evidence
    assert (on == off) is (verdict is Verdict.PASS)
