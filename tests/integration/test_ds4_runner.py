"""ds4 through the real runner and process package, on a stand-in that speaks its format, lock and errors included."""

from __future__ import annotations

import dataclasses
import fcntl
import shutil

import pytest
from ds4_cells import NONE, WARM, absences, fake_ds4, make_cell, mtp, run_cell, values
from ds4_sparse_gguf import write_stub
from engine_job import engine_job, run_job
from golden_cases import GOLDEN, case_folders, load_case
from liveness import is_dead

from adapters.ds4.adapter import ADAPTER
from orchestrator.matrix.types import RunSettings
from orchestrator.runner.arm import ArmStopped, running_arm
from orchestrator.schema.capture import read_session
from orchestrator.schema.observation import Absence
from orchestrator.schema.record import Engagement, SessionRecord, TrialRecord
from orchestrator.schema.status import Status

CYCLES = ["miss", "batch 2", "batch 1", "skip", "idle"]
KNOWN_BY_SOURCE = {"source-sep-baseline-speculates", "source-sep-lines-missing", "source-sep-dspark-nothing"}


@pytest.fixture
def engine(tmp_path):
    """A fake in a folder of its own; gives its path and that folder."""

    def make(name="ds4", **config):
        folder = tmp_path / "engine"
        return fake_ds4(folder, name, **{"generation": "2026-05", **config})

    return make


def cell_of(binary, method=NONE, sampling=None, **more):
    options = {"generation": "2026-05", **more}
    return make_cell(binary, method, **({"sampling": sampling} if sampling is not None else {}), **options)


def test_a_whole_job_is_measured_and_no_two_run_at_once(engine, tmp_path):
    folder = tmp_path / "engine"
    binary = engine(cycles=CYCLES)
    target = write_stub(folder / "zero.gguf", "token_embd.weight")
    module = write_stub(folder / "zero-mtp.gguf", "mtp.0.hc_head_base.weight")
    base = cell_of(binary, target=str(target), module=str(module))
    drafts = dataclasses.replace(base, method=mtp(2))
    job = engine_job(ADAPTER, base, [drafts], tmp_path / "probes")
    directory, index = run_job(job, tmp_path / "run")
    assert {state.status for state in index.cells.values()} == {Status.OK}
    assert index.cells[drafts.id].engagement is Engagement.ENGAGED
    trials = [record for record in directory.records() if isinstance(record, TrialRecord)]
    assert len(trials) == 4
    texts = {(trial.place.cell, trial.prompt_id): trial.token_ids for trial in trials}
    assert all(texts[base.id, trial.prompt_id] == texts[drafts.id, trial.prompt_id] for trial in trials)
    lives = (folder / "lives.log").read_text(encoding="utf-8").splitlines()
    assert len(lives) == 8
    assert [line.split()[1] for line in lives] == ["begins", "ends"] * 4
    assert all(first.split()[0] == then.split()[0] for first, then in zip(lives[::2], lives[1::2], strict=True))
    facts = job.survey.fates[base.id].facts
    assert {"engine.sha256", "engine.generation", "file.0"} <= set(facts)


@pytest.mark.parametrize("mode", ["command", "server"])
def test_a_lock_that_another_program_holds_is_said_with_what_to_do(engine, tmp_path, mode):
    binary = engine("ds4" if mode == "command" else "ds4-server")
    cell = cell_of(binary, mode=mode)
    with (tmp_path / "engine" / "ds4.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("4711")
        held.flush()
        result = run_cell(ADAPTER, cell, tmp_path / "locked", texts=("Sum: 18 + 9 =",))
    assert result.session.status is Status.FAILED
    assert "process 4711 holds its lock" in result.session.reason
    assert "end that ds4" in result.session.remedy
    assert result.session.exit_code == 2
    again = run_cell(ADAPTER, cell, tmp_path / "free", texts=("Sum: 18 + 9 =",))
    assert again.session.status is Status.OK


@pytest.mark.parametrize(
    ("fault", "status", "words", "remedy"),
    [
        ("exit", Status.FAILED, "exceeds context size", "raise the engine's option context"),
        ("no-memory", Status.FAILED, "failed to map model views", "iogpu.wired_limit_mb"),
        ("silent-end", Status.UNPARSED, "did not print its rates", ""),
    ],
)
def test_a_fault_has_its_own_status_and_words(engine, tmp_path, fault, status, words, remedy):
    result = run_cell(ADAPTER, cell_of(engine(fault=fault)), tmp_path / "s", texts=("Sum: 18 + 9 =",))
    assert result.session.status is status
    assert words in result.session.reason
    assert remedy in result.session.remedy
    assert not result.trials[0].observations or all(item.metric != "ttft" for item in result.trials[0].observations)


def test_an_engine_that_hangs_is_stopped_in_time(engine, tmp_path):
    binary, lock = engine(fault="hang"), tmp_path / "engine" / "ds4.lock"
    for startup_s in (1.0, 8.0, 60.0):  # a busy machine may need more than a second to bring it to where it hangs
        limits = {"silence": 0.5, "startup": startup_s, "total": 60.0}
        result = run_cell(ADAPTER, cell_of(binary), tmp_path / f"s{startup_s:g}", texts=("x",), limits=limits)
        assert result.session.status is Status.TIMEOUT
        assert f"nothing on standard output within {startup_s + 0.5:g} s" in result.session.reason
        if lock.exists() and lock.read_text(encoding="utf-8"):
            break
    assert is_dead(int(lock.read_text(encoding="utf-8")))


def test_a_missing_model_is_said(engine, tmp_path):
    result = run_cell(ADAPTER, cell_of(engine(), target="gone.gguf"), tmp_path / "s", texts=("x",))
    assert result.session.status is Status.FAILED
    assert "cannot open model 'gone.gguf'" in result.session.reason


def test_a_failed_command_ends_the_session(engine, tmp_path):
    result = run_cell(ADAPTER, cell_of(engine(fault="exit")), tmp_path / "s", texts=("x", "y"))
    assert len(result.trials) == 1


@pytest.mark.parametrize(
    ("config", "method", "sampling"),
    [({"speculates": False}, mtp(2), None), ({"cycles": CYCLES}, mtp(2), WARM)],
    ids=["loaded-and-never-used", "temperature-0.8-in-may"],
)
def test_a_drafter_that_is_loaded_and_never_used_is_not_engaged(engine, tmp_path, config, method, sampling):
    result = run_cell(ADAPTER, cell_of(engine(**config), method, sampling), tmp_path / "s", texts=("x",))
    assert result.session.status is Status.NOT_ENGAGED
    assert result.session.engagement is Engagement.NOT_ENGAGED
    assert values(result)["drafted_tokens"] == 0


def test_a_baseline_that_speculates_is_contaminated(engine, tmp_path):
    binary = engine(always="dspark", cycles=["5/5"])
    result = run_cell(ADAPTER, cell_of(binary), tmp_path / "s", texts=("x",))
    assert result.session.status is Status.CONTAMINATED


def test_loading_is_apart_from_the_answers(engine, tmp_path):
    result = run_cell(ADAPTER, cell_of(engine()), tmp_path / "s", texts=("x", "y"))
    (load,) = [item for item in result.session.observations if item.metric == "load_time"]
    assert "median of 2 processes" in load.note
    events = (tmp_path / "s" / "events.jsonl").read_text(encoding="utf-8")
    session = read_session(events)
    for trial, record in enumerate(result.trials):
        came = ADAPTER.arrivals(cell_of("ds4"), session.trials[trial])
        assert came.sent_s > session.trials[trial].steps["generate"].sent_s
        assert values(result, trial)["ttft"] == came.tokens[0].t_s - came.sent_s
        assert record.status is Status.OK


def test_memory_is_that_of_the_largest_command(engine, tmp_path):
    result = run_cell(ADAPTER, cell_of(engine(watched=True)), tmp_path / "s", texts=("x", "y"))
    found = {item.metric: item for item in result.session.observations}
    assert found["peak_rss"].value > 0
    files = list((tmp_path / "s").glob("*/memory.jsonl"))
    assert len(files) == 4
    seen = sum(bool(file.read_text(encoding="ascii")) for file in files)
    assert seen >= 2  # those that answer wait for it; one that takes its text apart may be over before the first look
    assert f"the largest of {seen} commands" in found["peak_rss"].note


def test_the_server_tells_the_wait_and_no_acceptance(engine, tmp_path):
    binary = engine("ds4-server", pace_s=0.01)
    result = run_cell(ADAPTER, cell_of(binary, mtp(2), mode="server"), tmp_path / "s")
    assert result.session.status is Status.OK
    assert result.session.engagement is Engagement.UNVERIFIABLE
    told, why = values(result), absences(result)
    assert told["output_tokens"] == 48
    assert told["cached_tokens"] == 0
    assert told["ttft"] > 0
    for metric in ("drafted_tokens", "accepted_tokens", "acceptance_rate", "verify_rounds"):
        assert why[metric] is Absence.NOT_REPORTED
    assert len(result.trials[0].token_ids) == 48


def test_tokens_from_a_cache_are_contaminated(engine, tmp_path):
    binary = engine("ds4-server", cached=5)
    result = run_cell(ADAPTER, cell_of(binary, mode="server"), tmp_path / "s", texts=("x",))
    assert result.session.status is Status.CONTAMINATED
    assert "5 prompt tokens came from a cache" in result.session.reason


def test_a_server_without_the_module_is_not_engaged(engine, tmp_path):
    binary = engine("ds4-server", generation="2026-09")
    cell = make_cell(binary, mtp(1, drafter="embedded"), generation="2026-09", mode="server")
    result = run_cell(ADAPTER, cell, tmp_path / "s", texts=("x",))
    assert result.session.status is Status.NOT_ENGAGED
    assert "does not say that it loaded" in result.session.reason


def test_a_distribution_check_of_the_command_is_refused_in_words(engine, tmp_path):
    settings = RunSettings("demo", 1, 1, 0, "abba", 7, "cold", False, 60.0, 120.0, 60.0)
    stopped = pytest.raises(ArmStopped, match="loads the model for each")
    with stopped as caught, running_arm(cell_of(engine()), ADAPTER, tmp_path / "arm", settings):
        pytest.fail("it was started")
    assert caught.value.status is Status.UNSUPPORTED


@pytest.mark.parametrize("folder", [pytest.param(one, id=one.name) for one in case_folders("ds4")])
def test_goldens_say_where_they_are_from(folder):
    """What no build here could print is named so, and the real captures are of the one that could be built."""
    case = load_case(folder)
    assert folder.name.startswith(("may-", "source-"))
    backend = case.cell.engine.options.get("backend")
    assert (backend == "cpu") is folder.name.startswith("may-")
    assert {one.name for one in case_folders("ds4")} >= KNOWN_BY_SOURCE
    assert (GOLDEN / "ds4" / "README.md").is_file()


def test_a_session_record_keeps_the_last_words(engine, tmp_path):
    result = run_cell(ADAPTER, cell_of(engine(fault="exit")), tmp_path / "s", texts=("x",))
    assert isinstance(result.session, SessionRecord)
    assert any("exceeds context size" in line for line in result.session.log_tail)
    assert shutil.which("ds4.lock") is None
