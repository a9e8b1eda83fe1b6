"""Real llama.cpp on the tiny models: every count equal to one made here by other means, greedy tokens equal to the baseline's."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import itertools
import json
import os
import re
from collections import Counter

import pytest
from engine_session import drive
from head_files import write_dflash, write_eagle3
from llama_cells import (
    CACHE,
    COIN,
    DRAFT,
    DRAFT_CHAIN,
    GREEDY,
    MAP_K,
    MAP_K4V,
    MOD,
    MTP,
    MTP_CHAIN,
    NEVER,
    NGRAM,
    NGRAM_CHAIN,
    NONE,
    RATES,
    REJECTION,
    SYNTHETIC,
    WARM,
    make_cell,
    make_trial,
)
from mtp_files import write_head, write_trunk

from adapters.llama_cpp import embedded as llama_cpp_embedded
from adapters.llama_cpp import server as llama_cpp
from orchestrator.demo.export import resolve
from orchestrator.process.probe import run_probe
from orchestrator.runner.observe import observe_trial
from orchestrator.schema.cell import EosPolicy, MethodKind
from orchestrator.schema.errors import EngineRefusal
from orchestrator.schema.status import Status
from orchestrator.workloads.load import load_prompts

pytestmark = pytest.mark.engine

BINARY = os.environ.get("SPECMATRIX_LLAMA_SERVER")
REQUIRED = os.environ.get("SPECMATRIX_REQUIRE_ENGINES") == "1"
TARGET, SMALL, MULTI, FOREIGN = (
    "tiny-target-f32.gguf",
    "tiny-draft-f32.gguf",
    "tiny-mtp-f32.gguf",
    "tiny-incompatible-f16.gguf",
)
TOKENS = 40
PROMPTS = [prompt.text for prompt in load_prompts("demo-short")]
COPY, COUNT = "Copy: warm basket blue bright warm cold =>", "Count from 73 to 94:"
ROUND = re.compile(r"task (\d+) \| accepted +(\d+)/ *(\d+) draft tokens( \(restore)?")


@pytest.fixture(
    scope="module", params=["llama_cpp_embedded", pytest.param("llama_cpp", marks=pytest.mark.llama_server)]
)
def engine(request):
    """An adapter whose engine is on this machine."""
    if request.param == "llama_cpp_embedded":
        there, adapter = importlib.util.find_spec("xllamacpp") is not None, llama_cpp_embedded.ADAPTER
    else:
        there, adapter = bool(BINARY), llama_cpp.ADAPTER
    if not there:
        why = f"the engine of {request.param} is not here (pip install xllamacpp / SPECMATRIX_LLAMA_SERVER)"
        if REQUIRED:
            pytest.fail(why)
        pytest.skip(why)
    return adapter


def cell_of(engine, target, method, sampling=GREEDY, draft=None, **how):
    binary = BINARY if engine.name == "llama_cpp" else None
    draft = None if draft is None else resolve(draft)
    return make_cell(
        engine.name, resolve(target), method, sampling, draft=draft, binary=binary, **{"tokens": TOKENS, **how}
    )


def trials(prompts=None, seed=5):
    return [make_trial(index, text, seed) for index, text in enumerate(prompts or PROMPTS)]


def run(engine, cell, folder, specs=None):
    driven = drive(engine, cell, specs or trials(), folder)
    assert driven.refusal is None, driven.refusal
    assert driven.exit_code == 0
    return driven


def values(parsed):
    return {item.metric: item.value for item in parsed.observations if item.absent is None}


def totals(text):
    return {key: float(value) for key, value in re.findall(r"^llamacpp:(\S+) (\S+)$", text, re.MULTILINE)}


def growth(capture, name):
    """By how much a total grew over the trial's request, read from the raw scrapes."""
    before, after = (totals(capture.steps[step].text) for step in ("metrics_before", "metrics_after"))
    return after.get(name, 0) - before.get(name, 0)


def lines_by_round(log):
    """(drafted, accepted, restores) of each round: a restore line opens a round that the next plain line closes."""
    tasks = Counter(match[1] for match in re.finditer(r"task (\d+) \| +total time", log))
    assert len(tasks) == 1
    rounds, restored = [], []
    for match in ROUND.finditer(log):
        if match[1] not in tasks:
            continue
        if match[4]:
            restored.append(int(match[3]))
        else:
            accepted = int(match[2]) - bool(restored)
            rounds.append((restored[0] if restored else int(match[3]), accepted, len(restored)))
            restored = []
    assert not restored
    return rounds


CASES = {
    "draft": (TARGET, DRAFT, SMALL),
    "rejection": (TARGET, REJECTION, SMALL),
    "mtp": (MULTI, MTP, None),
    "ngram": (TARGET, NGRAM, None),
    "never": (TARGET, NEVER, None),
    "hybrid": (MULTI, DRAFT, MULTI),
}


MORE = {
    "map-k": (TARGET, MAP_K, None), "map-k4v": (TARGET, MAP_K4V, None), "mod": (TARGET, MOD, None),
    "draft-chain": (TARGET, DRAFT_CHAIN, SMALL), "mtp-chain": (MULTI, MTP_CHAIN, None),
    "ngram-chain": (TARGET, NGRAM_CHAIN, None), "mod-hybrid": (MULTI, MOD, None),
    "synthetic": (TARGET, SYNTHETIC, SMALL), "rates": (TARGET, RATES, SMALL),
}  # fmt: skip
"""Further drafters; each at two of the four combinations of sampling and end of text."""


def check_counts(engine, cell, driven, prompts):
    """Every count equal to the engine's totals, its log's lines and the pass invariant; what came of each trial."""
    seen = []
    for index in range(prompts):
        capture = driven.capture.trials[index]
        parsed = engine.parse_trial(cell, capture)
        found, rounds = values(parsed), lines_by_round(capture.log)
        assert parsed.problems == ()
        assert found["output_tokens"] == len(parsed.token_ids) == growth(capture, "tokens_predicted_total")
        assert found["prompt_tokens"] == growth(capture, "prompt_tokens_total")
        assert found["cached_tokens"] == growth(capture, "prompt_tokens_cached_total") == 0
        assert (
            found["drafted_tokens"]
            == growth(capture, "spec_decode_num_draft_tokens_total")
            == sum(r[0] for r in rounds)
        )
        assert (
            found["accepted_tokens"]
            == growth(capture, "spec_decode_num_accepted_tokens_total")
            == sum(r[1] for r in rounds)
        )
        assert found["verify_rounds"] == growth(capture, "spec_decode_num_drafts_total") == len(rounds)
        assert found["replay_passes"] == sum(r[2] for r in rounds)
        if "target_passes" in found:
            # the demo prompts are prefilled by one decode call each
            assert found["target_passes"] == growth(capture, "n_decode_total") - 1
        if "rejected_tokens" in found:
            assert found["rejected_tokens"] == sum(accepted < drafted for drafted, accepted, _ in rounds)
        if parsed.finish_reason == "length":
            assert found["output_tokens"] == cell.workload.max_tokens
            assert found["target_passes"] == cell.workload.max_tokens - 1 - found["accepted_tokens"]
        seen.append(found)
    return seen


@pytest.mark.parametrize("eos", [EosPolicy.MASK, EosPolicy.STOP])
@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=lambda item: item.name)
@pytest.mark.parametrize("case", list(CASES))
def test_counts_equal_the_engines_own_totals_and_lines(engine, case, sampling, eos, tmp_path):
    target, method, draft = CASES[case]
    cell = cell_of(engine, target, method, sampling, draft, eos=eos)
    driven = run(engine, cell, tmp_path)
    check_counts(engine, cell, driven, len(PROMPTS))
    if case == "hybrid" and sampling is WARM:
        assert "restore checkpoint" in driven.capture.stderr
    if case == "never":
        assert not ROUND.search(driven.capture.stderr)


@pytest.mark.parametrize(
    ("sampling", "eos"), [(GREEDY, EosPolicy.MASK), (WARM, EosPolicy.STOP)], ids=["greedy", "t0.8"]
)
@pytest.mark.parametrize("case", list(MORE))
def test_counts_of_every_other_drafter(engine, case, sampling, eos, tmp_path):
    target, method, draft = MORE[case]
    cell = cell_of(engine, target, method, sampling, draft, eos=eos)
    driven = run(engine, cell, tmp_path)
    seen = check_counts(engine, cell, driven, len(PROMPTS))
    if sampling is GREEDY:
        assert sum(found["drafted_tokens"] for found in seen) > 0


def settled_by(engine, cell, driven):
    return {item.name: item for item in engine.session_conditions(cell, driven.capture)}


def test_a_head_file_drafts_for_a_target_without_mtp_weights(engine, tmp_path):
    """The same head inside the target and beside a target without it: same tokens, same counts, other facts."""
    trunk, head = write_trunk(tmp_path / "trunk.gguf"), write_head(tmp_path / "head.gguf")
    inside = cell_of(engine, MULTI, MTP)
    beside = dataclasses.replace(inside, model=dataclasses.replace(inside.model, target=str(trunk), mtp=str(head)))
    found = {}
    for name, cell in (("inside", inside), ("beside", beside)):
        driven = run(engine, cell, tmp_path / name)
        seen = check_counts(engine, cell, driven, len(PROMPTS))
        facts = settled_by(engine, cell, driven)
        ids = [engine.parse_trial(cell, driven.capture.trials[i]).token_ids for i in range(len(PROMPTS))]
        found[name] = (ids, [item["drafted_tokens"] for item in seen], [item["accepted_tokens"] for item in seen])
        assert (
            facts["mtp_used_by_runtime"].effective
            == {"inside": "yes, the target's own", "beside": "yes, a head file"}[name]
        )
        assert facts["mtp_weights_in_file"].effective == {"inside": "yes (1 block(s))", "beside": "no"}[name]
        assert facts["rollback"].effective.startswith("bounded snapshots (2 tokens")
    assert found["inside"] == found["beside"]
    assert sum(found["beside"][2]) > 0


def identity_of(engine, cell, folder):
    return engine.identify(
        cell.engine, {one.name: run_probe(one, folder) for one in engine.probe_commands(cell.engine)}
    )


HEADS = {
    "eagle3": (write_eagle3, 4),
    "dflash": (write_dflash, 3),
    "dspark": (functools.partial(write_dflash, markov=True), 4),
}


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=lambda item: item.name)
@pytest.mark.parametrize("drafter", list(HEADS))
def test_counts_of_a_head_that_reads_the_targets_hidden_states(engine, drafter, sampling, baselines, tmp_path):
    """A head made by hand drafts what the baseline said after the same token before; greedy tokens stay the baseline's."""
    write, longest = HEADS[drafter]
    plain = baselines(TARGET, GREEDY)
    successors = {first: second for ids in reversed(plain) for first, second in reversed(list(itertools.pairwise(ids)))}
    head = write(tmp_path / f"{drafter}.gguf", successors)
    method = dataclasses.replace(DRAFT, n_max=longest, options={"drafter": drafter})
    cell = cell_of(engine, TARGET, method, sampling)
    cell = dataclasses.replace(cell, model=dataclasses.replace(cell.model, drafts={"tiny": str(head)}))
    assert engine.supports(cell, identity_of(engine, cell, tmp_path)) is None
    driven = run(engine, cell, tmp_path)
    seen = check_counts(engine, cell, driven, len(PROMPTS))
    assert 0 < sum(item["accepted_tokens"] for item in seen) < sum(item["drafted_tokens"] for item in seen)
    assert settled_by(engine, cell, driven)["rollback"].effective
    if sampling is GREEDY:
        assert tokens_of(engine, cell, driven) == plain


def test_weights_in_a_file_are_not_weights_in_use(engine, tmp_path):
    for name, method, used in (("off", NONE, "no"), ("on", MTP, "yes, the target's own")):
        cell = cell_of(engine, MULTI, method)
        driven = run(engine, cell, tmp_path / name, trials(PROMPTS[:1]))
        facts = settled_by(engine, cell, driven)
        assert facts["mtp_weights_in_file"].effective == "yes (1 block(s))"
        assert facts["mtp_used_by_runtime"].effective == used
        assert facts["target_architecture"].effective == "qwen35"
        assert facts["target_quantisation"].effective == "F32"
        assert facts["flash_attention"].effective == "on"
        assert facts["cache_type_k"].effective == facts["cache_type_v"].effective == "f16"
        assert facts["threads"].effective == facts["threads_batch"].effective == "1"


@pytest.mark.parametrize(
    ("case", "mode"),
    [
        ("draft", "partial"),
        ("ngram", "partial"),
        ("mtp", "bounded snapshots (2 tokens"),
        ("hybrid", "full checkpoint"),
    ],
)
def test_the_rollback_mode_is_recorded(engine, case, mode, tmp_path):
    target, method, draft = CASES[case]
    cell = cell_of(engine, target, method, draft=draft)
    driven = run(engine, cell, tmp_path, trials(PROMPTS[:1]))
    assert settled_by(engine, cell, driven)["rollback"].effective.startswith(mode)


@pytest.mark.parametrize(("method", "tokens"), [(MOD, 40), (CACHE, 160)], ids=["mod", "cache"])
def test_a_drafter_that_remembers_repeats_in_a_fresh_process_with_the_same_order(engine, method, tokens, tmp_path):
    """An answer met before is drafted otherwise the second time; a second process makes the very same counts."""
    cell = cell_of(engine, TARGET, method, tokens=tokens)
    again = []
    for name in ("one", "two"):
        driven = run(engine, cell, tmp_path / name, trials([COPY, COUNT] * 2))
        again.append([item["drafted_tokens"] for item in check_counts(engine, cell, driven, 4)])
    assert again[0] == again[1]
    assert again[0][2:] != again[0][:2]
    assert max(again[0]) > 0
    assert engine.keeps_state(cell)
    assert "drafter_state" in settled_by(engine, cell, driven)


@pytest.mark.parametrize("method", [NGRAM, MAP_K, MAP_K4V], ids=lambda item: item.name)
def test_a_drafter_that_forgets_drafts_the_same_again(engine, method, tmp_path):
    cell = cell_of(engine, TARGET, method)
    driven = run(engine, cell, tmp_path, trials([COPY, COUNT] * 2))
    drafted = [item["drafted_tokens"] for item in check_counts(engine, cell, driven, 4)]
    assert drafted[2:] == drafted[:2]
    assert max(drafted) > 0
    assert not engine.keeps_state(cell)


def test_a_chain_says_who_drafted_what_and_the_sum_is_the_trials(engine, tmp_path):
    cell = cell_of(engine, TARGET, DRAFT_CHAIN, draft=SMALL)
    driven = run(engine, cell, tmp_path)
    parsed = [engine.parse_trial(cell, driven.capture.trials[index]) for index in range(len(PROMPTS))]
    said = settled_by(engine, cell, driven)["drafted_by_each"].effective
    numbers = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) drafted, (\d+) accepted", said)]
    assert [name for name in ("ngram-simple", "draft-simple") if name in said] == ["ngram-simple", "draft-simple"]
    assert all(drafted > 0 for drafted, _ in numbers)
    assert sum(drafted for drafted, _ in numbers) == sum(values(item)["drafted_tokens"] for item in parsed)
    assert sum(accepted for _, accepted in numbers) == sum(values(item)["accepted_tokens"] for item in parsed)
    notes = {item.metric: item.note for item in parsed[0].observations}
    assert notes["drafted_tokens"] == "the sum over ngram-simple and draft-simple"


def test_synthetic_acceptance_is_told_from_judged_text_in_both_directions(engine, tmp_path):
    cell = cell_of(engine, TARGET, SYNTHETIC, draft=SMALL)
    driven = run(engine, cell, tmp_path, trials(PROMPTS[:1]))
    honest = dataclasses.replace(cell, method=DRAFT)
    ready = (driven.capture.ready, driven.capture.stdout, driven.capture.stderr)
    assert engine.check_ready(honest, *ready).status is Status.CONTAMINATED
    other = run(engine, cell_of(engine, TARGET, DRAFT, draft=SMALL), tmp_path / "honest", trials(PROMPTS[:1]))
    ready = (other.capture.ready, other.capture.stdout, other.capture.stderr)
    assert engine.check_ready(cell, *ready).status is Status.NOT_ENGAGED


@pytest.fixture(scope="module")
def baselines(engine, tmp_path_factory):
    """Tokens of the baseline by target and sampling, each measured once for all drafters."""
    known = {}

    def tokens(target, sampling):
        if (target, sampling) not in known:
            cell = cell_of(engine, target, NONE, sampling)
            driven = run(engine, cell, tmp_path_factory.mktemp("baseline"))
            known[target, sampling] = tokens_of(engine, cell, driven)
        return known[target, sampling]

    return tokens


def tokens_of(engine, cell, driven):
    return [engine.parse_trial(cell, driven.capture.trials[index]).token_ids for index in range(len(PROMPTS))]


@pytest.mark.parametrize(("case", "sampling"), [
    *((case, sampling) for case in ("draft", "mtp", "ngram", "hybrid") for sampling in (GREEDY, WARM, COIN)),
    *((case, WARM) for case in ("map-k", "map-k4v", "mod", "draft-chain", "mtp-chain", "mod-hybrid")),
], ids=lambda item: getattr(item, "name", item))  # fmt: skip
def test_f32_tokens_equal_the_baselines(engine, baselines, case, sampling, tmp_path):
    target, method, draft = (CASES | MORE)[case]
    off = baselines(target, sampling)
    cell = cell_of(engine, target, method, sampling, draft)
    assert tokens_of(engine, cell, run(engine, cell, tmp_path)) == off
    assert len(set(off)) > 1
    assert all(len(ids) == TOKENS for ids in off)


def test_our_clock_and_the_engines_agree_on_what_a_burst_is(engine, tmp_path):
    cell = cell_of(engine, TARGET, DRAFT, draft=SMALL)
    driven = run(engine, cell, tmp_path)
    for index in range(len(PROMPTS)):
        seen = observe_trial(engine, cell, driven.capture.trials[index])
        found = {item.metric: item.value for item in seen.observations if item.absent is None}
        assert found["burst_count"] == found["target_passes"] + 1
        assert len(seen.curve) == found["burst_count"]
        assert seen.curve[-1][1] == TOKENS


def test_a_baseline_makes_one_pass_for_each_token(engine, tmp_path):
    cell = cell_of(engine, TARGET, NONE)
    driven = run(engine, cell, tmp_path)
    for index in range(len(PROMPTS)):
        capture = driven.capture.trials[index]
        assert engine.parse_trial(cell, capture).problems == ()
        assert growth(capture, "n_decode_total") == TOKENS
    assert not ROUND.search(driven.capture.stderr)


def test_repeating_a_prompt_meets_no_cache(engine, tmp_path):
    cell = cell_of(engine, TARGET, DRAFT, draft=SMALL)
    driven = run(engine, cell, tmp_path, trials(PROMPTS[:1] * 2))
    first, second = (values(engine.parse_trial(cell, driven.capture.trials[index])) for index in (0, 1))
    assert first["prompt_tokens"] == second["prompt_tokens"]
    assert first["cached_tokens"] == second["cached_tokens"] == 0


def test_settings_are_honoured(engine, tmp_path):
    cell = cell_of(engine, TARGET, DRAFT, COIN, SMALL)
    driven = run(engine, cell, tmp_path, trials(PROMPTS[1:2]))
    verdicts = {item.name: item.verdict.value for item in engine.conditions(cell, driven.capture.trials[0])}
    verdicts.pop("system_config", None)
    assert set(verdicts.values()) == {"honoured"}
    assert {"temperature", "seed", "samplers", "speculation", "draft_length", "context", "cache_prompt"} <= set(
        verdicts
    )


def test_another_vocabulary_is_not_engaged(engine, tmp_path):
    driven = drive(engine, cell_of(engine, TARGET, DRAFT, draft=FOREIGN), trials(), tmp_path)
    assert driven.refusal is not None
    assert driven.refusal.status is Status.NOT_ENGAGED
    assert "vocab" in driven.refusal.reason


def test_a_speculating_server_is_no_baseline(engine, tmp_path):
    ngram = cell_of(engine, TARGET, NGRAM)
    driven = run(engine, ngram, tmp_path, trials(PROMPTS[:1]))
    baseline = dataclasses.replace(ngram, method=NONE)
    refusal = engine.check_ready(baseline, driven.capture.ready, driven.capture.stdout, driven.capture.stderr)
    assert refusal is not None
    assert refusal.status is Status.CONTAMINATED


def test_a_damaged_model_ends_the_engine_with_its_reason(engine, tmp_path):
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(resolve(TARGET).read_bytes()[:-100_000])
    cell = cell_of(engine, TARGET, NONE)
    cell = dataclasses.replace(cell, model=dataclasses.replace(cell.model, target=str(damaged)))
    with pytest.raises((EngineRefusal, RuntimeError), match=r"start|ready"):
        drive(engine, cell, trials(), tmp_path / "session")
    log = (tmp_path / "session" / "stderr.log").read_text(encoding="utf-8", errors="replace")
    assert "corrupted or incomplete" in log


def test_the_engine_tells_what_it_is(engine, tmp_path):
    cell = cell_of(engine, MULTI, MTP)
    identity = identity_of(engine, cell, tmp_path)
    assert identity.unavailable is None
    assert identity.facts
    for kind, method, target in ((k, m, t) for k, (t, m, _) in (CASES | MORE).items() if "hybrid" not in k):
        draft = SMALL if method.kind is MethodKind.DRAFT else None
        assert engine.supports(cell_of(engine, target, method, draft=draft), identity) is None, kind
    refusal = engine.supports(cell_of(engine, TARGET, MTP), identity)
    assert refusal is not None
    assert "MTP weights in this file: no" in refusal.reason


def speculates(driven):
    return json.loads(driven.capture.ready.steps["slots"].text)[0]["speculative"]


def test_an_environment_that_adds_a_drafter_does_not_reach_the_engine(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("LLAMA_ARG_SPEC_TYPE", "ngram-mod")
    assert speculates(run(engine, cell_of(engine, TARGET, NONE), tmp_path, trials(PROMPTS[:1]))) is False


def test_a_users_configuration_file_does_not_reach_the_engine(engine, tmp_path, monkeypatch):
    config = tmp_path / "home" / ".config" / "llama.cpp" / "config.ini"
    config.parent.mkdir(parents=True)
    config.write_text("[*]\nspec-type = ngram-mod\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    assert speculates(run(engine, cell_of(engine, TARGET, NONE), tmp_path / "session", trials(PROMPTS[:1]))) is False
