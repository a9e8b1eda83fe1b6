"""The MLX-LM adapter without an engine: rounds, planning, refusals, claims, and answers that contradict themselves."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_cases import GOLDEN, load_case
from hypothesis import given
from hypothesis import strategies as st
from mlx_session import GREEDY, NONE, WARM, drafting, make_cell

from adapters.mlx_lm.adapter import ADAPTER, CONFIG_FILE, WORKER
from adapters.mlx_lm.rounds import split_rounds
from adapters.shared.rounds import Round, tally
from orchestrator.schema.adapter import (
    EngineIdentity,
    Honoured,
    LaunchContext,
    ProbeOutput,
    Rule,
    TrialSpec,
    phase_methods,
)
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import EosPolicy, Method, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence
from orchestrator.schema.status import Status

KNOWN = EngineIdentity(version="0.32.2")


def flags(text: str) -> list[bool]:
    """``"DDt"``: two tokens of the draft, one of the target's own."""
    return [letter == "D" for letter in text]


@pytest.mark.parametrize(
    ("text", "limit", "k", "rounds"),
    [
        ("DDtDDt", 99, 2, [(2, 2, True), (2, 2, True)]),
        ("ttt", 99, 4, [(4, 0, True)] * 3),
        ("DtDDDt", 6, 4, [(4, 1, True), (4, 3, True)]),  # 4 left of 6: still 4 drafted
        ("DDtDD", 5, 2, [(2, 2, True), (2, 2, False)]),  # the limit leaves no place for the own token
        ("DDtDDtt", 7, 2, [(2, 2, True), (2, 2, True), (1, 0, True)]),  # 1 left: 1 drafted, refused
        ("DDtD", 99, 2, [(2, 2, True), (2, 1, False)]),  # end of text as a draft token
        ("D", 1, 8, [(1, 1, False)]),
        ("t", 1, 8, [(1, 0, True)]),
    ],
)
def test_rounds(text: str, limit: int, k: int, rounds: list[tuple[int, int, bool]]) -> None:
    assert split_rounds(flags(text), limit, k) == tuple(Round(*one) for one in rounds)


@pytest.mark.parametrize(("text", "limit", "k"), [("DDDt", 99, 2), ("DtD", 2, 4), ("tDD", 2, 2), ("DDtDD", 4, 2)])
def test_sequences_that_mlx_lm_cannot_emit_give_no_number(text: str, limit: int, k: int) -> None:
    with pytest.raises(CaptureError):
        split_rounds(flags(text), limit, k)


@given(limit=st.integers(1, 60), k=st.integers(1, 9), choose=st.randoms(use_true_random=False), stop=st.integers(0, 80))
def test_rounds_are_those_of_the_loop_that_made_them(limit: int, k: int, choose: Any, stop: int) -> None:
    """Against the engine's loop written down from its rules: draft, accept a prefix, add one's own unless full."""
    emitted: list[bool] = []
    made: list[Round] = []
    while len(emitted) < limit:
        drafted = min(limit - len(emitted), k)
        accepted = choose.randint(0, drafted)
        closed = len(emitted) + accepted < limit
        made.append(Round(drafted, accepted, closed))
        emitted += [True] * accepted + [False] * closed
    assert split_rounds(emitted, limit, k) == tuple(made)
    cut = emitted[:stop]
    sums = tally(split_rounds(cut, limit, k), k)
    assert len(cut) == sums.accepted + sums.rounds - sums.cut
    assert sums.cut <= 1
    assert min(sums.rejected, sums.discarded) >= 0
    assert sum(sums.drafted_by_position) == sums.drafted
    assert sum(sums.accepted_by_position) == sums.accepted
    assert sums.committed_by_uncut == sum(one.emitted for one in split_rounds(cut, limit, k) if one.closed)


def test_sums_of_rounds_by_hand() -> None:
    sums = tally((Round(4, 4, True), Round(4, 1, True), Round(2, 2, False)), 4)
    assert (sums.rounds, sums.drafted, sums.accepted, sums.rejected, sums.discarded) == (3, 10, 7, 1, 2)
    assert (sums.cut, sums.shortened, sums.committed_by_uncut) == (1, 1, 7)
    assert (sums.drafted_by_position, sums.accepted_by_position) == ((3, 3, 2, 2), (3, 2, 1, 1))


def altered(case_name: str, change: Callable[[dict[str, Any]], object]) -> tuple[Any, TrialCapture]:
    """A golden capture whose one answer was changed, and its cell."""
    case = load_case(GOLDEN / "mlx_lm" / case_name)
    capture = case.trial_of(case.capture())
    step = capture.steps["generate"]
    body = json.loads(step.events[-1].data)
    change(body)
    event = dataclasses.replace(step.events[-1], data=json.dumps(body))
    return case.cell, dataclasses.replace(capture, steps={"generate": dataclasses.replace(step, events=(event,))})


@pytest.mark.parametrize(
    ("case", "change", "words"),
    [
        ("none", lambda d: d["tokens"][3].__setitem__(2, True), "1 tokens of a baseline came from a draft"),
        ("none", lambda d: d.update(short_trims=2), "gave back less than was refused"),
        ("none", lambda d: d.update(trial=9), "answered trial 9"),
        ("none", lambda d: d.update(generation_tokens=31), "mlx-lm counts 31 tokens, 32 arrived"),
        ("none", lambda d: d["tokens"].pop(), "by length after 31 of 32 tokens"),
        ("none", lambda d: d["tokens"].append([5, d["t1"], False]), "33 tokens were emitted, the limit is 32"),
        ("none", lambda d: d["tokens"][3].__setitem__(0, 0), "was to be masked, and was emitted"),
        ("none-korean", lambda d: d.update(finish_reason="stop"), "the policy is continue"),
        ("none-end-of-text", lambda d: d["tokens"][-1].__setitem__(0, 7), "its last token is 7"),
        ("none-end-of-text", lambda d: d["tokens"][2].__setitem__(0, 0), "and the answer went on"),
        ("draft-k4", lambda d: d["effective"].update(num_draft_tokens=3), "told to draft 3 tokens, the cell says 4"),
        ("draft-end-of-text", lambda d: d.update(finish_reason="length"), "neither the limit nor end of text"),
    ],
)
def test_an_answer_that_contradicts_itself_is_a_problem(case: str, change: Any, words: str) -> None:
    parsed = ADAPTER.parse_trial(*altered(case, change))
    assert any(words in problem for problem in parsed.problems), parsed.problems


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(tokens=[]),
        lambda d: d.update(t0=d["t1"] + 1),
        lambda d: d["tokens"][1].__setitem__(1, d["t0"] - 1),
        lambda d: d["tokens"][1].__setitem__(0, "5"),
        lambda d: d["tokens"][1].__setitem__(2, 1),
        lambda d: d.update(t1=float("nan")),
        lambda d: d.pop("peak_memory_bytes"),
        lambda d: d.update(finish_reason="because"),
        lambda d: d.update(event="error"),
        lambda d: [row.__setitem__(2, True) for row in d["tokens"]],
    ],
)
def test_an_answer_of_another_form_gives_no_number(change: Any) -> None:
    cell, capture = altered("draft-k4", change)
    with pytest.raises(CaptureError):
        ADAPTER.parse_trial(cell, capture)
    assert ADAPTER.arrivals(cell, capture) is None


def test_memory_is_at_least_what_was_held_before() -> None:
    """mlx's peak starts from 0 after a reset, not from what is held."""
    cell, capture = altered("none", lambda d: d.update(peak_memory_bytes=10, active_before_bytes=99))
    found = {item.metric: item for item in ADAPTER.parse_trial(cell, capture).observations}["engine_peak_memory"]
    assert (found.value, found.definition) == (99, "mlx:0.32.4:get_peak_memory")


def test_a_setting_that_was_changed_on_its_way_is_shown() -> None:
    def change(body: dict[str, Any]) -> None:
        body["effective"]["sampling"].update(top_k=1, seed=6)
        body["effective"].update(kv_bits=4, dtype=["bfloat16"])

    cell, capture = altered("draft-t08", change)
    cell = dataclasses.replace(cell, engine=dataclasses.replace(cell.engine, options={"dtype": "float16"}))
    verdicts = {item.name: (item.requested, item.effective, item.verdict) for item in ADAPTER.conditions(cell, capture)}
    assert verdicts["top_k"] == ("40", "1", Honoured.CHANGED)
    assert verdicts["seed"] == ("5", "6", Honoured.CHANGED)
    assert verdicts["kv_bits"] == ("None", "4", Honoured.CHANGED)
    assert verdicts["dtype"] == ("float16", "bfloat16", Honoured.CHANGED)
    assert verdicts["temperature"][2] is Honoured.HONOURED
    assert "top_p → min_p → XTC → top_k → temperature" in str(verdicts["filter_order"][1])


def test_the_end_of_text_policy_is_a_condition() -> None:
    shown = {}
    for name in ("none", "none-korean", "none-end-of-text"):
        case = load_case(GOLDEN / "mlx_lm" / name)
        found = {item.name: item for item in ADAPTER.conditions(case.cell, case.trial_of(case.capture()))}
        shown[found["end_of_text"].requested] = found["end_of_text"].effective
    assert shown == {
        "mask": "0 set to −∞ by a logits processor",
        "continue": "emits 0 and goes on",
        "stop": "stops at 0",
    }


def test_launch_names_the_engines_own_interpreter_and_no_network(tmp_path: Path) -> None:
    cell = make_cell("/m/target", "/m/draft", method=drafting(4), kv_bits=8)
    cell = dataclasses.replace(cell, engine=dataclasses.replace(cell.engine, python="/opt/mlx/bin/python"))
    launch = ADAPTER.launch(cell, LaunchContext(0, tmp_path))
    assert launch.argv == ("/opt/mlx/bin/python", "-I", "-X", "utf8", str(WORKER), str(tmp_path / CONFIG_FILE))
    assert WORKER.is_file()
    assert launch.env["HF_HUB_OFFLINE"] == "1"
    assert json.loads(launch.files[CONFIG_FILE]) == {
        "target": "/m/target",
        "draft": "/m/draft",
        "dtype": None,
        "kv_bits": 8,
        "kv_group_size": 64,
        "prefill_step_size": 2048,
    }
    alone = dataclasses.replace(cell, method=NONE)
    assert json.loads(ADAPTER.launch(alone, LaunchContext(0, tmp_path)).files[CONFIG_FILE])["draft"] is None


def test_a_request_states_every_setting() -> None:
    cell = make_cell("/m", "/d", method=drafting(3), sampling=WARM, eos=EosPolicy.MASK, tokens=9)
    (step,) = ADAPTER.trial_steps(cell, TrialSpec(2, "measured", "p", "text", 77))
    assert dict(step.message) == {  # type: ignore[union-attr]
        "op": "generate",
        "trial": 2,
        "prompt": "text",
        "max_tokens": 9,
        "num_draft_tokens": 3,
        "eos": "mask",
        "sampling": {
            "temperature": 0.8,
            "top_k": 40,
            "top_p": 0.95,
            "min_p": 0.05,
            "repeat_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "xtc_probability": 0.0,
            "xtc_threshold": 0.1,
            "seed": 77,
        },
    }
    (instrumented,) = ADAPTER.trial_steps(cell, TrialSpec(2, "phases", "p", "text", 77))
    assert instrumented.message == {**step.message, "phases": True}  # type: ignore[union-attr]


def test_parts_of_a_round_are_told_by_an_instrumented_repeat_alone() -> None:
    names = ("draft_time", "verify_time", "rollback_time")
    for case_name, told in (("draft-k4", False), ("draft-phases", True)):
        case = load_case(GOLDEN / "mlx_lm" / case_name)
        parsed = ADAPTER.parse_trial(case.cell, case.trial_of(case.capture()))
        found = {item.metric: item for item in parsed.observations}
        assert [found[name].value is not None for name in names] == [told] * 3
        assert parsed.problems == ()
        for name in names:
            if told:
                assert found[name].definition == f"mlx-lm:0.32.2:instrumented:{name}"
                assert "instrumented repeat; adds synchronisations" in str(found[name].note)
            else:
                assert found[name].absent is Absence.NOT_REPORTED
    assert phase_methods(ADAPTER) == {MethodKind.DRAFT}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["phases"].update(draft_passes=43), "43 draft and 12 verify passes, the flags tell 44 and 12"),
        (lambda d: d["phases"].update(verify_passes=13), "44 draft and 13 verify passes"),
        (lambda d: d["phases"].update(verify_s=d["t1"] - d["t0"]), "longer than the whole answer"),
        (lambda d: d["phases"].update(draft_s=-1e-9), "longer than the whole answer"),
    ],
)
def test_instruments_that_contradict_the_answer_are_a_problem(change: Any, words: str) -> None:
    parsed = ADAPTER.parse_trial(*altered("draft-phases", change))
    assert any(words in problem for problem in parsed.problems), parsed.problems


def test_xtc_with_a_draft_is_claimed_not_exact_and_with_a_mask_nothing_is_claimed() -> None:
    xtc = dataclasses.replace(WARM, xtc_probability=0.5)
    claims = {
        eos: ADAPTER.exactness(make_cell("/m", "/d", method=drafting(2), sampling=xtc, eos=eos), KNOWN)
        for eos in EosPolicy
    }
    assert {eos: claim.exact for eos, claim in claims.items()} == {
        EosPolicy.STOP: False,
        EosPolicy.CONTINUE: False,
        EosPolicy.MASK: None,
    }
    assert "one XTC coin decides for all rows" in claims[EosPolicy.STOP].note
    assert ADAPTER.exactness(make_cell("/m", "/d", sampling=xtc), KNOWN).exact is True
    newer = EngineIdentity(version="0.33.0")
    assert ADAPTER.exactness(make_cell("/m", "/d", method=drafting(2)), newer).exact is None


def probed(stdout: str, stderr: str = "", error: str | None = None) -> EngineIdentity:
    config = make_cell("/m", "/d").engine
    return ADAPTER.identify(config, {"import": ProbeOutput(0 if stdout else 1, stdout, stderr, error)})


def test_identity() -> None:
    line = '{"mlx": "0.32.4", "mlx_lm": "0.32.2", "python": "3.11.7", "device": "Device(cpu, 0)"%s}\n'
    assert probed(line % ', "gpu_limit": 115448725504').gpu_limit_bytes == 115_448_725_504
    assert probed(line % ', "gpu_limit": null').gpu_limit_bytes is None
    found = probed(line % "")
    assert (found.version, found.backend, found.unavailable) == ("0.32.2", "cpu", None)
    assert found.facts["mlx-lm"] == "0.32.2"
    assert found.facts["mlx"] == "0.32.4"
    (probe,) = ADAPTER.probe_commands(dataclasses.replace(make_cell("/m", "/d").engine, python=None))
    assert probe.argv[0] == sys.executable


def test_without_the_engine_the_line_that_installs_it_is_told() -> None:
    gone = probed("", "Traceback\nModuleNotFoundError: No module named 'mlx'\n")
    assert "No module named 'mlx'" in str(gone.unavailable)
    assert f"{sys.executable} -m pip install 'mlx-lm==0.32.2' 'mlx[cpu]==0.32.4'" in str(gone.unavailable)
    assert "no such interpreter" in str(probed("", error="no such interpreter").unavailable)


def model(tmp_path: Path, name: str = "m", **config: Any) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    body = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "vocab_size": 1000} | config
    (folder / "config.json").write_text(json.dumps(body), encoding="utf-8")
    return folder


def test_a_plain_pair_is_supported(tmp_path: Path) -> None:
    cell = make_cell(model(tmp_path), model(tmp_path, "d"), method=drafting(4), sampling=WARM)
    assert ADAPTER.supports(cell, KNOWN) is None


@pytest.mark.parametrize(
    ("kind", "words"), [(MethodKind.MTP, "drops a model's MTP weights"), (MethodKind.NGRAM, "no n-gram drafter")]
)
def test_methods_it_does_not_have(tmp_path: Path, kind: MethodKind, words: str) -> None:
    cell = make_cell(model(tmp_path), "", method=Method("m", kind, 2))
    refusal = ADAPTER.supports(cell, KNOWN)
    assert refusal is not None
    assert (refusal.status, words in refusal.reason) == (Status.UNSUPPORTED, True)
    assert kind not in ADAPTER.method_options


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"method": Method("m", MethodKind.DRAFT, 0, "tiny")}, Status.UNSUPPORTED, "n_max is 0"),
        ({"method": Method("m", MethodKind.DRAFT, 2, "other")}, Status.UNSUPPORTED, "names no draft 'other'"),
        ({"sampling": dataclasses.replace(WARM, top_p=0.0)}, Status.UNSUPPORTED, "reads 0 as off"),
        ({"sampling": dataclasses.replace(WARM, min_p=1.5)}, Status.UNSUPPORTED, "min_p 1.5"),
        (
            {"sampling": dataclasses.replace(WARM, xtc_probability=0.5, xtc_threshold=0.6)},
            Status.UNSUPPORTED,
            "0.5 / 0.6",
        ),
        ({"sampling": dataclasses.replace(GREEDY, xtc_probability=0.5)}, Status.UNSUPPORTED, "leaves XTC out"),
        ({"sampling": dataclasses.replace(WARM, top_k=1000)}, Status.UNSUPPORTED, "top_k 1000"),
        ({"sampling": dataclasses.replace(GREEDY, repeat_penalty=0.0)}, Status.UNSUPPORTED, "repeat_penalty 0"),
        ({"kv_bits": 8}, Status.UNSUPPORTED, "head size 32 cannot be divided into groups of 64"),
        ({"kv_bits": 3}, Status.UNSUPPORTED, "engines.mlx.options"),
    ],
)
def test_settings_it_cannot_measure_rightly(
    tmp_path: Path, changes: dict[str, Any], status: Status, words: str
) -> None:
    cell = make_cell(model(tmp_path), model(tmp_path, "d"), **({"method": drafting(4)} | changes))
    refusal = ADAPTER.supports(cell, KNOWN)
    assert refusal is not None
    assert (refusal.status, words in refusal.reason) == (status, True), refusal.reason
    assert refusal.remedy


def test_model_folders_it_cannot_use(tmp_path: Path) -> None:
    good = model(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    cases = [
        ("/m/model.gguf", Status.UNSUPPORTED, "GGUF"),
        (tmp_path / "gone", Status.UNAVAILABLE, "no such folder for the target"),
        (empty, Status.UNAVAILABLE, "config.json cannot be read"),
        (model(tmp_path, "typeless", model_type=None), Status.UNSUPPORTED, "names no model_type"),
        (model(tmp_path, "code", model_file="evil.py"), Status.UNSUPPORTED, "its own code (evil.py)"),
    ]
    for path, status, words in cases:
        refusal = ADAPTER.supports(make_cell(path, good), KNOWN)
        assert refusal is not None
        assert (refusal.status, words in refusal.reason) == (status, True), refusal.reason
    draft = ADAPTER.supports(make_cell(good, "/m/draft.gguf", method=drafting(2)), KNOWN)
    assert draft is not None
    assert "the draft is a GGUF file" in draft.reason
    binary = make_cell(good, good)
    binary = dataclasses.replace(binary, engine=dataclasses.replace(binary.engine, binary="mlx_lm.server"))
    refused = ADAPTER.supports(binary, KNOWN)
    assert refused is not None
    assert "engines.mlx.python" in refused.remedy


@pytest.mark.parametrize("nested", [False, True])
def test_a_sliding_window_that_the_answer_fills(tmp_path: Path, nested: bool) -> None:
    window: dict[str, Any] = {"sliding_window": 40, "layer_types": ["full_attention", "sliding_attention"]}
    target = model(tmp_path, "w", **({"text_config": window} if nested else window))
    draft = model(tmp_path, "d")
    fits = make_cell(target, draft, method=drafting(4), tokens=34)
    assert ADAPTER.supports(fits, KNOWN) is None
    full = ADAPTER.supports(make_cell(target, draft, method=drafting(4), tokens=35), KNOWN)
    assert full is not None
    assert (full.status, "attention window of 40" in full.reason) == (Status.UNSUPPORTED, True)
    assert ADAPTER.supports(make_cell(target, draft, tokens=500), KNOWN) is None, "a baseline may fill it"
    unused = model(tmp_path, "u", sliding_window=40, layer_types=["full_attention"])
    assert ADAPTER.supports(make_cell(unused, draft, method=drafting(4), tokens=500), KNOWN) is None


def test_claims() -> None:
    def claim(**changes: Any) -> tuple[Rule, bool | None]:
        found = ADAPTER.exactness(make_cell("/m", "/d", **changes), KNOWN)
        return found.rule, found.exact

    assert claim() == (Rule.NONE, True)
    assert claim(method=drafting(4)) == (Rule.GREEDY_MATCH, True)
    assert claim(method=drafting(4), sampling=WARM) == (Rule.SAMPLE_MATCH, True)
    for penalty in ({"repeat_penalty": 1.1}, {"presence_penalty": 0.5}, {"frequency_penalty": -0.5}):
        assert claim(method=drafting(4), sampling=dataclasses.replace(WARM, **penalty)) == (Rule.SAMPLE_MATCH, False)
    assert claim(sampling=dataclasses.replace(WARM, repeat_penalty=1.1)) == (Rule.NONE, True)
    other = ADAPTER.exactness(make_cell("/m", "/d", method=drafting(4)), EngineIdentity(version="0.40.0"))
    assert other.exact is None
    assert "0.40.0" in other.note


def test_readiness_must_fit_the_cell() -> None:
    ready = json.dumps(
        {
            "event": "ready",
            "mlx": "1",
            "mlx_lm": "1",
            "python": "3",
            "device": "d",
            "prompt_cache": ["KVCache"],
            "draft_loaded": False,
            "draft_prompt_cache": [],
            "window": None,
        }
    )
    nothing = TrialCapture(-1)
    speculative, base = make_cell("/m", "/d", method=drafting(4)), make_cell("/m", "/d")
    assert ADAPTER.check_ready(base, nothing, ready + "\n", "") is None
    unengaged = ADAPTER.check_ready(speculative, nothing, ready + "\n", "")
    assert unengaged is not None
    assert unengaged.status is Status.NOT_ENGAGED
    loaded = ready.replace("false", "true")
    assert ADAPTER.check_ready(speculative, nothing, loaded + "\n", "") is None
    contaminated = ADAPTER.check_ready(base, nothing, loaded + "\n", "")
    assert contaminated is not None
    assert contaminated.status is Status.CONTAMINATED
    mute = ADAPTER.check_ready(base, nothing, "", "")
    assert mute is not None
    assert mute.status is Status.FAILED
