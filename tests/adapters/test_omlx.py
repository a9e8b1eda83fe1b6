"""The oMLX adapter: what it tells the engine, what it refuses, and what it reads; the captures are in tests/golden/omlx."""

from __future__ import annotations

import dataclasses
import json
import subprocess

import pytest
from golden_cases import GOLDEN, load_case
from omlx_cells import CHAIN, DFLASH, GREEDY, MTP, NONE, WARM, make_cell, make_trial

from adapters.omlx.adapter import ADAPTER
from adapters.omlx.arrivals import burst_starts
from adapters.omlx.log import read_log, read_native
from adapters.omlx.settings import HOME, NO_SECRET, model_settings
from adapters.omlx.stream import Piece, read_stream, stand_in
from orchestrator.report.analysis.ledger import material_differences
from orchestrator.runner.gates import engagement
from orchestrator.runner.observe import observe_trial
from orchestrator.schema.adapter import EngineIdentity, Honoured, HttpStep, LaunchContext, LogStep, ProbeOutput, Rule
from orchestrator.schema.capture import RawEvent, StepCapture, TrialCapture
from orchestrator.schema.cell import EngineConfig, EosPolicy, Method, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence
from orchestrator.schema.record import Engagement, Phase, Place, TrialRecord
from orchestrator.schema.status import Status

CASES = GOLDEN / "omlx"
FORK = EngineIdentity(
    facts={"omlx": "0.7.0"},
    version="0.7.0",
    capabilities=frozenset(
        {"setting:mtp_enabled", "mtp:qwen35_model", "mtp:deepseek_v4_model", "drafter:gemma4_assistant"}
    ),
)
LATER = EngineIdentity(
    facts={"omlx": "0.6.4"},
    version="0.6.4",
    capabilities=FORK.capabilities
    | {"setting:mtp_num_draft_tokens", "setting:mtp_fixed_draft_depth", "drafter:qwen3_5_mtp", "dflash-mlx"},
)
QWEN = {"model_type": "qwen3_5", "text_config": {"mtp_num_hidden_layers": 1}}


def folder(path, config, tensors=("language_model.mtp.fc.weight", "language_model.model.norm.weight")):
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    index = {"weight_map": dict.fromkeys(tensors, "model.safetensors")}
    (path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return str(path)


@pytest.fixture
def target(tmp_path):
    return folder(tmp_path / "models" / "qwen", QWEN)


def parsed(name):
    case = load_case(CASES / name)
    return ADAPTER.parse_trial(case.cell, case.trial_of(case.capture()))


def told(name):
    return {item.metric: item for item in parsed(name).observations}


def refusal(cell, identity=LATER):
    found = ADAPTER.supports(cell, identity)
    assert found is not None
    return found


# What the engine is told.


def test_the_server_is_private_cold_and_serves_one_request_at_a_time(target, tmp_path):
    launch = ADAPTER.launch(make_cell(target, python="/py"), LaunchContext(4321, tmp_path))
    words = launch.argv
    assert words[:6] == ("/py", "-I", "-X", "utf8", "-m", "omlx.cli")
    assert words[words.index("--base-path") + 1] == str(tmp_path / HOME)
    assert words[words.index("--model-dir") + 1] == str(tmp_path / "models")
    assert words[words.index("--max-concurrent-requests") + 1] == "1"
    assert "--no-cache" in words
    assert not any(word in words for word in ("--api-key", "--hot-cache-max-size", "--paged-ssd-cache-dir"))
    assert launch.env["HF_HUB_OFFLINE"] == "1"
    assert launch.env["OMLX_MTP_CONTEXT_COPY"] == "0"  # prompt lookup, which would draft in the MTP module's name
    assert launch.env["OMLX_MEMORY_GUARD_TIER"] == "balanced"
    assert "--memory-guard-tier" not in words  # a version that does not know the option does not start
    settings = json.loads(launch.files[f"{HOME}/settings.json"])
    assert settings["auth"]["secret_key"] == NO_SECRET


def test_the_arms_of_a_block_differ_in_the_settings_file_alone(target, tmp_path):
    context = LaunchContext(4321, tmp_path)
    off, on = (ADAPTER.launch(make_cell(target, method), context) for method in (NONE, MTP))
    assert (off.argv, off.env, off.ready) == (on.argv, on.env, on.ready)
    name = f"{HOME}/model_settings.json"
    assert {key for key in off.files if off.files[key] != on.files[key]} == {name}
    before, after = (json.loads(one.files[name])["models"]["qwen"] for one in (off, on))
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert changed == {"mtp_enabled", "mtp_num_draft_tokens", "mtp_fixed_draft_depth"}


@pytest.mark.parametrize(
    ("method", "files", "expected"),
    [
        (NONE, {}, {"mtp_enabled": False, "vlm_mtp_enabled": False, "dflash_enabled": False}),
        (MTP, {}, {"mtp_enabled": True, "mtp_num_draft_tokens": 1, "mtp_fixed_draft_depth": 1}),
        (CHAIN, {"mtp": "/d"}, {"vlm_mtp_enabled": True, "vlm_mtp_draft_model": "/d", "vlm_mtp_draft_block_size": 4}),
        (
            DFLASH,
            {"drafts": {"dflash": "/d"}},
            {
                "dflash_enabled": True,
                "dflash_draft_model": "/d",
                "dflash_block_size": 16,
                "dflash_in_memory_cache": False,
            },
        ),
    ],
)
def test_each_path_has_its_settings_and_switches_the_others_off(target, method, files, expected):
    found = model_settings(make_cell(target, method, **files))
    assert found.items() >= expected.items()
    assert sum(bool(found[name]) for name in ("mtp_enabled", "vlm_mtp_enabled", "dflash_enabled")) == (
        method is not NONE
    )
    assert found["specprefill_enabled"] is found["turboquant_kv_enabled"] is False
    assert found["is_pinned"] is True  # loaded before the server is ready, not by the first request


def test_adaptive_drafting_leaves_the_length_to_the_engine(target):
    method = Method("mtp", MethodKind.MTP, 3, options={"adaptive": True})
    found = model_settings(make_cell(target, method))
    assert found["mtp_num_draft_tokens"] == 3
    assert "mtp_fixed_draft_depth" not in found


def test_every_sampler_setting_is_stated_where_this_engine_takes_it(target):
    sampling = dataclasses.replace(WARM, repeat_penalty=1.1, presence_penalty=0.2, frequency_penalty=0.3)
    cell = make_cell(target, sampling=sampling)
    request, log = ADAPTER.trial_steps(cell, make_trial(seed=9))
    assert isinstance(request, HttpStep)
    assert isinstance(log, LogStep)
    body = dict(request.body or {})
    wanted = {"temperature": 0.8, "top_p": 0.95, "min_p": 0.05, "presence_penalty": 0.2, "frequency_penalty": 0.3}
    assert body.items() >= {**wanted, "xtc_probability": 0.0, "seed": 9, "model": "qwen", "max_tokens": 24}.items()
    assert body["stream_options"] == {"include_usage": True}
    assert model_settings(cell).items() >= {"top_k": 40, "repetition_penalty": 1.1, "temperature": 0.8}.items()


def test_no_admin_endpoint_is_ever_asked(target):
    for method in (NONE, MTP, CHAIN, DFLASH):
        cell = make_cell(target, method, drafts={"dflash": "/d"})
        steps = (*ADAPTER.ready_steps(cell), *ADAPTER.trial_steps(cell, make_trial()))
        paths = {step.path for step in steps if isinstance(step, HttpStep)}
        assert paths == {"/api/status", "/v1/models/status", "/v1/completions"}


def test_no_golden_holds_a_key_or_an_admin_answer():
    for path in CASES.rglob("*"):
        if path.is_file() and path.suffix in {".json", ".jsonl", ".log"}:
            text = path.read_text(encoding="utf-8")
            assert "/admin" not in text
            assert "api_key" not in text
            assert "secret_key" not in text


# What the engine is.


def test_an_interpreter_tells_versions_and_abilities():
    answer = {
        "omlx": "0.7.0",
        "distribution": "flyto-mlx",
        "packages": {"mlx": "0.32.3", "mlx-lm": "0.31.3", "mlx-vlm": "0.6.3", "dflash-mlx": None},
        "python": "3.11.7",
        "device": "Device(cpu, 0)",
        "settings": ["mtp_enabled"],
        "patches": ["qwen35_model"],
        "drafters": ["gemma4_assistant"],
    }
    config = EngineConfig("omlx", "omlx", python="/py")
    (probe,) = ADAPTER.probe_commands(config)
    found = ADAPTER.identify(config, {probe.name: ProbeOutput(0, json.dumps(answer) + "\n", "")})
    assert (found.version, found.backend, found.unavailable) == ("0.7.0", "cpu", None)
    assert found.gpu_limit_bytes is None
    metal = json.dumps({**answer, "gpu_limit": 115_448_725_504})
    assert ADAPTER.identify(config, {probe.name: ProbeOutput(0, metal, "")}).gpu_limit_bytes == 115_448_725_504
    assert found.facts == {
        "mlx": "0.32.3",
        "mlx-lm": "0.31.3",
        "mlx-vlm": "0.6.3",
        "python": "3.11.7",
        "omlx": "0.7.0",
        "distribution": "flyto-mlx",
    }
    assert found.capabilities == {"setting:mtp_enabled", "mtp:qwen35_model", "drafter:gemma4_assistant"}


def test_a_command_that_is_no_script_serves_without_a_known_version():
    config = EngineConfig("omlx", "omlx", binary="/opt/bin/omlx")
    outputs = {
        "package": ProbeOutput(1, "", "/opt/bin/omlx is no script\n"),
        "help": ProbeOutput(0, "usage: omlx serve [--base-path BASE_PATH]", ""),
    }
    assert {probe.name for probe in ADAPTER.probe_commands(config)} == set(outputs)
    found = ADAPTER.identify(config, outputs)
    assert found.unavailable is None
    assert found.version is None
    assert "is no script" in (found.build or "")
    other = {**outputs, "help": ProbeOutput(0, "usage: something else", "")}
    assert ADAPTER.identify(config, other).unavailable


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_command_is_asked_through_the_interpreter_it_is_a_script_of(tmp_path, wrapped):
    """A stand-in interpreter answers, so that what is tested is the way there."""
    (tmp_path / "bin").mkdir()
    interpreter, command, wrapper = (tmp_path / "bin" / name for name in ("python3.11", "omlx", "wrapper"))
    answer = {"omlx": "0.6.4", "settings": ["mtp_enabled"], "packages": {}, "device": "Device(gpu, 0)"}
    interpreter.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", encoding="utf-8")
    command.write_text(f"#!{interpreter}\nfrom omlx.cli import main\n", encoding="utf-8")
    wrapper.write_text(f'#!/bin/bash\nexec "{command}" "$@"\n', encoding="utf-8")
    for path in (interpreter, command, wrapper):
        path.chmod(0o755)
    config = EngineConfig("omlx", "omlx", binary=str(wrapper if wrapped else command))
    probe = next(one for one in ADAPTER.probe_commands(config) if one.name == "package")
    done = subprocess.run(probe.argv, capture_output=True, text=True, check=False, timeout=300)
    found = ADAPTER.identify(config, {"package": ProbeOutput(done.returncode, done.stdout, done.stderr)})
    assert found.version == "0.6.4"
    assert "setting:mtp_enabled" in found.capabilities


# What is refused before the start.


def test_only_answers_that_end_at_the_end_of_text_can_be_asked_for(target):
    for policy in (EosPolicy.MASK, EosPolicy.CONTINUE):
        found = refusal(make_cell(target, eos=policy))
        assert found.status is Status.UNSUPPORTED
        assert "eos to stop" in found.remedy
    assert ADAPTER.supports(make_cell(target), LATER) is None


def test_native_mtp_needs_layers_in_the_configuration_and_in_the_weights(tmp_path, target):
    assert ADAPTER.supports(make_cell(target, MTP), FORK) is None
    plain = folder(tmp_path / "plain", {"model_type": "qwen3_5"})
    assert "declares no MTP layers" in refusal(make_cell(plain, MTP)).reason
    stripped = folder(tmp_path / "stripped", QWEN, ("language_model.model.norm.weight",))
    assert "no mtp.* tensor" in refusal(make_cell(stripped, MTP)).reason
    sidecar = dataclasses.replace(LATER, capabilities=LATER.capabilities | {"mtp:load_sidecar"})
    assert ADAPTER.supports(make_cell(stripped, MTP), sidecar) is None
    missing = folder(tmp_path / "glm", {"model_type": "glm_moe_dsa", "num_nextn_predict_layers": 1})
    assert "no native MTP for model_type glm_moe_dsa" in refusal(make_cell(missing, MTP)).reason


def test_a_draft_length_that_this_version_cannot_hold_is_refused(target):
    assert "mtp_fixed_draft_depth" in refusal(make_cell(target, CHAIN), FORK).reason
    assert "mtp_fixed_draft_depth" in refusal(make_cell(target, CHAIN), EngineIdentity()).reason
    assert ADAPTER.supports(make_cell(target, CHAIN), LATER) is None
    long = dataclasses.replace(CHAIN, n_max=9)
    assert "at most 8" in refusal(make_cell(target, long)).reason


@pytest.mark.parametrize(
    ("drafter", "kind", "identity", "words"),
    [
        ("qwen3_5_mtp", "qwen3_5", LATER, None),
        ("gemma4_assistant", "gemma4", FORK, None),
        ("qwen3_5_mtp", "qwen3_5", FORK, "does not take drafters of model_type qwen3_5_mtp"),
        ("gemma4_assistant", "qwen3_5", LATER, "does not fit a target of model_type qwen3_5"),
        ("llama", "qwen3_5", LATER, "model_type llama is no drafter"),
    ],
)
def test_a_drafter_is_checked_by_its_type_before_the_start(tmp_path, drafter, kind, identity, words):
    model = folder(tmp_path / "target", {"model_type": kind})
    cell = make_cell(model, CHAIN, mtp=folder(tmp_path / "drafter", {"model_type": drafter}))
    if words is None:
        assert ADAPTER.supports(cell, identity) is None
    else:
        found = refusal(cell, identity)
        assert found.status is Status.UNSUPPORTED
        assert words in found.reason


def test_penalties_switch_vlm_mtp_off_and_are_refused_with_it(tmp_path, target):
    drafter = folder(tmp_path / "drafter", {"model_type": "qwen3_5_mtp"})
    for change in ({"repeat_penalty": 1.1}, {"presence_penalty": 0.5}, {"frequency_penalty": 0.5}):
        sampling = dataclasses.replace(GREEDY, **change)
        assert "without drafts" in refusal(make_cell(target, CHAIN, sampling, mtp=drafter)).reason
        assert ADAPTER.supports(make_cell(target, MTP, sampling), LATER) is None


def test_draft_means_dflash_and_nothing_else(tmp_path, target):
    draft = folder(tmp_path / "draft", {"model_type": "qwen3"})
    found = refusal(make_cell(target, DFLASH, drafts={"dflash": draft}))
    assert "no DFlash checkpoint" in found.reason
    right = folder(tmp_path / "dflash", {"model_type": "qwen3", "architectures": ["DFlashDraftModel"]})
    cell = make_cell(target, DFLASH, drafts={"dflash": right})
    assert ADAPTER.supports(cell, LATER) is None
    assert refusal(cell, FORK).status is Status.UNAVAILABLE
    ngram = Method("ngram", MethodKind.NGRAM, 4)
    assert "no ngram drafter" in refusal(make_cell(target, ngram)).reason


# Which acceptance rule is claimed.


def test_claims_depend_on_path_family_and_version(tmp_path, target):
    claim = ADAPTER.exactness(make_cell(target, MTP), FORK)
    assert (claim.rule, claim.exact) == (Rule.GREEDY_MATCH, True)
    claim = ADAPTER.exactness(make_cell(target, MTP, WARM), FORK)
    assert (claim.rule, claim.exact) == (Rule.REJECTION, True)
    for version in (None, "1.2.0"):
        assert ADAPTER.exactness(make_cell(target, MTP), dataclasses.replace(FORK, version=version)).exact is None
    other = folder(tmp_path / "other", {"model_type": "qwen4_exp", "mtp_num_hidden_layers": 1})
    claim = ADAPTER.exactness(make_cell(other, MTP, WARM), FORK)
    assert (claim.rule, claim.exact) == (Rule.UNKNOWN, None)
    coin = dataclasses.replace(WARM, xtc_probability=0.5)
    assert ADAPTER.exactness(make_cell(target, MTP, coin), FORK).exact is False
    penalty = dataclasses.replace(WARM, repeat_penalty=1.1)
    assert ADAPTER.exactness(make_cell(target, MTP, penalty), FORK).exact is None
    for method, files in ((CHAIN, {"mtp": "/d"}), (DFLASH, {"drafts": {"dflash": "/d"}})):
        claim = ADAPTER.exactness(make_cell(target, method, **files), FORK)
        assert (claim.rule, claim.exact) == (Rule.UNKNOWN, None)


# What is read. Each trap is a capture; these say what must not be read from it.


def test_keep_alive_events_are_no_first_token():
    case = load_case(CASES / "none")
    capture = case.trial_of(case.capture())
    first = capture.steps["request"].events[0]
    assert "keepalive" in first.data
    found = observe_trial(ADAPTER, case.cell, capture)
    ttft = next(item for item in found.observations if item.metric == "ttft")
    sent, second = capture.steps["request"].sent_s, capture.steps["request"].events[1]
    assert ttft.value == second.t_s - sent > first.t_s - sent


@pytest.mark.parametrize("name", ["vlm", "vlm-end-of-text"])
def test_the_denominator_of_vlm_mtp_is_never_drafted_tokens(name):
    found = told(name)
    assert found["draft_capacity"].value == 3 * found["verify_rounds"].value
    assert found["capacity_acceptance_rate"].value == found["accepted_tokens"].value / found["draft_capacity"].value
    for metric in ("drafted_tokens", "acceptance_rate", "judged_tokens", "rejected_tokens", "discarded_tokens"):
        assert found[metric].absent is Absence.NOT_REPORTED, metric


@pytest.mark.parametrize("name", ["mtp-chain", "mtp-chain-refused", "mtp-joined-events"])
def test_judged_drafts_of_a_chain_are_never_drafted_tokens(name):
    found = told(name)
    assert found["judged_acceptance_rate"].value == found["accepted_tokens"].value / found["judged_tokens"].value
    for metric in ("drafted_tokens", "acceptance_rate", "discarded_tokens", "drafted_by_position"):
        assert found[metric].absent is Absence.NOT_REPORTED, metric


@pytest.mark.parametrize("name", ["mtp-parked", "mtp-parked-by-finish"])
def test_what_follows_a_parked_drafter_is_not_taken_for_speculation(name):
    found = told(name)
    assert not parsed(name).problems
    assert (found["accepted_tokens"].value, found["judged_tokens"].value) == (6, 9)
    for metric in ("speculative_coverage", "target_passes", "tokens_per_pass", "no_draft_rounds"):
        assert found[metric].absent is Absence.NOT_REPORTED, metric
    case = load_case(CASES / name)
    conditions = {item.name: item for item in ADAPTER.conditions(case.cell, case.trial_of(case.capture()))}
    assert conditions["fell_back"].verdict is Honoured.CHANGED


def test_more_tokens_than_came_are_a_problem_of_a_parked_answer_too():
    case = load_case(CASES / "mtp-parked-by-finish")
    more = case.stderr.replace(b"tokens=12 ", b"tokens=25 ").replace(b"bonus=1,", b"bonus=14,")
    shift = len(more) - len(case.stderr)
    events = case.events.replace(b'"stderr_to": %d' % len(case.stderr), b'"stderr_to": %d' % (len(case.stderr) + shift))
    found = ADAPTER.parse_trial(case.cell, case.trial_of(case.capture(stderr=more, events=events)))
    assert "25 tokens by the statistics line, 24 by the usage" in found.problems


def test_a_line_that_is_repeated_because_the_drafter_parked_at_the_last_token_counts_once():
    found = told("mtp-parked-at-the-end")
    assert not parsed("mtp-parked-at-the-end").problems
    assert (found["verify_rounds"].value, found["no_draft_rounds"].value) == (9, 4)
    assert found["speculative_coverage"].value == 19 / 24  # without the three tokens of cycles without drafts
    assert found["tokens_per_round"].value == 19 / 9
    other = read_log(
        HEAD
        + "MTP[7] finish=parked tokens=8 cycles=3 accept=3/3 (100.0%)"
        + TAIL
        + "\n"
        + 2 * (HEAD + "MTP[7] finish=length tokens=8 cycles=3 accept=3/3 (100.0%)" + TAIL + "\n")
    )
    assert len(other.native) == 2


def test_cycles_without_drafts_are_no_drafts():
    found = told("mtp-no-drafts")
    assert not parsed("mtp-no-drafts").problems
    counts = {
        name: found[name].value for name in ("drafted_tokens", "judged_tokens", "verify_rounds", "rejected_tokens")
    }
    assert counts == {"drafted_tokens": 0, "judged_tokens": 0, "verify_rounds": 0, "rejected_tokens": 0}
    assert (found["no_draft_rounds"].value, found["speculative_coverage"].value) == (23, 0)
    assert found["acceptance_rate"].absent is Absence.NOT_APPLICABLE
    assert session_engagement("mtp-no-drafts") is Engagement.NOT_ENGAGED


def test_cycles_in_the_place_of_drafts_are_one_each_only_where_one_was_asked_for():
    found = told("mtp-cycles-for-drafts")
    for metric in ("drafted_tokens", "judged_tokens", "rejected_tokens", "acceptance_rate", "judged_acceptance_rate"):
        assert found[metric].absent is Absence.NOT_REPORTED, metric
    assert (found["accepted_tokens"].value, found["verify_rounds"].value) == (10, 13)
    case = load_case(CASES / "mtp-cycles-for-drafts")
    capture = case.trial_of(case.capture())
    length = next(item for item in ADAPTER.conditions(case.cell, capture) if item.name == "draft_length")
    assert (length.effective, length.verdict) == (None, Honoured.UNKNOWN)
    one = dataclasses.replace(case.cell, method=MTP)
    single = {item.metric: item.value for item in ADAPTER.parse_trial(one, capture).observations}
    assert (single["drafted_tokens"], single["judged_tokens"], single["acceptance_rate"]) == (13, 13, 10 / 13)


@pytest.mark.parametrize(
    ("counts", "problem"),
    [
        ("accept=10/14 (71.4%)", "14 drafts judged in 13 cycles, none of them counted by depth"),
        ("accept=10/13 (76.9%) depth[d1=0/0]", "13 drafts judged in 13 cycles, none of them counted by depth"),
        ("accept=10/13 (76.9%) d0=4", "13 drafts judged in 13 cycles, none of them counted by depth"),
    ],
)
def test_cycles_in_the_place_of_drafts_must_add_up(counts, problem):
    case = load_case(CASES / "mtp-cycles-for-drafts")
    said = b"accept=10/13 (75.0%)"
    assert case.stderr.count(said) == 1
    changed = case.stderr.replace(said, counts.encode())
    shift = len(changed) - len(case.stderr)
    events = case.events.replace(b'"stderr_to": %d' % len(case.stderr), b'"stderr_to": %d' % (len(case.stderr) + shift))
    found = ADAPTER.parse_trial(case.cell, case.trial_of(case.capture(stderr=changed, events=events)))
    assert problem in found.problems


@pytest.mark.parametrize("name", ["mtp-not-engaged", "vlm-busy", "dflash-without-drafts"])
def test_a_missing_statistics_line_means_nothing_was_drafted(name):
    found = told(name)
    assert found["drafted_tokens"].value == 0
    assert "inferred" in found["drafted_tokens"].note
    assert "inferred" in found["drafted_tokens"].source
    assert found["acceptance_rate"].absent is Absence.NOT_APPLICABLE
    assert session_engagement(name) is Engagement.NOT_ENGAGED


@pytest.mark.parametrize("name", ["mtp", "mtp-chain", "vlm", "dflash"])
def test_rounds_without_a_count_of_drafts_still_show_that_it_worked(name):
    assert session_engagement(name) is Engagement.ENGAGED


@pytest.mark.parametrize("name", ["mtp-unread-line", "mtp-two-lines"])
def test_lines_that_cannot_be_read_or_attributed_leave_it_open(name):
    assert parsed(name).problems
    assert told(name)["drafted_tokens"].absent is Absence.NOT_REPORTED
    assert session_engagement(name) is Engagement.UNVERIFIABLE


def test_unread_lines_are_counted_for_the_whole_process():
    case = load_case(CASES / "mtp-unread-line")
    conditions = {item.name: item for item in ADAPTER.session_conditions(case.cell, case.capture())}
    assert conditions["unparsed_log_lines"].effective == "1"
    assert conditions["engine_version"].effective == "0.7.0"
    fine = load_case(CASES / "mtp")
    conditions = {item.name: item for item in ADAPTER.session_conditions(fine.cell, fine.capture())}
    assert conditions["unparsed_log_lines"].effective == "0"


def test_what_is_set_by_the_environment_stands_among_the_conditions():
    case = load_case(CASES / "mtp")

    def found(cell, **files):
        return {item.name: item for item in ADAPTER.session_conditions(cell, case.capture(**files))}

    guard = found(case.cell)["memory_guard_tier"]
    assert (guard.requested, guard.effective, guard.verdict) == ("balanced", "balanced", Honoured.HONOURED)
    safe = dataclasses.replace(case.cell.engine, options={"memory_guard_tier": "safe"})
    assert found(dataclasses.replace(case.cell, engine=safe))["memory_guard_tier"].verdict is Honoured.CHANGED
    silent = found(case.cell, stderr=case.stderr.replace(b"guard tier", b"guard kind"))["memory_guard_tier"]
    assert (silent.effective, silent.verdict) == (None, Honoured.UNKNOWN)
    assert found(case.cell)["prompt_lookup"].requested == "off"


def test_a_log_that_is_not_whole_says_nothing_about_drafts():
    case = load_case(CASES / "mtp-not-engaged")
    capture = dataclasses.replace(case.trial_of(case.capture()), log="")
    found = {item.metric: item for item in ADAPTER.parse_trial(case.cell, capture).observations}
    assert found["drafted_tokens"].absent is Absence.NOT_REPORTED


def test_rounded_seconds_are_kept_with_their_resolution_and_not_used_when_short():
    long, short = told("mtp-long"), told("mtp")
    assert long["engine_decode_time"].value > 0.5
    assert "0.01 s" in long["engine_decode_time"].note
    assert long["engine_decode_time"].definition == "omlx:generation_duration"
    for metric in ("engine_decode_time", "engine_prefill_time"):
        assert short[metric].absent is Absence.SUPPRESSED
    assert long["engine_decode_rate"].absent is Absence.NOT_REPORTED


def test_answers_of_other_lengths_are_no_other_limit():
    """What is compared between two arms must not hold what merely happened: one would be another experiment."""
    ended, cut = load_case(CASES / "none-end-of-text"), load_case(CASES / "mtp-end-of-text")
    for case in (ended, cut):
        found = {item.name: item for item in ADAPTER.conditions(case.cell, case.trial_of(case.capture()))}
        assert found["max_tokens"].effective is None
    shorter = found_conditions("mtp", max_tokens=20)["max_tokens"]
    assert (shorter.effective, shorter.verdict) == ("24", Honoured.CHANGED)
    mine, other = found_conditions("mtp"), found_conditions("none-split-characters")
    assert material_differences(mine.values(), other.values()) == ()


def found_conditions(name, max_tokens=None):
    case = load_case(CASES / name)
    cell = case.cell
    if max_tokens is not None:
        cell = dataclasses.replace(cell, workload=dataclasses.replace(cell.workload, max_tokens=max_tokens))
    return {item.name: item for item in ADAPTER.conditions(cell, case.trial_of(case.capture()))}


def test_a_baseline_whose_log_tells_of_drafts_has_drafted():
    case = load_case(CASES / "mtp")
    cell = dataclasses.replace(case.cell, method=NONE)
    found = {item.metric: item for item in ADAPTER.parse_trial(cell, case.trial_of(case.capture())).observations}
    assert found["drafted_tokens"].value == 13


@pytest.mark.parametrize("name", ["vlm-served-as-text", "vlm-drafter-not-loaded"])
def test_a_server_without_its_drafter_is_not_engaged_before_the_first_request(name):
    case = load_case(CASES / name)
    session = case.capture()
    found = ADAPTER.check_ready(case.cell, session.ready, session.stdout, session.stderr)
    assert found is not None
    assert found.status is Status.NOT_ENGAGED
    baseline = dataclasses.replace(case.cell, method=NONE)
    assert ADAPTER.check_ready(baseline, session.ready, session.stdout, session.stderr) is None


def test_a_line_of_another_path_is_a_problem():
    case = load_case(CASES / "vlm")
    native = dataclasses.replace(case.cell, model=dataclasses.replace(case.cell.model, mtp=None))
    found = ADAPTER.parse_trial(native, case.trial_of(case.capture()))
    assert any("the log tells of VLM MTP, the cell asks for native MTP" in problem for problem in found.problems)


HEAD = "2026-11-29 12:00:00,000 - omlx.scheduler - INFO - [-] - "
TAIL = " emits[init=2,draft=3,bonus=1,verify=2] timing[backbone=1.0ms mtp=1.0ms sample=1.0ms cache=1.0ms]"


def test_forms_of_the_native_line_are_told_apart():
    old = read_native(HEAD + "MTP[7] finish=length tokens=8 cycles=3 accept=3/3 (100.0%)" + TAIL)
    new = read_native(HEAD + "MTP[7] finish=length tokens=8 cycles=3 tok/cycle=2.67 accept=3/5 (60.0%)" + TAIL)
    full = read_native(
        HEAD + "MTP[7] finish=stop tokens=8 cycles=4 tok/cycle=2.00 accept=3/5 (60.0%) depth[d1=2/3,d2=1/2] d0=1" + TAIL
    )
    assert old is not None
    assert new is not None
    assert full is not None
    assert (old.form, new.form, full.form) == ("MTP/1", "MTP/2", "MTP/2")
    assert (full.depth, full.idle, full.judged) == (((2, 3), (1, 2)), 1, 5)
    none = read_native(HEAD + "MTP[0] finish=length tokens=1 cycles=0 accept=0/0 (n/a)" + TAIL)
    assert none is not None
    assert none.judged == 0


@pytest.mark.parametrize(
    "line",
    [
        "MTP[7] finish=length tokens=8 cycles=3 accept=3/3 (100.0%)" + TAIL + " more=1",
        "MTP[7] finish=length tokens=8 cycles=3 tok/cycle=2.67 accept=3/5 (60.0%) new[x=1]" + TAIL,
        "vlm_mtp stats: request=a rounds=2 accepted=1/2",
        "DFlash generation complete: 24 tokens",
        "MTP batched: cycles=4 mean_B=2.0 k=3",
    ],
)
def test_a_line_with_anything_new_counts_as_unread(line):
    found = read_log(HEAD + line + "\n")
    assert found.unread == (line.strip(),)
    assert not found.native
    assert not found.vlm


def test_other_lines_about_drafts_are_no_unread_ones():
    text = "".join(
        HEAD + line + "\n"
        for line in (
            "MTP path activated for uid=0 (model has mtp_forward, batch=1)",
            "vlm_mtp decode started: request=a uid=-2 block_size=4",
            "MTP[7] re-entry probe started",
            "Completion: model=m, 60 tokens in 5.48s (47.5 tok/s), prompt: 5784",
        )
    )
    found = read_log(text)
    assert (found.unread, found.started, found.whole) == ((), True, True)
    assert read_log(text.rstrip("\n")).whole is False  # a cut line is none


def test_the_longest_gaps_end_a_pass():
    pieces = tuple(Piece(t, "x", 1) for t in (0.0, 0.001, 0.1, 0.101, 0.2, 0.201))
    assert burst_starts(pieces, 2) == {2, 4}
    assert burst_starts(pieces, None) == {1, 2, 3, 4, 5}
    assert burst_starts(pieces, 9) == {1, 2, 3, 4, 5}
    assert burst_starts(pieces, 0) == frozenset()


def stream(*pieces, tokens, finish="length"):
    """A capture of these texts, the last of which carries the finish."""
    last = len(pieces) - 1
    data = [
        json.dumps({"model": "m", "choices": [{"text": text, "finish_reason": finish if at == last else None}]})
        for at, text in enumerate(pieces)
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": tokens, "prompt_tokens_details": {"cached_tokens": 0}}
    data += [json.dumps({"model": "m", "choices": [], "usage": usage}), "[DONE]"]
    events = tuple(RawEvent(float(at), text) for at, text in enumerate(data))
    return TrialCapture(0, {"request": StepCapture("request", 0.0, "{}", events, 99.0, 200)}, "", complete=True)


def test_events_with_one_token_each_are_read_exactly():
    found = read_stream(stream("a", "", "b", tokens=3))
    assert found.exact
    assert found.token_ids == (stand_in("a"), stand_in(""), stand_in("b"))
    ended = read_stream(stream("a", "b", "", tokens=2, finish="stop"))
    assert ended.exact
    assert len(ended.pieces) == 2  # the end mark is no token
    flushed = read_stream(stream("a", "", "한", tokens=2, finish="stop"))
    assert flushed.exact
    assert flushed.text == "a한"


@pytest.mark.parametrize(
    ("pieces", "tokens", "finish"),
    [(("aaaa", "b"), 5, "length"), (("a", "b"), 2, "stop"), (("ab", "c", ""), 3, "stop")],
)
def test_joined_events_tell_no_token_ids(pieces, tokens, finish):
    found = read_stream(stream(*pieces, tokens=tokens, finish=finish))
    assert not found.exact
    assert found.token_ids == ()
    assert sum(piece.tokens for piece in found.pieces) == tokens
    assert min(piece.tokens for piece in found.pieces) >= 1


def test_joined_events_are_measured_and_not_compared():
    case = load_case(CASES / "mtp-joined-events")
    found = observe_trial(ADAPTER, case.cell, case.trial_of(case.capture()))
    assert found.token_ids == ()
    assert found.problems == ()
    assert found.curve[-1][1] == 24


@pytest.mark.parametrize(
    "capture",
    [
        stream("a", "b", tokens=1),
        stream("a", tokens=0),
        TrialCapture(0, {}, "", complete=True),
    ],
)
def test_streams_that_do_not_add_up_give_no_number(capture):
    with pytest.raises(CaptureError):
        read_stream(capture)


def session_engagement(name):
    case = load_case(CASES / name)
    found = ADAPTER.parse_trial(case.cell, case.trial_of(case.capture()))
    place = Place(case.cell.id, "f", case.cell.block_id, 1, 0, 0, 0)
    record = TrialRecord(
        place, 0, Phase.MEASURED, "p", "c", "en", 1, Status.OK, "", found.observations, (), "", "length", (), (), "t"
    )
    return engagement(ADAPTER, case.cell, [record])
