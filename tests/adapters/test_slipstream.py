"""The Slipstream adapter: arms by variables, totals that may not be subtracted, claims by version, and what is refused."""

from __future__ import annotations

import copy
import dataclasses
import json

import pytest
from engine_job import engine_job, run_job
from golden_cases import GOLDEN, load_case
from slipstream_cells import GREEDY, LOOKUP, MTP, NONE, WARM, make_cell, model_folder, program

from adapters.slipstream.adapter import ADAPTER
from adapters.slipstream.counters import ACCEPTED, DECODED, DRAFTED, PASSES, read_deltas
from adapters.slipstream.parse import _bursts
from adapters.slipstream.request import AFTER, BEFORE, SETTLING
from orchestrator.process.environment import scrubbed
from orchestrator.process.errors import LaunchError
from orchestrator.schema.adapter import LaunchContext, ProbeOutput, Rule, TrialSpec, Verified
from orchestrator.schema.capture import RawEvent, StepCapture, TrialCapture
from orchestrator.schema.cell import EngineConfig, EosPolicy, Method, MethodKind
from orchestrator.schema.status import Status

GOOD = {
    "version": "Slipstream v2 26.10.4\n",
    "help": "[--keep-gguf] [--no-webui] [--max-context X] [--max-memory X] [--host H] [--port P]",
}

CHECKOUT = {
    "checkout": ProbeOutput(0, "install/launcher.py\n", ""),
    "commit": ProbeOutput(0, "a" * 40 + "\n", ""),
    "changes": ProbeOutput(0, "", ""),
}
"""What git says of a clean checkout of Slipstream."""


def identity(
    version: str = GOOD["version"], help_text: str = GOOD["help"], binary: str | None = None, **more: ProbeOutput
):
    outputs = {"version": ProbeOutput(0, version, ""), "help": ProbeOutput(0, help_text, ""), **more}
    return ADAPTER.identify(EngineConfig("s", "slipstream", binary=binary), outputs)


def launch(method, folder, **options):
    return ADAPTER.launch(make_cell("slipstream", "/m/swift", method, **options), LaunchContext(4321, folder))


def test_a_baseline_switches_off_both_drafters_and_each_arm_its_own(tmp_path):
    assert launch(NONE, tmp_path).env == {"SPLASH_NO_MTP": "1", "SPLASH_NO_PLD": "1"}
    assert launch(MTP, tmp_path).env == {"SPLASH_MTP_DRAFTS": "3"}
    assert launch(LOOKUP, tmp_path).env == {"SPLASH_MTP_DRAFTS": "4", "SPLASH_NO_MTP": "1"}
    alone = Method("m", MethodKind.MTP, None, options={"prompt_lookup": False, "chain_min": 0.5, "tree": True})
    assert launch(alone, tmp_path).env == {
        "SPLASH_MTP_DRAFTS": "7",
        "SPLASH_MTP_CHAIN_MIN": "0.5",
        "SPLASH_TREE_DRAFT": "1",
        "SPLASH_NO_PLD": "1",
    }


def test_every_arm_has_the_same_command_and_it_keeps_the_gguf(tmp_path):
    commands = {launch(method, tmp_path, max_context=8192, max_memory_gib=28).argv for method in (NONE, MTP, LOOKUP)}
    (argv,) = commands
    assert argv == (
        *("slipstream", "serve", "--model", "/m/swift", "--host", "127.0.0.1", "--port", "4321", "--no-webui"),
        *("--keep-gguf", "--max-context", "8192", "--max-memory", "28G"),
    )


def test_no_variable_of_the_engine_is_inherited(monkeypatch, tmp_path):
    monkeypatch.setenv("SPLASH_NO_MTP", "1")
    monkeypatch.setenv("SLIPSTREAM_API_KEY", "k")
    assert not [name for name in scrubbed(launch(MTP, tmp_path).env) if name.startswith(("SPLASH_NO", "SLIPSTREAM"))]
    for name in ("SPLASH_TREE_DRAFT", "SLIPSTREAM_IO_TIMEOUT"):
        with pytest.raises(LaunchError):
            scrubbed({}, keep=(name,))


def test_a_build_that_may_use_up_the_gguf_is_refused(tmp_path):
    refusal = ADAPTER.supports(make_cell("s", tmp_path), identity(help_text=GOOD["help"].replace("[--keep-gguf]", "")))
    assert refusal is not None
    assert refusal.status is Status.UNSUPPORTED
    assert "punch holes" in refusal.reason
    assert "--keep-gguf" in refusal.reason
    assert ADAPTER.supports(make_cell("s", model_folder(tmp_path)), identity()) is None
    silent = ADAPTER.identify(EngineConfig("s", "slipstream"), {"version": ProbeOutput(0, GOOD["version"], "")})
    assert "punch holes" in ADAPTER.supports(make_cell("s", tmp_path), silent).reason


@pytest.mark.parametrize(
    ("version", "more", "exact"),
    [
        ("26.10.4", {}, True),
        ("v26.10.4", {}, True),
        ("26.11.0", {}, True),
        ("27.1.1", {}, True),
        ("26.10.3", {}, None),
        ("26.9.30", {}, None),
        ("(source checkout)", {}, None),
        (
            "(source checkout)",
            {**CHECKOUT, "has_release": ProbeOutput(0, "", "")},
            True,
        ),
        (
            "(source checkout)",
            {**CHECKOUT, "has_release": ProbeOutput(0, "", ""), "changes": ProbeOutput(0, " M runtime/main.mm\n", "")},
            None,
        ),
        (
            "(source checkout)",
            {**CHECKOUT, "has_release": ProbeOutput(0, "", ""), "checkout": ProbeOutput(1, "", "no such file")},
            None,
        ),
        (
            "(source checkout)",
            {**CHECKOUT, "has_release": ProbeOutput(1, "", "")},
            None,
        ),
        (
            "(source checkout)",
            {**CHECKOUT, "has_release": ProbeOutput(128, "", "no tag")},
            None,
        ),
        ("26.9.30", {**CHECKOUT, "has_release": ProbeOutput(0, "", "")}, None),
    ],
)
def test_exactness_is_claimed_from_one_release_on(version, more, exact):
    found = identity(f"Slipstream v2 {version}\n", **more)
    for sampling, rule in ((GREEDY, Rule.GREEDY_MATCH), (WARM, Rule.REJECTION)):
        claim = ADAPTER.exactness(make_cell("s", "/m", MTP, sampling), found)
        assert claim.exact is exact
        assert claim.rule is (rule if exact else Rule.UNKNOWN)
        assert ("32 likeliest" in claim.note) is (exact is True)
    assert ADAPTER.exactness(make_cell("s", "/m", NONE), found).rule is Rule.NONE


def test_a_checkout_is_known_by_its_commit():
    commit = ProbeOutput(0, "ef0eb74f5d817e8ad9c65720e69380eb45d505bb\n", "")
    source = "Slipstream v2 (source checkout)\n"
    found = identity(source, **{**CHECKOUT, "commit": commit})
    assert found.facts == {"version": "source checkout", "commit": "ef0eb74f5d817e8ad9c65720e69380eb45d505bb"}
    changed = identity(source, **{**CHECKOUT, "changes": ProbeOutput(0, " M runtime/main.mm\n", "")})
    assert changed.commit == changed.facts["commit"] == "a" * 40 + "+changes"
    unasked = {name: said for name, said in CHECKOUT.items() if name != "changes"}
    assert identity(source, **unasked).commit == "a" * 40 + "+changes", "not known to be clean"
    other = identity(source, **{**CHECKOUT, "checkout": ProbeOutput(1, "", "did not match any file(s) known to git")})
    assert other.commit is None, "some other repository holds the launcher"
    assert other.facts == {"version": "source checkout"}
    assert identity().facts == {"version": "26.10.4"}
    names = [
        probe.name for probe in ADAPTER.probe_commands(EngineConfig("s", "slipstream", binary="/src/slip/slipstream"))
    ]
    assert names == ["version", "help", "checkout", "commit", "changes", "has_release"]
    assert len(ADAPTER.probe_commands(EngineConfig("s", "slipstream"))) == 2
    assert ADAPTER.verified is Verified.SOURCE


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"eos": EosPolicy.MASK}, "eos: mask"),
        ({"template": "chat"}, "stand there twice"),
        ({"sampling": dataclasses.replace(WARM, top_k=0)}, "top_k 0"),
        ({"sampling": dataclasses.replace(WARM, top_k=40)}, "top_k 40"),
        ({"sampling": dataclasses.replace(WARM, min_p=0.05)}, "min_p"),
        ({"sampling": dataclasses.replace(GREEDY, repeat_penalty=1.1)}, "repeat_penalty"),
        ({"sampling": dataclasses.replace(WARM, xtc_probability=0.5)}, "xtc_probability"),
        ({"sampling": dataclasses.replace(WARM, temperature=3.0)}, "temperatures"),
        ({"method": Method("m", MethodKind.MTP, 8)}, "1 to 7"),
        ({"method": Method("m", MethodKind.DRAFT, 4, "d")}, "no separate draft"),
        ({"method": Method("m", MethodKind.MTP, 3, options={"x": 1})}, "option x"),
        ({"target": "empty"}, "no GGUF"),
    ],
)
def test_what_it_cannot_do_is_said_before_it_starts(change, word, tmp_path):
    (tmp_path / "empty").mkdir()
    target = tmp_path / change.pop("target") if "target" in change else model_folder(tmp_path)
    refusal = ADAPTER.supports(make_cell("s", target, **change), identity())
    assert refusal is not None
    assert refusal.status is Status.UNSUPPORTED
    assert word in refusal.reason
    assert refusal.remedy


def test_a_measurement_is_not_what_prepares_a_gguf(tmp_path):
    folder = tmp_path / "qwen"
    folder.mkdir()
    shard = folder / "qwen-00001-of-00003.gguf"
    shard.write_bytes(b"GGUF")
    for target in (folder, shard):
        refusal = ADAPTER.supports(make_cell("s", target), identity())
        assert refusal is not None
        assert refusal.status is Status.UNAVAILABLE
        assert "not prepared" in refusal.reason
        assert f"--model {target} --keep-gguf" in refusal.remedy
    (folder / "prepared").mkdir()
    assert ADAPTER.supports(make_cell("s", folder), identity()) is not None
    (folder / "prepared" / "manifest.json").write_text("{}", encoding="utf-8")
    for target in (folder, shard):
        assert ADAPTER.supports(make_cell("s", target), identity()) is None


def test_every_setting_is_sent_and_none_that_the_server_refuses():
    for sampling, top_k in ((GREEDY, 32), (WARM, 20)):
        steps = ADAPTER.trial_steps(make_cell("s", "/m", MTP, sampling), TrialSpec(0, "measured", "p", "text", 11))
        body = next(step.body for step in steps if step.name == "request")
        assert body["top_k"] == top_k
        assert (body["seed"], body["temperature"], body["min_p"]) == (11, sampling.temperature, 0.0)
        assert body["reasoning_effort"] == "none"
        assert "repeat_penalty" not in body


def reading(name, at=1.0, **change):
    status = {
        "schema_version": 5,
        "scheduler": {"decode_batches": 0},
        "requests": {"submitted": 0, "completed": 0, "cancelled": 0, "failed": 0},
        "metrics": {"decode_output_tokens": 0, "drafted_tokens": 0, "accepted_draft_tokens": 0},
        "memory_actual": {"peak_bytes": 5},
        "transport": {"restarts": 0, "status_stale": False},
        "instance": {"id": "a"},
    }
    status = copy.deepcopy(status)
    for path, value in change.items():
        part, _, key = path.partition("__")
        status[part][key] = value
    return StepCapture(name, at, "", (RawEvent(at, json.dumps(status)),), at + 0.1, 200)


BEGAN = {
    "scheduler__decode_batches": 40,
    "requests__submitted": 5,
    "requests__completed": 5,
    "metrics__decode_output_tokens": 100,
    "metrics__drafted_tokens": 90,
    "metrics__accepted_draft_tokens": 60,
}
ENDED = {
    "scheduler__decode_batches": 50,
    "requests__submitted": 6,
    "requests__completed": 6,
    "metrics__decode_output_tokens": 124,
    "metrics__drafted_tokens": 119,
    "metrics__accepted_draft_tokens": 74,
}


def deltas(before=None, settling=None, after=None, completion=24):
    steps = [
        reading(BEFORE, **{**BEGAN, **(before or {})}),
        reading(SETTLING, **{**ENDED, **(settling or {})}),
        reading(AFTER, **{**ENDED, **(after or {})}),
    ]
    return read_deltas(TrialCapture(0, {step.name: step for step in steps}, "", complete=True), completion)


def test_a_trials_own_counts_are_the_differences():
    found = deltas()
    assert found.added == {DRAFTED: 29, ACCEPTED: 14, PASSES: 10, DECODED: 24}
    assert (found.why, found.peak_bytes) == ("", 5)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"after": {"metrics__drafted_tokens": 3}}, "went back"),
        ({"after": {"metrics__drafted_tokens": 90, "metrics__accepted_draft_tokens": 60}}, "was reset"),
        ({"after": {"requests__submitted": 7, "requests__completed": 7}}, "2 requests came in"),
        ({"after": {"requests__submitted": 7}}, "2 requests came in"),
        ({"after": {"requests__completed": 5}}, "0 requests ended"),
        ({"before": {"requests__completed": 4}, "after": {"requests__completed": 5}}, "still running"),
        ({"after": {"requests__submitted": None}}, "does not tell requests.submitted"),
        ({"after": {"instance__id": "b"}}, "another server"),
        ({"after": {"transport__restarts": 1}}, "restarted"),
        ({"before": {"transport__status_stale": True}}, "stale"),
        ({"settling": {"transport__status_stale": True}, "after": {"transport__status_stale": True}}, "stale"),
        ({"after": {"metrics__decode_output_tokens": 140}}, "decoded meanwhile"),
        ({"after": {"metrics__accepted_draft_tokens": 99}}, "accepted of"),
    ],
)
def test_no_number_where_a_difference_is_not_the_trials_own(change, word):
    found = deltas(**change)
    assert found.added == {}
    assert word in found.why


def test_the_last_fresh_reading_counts():
    assert deltas(settling={"transport__status_stale": True}).added[DRAFTED] == 29
    assert deltas(after={"transport__status_stale": True, "metrics__drafted_tokens": 90}).added[DRAFTED] == 29


def test_mtp_and_prompt_lookup_are_said_to_be_pooled():
    case = load_case(GOLDEN / "slipstream" / "mtp")
    parsed = ADAPTER.parse_trial(case.cell, case.trial_of(case.capture()))
    for item in parsed.observations:
        if item.metric in ("drafted_tokens", "accepted_tokens", "acceptance_rate"):
            assert "mtp+prompt-lookup" in item.definition
            assert "together" in (item.note or "")
    assert len(parsed.token_ids) == 24
    assert all(token < -1 for token in parsed.token_ids)
    told = {item.metric: item.value for item in parsed.observations}
    assert (told["drafted_tokens"], told["accepted_tokens"], told["target_passes"]) == (29, 14, 10)
    assert told["verify_rounds"] is None


@pytest.mark.parametrize(
    ("stamps", "first", "later", "keys"),
    [
        ([1.0, 1.0, 2.0, 2.1, 3.0], 2, 2, [0, 0, 1, 1, 2]),
        ([1.0, 2.0, 3.0], 1, None, [0, 1, 2]),
        ([1.0, 2.0, 3.0], 1, 9, [0, 1, 2]),
        ([1.0, 2.0, 2.5, 9.0], 1, 1, [0, 1, 1, 1]),
        ([1.0], 1, 0, [0]),
        ([1.0, 1.1], 5, 3, [0, 0]),
    ],
)
def test_passes_begin_at_the_longest_gaps(stamps, first, later, keys):
    assert _bursts(stamps, first, later) == keys


@pytest.fixture
def quiet(monkeypatch):
    """Answers of some milliseconds on a busy machine: whether it stalled meanwhile is not what is asked here."""
    monkeypatch.setattr("orchestrator.host.pressure.between", lambda *_: ())


@pytest.mark.usefixtures("quiet")
def test_the_real_runner_measures_the_stand_in(tmp_path):
    """Baseline, MTP and lookup end to end; the engine is probed as a program, and refused without --keep-gguf."""
    made = model_folder(tmp_path)
    binary = program(tmp_path)
    base = make_cell(binary, made)
    cells = [make_cell(binary, made, MTP), make_cell(binary, made, LOOKUP)]
    _, index = run_job(engine_job(ADAPTER, base, cells, tmp_path / "job"), tmp_path / "run")
    assert {state.id: (state.status, state.reason) for state in index.cells.values()} == {
        cell.id: (Status.OK, "") for cell in (base, *cells)
    }
    for cell in cells:
        trials = [one for one in index.cells[cell.id].trials if one.status is Status.OK]
        assert len(trials) == 2
        assert {one.token_ids for one in trials} == {one.token_ids for one in index.cells[base.id].trials}
        assert all(one.problems == () or "busy" in one.problems[0] for one in trials)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("fault", "status", "word"),
    [
        ("no_keep", Status.UNSUPPORTED, "punch holes"),
        ("always_drafts", Status.CONTAMINATED, "drafted in a baseline"),
        ("no_counters", Status.UNSUPPORTED, "does not count"),
        ("error", Status.UNPARSED, "request timed out"),
    ],
)
def test_a_fault_is_a_status_by_the_real_runner(fault, status, word, tmp_path):
    base = make_cell(program(tmp_path, fault), model_folder(tmp_path))
    _, index = run_job(engine_job(ADAPTER, base, [], tmp_path / "job"), tmp_path / "run")
    state = index.cells[base.id]
    assert state.status is status
    assert word in state.reason
    launched = list((tmp_path / "run").glob("**/launch.json"))
    assert (launched == []) is (fault == "no_keep")


@pytest.mark.parametrize(
    ("stderr", "word"),
    [
        (
            "error: Slipstream v2 is already serving (PID 7, model m, port 8090); stop it with Ctrl+C first\n",
            "one Slipstream",
        ),
        ("error: cannot listen on 127.0.0.1:4321 (in use); stop the service\n", "cannot listen"),
        ("Loading\nerror: Directory /m does not contain GGUF files or a manifest.json\n", "does not contain"),
    ],
)
def test_last_words_are_explained(stderr, word):
    refusal = ADAPTER.explain_exit(make_cell("s", "/m"), stderr)
    assert refusal is not None
    assert word in refusal.reason
    assert ADAPTER.explain_exit(make_cell("s", "/m"), "Killed: 9\n") is None


def test_a_mtp_cell_that_drafts_nothing_is_not_engaged():
    assert MethodKind.MTP in ADAPTER.always_drafts
    assert MethodKind.NGRAM not in ADAPTER.always_drafts
