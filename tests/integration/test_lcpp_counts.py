"""llama-cpp-python on the demo models, where an interpreter that has it is named: on against off, and its limits."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lcpp_session import GREEDY, PYTHON_VARIABLE, WARM, lookup, lookup_session, make_cell

from adapters.llama_cpp_python.adapter import ADAPTER
from orchestrator.demo.export import ensure_exported
from orchestrator.runner.observe import observe_trial
from orchestrator.schema.cell import EosPolicy
from orchestrator.schema.errors import EngineRefusal
from orchestrator.schema.status import Status
from orchestrator.workloads.load import load_prompts

pytestmark = pytest.mark.engine

PROMPTS = tuple(prompt.text for prompt in load_prompts("demo-short"))
FEW = (PROMPTS[1], PROMPTS[2], PROMPTS[3])
PENALISED = replace(WARM, name="penalised", repeat_penalty=1.2, presence_penalty=0.1, frequency_penalty=0.1)


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get(PYTHON_VARIABLE)
    if found is None:
        pytest.skip(f"{PYTHON_VARIABLE} names no interpreter with llama-cpp-python (it compiles; see CONTRIBUTING)")
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ("tiny-target-f32.gguf", "tiny-mtp-f16.gguf")
    return ensure_exported(tmp_path_factory.mktemp("demo"), names).directory


@pytest.mark.parametrize("sampling", [GREEDY, WARM, PENALISED], ids=lambda one: one.name)
@pytest.mark.parametrize("eos", [EosPolicy.MASK, EosPolicy.STOP])
def test_tokens_with_lookup_are_those_without(
    demo: Path, tmp_path: Path, python: str, sampling: Any, eos: EosPolicy
) -> None:
    """Greedy and sampled alike: a verify pass draws its random numbers token by token, as single passes do."""
    base = make_cell(demo / "tiny-target-f32.gguf", sampling=sampling, eos=eos, python=python)
    with lookup_session(base, tmp_path / "off") as session:
        expected = [ADAPTER.parse_trial(base, session.trial(prompt, seed=7)) for prompt in FEW]
    drafted = 0
    for k in (1, 8):
        cell = replace(base, method=lookup(k, 3))
        with lookup_session(cell, tmp_path / f"k{k}") as session:
            for prompt, plain in zip(FEW, expected, strict=True):
                seen = observe_trial(ADAPTER, cell, session.trial(prompt, seed=7))
                values = {item.metric: item.value for item in seen.observations}
                assert seen.token_ids == plain.token_ids
                assert [word for word in seen.problems if "clock" not in word and "disagree:" not in word] == []
                assert values["burst_count"] == values["target_passes"] + 1
                drafted += values["drafted_tokens"]  # type: ignore[operator]
    assert drafted > 0


def test_a_second_trial_takes_nothing_from_the_first(demo: Path, tmp_path: Path, python: str) -> None:
    cell = make_cell(demo / "tiny-target-f32.gguf", method=lookup(4), python=python)
    with lookup_session(cell, tmp_path) as session:
        parsed = [ADAPTER.parse_trial(cell, session.trial(FEW[1])) for _ in range(2)]
    assert parsed[0].token_ids == parsed[1].token_ids
    for one in parsed:
        values = {item.metric: item.value for item in one.observations}
        assert values["cached_tokens"] == 0
        assert one.problems == ()


def test_a_hybrid_model_is_refused_by_the_worker_too(demo: Path, tmp_path: Path, python: str) -> None:
    cell = make_cell(demo / "tiny-mtp-f16.gguf", method=lookup(4), python=python)
    refused = ADAPTER.supports(cell, ADAPTER.identify(cell.engine, {}))
    assert refused is not None
    with pytest.raises(EngineRefusal) as caught, lookup_session(cell, tmp_path / "on"):
        pass
    assert (caught.value.status, "is hybrid" in caught.value.reason) == (Status.UNSUPPORTED, True)


def test_a_bad_request_leaves_the_worker_able_to_serve(demo: Path, tmp_path: Path, python: str) -> None:
    cell = make_cell(demo / "tiny-target-f32.gguf", tokens=4, python=python)
    with lookup_session(cell, tmp_path) as session:
        assert session.ask({"op": "dance"})["type"] == "protocol"
        assert session.ask({"op": "generate"})["type"] == "KeyError"
        full = replace(cell, workload=replace(cell.workload, max_tokens=600))
        assert "do not fit the context of 512" in str(session.trial(FEW[0], cell=full).steps["generate"].error)
        assert len(ADAPTER.parse_trial(cell, session.trial(FEW[0])).token_ids) == 4
        assert session.process.stop(grace_s=60.0).exit_code == 0
    gone = make_cell(tmp_path / "nowhere.gguf", python=python)
    with pytest.raises(EngineRefusal) as caught, lookup_session(gone, tmp_path / "gone"):
        pass
    assert caught.value.status == Status.UNAVAILABLE
