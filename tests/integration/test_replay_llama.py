"""Replays on a real llama.cpp baseline: a quantised model's flips are near-ties, and the journal goes on where it was.

On a CPU the kernels of one build give a verify pass of a few rows the numbers of a single one, so that no prompt here
parts with equal settings. The speculative arm therefore gets another attention kernel than its baseline, which moves
the numbers as the wide kernels of other machines do (in a matrix both arms have the same settings).
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os

import pytest
from engine_job import engine_job, run_job
from llama_cells import DRAFT, NONE, make_cell

from adapters.llama_cpp import embedded as llama_cpp_embedded
from orchestrator.demo.export import resolve
from orchestrator.report.analysis.checks import run_checks
from orchestrator.runner.events import Said
from orchestrator.schema.record import ReplayRecord, SessionRecord, TokensRecord
from orchestrator.schema.replay import Purpose, Replayer, ReplaySpec, Width
from orchestrator.schema.result import Verdict
from orchestrator.schema.status import Status

pytestmark = pytest.mark.engine

ADAPTER = llama_cpp_embedded.ADAPTER
PROMPTS = 8


@pytest.fixture(scope="module")
def quantised(tmp_path_factory):
    pytest.importorskip("gguf")
    if importlib.util.find_spec("xllamacpp") is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail("xllamacpp is not installed")
        pytest.skip("xllamacpp is not installed")
    from quantised_gguf import quantise  # noqa: PLC0415  (needs gguf)

    path = tmp_path_factory.mktemp("q8") / "tiny-target-q8_0.gguf"
    assert quantise(resolve("tiny-target-f16.gguf"), path) > 50
    return path


def interrupt_before_the_replay(event):
    if isinstance(event, Said):
        raise KeyboardInterrupt


def replays(directory):
    return [record for record in directory.records() if isinstance(record, ReplayRecord)]


def test_a_quantised_models_flips_are_called_near_ties_and_an_interrupted_replay_goes_on(quantised, tmp_path):
    assert isinstance(ADAPTER, Replayer)
    draft = resolve("tiny-draft-f16.gguf")
    base = make_cell(ADAPTER.name, quantised, draft=draft, tokens=48, flash_attention="on")
    other = dataclasses.replace(base.engine, options={**base.engine.options, "flash_attention": "off"})
    cell = dataclasses.replace(base, method=DRAFT, engine=other)
    job = engine_job(ADAPTER, base, [cell], tmp_path / "scratch", trials=PROMPTS)
    directory, index = run_job(job, tmp_path / "run", interrupt_before_the_replay)
    open_ones = run_checks(index).identities[cell.id]
    if open_ones.verdict is Verdict.PASS:
        pytest.skip("no prompt parted on this machine: nothing to adjudicate")
    assert open_ones.verdict is Verdict.UNINFORMATIVE
    assert "near-tie not adjudicated" in open_ones.evidence
    assert replays(directory) == []
    sessions = [record for record in directory.records() if isinstance(record, SessionRecord)]

    directory, index = run_job(job, tmp_path / "run")
    found = run_checks(index).identities[cell.id]
    assert (found.verdict, found.evidence.partition(":")[0]) == (Verdict.PASS, "near-tie"), found.evidence
    assert 0 < len(found.divergences) < PROMPTS
    for one in found.divergences:
        assert one.tie == "near-tie"
        assert 0 <= one.margin_nat <= one.limit_nat
    made = replays(directory)
    assert {one.purpose for one in made} == {Purpose.DIVERGENCE, Purpose.JITTER}
    assert {(one.cell, one.status) for one in made} == {(base.id, Status.OK)}
    spelled = [record.texts for record in directory.records() if isinstance(record, TokensRecord)]
    assert spelled
    assert all(text for text in spelled[-1].values())  # of the quantised file's own vocabulary
    assert sessions == [record for record in directory.records() if isinstance(record, SessionRecord)]

    directory, _ = run_job(job, tmp_path / "run")
    assert replays(directory) == made


def test_a_speculating_server_is_never_asked(quantised):
    spec = ReplaySpec(0, "x", (1, 2), (0, 1), Width.SINGLE, False)
    cell = make_cell(ADAPTER.name, quantised, DRAFT, draft=quantised)
    with pytest.raises(ValueError, match="only a baseline"):
        ADAPTER.replay_steps(cell, spec)
    plain = dataclasses.replace(cell, method=NONE)
    with pytest.raises(ValueError, match="did not tell"):
        ADAPTER.replay_steps(plain, dataclasses.replace(spec, ids=(1, -2)))
    single, batched = (
        ADAPTER.replay_steps(plain, dataclasses.replace(spec, width=width)) for width in (Width.SINGLE, Width.BATCHED)
    )
    assert [step.body["prompt"] for step in single] == [["x"], ["x", 1]]
    assert {step.body["cache_prompt"] for step in single} == {True}
    assert {step.body["cache_prompt"] for step in batched} == {False}
    assert {(step.body["temperature"], step.body["ignore_eos"]) for step in single} == {(1.0, True)}
