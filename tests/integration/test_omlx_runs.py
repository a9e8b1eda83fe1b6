"""oMLX for real, by its fork that runs on a CPU: a matrix without drafts and with native MTP, and each refusal."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from engine_job import engine_job, run_job
from engine_session import drive
from omlx_cells import CHAIN, MTP, NONE, WARM, StartedFor, gemma4, make_cell, make_trial, qwen35, target

from adapters.omlx.adapter import ADAPTER
from adapters.omlx.settings import HOME, NO_SECRET
from orchestrator.schema.adapter import Honoured, Rule
from orchestrator.schema.capture import read_session
from orchestrator.schema.record import Engagement, Phase, SessionRecord, TrialRecord
from orchestrator.schema.status import Status

pytestmark = pytest.mark.engine

KEY = re.compile(r"\b[0-9a-f]{48,}\b")
"""How the keys look that oMLX makes up; ids of its requests are shorter or have dashes."""


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("SPECMATRIX_OMLX")
    if not found:
        message = "no interpreter with oMLX (SPECMATRIX_OMLX=$(bash scripts/build-omlx-env.sh))"
        if os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="module")
def model(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qwen35(python, tmp_path_factory.mktemp("models"))


def values(trial: TrialRecord) -> dict[str, Any]:
    return {item.metric: item.value for item in trial.observations if item.absent is None}


def one_by_one(trial: TrialRecord) -> bool:
    """Whether each token came in an event of its own: oMLX joins events while a busy machine keeps its reader waiting."""
    return bool(trial.token_ids)


def test_a_matrix_of_baseline_and_native_mtp_runs_to_its_end(python: str, model: Path, tmp_path: Path) -> None:
    base, fast = make_cell(model, NONE, python=python), make_cell(model, MTP, python=python)
    job = engine_job(ADAPTER, base, (fast,), tmp_path / "probes")
    engine = job.survey.engines["omlx"].identity
    assert engine.unavailable is None
    assert engine.version == "0.7.0"
    assert engine.facts["distribution"] == "flyto-mlx"
    assert ADAPTER.exactness(fast, engine).rule is Rule.GREEDY_MATCH
    directory, index = run_job(job, tmp_path / "run")
    states = index.cells
    assert {name: state.status for name, state in states.items()} == {base.id: Status.OK, fast.id: Status.OK}
    assert states[base.id].engagement is Engagement.OFF
    assert states[fast.id].engagement is Engagement.ENGAGED
    records = list(directory.records())
    trials = [record for record in records if isinstance(record, TrialRecord) and record.phase is Phase.MEASURED]
    by_cell = {cell: {t.prompt_id: t for t in trials if t.place.cell == cell} for cell in (base.id, fast.id)}
    assert len(by_cell[base.id]) == len(by_cell[fast.id]) == 2
    for prompt, plain in by_cell[base.id].items():
        speculative = by_cell[fast.id][prompt]
        assert speculative.text == plain.text
        assert not (one_by_one(speculative) and one_by_one(plain)) or speculative.token_ids == plain.token_ids
        assert plain.problems == speculative.problems == ()
        told, off = values(speculative), values(plain)
        assert "drafted_tokens" not in off
        assert told["drafted_tokens"] == told["verify_rounds"] > 0
        assert told["target_passes"] == told["verify_rounds"] + 1
        assert off["output_tokens"] == told["output_tokens"] == 24
        assert told["burst_count"] == told["target_passes"] or not one_by_one(speculative)
        assert off["burst_count"] == 24 or not one_by_one(plain)
        assert off["cached_tokens"] == told["cached_tokens"] == 0
    sessions = [record for record in records if isinstance(record, SessionRecord)]
    for session in sessions:
        conditions = {item.name: item for item in session.conditions}
        assert conditions["engine_version"].effective == "0.7.0"
        assert conditions["unparsed_log_lines"].effective == "0"
        assert conditions["speculation"].verdict is Honoured.HONOURED
    for path in directory.path.rglob("*"):
        if path.is_file() and path.suffix in {".json", ".jsonl", ".log"} and path.name != "run.json":
            text = path.read_text(encoding="utf-8", errors="replace")
            assert "/admin" not in text, path
            if HOME in path.parts:
                assert KEY.search(text) is None, path
    homes = list(directory.path.rglob(f"{HOME}/settings.json"))
    assert len(homes) == 2
    assert all(json.loads(home.read_text(encoding="utf-8"))["auth"]["secret_key"] == NO_SECRET for home in homes)


def test_vlm_mtp_with_an_assistant_runs_to_its_end(python: str, tmp_path: Path) -> None:
    model, assistant = gemma4(python, tmp_path / "models")
    base, fast = (make_cell(model, method, python=python, mtp=str(assistant)) for method in (NONE, CHAIN))
    job = engine_job(ADAPTER, base, (fast,), tmp_path / "probes")
    assert ADAPTER.exactness(fast, job.survey.engines["omlx"].identity).rule is Rule.UNKNOWN
    directory, index = run_job(job, tmp_path / "run")
    assert [index.cells[cell.id].status for cell in (base, fast)] == [Status.OK, Status.OK]
    assert index.cells[fast.id].engagement is Engagement.ENGAGED
    trials = [one for one in directory.records() if isinstance(one, TrialRecord) and one.phase is Phase.MEASURED]
    plain = {one.prompt_id: one for one in trials if one.place.cell == base.id}
    speculative = [one for one in trials if one.place.cell == fast.id]
    assert len(speculative) == len(plain) == 2
    for one in speculative:
        told = values(one)
        assert one.problems == ()
        assert told["draft_capacity"] == 3 * told["verify_rounds"]
        assert told["burst_count"] == told["verify_rounds"] + 1 or not one_by_one(one)
        assert told["accepted_tokens"] + told["verify_rounds"] >= told["output_tokens"] - 1
        assert "drafted_tokens" not in told
        assert "acceptance_rate" not in told
        assert one.text == plain[one.prompt_id].text  # seen here; oMLX itself claims nothing for this path


def test_a_baseline_of_the_demo_model_runs_to_its_end(python: str, tmp_path: Path) -> None:
    base = make_cell(target(), python=python, tokens=48)
    directory, index = run_job(engine_job(ADAPTER, base, (), tmp_path / "probes", trials=4), tmp_path / "run")
    assert index.cells[base.id].status is Status.OK
    trials = [one for one in directory.records() if isinstance(one, TrialRecord) and one.phase is Phase.MEASURED]
    assert len(trials) == 4
    (events,) = directory.path.rglob("events.jsonl")
    session = read_session(events.read_text(encoding="utf-8"))
    for trial in trials:
        told, request = values(trial), session.trials[trial.trial].steps["request"]
        assert trial.problems == ()
        assert told["output_tokens"] == trial.arrival_curve[-1][1]
        assert len(trial.token_ids) == told["output_tokens"] or not one_by_one(trial)
        assert trial.finish_reason == ("length" if told["output_tokens"] == 48 else "eos")
        assert "keepalive" in request.events[0].data
        assert told["ttft"] == request.events[1].t_s - request.sent_s
    assert {trial.finish_reason for trial in trials} == {"length", "eos"}


def test_a_drafter_that_is_off_is_not_engaged_and_one_in_a_baseline_is_refused(
    python: str, model: Path, tmp_path: Path
) -> None:
    fast, base = make_cell(model, MTP, WARM, python=python), make_cell(model, NONE, WARM, python=python)
    (tmp_path / "off").mkdir()
    (tmp_path / "on").mkdir()
    off = drive(StartedFor(base), fast, (make_trial(),), tmp_path / "off")
    assert off.refusal is None
    told = {item.metric: item for item in ADAPTER.parse_trial(fast, off.capture.trials[0]).observations}
    assert told["drafted_tokens"].value == 0
    assert "inferred" in str(told["drafted_tokens"].note)
    on = drive(StartedFor(fast), base, (make_trial(),), tmp_path / "on")
    assert on.refusal is not None
    assert on.refusal.status is Status.CONTAMINATED


def test_what_this_version_cannot_do_is_refused_before_the_start(python: str, model: Path, tmp_path: Path) -> None:
    base = make_cell(model, NONE, python=python)
    engine = engine_job(ADAPTER, base, (), tmp_path).survey.engines["omlx"].identity
    chain = make_cell(model, CHAIN, python=python)
    found = ADAPTER.supports(chain, engine)
    assert found is not None
    assert found.status is Status.UNSUPPORTED
    assert "mtp_fixed_draft_depth" in found.reason
    assert ADAPTER.supports(make_cell(model, MTP, python=python), engine) is None
    plain = ADAPTER.supports(make_cell(target(), MTP, python=python), engine)
    assert plain is not None
    assert "declares no MTP layers" in plain.reason
