"""ds4 before anything runs: who it is, what it refuses, what it claims, how it is started, what its last words mean."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest
from ds4_cells import GREEDY, NONE, WARM, fake_ds4, make_cell, mtp
from ds4_sparse_gguf import write_module, write_target

from adapters.ds4.adapter import ADAPTER
from adapters.ds4.identity import BETWEEN, generation_of, options_of
from orchestrator.process.probe import run_probe
from orchestrator.runner.survey import survey_engines
from orchestrator.schema.adapter import (
    EachStep,
    EngineIdentity,
    HttpReady,
    LaunchContext,
    ProbeOutput,
    Rule,
    TrialSpec,
    exit_refusal,
)
from orchestrator.schema.cell import EngineConfig, EosPolicy, Method, MethodKind
from orchestrator.schema.record import Phase
from orchestrator.schema.status import Status

MAY_HELP = (Path(__file__).resolve().parents[1] / "golden" / "ds4" / "help" / "may-ds4.txt").read_text(encoding="utf-8")
MAY = EngineIdentity(capabilities=options_of({"help": ProbeOutput(0, MAY_HELP, "")}))
SEPTEMBER = EngineIdentity(
    capabilities=frozenset(
        {
            "--mtp",
            "--mtp-model",
            "--mtp-draft",
            "--mtp-timing",
            "--dspark",
            "--dspark-confidence",
            "--mtp-exact-sampling",
        }
    )
)
TRIAL = TrialSpec(3, Phase.MEASURED.value, "p", "Sum: 18 + 9 =", 41)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zero")
    return str(write_target(folder / "zero.gguf", 300)), str(write_module(folder / "zero-mtp.gguf", 300))


@pytest.fixture
def cell(files):
    target, module = files

    def make(method=NONE, sampling=GREEDY, **more):
        usual = {"target": target, "module": module, "generation": "2026-05"}
        return make_cell("ds4", method, sampling, **{**usual, **more})

    return make


def identity(folder: Path, name: str = "ds4", **options) -> EngineIdentity:
    config = EngineConfig("ds4", "ds4", str(folder / name), options=options)
    outputs = {probe.name: run_probe(probe, folder / "scratch") for probe in ADAPTER.probe_commands(config)}
    return ADAPTER.identify(config, outputs)


# --- who it is -------------------------------------------------------------------------------------------------------


def test_the_generation_is_read_from_real_help():
    assert generation_of(MAY.capabilities) == "2026-05"
    assert {"--mtp", "--mtp FILE", "--mtp-draft", "--quality", "--nothink", "--dump-tokens"} <= MAY.capabilities
    assert "--mtp-model" not in MAY.capabilities


@pytest.mark.parametrize(
    ("generation", "found"), [("2026-05", "2026-05"), ("between", BETWEEN), ("2026-09", "2026-09")]
)
def test_the_generation_is_found_by_probing(tmp_path, generation, found):
    fake_ds4(tmp_path, generation=generation)
    who = identity(tmp_path)
    assert who.unavailable is None
    assert generation_of(who.capabilities) == found
    assert who.facts["generation"] == found


def test_the_long_help_is_asked_for_because_the_short_one_leaves_speculation_out(tmp_path):
    binary = fake_ds4(tmp_path, generation="2026-09")
    short = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    assert "--mtp" not in short
    assert generation_of(options_of({"help": ProbeOutput(0, short, "")})) is None
    assert {"--mtp-model", "--mtp-timing", "--mtp-exact-sampling"} <= identity(tmp_path).capabilities


def git(folder: Path, *words: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false")
    return subprocess.run(
        [shutil.which("git") or "git", *author, *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_of_a_checkout_of_ds4_and_says_when_files_differ(tmp_path):
    fake_ds4(tmp_path, generation="2026-05")
    git(tmp_path, "init", "-q")
    (tmp_path / "notes").write_text("x", encoding="utf-8")
    git(tmp_path, "add", "notes")
    git(tmp_path, "commit", "-q", "-m", "notes")
    assert identity(tmp_path).commit is None, "some other repository holds the binary"
    (tmp_path / "ds4.c").write_text("int main;", encoding="utf-8")
    git(tmp_path, "add", "ds4.c")
    git(tmp_path, "commit", "-q", "-m", "ds4")
    head = git(tmp_path, "rev-parse", "HEAD")
    who = identity(tmp_path)
    assert who.commit == who.facts["commit"] == head
    (tmp_path / "ds4.c").write_text("int other;", encoding="utf-8")
    assert identity(tmp_path).commit == f"{head}+changes"


def test_the_binary_is_hashed_and_a_pin_on_it_is_compared(tmp_path):
    binary = fake_ds4(tmp_path / "engine", generation="2026-05")
    config = EngineConfig("ds4", "ds4", binary, pin={"sha256": "0" * 64}, options={"generation": "2026-05"})
    found = survey_engines([config], {"ds4": ADAPTER}, tmp_path)["ds4"]
    assert found.identity.binary_sha256 == found.identity.facts["sha256"]
    assert len(found.identity.binary_sha256) == 64
    assert "pinned 000" in found.mismatch


def test_without_a_binary_it_is_unavailable_and_says_how_to_get_it(tmp_path):
    said = identity(tmp_path, "no-ds4-here").unavailable
    assert "not found" in said
    assert ADAPTER.install_hint in said
    assert ADAPTER.install_hint.count(". ") == 0, "one sentence"


def test_the_wrong_program_of_the_two_is_named(tmp_path):
    fake_ds4(tmp_path, "ds4-server", generation="2026-05")
    fake_ds4(tmp_path, generation="2026-05")
    assert "is not ds4, which options.mode 'command' needs" in identity(tmp_path, "ds4-server").unavailable
    assert "is not ds4-server, which options.mode 'server' needs" in identity(tmp_path, mode="server").unavailable
    assert identity(tmp_path, "ds4-server", mode="server").unavailable is None


# --- what it refuses -------------------------------------------------------------------------------------------------


def refused(cell, who=MAY):
    found = ADAPTER.supports(cell, who)
    return (None, "") if found is None else (found.status, f"{found.reason} / {found.remedy}")


def test_what_works_is_not_refused(cell):
    assert refused(cell()) == (None, "")
    assert refused(cell(mtp(2))) == (None, "")
    assert refused(cell(mtp(2, strict=True))) == (None, "")
    for method in (mtp(5, drafter="dspark"), mtp(5, drafter="dspark", exact_sampling=True, confidence=0.7)):
        assert refused(cell(method, WARM, generation="2026-09"), SEPTEMBER) == (None, "")
    for method in (mtp(4), mtp(2, strict=True)):
        assert refused(cell(method, generation="2026-09"), SEPTEMBER) == (None, "")
    assert refused(cell(mtp(2), generation="2026-09", quality=True), SEPTEMBER) == (None, ""), (
        "it verifies exactly then"
    )
    assert refused(cell(mtp(1, drafter="embedded"), generation="2026-09", module=None, quality=True), SEPTEMBER) == (
        None,
        "",
    )
    assert refused(cell(mtp(1, drafter="embedded"), generation="2026-09", module=None), SEPTEMBER) == (None, "")


def test_flags_of_the_other_generation_are_refused_with_the_option_to_set(cell):
    status, words = refused(cell(generation="2026-09"))
    assert status is Status.UNSUPPORTED
    assert (
        'has the flags of 2026-05, options.generation says 2026-09 / set engines.ds4.options.generation to "2026-05"'
        in words
    )
    assert refused(cell(), SEPTEMBER)[0] is Status.UNSUPPORTED


def test_a_build_between_the_generations_and_one_without_speculation_are_refused(cell):
    between = EngineIdentity(capabilities=frozenset({"--mtp", "--mtp FILE", "--dspark"}))
    assert "July and August 2026" in refused(cell(), between)[1]
    assert "names none of the options" in refused(cell(), EngineIdentity())[1]


@pytest.mark.parametrize("sampling", [WARM, dataclasses.replace(GREEDY, temperature=0.01)])
def test_may_builds_do_not_speculate_above_temperature_0(cell, sampling):
    status, words = refused(cell(mtp(2), sampling))
    assert status is Status.NOT_ENGAGED
    assert "at temperature 0 alone" in words
    assert refused(cell(sampling=sampling)) == (None, ""), "the baseline is measured"


@pytest.mark.parametrize("exact", [False, True])
def test_the_one_stage_module_is_not_used_above_temperature_0_in_september_either(cell, exact):
    asked = cell(mtp(2, exact_sampling=exact), WARM, generation="2026-09")
    status, words = refused(asked, SEPTEMBER)
    assert status is Status.NOT_ENGAGED
    assert "loads the module and decodes without it" in words
    assert claim(asked, SEPTEMBER) == (Rule.UNKNOWN, None), "no rule is claimed for what is not done"


def test_thinking_samples_at_1_whatever_is_asked_so_that_may_builds_do_not_speculate_then(cell):
    thinking = cell(mtp(2), GREEDY, mode="server", thinking=True)
    status, words = refused(thinking)
    assert status is Status.NOT_ENGAGED
    assert "thinking mode samples at 1" in words
    assert refused(cell(mtp(2), GREEDY, mode="server")) == (None, "")


@pytest.mark.parametrize("how", [{"quality": True}, {}])
def test_with_dspark_quality_and_strict_are_the_baseline(cell, how):
    method = mtp(5, drafter="dspark", **({} if how else {"strict": True}))
    assert ADAPTER.launch(cell(method, **how), LaunchContext(1, Path("/s"))).argv.count("--quality") == len(how)
    status, words = refused(cell(method, generation="2026-09", **how), SEPTEMBER)
    assert status is Status.NOT_ENGAGED
    assert "which is the baseline" in words


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (mtp(1), "only probes with 1 draft"),
        (mtp(17), "takes no more than 16"),
        (mtp(2, drafter="dspark"), "have no drafter dspark"),
        (mtp(2, exact_sampling=True), "have no --mtp-exact-sampling"),
        (mtp(2, confidence=0.5), "confidence is a setting of the drafter dspark"),
        (Method("d", MethodKind.DRAFT, 3, "x"), "has no method draft"),
        (Method("g", MethodKind.NGRAM, 3), "has no method ngram"),
    ],
)
def test_methods_that_may_builds_cannot_do(cell, method, words):
    status, said = refused(cell(method))
    assert status is Status.UNSUPPORTED
    assert words in said


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (mtp(3, drafter="dspark"), "proposes up to 5 tokens"),
        (mtp(3, drafter="embedded"), "drafts one token, or two"),
        (mtp(1, drafter="embedded"), "is the module inside the target"),
        (mtp(5, drafter="dspark", margin=3.0), "margin is a setting of the drafter support"),
        (mtp(1, drafter="embedded", strict=True), "strict is a setting of the drafter support"),
    ],
)
def test_methods_that_september_builds_cannot_do(cell, method, words):
    status, said = refused(cell(method, generation="2026-09"), SEPTEMBER)
    assert status is Status.UNSUPPORTED
    assert words in said


def test_an_option_that_the_help_does_not_name_is_not_used(cell):
    poor = EngineIdentity(capabilities=SEPTEMBER.capabilities - {"--mtp-exact-sampling", "--mtp-timing"})
    exact = cell(mtp(5, drafter="dspark", exact_sampling=True), WARM, generation="2026-09")
    assert "does not know --mtp-exact-sampling" in refused(exact, poor)[1]
    built_in = cell(mtp(1, drafter="embedded"), generation="2026-09", module=None)
    assert "does not know --mtp-timing" in refused(built_in, poor)[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"eos": EosPolicy.MASK}, "ends at end of text"),
        ({"thinking": True}, "prints another text than its tokens"),
        ({"template": "chat"}, "it would stand there twice"),
        ({"sampling": dataclasses.replace(GREEDY, repeat_penalty=1.1)}, "has no penalties"),
        ({"sampling": dataclasses.replace(WARM, xtc_probability=0.5)}, "has no XTC"),
        ({"sampling": dataclasses.replace(WARM, top_k=20)}, "has no top-k"),
        ({"backend": "tpu"}, "options of engine ds4"),
    ],
)
def test_settings_that_it_cannot_honour(cell, change, words):
    asked = cell(**{key: value for key, value in change.items() if key != "template"})
    workload = dataclasses.replace(asked.workload, template=change.get("template", "raw"))
    status, said = refused(dataclasses.replace(asked, workload=workload))
    assert status is Status.UNSUPPORTED
    assert words in said


def test_files_are_judged_by_their_headers(cell, files, tmp_path):
    target, _ = files
    (tmp_path / "not.gguf").write_bytes(b"x" * 64)
    assert refused(cell(target=str(tmp_path / "not.gguf")))[0] is Status.UNSUPPORTED
    assert "names no MTP file" in refused(cell(mtp(2), module=None))[1]
    assert "it has no mtp.0.hc_head_base.weight" in refused(cell(mtp(2), module=target))[1]


# --- what it claims --------------------------------------------------------------------------------------------------


def claim(cell, who=MAY):
    found = ADAPTER.exactness(cell, who)
    return found.rule, found.exact


def test_the_claims_of_may(cell):
    assert claim(cell()) == (Rule.NONE, True)
    assert claim(cell(mtp(2))) == (Rule.GREEDY_MATCH, None), "the batched verifier may differ where tokens nearly tie"
    assert claim(cell(mtp(2, strict=True))) == (Rule.GREEDY_MATCH, True)
    assert claim(cell(mtp(2), quality=True)) == (Rule.GREEDY_MATCH, True)
    assert claim(cell(mtp(3), quality=True)) == (Rule.GREEDY_MATCH, None), "the exact decoder exists for two drafts"
    assert claim(cell(mtp(2), WARM)) == (Rule.UNKNOWN, None)


def test_the_claims_of_september(cell):
    def of(method, sampling, **more):
        return claim(cell(method, sampling, generation="2026-09", **more), SEPTEMBER)

    assert of(mtp(5, drafter="dspark"), GREEDY) == (Rule.GREEDY_MATCH, None)
    assert of(mtp(5, drafter="dspark"), WARM) == (Rule.HEURISTIC, False)
    assert of(mtp(5, drafter="dspark", exact_sampling=True), WARM) == (Rule.REJECTION, True)
    assert of(mtp(5, drafter="dspark"), GREEDY, mode="server", thinking=True) == (Rule.HEURISTIC, False)
    assert of(mtp(2), GREEDY) == (Rule.GREEDY_MATCH, None)
    assert of(mtp(2, strict=True), GREEDY) == of(mtp(2), GREEDY, quality=True) == (Rule.GREEDY_MATCH, True)
    assert of(mtp(3, strict=True), GREEDY) == (Rule.GREEDY_MATCH, None)
    assert of(mtp(1, drafter="embedded"), GREEDY, quality=True) == (Rule.GREEDY_MATCH, None)


# --- how it is started -----------------------------------------------------------------------------------------------


def argv(cell):
    return ADAPTER.launch(cell, LaunchContext(4321, Path("/s"))).argv


def test_the_module_is_given_in_the_flags_of_its_generation(cell, files):
    _, module = files
    may, september = argv(cell(mtp(2, margin=1.5))), argv(cell(mtp(2), generation="2026-09"))
    assert may[may.index("--mtp") + 1] == module
    assert may[may.index("--mtp-draft") + 1] == "2"
    assert may[may.index("--mtp-margin") + 1] == "1.5"
    assert "--mtp" not in september
    assert september[september.index("--mtp-model") + 1] == module
    dspark = argv(cell(mtp(5, drafter="dspark", exact_sampling=True, confidence=0.7), WARM, generation="2026-09"))
    assert {"--dspark", "--mtp-exact-sampling"} <= set(dspark)
    assert dspark[dspark.index("--dspark-confidence") + 1] == "0.7"
    built_in = argv(cell(mtp(1, drafter="embedded"), generation="2026-09", module=None))
    assert built_in[built_in.index("--mtp") + 1] == "--mtp-timing"


def test_every_arm_prints_the_same_lines_and_the_lock_is_never_evaded(cell):
    base, drafts = (ADAPTER.launch(one, LaunchContext(1, Path("/s"))).env for one in (cell(), cell(mtp(2))))
    assert base == drafts
    assert {"DS4_MTP_TIMING", "DS4_MTP_SPEC_LOG", "DS4_DSPARK_STATS"} <= set(base)
    assert ADAPTER.launch(cell(mtp(2, strict=True)), LaunchContext(1, Path("/s"))).env["DS4_MTP_STRICT"] == "1"
    assert "DS4_LOCK_FILE" not in base


def test_it_runs_in_the_folder_of_its_binary_where_the_shaders_are(tmp_path):
    binary = fake_ds4(tmp_path, generation="2026-05")
    launch = ADAPTER.launch(make_cell(binary, generation="2026-05"), LaunchContext(1, tmp_path / "s"))
    assert launch.cwd == str(tmp_path.resolve())
    assert launch.ready == EachStep()
    server = fake_ds4(tmp_path, "ds4-server", generation="2026-05")
    launch = ADAPTER.launch(make_cell(server, generation="2026-05", mode="server"), LaunchContext(77, tmp_path / "s"))
    assert launch.ready == HttpReady("/v1/models")
    assert launch.argv[-4:] == ("--host", "127.0.0.1", "--port", "77")
    assert launch.cwd == str(tmp_path.resolve())


def test_a_trial_states_every_setting_of_the_sampler(cell):
    steps = ADAPTER.trial_steps(cell(sampling=WARM), TRIAL)
    assert [step.name for step in steps] == ["generate", "tokens"]
    words = dict(zip(steps[0].args[::2], steps[0].args[1::2], strict=True))
    assert words["--temp"] == "0.8"
    assert words["--top-p"] == "0.95"
    assert words["--min-p"] == "0"
    assert words["--seed"] == "41"
    assert words["--tokens"] == "48"
    assert words["--system"] == ""
    assert steps[0].files == {"prompt.txt": TRIAL.prompt}
    assert steps[1].args == ("--dump-tokens", "--prompt-file", "{folder}/3-generate/stdout.log")
    names = [step.name for step in ADAPTER.trial_steps(cell(generation="2026-09"), TRIAL)]
    assert names == ["generate", "tokens", "prompt"]


@pytest.mark.parametrize("generation", ["2026-05", "2026-09"])
def test_seed_0_ends_ds4_so_that_another_is_given(cell, tmp_path, generation):
    nought = dataclasses.replace(TRIAL, seed=0)
    words = ADAPTER.trial_steps(cell(sampling=WARM, generation=generation), nought)[0].args
    assert words[words.index("--seed") + 1] == "2147483648"
    assert ADAPTER.trial_steps(cell(sampling=WARM, mode="server"), nought)[0].body["seed"] == 2**31
    refusal = exit_refusal(ADAPTER, cell(), "ds4: invalid value for --seed: 0\n")
    assert (refusal.status, refusal.reason) == (Status.UNSUPPORTED, "ds4: invalid value for --seed: 0")
    said = subprocess.run(
        [fake_ds4(tmp_path, generation=generation), "--seed", "0"], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stderr) == (2, "ds4: invalid value for --seed: 0\n")


def test_the_server_is_asked_for_the_same_and_not_to_think(cell):
    (step,) = ADAPTER.trial_steps(cell(sampling=WARM, mode="server"), TRIAL)
    asked = {
        key: step.body[key] for key in ("temperature", "top_p", "top_k", "min_p", "seed", "max_tokens", "thinking")
    }
    assert asked == {
        "temperature": 0.8,
        "top_p": 0.95,
        "top_k": 0,
        "min_p": 0.0,
        "seed": 41,
        "max_tokens": 48,
        "thinking": {"type": "disabled"},
    }
    assert step.stream
    assert step.body["messages"] == [{"role": "user", "content": TRIAL.prompt}]


# --- what its last words mean ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stderr", "status", "words"),
    [
        (
            "ds4: another ds4 process is already running (pid 4711); refusing to start\n",
            Status.FAILED,
            "process 4711 holds",
        ),
        ("ds4: another ds4 process is already running; refusing to start\n", Status.FAILED, "another process holds"),
        ("ds4: context buffers 1 MiB\nds4: model file is too small to be GGUF\n", Status.UNSUPPORTED, "too small"),
        ("ds4: required tokenizer token is missing: <｜User｜>\n", Status.UNSUPPORTED, "<｜User｜>"),
        ("ds4: model is not a GGUF file\n", Status.UNSUPPORTED, "not a GGUF"),
        ("ds4: required tensor is missing: mtp.0.hc_head_base.weight\n", Status.UNSUPPORTED, "mtp.0"),
        ("ds4: cannot open model '/m.gguf': No such file or directory\n", Status.FAILED, "/m.gguf"),
        ("ds4: unknown option: --mtp-model\nUsage: ds4 …\n", Status.UNSUPPORTED, "--mtp-model"),
        ("ds4: Metal model warmup failed: Insufficient Memory (x)\n", Status.FAILED, "Insufficient Memory"),
        (
            "ds4: metal backend requested but this build has no graph backend support; aborting\n",
            Status.UNSUPPORTED,
            "no graph",
        ),
        ("ds4: prompt is empty or exceeds context size\n", Status.FAILED, "exceeds context"),
    ],
)
def test_known_last_words(cell, stderr, status, words):
    found = exit_refusal(ADAPTER, cell(), stderr)
    assert found.status is status
    assert words in found.reason
    assert found.remedy


def test_unknown_last_words_are_left_to_the_runner(cell):
    assert exit_refusal(ADAPTER, cell(), "Segmentation fault\n") is None
    assert exit_refusal(object(), cell(), "ds4: another ds4 process is already running; refusing to start\n") is None
