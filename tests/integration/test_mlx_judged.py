"""Judged places of real MLX-LM answers: their number, their figures against mlx asked directly, and the verdict.

The one-layer demo model is the target, a copy of it with another rotation base the drafter: two unlike distributions
that accept one another often enough.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlx_session import MlxSession, drafting, make_cell, mlx_session

from adapters.mlx_lm.adapter import ADAPTER
from orchestrator.demo.export import ensure_exported
from orchestrator.exactness.draft_directed import draft_directed
from orchestrator.schema.adapter import JudgesDrafts, TrialSpec, WorkerStep
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, EosPolicy, Sampling
from orchestrator.schema.judged import Judged
from orchestrator.schema.record import Phase
from orchestrator.schema.result import Verdict
from orchestrator.workloads.load import load_prompts

pytestmark = pytest.mark.engine

SUPPORT = Path(__file__).resolve().parents[1] / "support"
TEXTS = {prompt.id: prompt.text for prompt in load_prompts("demo-short")}
CONTEXTS = (TEXTS["prose-ko-1"][:10], TEXTS["code-1"][:11])
PLAIN = Sampling("plain", 0.8, 1, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
FILTERED = Sampling("filtered", 0.8, 1, 12, 0.9, 0.02, 1.0, 0.0, 0.0)
K = 3


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    if importlib.util.find_spec("mlx_lm") is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail("mlx_lm is not installed")
        pytest.skip("mlx_lm is not installed")
    folder = tmp_path_factory.mktemp("judged")
    target = ensure_exported(folder / "demo", ("tiny-draft-f32",)).directory / "tiny-draft-f32"
    drafter = folder / "drafter"
    shutil.copytree(target, drafter)
    config = json.loads((drafter / "config.json").read_text(encoding="utf-8"))
    (drafter / "config.json").write_text(json.dumps(config | {"rope_theta": 50.0}), encoding="utf-8")
    return make_cell(target, drafter, method=drafting(K), sampling=PLAIN, tokens=5, eos=EosPolicy.MASK)


@pytest.fixture(scope="module")
def session(cell: Cell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlxSession]:
    with mlx_session(cell, tmp_path_factory.mktemp("session"), SUPPORT / "mlx_direct_worker.py") as made:
        yield made


def ask(session: MlxSession, cell: Cell, prompt: str, seed: int, *, judge: bool = True) -> TrialCapture:
    spec = TrialSpec(seed, Phase.MEASURED.value, "p", prompt, seed)
    assert isinstance(ADAPTER, JudgesDrafts)
    (step,) = (ADAPTER.judged_steps if judge else ADAPTER.trial_steps)(cell, spec)
    assert isinstance(step, WorkerStep)
    return TrialCapture(seed, {step.name: session.channel.call(step, 300, 600)}, "", complete=True)


def read(cell: Cell, capture: TrialCapture) -> tuple[Judged, ...]:
    assert isinstance(ADAPTER, JudgesDrafts)
    return ADAPTER.parse_judged(cell, capture)


def line(capture: TrialCapture) -> dict[str, Any]:
    found = json.loads(capture.steps["generate"].events[-1].data)
    assert isinstance(found, dict)
    return found


def test_a_real_check_of_a_hundred_generations_passes_and_every_figure_is_a_probability(
    cell: Cell, session: MlxSession
) -> None:
    found, refused = [], 0
    for context in CONTEXTS:
        for seed in range(50):
            capture = ask(session, cell, context, seed)
            parsed = ADAPTER.parse_trial(cell, capture)
            values = {one.metric: one.value for one in parsed.observations}
            places = read(cell, capture)
            assert parsed.problems == ()
            assert len(places) == values["accepted_tokens"] + values["rejected_tokens"]
            found += places
            refused += int(str(values["rejected_tokens"]))
    assert len(found) > 300
    assert 0 < refused < len(found)
    assert all(0 <= one.q <= one.favourite <= 1 and 0 <= one.expected <= one.favourite for one in found)
    assert all(0 <= one.variance <= 0.25 for one in found)
    verdict = draft_directed(found)
    assert verdict.verdict is Verdict.PASS, verdict.evidence


@pytest.mark.parametrize("sampling", [PLAIN, FILTERED], ids=["plain", "filtered"])
def test_the_figures_are_those_of_mlx_asked_directly(cell: Cell, session: MlxSession, sampling: Sampling) -> None:
    """Both models fed the whole prompt and what was emitted, without a cache; filters and temperature by numpy."""
    cell = replace(cell, sampling=sampling)
    prompt = CONTEXTS[1]
    answer = line(ask(session, cell, prompt, 3))
    start = session.ask({"op": "tokenize", "trial": 0, "prompt": prompt})["ids"]
    ids = [token for token, *_ in answer["tokens"]]
    accepted = 0
    while answer["tokens"][accepted][2]:
        accepted += 1
    # The first round's places are the first ones of the answer: its kept drafts, and the correction behind them.
    first = answer["judged"][: min(accepted + 1, K)]
    for place, told in enumerate(first):
        rows = session.ask({"op": "direct", "trial": 0, "ids": start + ids[:place]})
        ends = answer["end_of_text_ids"]
        p, q = (distribution(np.array(rows[name]), ends, sampling) for name in ("target", "draft"))
        mean = p @ q
        assert told == pytest.approx([q[ids[place]], mean, p @ (q - mean) ** 2, q.max()], abs=1e-4)


def distribution(logits: np.ndarray[Any, Any], ends: list[int], sampling: Sampling) -> np.ndarray[Any, Any]:
    """What mlx-lm draws from, in double precision: end of text masked, top-p, min-p, top-k, then the temperature."""
    logits = logits.astype(np.float64)
    logits[ends] = -np.inf
    logs = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    order = np.argsort(-logs)
    keep = np.ones(len(logs), dtype=bool)
    if sampling.top_p < 1:
        mass = np.cumsum(np.exp(logs[order]))
        keep[order] &= np.concatenate([[True], mass[:-1] < sampling.top_p])
    if sampling.min_p:
        keep &= logs >= logs.max() + np.log(sampling.min_p)
    if sampling.top_k:
        keep[order[sampling.top_k :]] = False
    weights = np.where(keep, np.exp((logs - logs.max()) / sampling.temperature), 0.0)
    return weights / weights.sum()


def test_judging_changes_no_token_and_an_ordinary_request_is_given_the_models_themselves(
    cell: Cell, session: MlxSession
) -> None:
    for seed in range(8):
        judged, plain = (line(ask(session, cell, CONTEXTS[0], seed, judge=judge)) for judge in (True, False))
        assert [row[::2] for row in judged["tokens"]] == [row[::2] for row in plain["tokens"]]
        assert (judged["bare"], plain["bare"]) == ({"target": True, "draft": False}, {"target": True, "draft": True})
        assert "judged" not in plain
        assert plain.keys() == judged.keys() - {"judged"}


def test_no_trial_of_any_phase_asks_for_it(cell: Cell) -> None:
    for phase in Phase:
        (step,) = ADAPTER.trial_steps(cell, TrialSpec(0, phase.value, "p", "text", 1))
        assert isinstance(step, WorkerStep)
        assert "judge" not in step.message


def test_refused_drafts_that_stay_in_the_cache_are_caught(cell: Cell, tmp_path: Path) -> None:
    """The target's distribution comes from a pass of its own: one that read the wrong cache would find all in order."""
    found: list[Judged] = []
    with mlx_session(cell, tmp_path, SUPPORT / "mlx_untrimmed_worker.py") as broken:
        for seed in range(30):
            found += read(cell, ask(broken, cell, CONTEXTS[1], seed))
    verdict = draft_directed(found)
    assert verdict.verdict is Verdict.FAIL, verdict.evidence
