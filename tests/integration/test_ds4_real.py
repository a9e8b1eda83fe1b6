"""A real ds4 on files of the full shape without weights: slow (minutes), so by request alone.

``SPECMATRIX_DS4`` names a ``ds4`` of May 2026 built with ``make cpu``; its ``ds4-server`` lies beside it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ds4_cells import NONE, make_cell, mtp, run_cell, values
from ds4_sparse_gguf import write_module, write_target

from adapters.ds4.adapter import ADAPTER
from orchestrator.process.probe import run_probe
from orchestrator.schema.record import Engagement
from orchestrator.schema.status import Status

VARIABLE = "SPECMATRIX_DS4"
pytestmark = pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no ds4")
LIMITS = {"silence": 900.0, "total": 3600.0, "startup": 900.0}
OPTIONS = {"generation": "2026-05", "backend": "cpu", "context": 256}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zero")
    return str(write_target(folder / "zero.gguf")), str(write_module(folder / "zero-mtp.gguf"))


@pytest.fixture
def cell(files):
    def make(method=NONE, program="ds4", **more):
        binary = str(Path(os.environ[VARIABLE]).resolve().with_name(program))
        usual = {"target": files[0], "module": files[1], "tokens": 2, **OPTIONS}
        return make_cell(binary, method, **{**usual, **more})

    return make


def test_it_is_known_and_allowed(cell, tmp_path):
    config = cell().engine
    outputs = {probe.name: run_probe(probe, tmp_path) for probe in ADAPTER.probe_commands(config)}
    identity = ADAPTER.identify(config, outputs)
    assert identity.unavailable is None
    assert identity.facts["generation"] == "2026-05"
    assert ADAPTER.supports(cell(), identity) is None
    assert ADAPTER.supports(cell(mtp(2)), identity) is None


def test_an_answer_is_measured(cell, tmp_path):
    result = run_cell(ADAPTER, cell(), tmp_path / "s", texts=("hi",), limits=LIMITS)
    assert result.session.status is Status.OK
    told = values(result)
    assert told["output_tokens"] == 2
    assert told["prompt_tokens"] == 6
    assert told["finish_reason"] == "length"
    assert told["ttft"] < told["e2e_latency"]
    assert result.trials[0].text == " zero zero"
    assert result.trials[0].token_ids == (0, 0)


def test_a_cpu_build_loads_the_module_and_never_uses_it(cell, tmp_path):
    result = run_cell(ADAPTER, cell(mtp(2), tokens=1), tmp_path / "s", texts=("hi",), limits=LIMITS)
    assert result.session.status is Status.NOT_ENGAGED
    assert result.session.engagement is Engagement.NOT_ENGAGED


def test_a_foreign_module_is_said(cell, files, tmp_path):
    result = run_cell(ADAPTER, cell(mtp(2), module=files[0]), tmp_path / "s", texts=("hi",), limits=LIMITS)
    assert result.session.status is Status.UNSUPPORTED
    assert "required tensor is missing: mtp.0.hc_head_base.weight" in result.session.reason


def test_the_server_answers_cold(cell, tmp_path):
    server = cell(program="ds4-server", mode="server")
    result = run_cell(ADAPTER, server, tmp_path / "s", texts=("hi",), limits=LIMITS)
    assert result.session.status is Status.OK
    told = values(result)
    assert (told["output_tokens"], told["prompt_tokens"], told["cached_tokens"]) == (2, 6, 0)
