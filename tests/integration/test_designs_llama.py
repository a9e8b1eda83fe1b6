"""The designs of a measurement on a real engine: blocked order, adaptive stop, confirmed winner, on tiny models.

Which cell wins and how precise a wait is are this machine's to say; what is asserted is that the journal and the
conclusions agree with each other, whatever the times were.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os

import pytest
from matrix_job import matrix_job
from scripted_job import make_run

from orchestrator.report.analysis.analyse import analyse
from orchestrator.runner.execute import execute
from orchestrator.schema.record import AttemptRecord, SessionRecord
from orchestrator.schema.status import Status
from orchestrator.store.index import Index

pytestmark = pytest.mark.engine
MODEL = {"target": "demo:tiny-target-f32.gguf", "drafts": {"small": "demo:tiny-draft-f32.gguf"}}
METHODS = {f"draft-k{k}": {"method": "draft", "draft": "small", "n_max": k} for k in (2, 4)}
BASE, TWIN = "llama/tiny/none/greedy/short", "llama/tiny/none/greedy/short~twin"
K2, K4 = (f"llama/tiny/{name}/greedy/short" for name in METHODS)


@pytest.fixture(autouse=True)
def _engine():
    if importlib.util.find_spec("xllamacpp") is None:
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail("xllamacpp is not installed")
        pytest.skip("xllamacpp is not installed")


def run(folder, **settings):
    document = {
        "version": 1,
        "name": "designs",
        "engines": {"llama": {"adapter": "llama_cpp_embedded", "options": {"threads": 1, "context": 512}}},
        "models": {"tiny": {"llama": MODEL}},
        "methods": METHODS,
        "sampling": {"greedy": {"temperature": 0}},
        "workloads": {"short": {"prompts": "demo-short", "max_tokens": 24, "eos": "mask"}},
        "run": {"preset": "demo", "trials": 1, "warmup": 0, **settings},
        "matrix": {
            "axes": {
                "engine": ["llama"], "model": ["tiny"], "method": list(METHODS), "sampling": ["greedy"],
                "workload": ["short"],
            }
        },
    }  # fmt: skip
    job = matrix_job(document, folder)
    job = dataclasses.replace(job, selected=frozenset(cell.id for cell in job.expansion.cells))
    directory = make_run(folder)
    execute(job, directory, lambda _event: None)
    return directory, Index.build(directory.records())


def order(directory):
    return [record.place.cell for record in directory.records() if isinstance(record, SessionRecord)]


def test_blocked_order_with_its_canary(tmp_path):
    directory, index = run(tmp_path, order="blocked_with_canary", sessions=2, twin=True)
    assert order(directory) == [cell for cell in (BASE, K2, K4, TWIN) for _ in range(2)]
    confounded = [index.cells[cell].status is Status.CONFOUNDED for cell in (K2, K4)]
    assert len(set(confounded)) == 1  # one canary speaks for its whole block
    assert {index.cells[cell].status for cell in (BASE, TWIN)} == {Status.OK}
    found = analyse(index, directory.header)
    for cell in (K2, K4):
        assert found.by_id(cell).summaries["e2e_latency"].n == 2


def test_an_adaptive_attempt_stops_at_its_bound_or_says_why(tmp_path):
    directory, index = run(
        tmp_path, sessions=4, twin=False, adaptive={"half_width": "0.1%", "max_sessions": 6}, order="abba"
    )
    attempts = [record for record in directory.records() if isinstance(record, AttemptRecord)]
    last = index.cells[K4]
    assert attempts[0].planned_sets == attempts[0].max_sets == 6
    if attempts[-1].stopped:
        assert last.sets_done == last.sets_planned < 6
    else:
        assert (last.sets_done, last.sets_planned) == (6, 6)
    assert {state.status for state in index.cells.values()} == {Status.OK}


def test_the_winner_of_a_sweep_is_measured_again_in_fresh_sessions(tmp_path):
    directory, index = run(tmp_path, sessions=3, twin=False, confirm_winner=True, order="random")
    ran = order(directory)
    planned = [cell for cell in (BASE, K2, K4) for _ in range(3)]
    again = ran[len(planned) :]
    assert sorted(ran[: len(planned)]) == sorted(planned)
    # Both arms of the pair are new, and no other cell: or nobody won, and nothing was measured again.
    assert again == [] or (set(again) in ({BASE, K2}, {BASE, K4}) and len(again) == 6)
    assert {state.status for state in index.cells.values()} == {Status.OK}
