"""The llama-server path: what it finds out, what it refuses, and how it starts the server."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import pytest
from llama_cells import DRAFT, GREEDY, MTP, NGRAM, NONE, REJECTION, WARM, make_cell, make_trial, with_options

from adapters.llama_cpp.server import ADAPTER, REQUIRED
from adapters.llama_cpp.support import SPEC_CAPABILITY, SYSTEM_CONFIG
from orchestrator.schema.adapter import EngineIdentity, LaunchContext, LogStep, ProbeOutput, Rule
from orchestrator.schema.cell import EngineConfig, EosPolicy, MethodKind
from orchestrator.schema.status import Status

CONFIG = EngineConfig("llama.cpp", "llama_cpp", binary="llama-server")
HELP = (Path(__file__).resolve().parents[1] / "support" / "llama_server_b11434_help.txt").read_text(encoding="utf-8")
"""What ``llama-server --help`` of b11434 prints, as it is."""
NEW = "version: 0.6.0-dev (build 11434, commit abc123)\nbuilt with GNU 12.2.0 for Linux x86_64\n"
OLD = "version: 9330 (328874d05)\nbuilt with cc for Linux\n"
DEVICES = "Available devices:\n  MTL0: Apple M4 (24576 MiB, 24576 MiB free)\n"


def identify(version=NEW, help_text=HELP, *, config_found=False, devices="Available devices:\n"):
    return ADAPTER.identify(
        CONFIG,
        {
            "version": ProbeOutput(0, "", version),
            "help": ProbeOutput(0, help_text, ""),
            "devices": ProbeOutput(0, devices, ""),
            "system_config": ProbeOutput(0 if config_found else 2, "", ""),
        },
    )


def gguf(path, architecture="llama", **numbers):
    """A GGUF of header alone, with a token list to be skipped."""

    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    entries = [text("general.architecture") + struct.pack("<I", 8) + text(architecture)]
    entries += [text(key.replace("__", ".")) + struct.pack("<II", 4, value) for key, value in numbers.items()]
    tokens = ["a", "b", "c"]
    entries.append(
        text("tokenizer.ggml.tokens")
        + struct.pack("<IIQ", 9, 8, len(tokens))
        + b"".join(text(token) for token in tokens)
    )
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries))
    return path


def option(argv, name):
    assert argv.count(name) == 1, argv
    return argv[argv.index(name) + 1]


def launch(cell, tmp_path):
    return ADAPTER.launch(cell, LaunchContext(4321, tmp_path))


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        (NEW, {"version": "0.6.0-dev", "build": "11434", "commit": "abc123"}),
        (OLD, {"build": "9330", "commit": "328874d05"}),
    ],
)
def test_version_is_read_in_both_formats(said, facts):
    found = identify(said)
    assert dict(found.facts) == facts
    assert (found.build, found.commit, found.unavailable) == (facts["build"], facts["commit"], None)


def test_capabilities_are_what_help_names():
    known = identify().capabilities
    assert set(REQUIRED) <= known
    assert {SPEC_CAPABILITY + kind for kind in ("draft-simple", "draft-mtp", "ngram-simple")} <= known
    assert SYSTEM_CONFIG not in known


@pytest.mark.parametrize(("devices", "backend"), [("Available devices:\n", "CPU"), (DEVICES, "MTL")])
def test_backend_is_what_the_device_list_names(devices, backend):
    assert identify(devices=devices).backend == backend


@pytest.mark.parametrize(
    ("listed", "mib"),
    [
        ("  MTL0: Apple M4 Max (110100 MiB, 109000 MiB free)\n  BLAS: Accelerate (0 MiB, 0 MiB free)\n", 110_100),
        ("  BLAS: Accelerate (0 MiB, 0 MiB free)\n  Metal: Apple M1 Pro (10922 MiB, 1 MiB free)\n", 10_922),
        ("  MTL0: Apple M4 (0 MiB, 0 MiB free)\n", None),
        ("  CUDA0: NVIDIA GeForce RTX 4090 (24564 MiB, 24000 MiB free)\n", None),  # its own memory, not a part of RAM
        ("", None),
    ],
)
def test_the_limit_of_a_gpu_that_shares_ram_is_read_from_the_device_list(listed, mib):
    assert identify(devices="Available devices:\n" + listed).gpu_limit_bytes == (None if mib is None else mib * 2**20)
    assert "gpu" not in " ".join(identify(devices="Available devices:\n" + listed).facts)


def test_another_program_is_unavailable():
    found = identify("GNU bash, version 5.2\n")
    assert "does not answer as llama.cpp does" in found.unavailable


def test_a_complete_build_supports_every_method(tmp_path):
    target = gguf(tmp_path / "t.gguf", "qwen35", qwen35__nextn_predict_layers=1)
    for method in (NONE, DRAFT, MTP, NGRAM):
        assert ADAPTER.supports(make_cell("llama_cpp", target, method, draft=target), identify()) is None


@pytest.mark.parametrize(("missing", "words"), [("--cache-ram", "--cache-ram"), ("--spec-type", "--spec-type")])
def test_an_older_build_is_unsupported_in_words(tmp_path, missing, words):
    identity = identify(help_text=HELP.replace(missing, "--gone"))
    refusal = ADAPTER.supports(make_cell("llama_cpp", gguf(tmp_path / "t.gguf")), identity)
    assert refusal.status is Status.UNSUPPORTED
    assert words in refusal.reason


def test_a_build_without_the_drafter_is_unsupported(tmp_path):
    identity = identify(help_text=HELP.replace("draft-mtp,", ""))
    target = gguf(tmp_path / "t.gguf", "qwen35", qwen35__nextn_predict_layers=1)
    refusal = ADAPTER.supports(make_cell("llama_cpp", target, MTP), identity)
    assert "draft-mtp" in refusal.reason


def test_a_system_wide_configuration_file_is_refused(tmp_path):
    refusal = ADAPTER.supports(make_cell("llama_cpp", gguf(tmp_path / "t.gguf")), identify(config_found=True))
    assert refusal.status is Status.UNSUPPORTED
    assert "/etc/llama.cpp/config.ini" in refusal.reason


def test_mtp_needs_its_weights_in_the_target_or_beside_it(tmp_path):
    plain = gguf(tmp_path / "plain.gguf", "qwen35")
    head = gguf(tmp_path / "head.gguf", "qwen35", qwen35__nextn_predict_layers=1)
    refusal = ADAPTER.supports(make_cell("llama_cpp", plain, MTP), identify())
    assert refusal.status is Status.UNSUPPORTED
    assert "MTP weights in this file: no" in refusal.reason
    assert "qwen35.nextn_predict_layers" in refusal.reason
    assert ADAPTER.supports(make_cell("llama_cpp", plain, MTP, mtp=head), identify()) is None
    assert "no" in ADAPTER.supports(make_cell("llama_cpp", plain, MTP, mtp=plain), identify()).reason


def test_files_that_are_no_gguf_are_refused(tmp_path):
    text, cut = tmp_path / "text.gguf", tmp_path / "cut.gguf"
    text.write_bytes(b"hello")
    cut.write_bytes(gguf(tmp_path / "whole.gguf").read_bytes()[:60])
    for path, words in (
        (text, "not a GGUF"),
        (cut, "ends inside its header"),
        (tmp_path / "none.gguf", "cannot be read"),
    ):
        refusal = ADAPTER.supports(make_cell("llama_cpp", path), identify())
        assert refusal.status is Status.UNSUPPORTED
        assert words in refusal.reason


def test_going_on_after_end_of_text_is_unsupported(tmp_path):
    cell = make_cell("llama_cpp", gguf(tmp_path / "t.gguf"), eos=EosPolicy.CONTINUE)
    assert "continue" in ADAPTER.supports(cell, identify()).reason


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (with_options(DRAFT, n_min=5), "every draft would be dropped"),
        (with_options(NGRAM, size_m=3), "differ"),
        (with_options(DRAFT, p_min=1.5), "p_min"),
        (with_options(NGRAM, window=3), "window"),
        (with_options(NONE, acceptance="greedy"), "acceptance"),
    ],
)
def test_options_that_contradict_are_unsupported(tmp_path, method, words):
    target = gguf(tmp_path / "t.gguf")
    refusal = ADAPTER.supports(make_cell("llama_cpp", target, method, draft=target), identify())
    assert refusal.status is Status.UNSUPPORTED
    assert words in refusal.reason


def test_a_draft_that_the_model_does_not_name_is_unsupported(tmp_path):
    refusal = ADAPTER.supports(make_cell("llama_cpp", gguf(tmp_path / "t.gguf"), DRAFT), identify())
    assert "'tiny'" in refusal.reason


@pytest.mark.parametrize(
    ("method", "sampling", "rule"),
    [
        (NONE, WARM, Rule.NONE),
        (DRAFT, GREEDY, Rule.GREEDY_MATCH),
        (DRAFT, WARM, Rule.SAMPLE_MATCH),
        (REJECTION, WARM, Rule.REJECTION),
        (REJECTION, GREEDY, Rule.GREEDY_MATCH),
        (NGRAM, WARM, Rule.SAMPLE_MATCH),
    ],
)
def test_the_claim_follows_method_and_temperature(method, sampling, rule):
    claim = ADAPTER.exactness(make_cell("llama_cpp", "t.gguf", method, sampling), EngineIdentity())
    assert (claim.rule, claim.exact) == (rule, True)
    assert "b11434" in claim.by


def test_every_arm_gets_one_command_but_for_the_drafter(tmp_path):
    base = launch(make_cell("llama_cpp", "/m/t.gguf", NONE), tmp_path)
    for method in (DRAFT, REJECTION, MTP, NGRAM):
        other = launch(make_cell("llama_cpp", "/m/t.gguf", method, draft="/m/d.gguf"), tmp_path)
        shared = base.argv.index("--spec-type")
        assert other.argv[:shared] == base.argv[:shared]
        assert other.env == base.env
        assert other.files == base.files
    assert base.argv[base.argv.index("--spec-type") :] == ("--spec-type", "none")


def test_what_protects_a_number_is_on_the_command(tmp_path):
    found = launch(make_cell("llama_cpp", "/m/t.gguf", binary="/bin/x"), tmp_path)
    argv = list(found.argv)
    assert argv[0] == "/bin/x"
    wanted = {
        "--fit": "off",
        "--cache-ram": "0",
        "--ctx-checkpoints": "0",
        "--parallel": "1",
        "--poll": "0",
        "--log-verbosity": "4",
        "--port": "4321",
        "--host": "127.0.0.1",
        "--threads": "1",
        "--threads-batch": "1",
        "--ctx-size": "512",
    }
    assert {name: option(argv, name) for name in wanted} == wanted
    assert {"--metrics", "--slots"} <= set(argv)
    assert found.env["LLAMA_TRACE"] == "1"
    assert found.env["XDG_CONFIG_HOME"].startswith(str(tmp_path))
    assert found.keep_env == ()
    assert not any(path.endswith(".ini") for path in found.files)


def test_each_drafter_has_its_settings(tmp_path):
    draft = list(
        launch(
            make_cell(
                "llama_cpp",
                "t",
                with_options(REJECTION, acceptance="probabilistic", p_min=0.5, n_min=2),
                draft="/m/d.gguf",
            ),
            tmp_path,
        ).argv
    )
    assert option(draft, "--spec-type") == "draft-simple"
    assert option(draft, "--spec-draft-model") == "/m/d.gguf"
    assert option(draft, "--spec-draft-n-max") == "4"
    assert option(draft, "--spec-draft-n-min") == "2"
    assert option(draft, "--spec-draft-p-min") == "0.5"
    assert option(draft, "--spec-draft-sampling") == "probabilistic"
    mtp = list(launch(make_cell("llama_cpp", "t", MTP), tmp_path).argv)
    assert option(mtp, "--spec-type") == "draft-mtp"
    assert "--spec-draft-model" not in mtp
    head = list(launch(make_cell("llama_cpp", "t", MTP, mtp="/m/h.gguf"), tmp_path).argv)
    assert option(head, "--spec-draft-model") == "/m/h.gguf"
    ngram = list(launch(make_cell("llama_cpp", "t", NGRAM), tmp_path).argv)
    assert option(ngram, "--spec-ngram-simple-size-m") == "8"
    assert option(ngram, "--spec-ngram-simple-size-n") == "2"


def test_options_reach_the_command_and_unset_ones_are_left_to_the_engine(tmp_path):
    cell = make_cell("llama_cpp", "t", gpu_layers=7, flash_attention="on", batch=256, ubatch=64, cache_type_k="q8_0")
    argv = list(launch(cell, tmp_path).argv)
    wanted = {
        "--gpu-layers": "7",
        "--flash-attn": "on",
        "--batch-size": "256",
        "--ubatch-size": "64",
        "--cache-type-k": "q8_0",
        "--cache-type-v": "f16",
    }
    assert {name: option(argv, name) for name in wanted} == wanted
    bare = dataclasses.replace(cell, engine=dataclasses.replace(cell.engine, options={}))
    assert not {"--gpu-layers", "--threads"} & set(launch(bare, tmp_path).argv)


def test_the_request_states_every_setting_and_waits_for_its_log():
    cell = make_cell("llama_cpp", "t", DRAFT, WARM, eos=EosPolicy.STOP, tokens=9)
    steps = ADAPTER.trial_steps(cell, make_trial(prompt="hello", seed=77))
    assert [step.name for step in steps] == ["metrics_before", "request", "log", "metrics_after", "slots"]
    assert isinstance(steps[2], LogStep)
    assert steps[2].timeout_s <= 10
    body = steps[1].body
    wanted = {
        "prompt": "hello",
        "seed": 77,
        "n_predict": 9,
        "temperature": 0.8,
        "top_k": 40,
        "top_p": 0.95,
        "min_p": 0.05,
        "repeat_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "ignore_eos": False,
        "cache_prompt": False,
        "stream": True,
        "timings_per_token": True,
        "return_tokens": True,
        "xtc_probability": 0.0,
        "mirostat": 0,
        "stop": [],
    }
    assert wanted.items() <= body.items()
    assert body["samplers"][-1] == "temperature"
    assert steps[1].stream
    masked = ADAPTER.trial_steps(make_cell("llama_cpp", "t", eos=EosPolicy.MASK), make_trial())[1].body
    assert masked["ignore_eos"] is True


def test_xtc_reaches_the_request():
    warm = dataclasses.replace(WARM, xtc_probability=0.5, xtc_threshold=0.2)
    body = ADAPTER.trial_steps(make_cell("llama_cpp", "t", DRAFT, warm), make_trial())[1].body
    assert (body["xtc_probability"], body["xtc_threshold"]) == (0.5, 0.2)


def test_draft_and_mtp_propose_in_every_round_and_ngram_need_not():
    assert ADAPTER.always_drafts == {MethodKind.DRAFT, MethodKind.MTP}
