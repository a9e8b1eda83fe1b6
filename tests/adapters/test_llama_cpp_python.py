"""The llama-cpp-python adapter without an engine: rounds, planning, refusals, claims, contradictory answers."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_cases import GOLDEN, load_case
from lcpp_session import GREEDY, NONE, WARM, lookup, make_cell

from adapters.llama_cpp_python.adapter import ADAPTER, CONFIG_FILE, WORKER
from orchestrator.demo.export import resolve
from orchestrator.schema.adapter import EngineIdentity, Honoured, LaunchContext, ProbeOutput, Rule, TrialSpec
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Method, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence
from orchestrator.schema.status import Status

KNOWN = EngineIdentity(version="0.3.36")


def altered(case_name: str, change: Callable[[dict[str, Any]], object]) -> tuple[Any, TrialCapture]:
    """A golden capture whose one answer was changed, and its cell."""
    case = load_case(GOLDEN / "llama_cpp_python" / case_name)
    capture = case.trial_of(case.capture())
    step = capture.steps["generate"]
    body = json.loads(step.events[-1].data)
    change(body)
    event = dataclasses.replace(step.events[-1], data=json.dumps(body))
    return case.cell, dataclasses.replace(capture, steps={"generate": dataclasses.replace(step, events=(event,))})


def rewritten(emitted: list[list[int]], proposed: list[list[int]], **more: Any) -> Callable[[dict[str, Any]], object]:
    """An answer of these passes: what each emitted, and what was proposed before each but the first."""

    def change(body: dict[str, Any]) -> None:
        t_s = body["t0"]
        body["tokens"] = [[token, t_s, number] for number, tokens in enumerate(emitted) for token in tokens]
        body["passes"] = [body["prompt_tokens"], *(len(draft) + 1 for draft in proposed)]
        body["proposed"] = proposed
        fed = [size for size in body["passes"] if size > 1]
        body["perf"].update(n_p_eval=sum(fed), n_eval=max(1, len(body["passes"]) - len(fed)))
        body.update(more)

    return change


def values(cell: Any, capture: TrialCapture) -> dict[str, Any]:
    return {item.metric: item.value for item in ADAPTER.parse_trial(cell, capture).observations}


def test_accepted_is_inferred_pass_by_pass_and_says_so() -> None:
    """By hand: all 4 kept; 1 of 4 kept, one refused, two never judged; nothing proposed; one proposed and refused."""
    emitted = [[7], [1, 2, 3, 4, 50], [1, 60], [70], [80]]
    proposed = [[1, 2, 3, 4], [1, 2, 3, 4], [], [9]]
    cell, capture = altered("lookup-t08", rewritten(emitted, proposed))
    found = {item.metric: item for item in ADAPTER.parse_trial(cell, capture).observations}
    expected = {
        "drafted_tokens": 9,
        "accepted_tokens": 5,
        "rejected_tokens": 2,
        "discarded_tokens": 2,
        "verify_rounds": 3,
        "no_draft_rounds": 1,
        "target_passes": 4,
        "cut_rounds": 0,
        "tokens_per_pass": 9 / 4,
        "tokens_per_round": 8 / 3,
        "speculative_coverage": 0.8,
        "drafted_by_position": (3, 2, 2, 2),
        "accepted_by_position": (2, 1, 1, 1),
    }
    assert {name: found[name].value for name in expected} == expected
    for name in ("accepted_tokens", "rejected_tokens", "acceptance_rate", "accepted_by_position"):
        assert found[name].source.startswith("inferred:")
        assert "inferred" in str(found[name].note)
    assert not found["drafted_tokens"].source.startswith("inferred")


def test_an_answer_that_ends_inside_a_round_cuts_it() -> None:
    cell, capture = altered("lookup-t08", rewritten([[7], [1, 2]], [[1, 2, 3, 4]]))
    seen = values(cell, capture)
    assert (seen["cut_rounds"], seen["accepted_tokens"], seen["rejected_tokens"]) == (1, 2, 0)
    assert seen["tokens_per_round"] is None


@pytest.mark.parametrize(
    "change",
    [
        rewritten([[7], [1, 2], [3]], [[1, 2, 3], [4]]),  # a pass that stopped early, and another after it
        rewritten([[7], [1, 50, 51]], [[1, 2, 3]]),  # tokens after a refused one
        rewritten([[7], [1]], [[1, 2], [3]]),  # asked twice for one pass
        rewritten([[7], [1]], [[1, 2]], passes=[6, 5]),  # fed more than was proposed
        rewritten([[7], [1]], [[1]], t1=0.0),
        lambda d: d["tokens"].clear(),
        lambda d: d["tokens"][0].__setitem__(2, 3),
        lambda d: d["tokens"][1].__setitem__(0, "5"),
        lambda d: d.pop("perf"),
        lambda d: d.update(finish_reason="because"),
        lambda d: d.update(event="error"),
        lambda d: d["passes"].append(1),
    ],
)
def test_what_the_package_cannot_have_said_gives_no_number(change: Any) -> None:
    cell, capture = altered("lookup-t08", change)
    with pytest.raises(CaptureError):
        ADAPTER.parse_trial(cell, capture)
    assert ADAPTER.arrivals(cell, capture) is None


@pytest.mark.parametrize(
    ("case", "change", "words"),
    [
        ("none", lambda d: d.update(trial=9), "answered trial 9"),
        ("none", lambda d: d.update(prompt_tokens=9), "first pass read 6 tokens, the prompt has 9"),
        ("none", lambda d: d["perf"].update(n_eval=99), "the passes were fed"),
        ("none", lambda d: d["tokens"][3].__setitem__(0, 0), "was to be masked, and was emitted"),
        ("none-hybrid-korean", lambda d: d.update(finish_reason="stop"), "the policy is continue"),
        ("none-end-of-text", lambda d: d["tokens"][-1].__setitem__(0, 7), "its last token is 7"),
        ("none-end-of-text", lambda d: d["tokens"][2].__setitem__(0, 0), "and the answer went on"),
        ("none-end-of-text", lambda d: d.update(finish_reason="length"), "by length after"),
        ("lookup-k8", lambda d: d["effective"].update(num_pred_tokens=10), "up to 10 tokens, the cell says 8"),
    ],
)
def test_an_answer_that_contradicts_itself_is_a_problem(case: str, change: Any, words: str) -> None:
    parsed = ADAPTER.parse_trial(*altered(case, change))
    assert any(words in problem for problem in parsed.problems), parsed.problems


def test_a_cached_prompt_is_seen() -> None:
    def change(body: dict[str, Any]) -> None:
        body["passes"][0] = 2

    assert values(*altered("none", change))["cached_tokens"] == 4


def test_engine_times_known_to_be_wrong_are_suppressed_and_the_others_have_names_of_their_own() -> None:
    def of(case_name: str) -> dict[str, Any]:
        case = load_case(GOLDEN / "llama_cpp_python" / case_name)
        found = ADAPTER.parse_trial(case.cell, case.trial_of(case.capture())).observations
        return {item.metric: item for item in found}

    plain, drafted, single = of("none"), of("lookup-k8"), of("none-one-token")
    assert plain["engine_prefill_time"].definition == "llama-cpp-python:0.3.36:t_p_eval_ms"
    assert plain["engine_decode_time"].definition == "llama-cpp-python:0.3.36:t_eval_ms"
    for name in ("engine_prefill_time", "engine_decode_time", "engine_decode_rate"):
        assert drafted[name].absent is Absence.SUPPRESSED
    assert plain["engine_decode_rate"].absent is Absence.SUPPRESSED
    assert single["engine_decode_time"].absent is Absence.SUPPRESSED
    assert drafted["draft_time"].definition == "llama-cpp-python:0.3.36:draft_model.__call__"
    assert drafted["verify_time"].absent is drafted["rollback_time"].absent is Absence.NOT_REPORTED


def test_conditions_name_the_memory_that_a_drafter_costs() -> None:
    case = load_case(GOLDEN / "llama_cpp_python" / "lookup-k8")
    found = {item.name: item for item in ADAPTER.conditions(case.cell, case.trial_of(case.capture()))}
    assert {item.verdict for item in found.values()} == {Honoured.HONOURED}
    assert str(found["scores_buffer"].effective).startswith(f"{1024 * 512 * 4} B")
    assert "every token" in str(found["logits_all"].effective)
    plain = load_case(GOLDEN / "llama_cpp_python" / "none")
    found = {item.name: item for item in ADAPTER.conditions(plain.cell, plain.trial_of(plain.capture()))}
    assert str(found["scores_buffer"].effective).startswith(f"{1024 * 64 * 4} B")
    assert "logits_all" not in found

    cell, capture = altered("lookup-k8", lambda d: d["effective"].update(threads_batch=9, max_ngram_size=7))
    verdicts = {item.name: item.verdict for item in ADAPTER.conditions(cell, capture)}
    assert verdicts["verify_threads"] is verdicts["max_ngram_size"] is Honoured.CHANGED


def test_launch_and_request(tmp_path: Path) -> None:
    cell = make_cell("/m/t.gguf", method=lookup(6, 3), sampling=WARM, tokens=9, python="/opt/lcp/bin/python")
    launch = ADAPTER.launch(cell, LaunchContext(0, tmp_path))
    assert launch.argv == ("/opt/lcp/bin/python", "-I", "-X", "utf8", str(WORKER), str(tmp_path / CONFIG_FILE))
    assert WORKER.is_file()
    config = json.loads(launch.files[CONFIG_FILE])
    assert config["lookup"] == {"max_ngram_size": 3, "num_pred_tokens": 6}
    assert (config["model"], config["n_ctx"], config["n_batch"], config["threads"]) == ("/m/t.gguf", 512, 64, 1)
    alone = dataclasses.replace(cell, method=NONE)
    assert json.loads(ADAPTER.launch(alone, LaunchContext(0, tmp_path)).files[CONFIG_FILE])["lookup"] is None
    (step,) = ADAPTER.trial_steps(cell, TrialSpec(2, "measured", "p", "text", 77))
    assert dict(step.message) == {  # type: ignore[union-attr]
        "op": "generate", "trial": 2, "prompt": "text", "max_tokens": 9, "eos": "mask",
        "sampling": {
            "temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.0,
            "presence_penalty": 0.0, "frequency_penalty": 0.0, "seed": 77,
        },
    }  # fmt: skip


def test_identity() -> None:
    config = make_cell("/m").engine
    line = '{"llama_cpp_python": "0.3.36", "python": "3.11.7", "gpu_offload": false}\n'
    found = ADAPTER.identify(config, {"import": ProbeOutput(0, line, "", None)})
    assert (found.version, found.backend, found.unavailable) == ("0.3.36", "cpu", None)
    assert found.facts == {"llama-cpp-python": "0.3.36", "python": "3.11.7"}
    gone = ADAPTER.identify(
        config, {"import": ProbeOutput(1, "", "ModuleNotFoundError: No module named 'llama_cpp'\n")}
    )
    assert "No module named 'llama_cpp'" in str(gone.unavailable)
    assert "specmatrix[llama-cpp-python]" in str(gone.unavailable)


def gguf(path: Path, architecture: str, **numbers: int) -> Path:
    """A file that is a GGUF header alone."""

    def text(word: str) -> bytes:
        return struct.pack("<Q", len(word)) + word.encode()

    entries = text("general.architecture") + struct.pack("<I", 8) + text(architecture)
    for key, number in numbers.items():
        entries += text(f"{architecture}.{key.replace('__', '.')}") + struct.pack("<II", 4, number)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1 + len(numbers)) + entries)
    return path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (MethodKind.DRAFT, "no drafter that is a model"),
        (MethodKind.MTP, "does not speculate with a model's MTP layers"),
    ],
)
def test_methods_it_does_not_have(tmp_path: Path, kind: MethodKind, words: str) -> None:
    refusal = ADAPTER.supports(make_cell(gguf(tmp_path / "m", "llama"), method=Method("m", kind, 2, "tiny")), KNOWN)
    assert refusal is not None
    assert (refusal.status, words in refusal.reason) == (Status.UNSUPPORTED, True)
    assert kind not in ADAPTER.method_options


def test_a_hybrid_model_is_refused_with_a_drafter_only(tmp_path: Path) -> None:
    for number, keys in enumerate(({"ssm__conv_kernel": 4}, {"wkv_head_size": 64}, {"shortconv__l_cache": 3})):
        hybrid = gguf(tmp_path / f"h{number}", "mixed", block_count=2, **keys)
        refusal = ADAPTER.supports(make_cell(hybrid, method=lookup(4)), KNOWN)
        assert refusal is not None
        assert (refusal.status, "llama_decode returned -1" in refusal.reason) == (Status.UNSUPPORTED, True)
        assert ADAPTER.supports(make_cell(hybrid), KNOWN) is None
    assert ADAPTER.supports(make_cell(gguf(tmp_path / "a", "llama", block_count=2), method=lookup(4)), KNOWN) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": lookup(0)}, "n_max is 0"),
        ({"method": Method("m", MethodKind.NGRAM, 4, options={"size_n": 3})}, "size_n"),
        ({"method": lookup(64)}, "more than a batch of 64"),
        ({"sampling": dataclasses.replace(WARM, xtc_probability=0.5)}, "no XTC"),
        ({"sampling": dataclasses.replace(WARM, temperature=-1.0)}, "temperature -1"),
        ({"threads": 0}, "threads"),
        ({"context": 0}, "context"),
    ],
)
def test_settings_it_cannot_measure_rightly(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    refusal = ADAPTER.supports(make_cell(gguf(tmp_path / "m", "llama"), **({"method": lookup(4)} | changes)), KNOWN)
    assert refusal is not None
    assert (refusal.status, words in refusal.reason) == (Status.UNSUPPORTED, True), refusal.reason
    assert refusal.remedy


def test_files_and_engines_it_cannot_use(tmp_path: Path) -> None:
    other = tmp_path / "model.bin"
    other.write_bytes(b"not a model")
    refusal = ADAPTER.supports(make_cell(other), KNOWN)
    assert refusal is not None
    assert "not a GGUF file" in refusal.reason
    binary = make_cell(gguf(tmp_path / "m", "llama"))
    binary = dataclasses.replace(binary, engine=dataclasses.replace(binary.engine, binary="llama-server"))
    refused = ADAPTER.supports(binary, KNOWN)
    assert refused is not None
    assert "engines.lcp.python" in refused.remedy
    gone = ADAPTER.supports(make_cell(other), EngineIdentity(unavailable="not there"))
    assert gone is not None
    assert gone.status is Status.UNAVAILABLE


def test_the_scores_that_a_drafter_costs_are_foreseen(tmp_path: Path) -> None:
    target = resolve("tiny-target-f16.gguf")
    plain, drafted = (ADAPTER.memory(make_cell(target, method=method)) for method in (NONE, lookup(4)))
    assert (plain.increase, drafted.increase) == (0, 4 * 512 * 1024)
    assert drafted.total == plain.total + drafted.increase
    assert ADAPTER.memory(make_cell(tmp_path / "gone")).unknown
    unmapped = ADAPTER.unmapped(make_cell(target)).cell
    assert json.loads(ADAPTER.launch(unmapped, LaunchContext(0, tmp_path)).files[CONFIG_FILE])["mmap"] is False


def test_claims(tmp_path: Path) -> None:
    target = gguf(tmp_path / "m", "llama")
    windowed = gguf(tmp_path / "w", "gemma", attention__sliding_window=512)
    greedy, warm = make_cell(target, method=lookup(4)), make_cell(target, method=lookup(4), sampling=WARM)
    assert (ADAPTER.exactness(greedy, KNOWN).rule, ADAPTER.exactness(greedy, KNOWN).exact) == (Rule.GREEDY_MATCH, True)
    assert (ADAPTER.exactness(warm, KNOWN).rule, ADAPTER.exactness(warm, KNOWN).exact) == (Rule.SAMPLE_MATCH, True)
    assert ADAPTER.exactness(greedy, EngineIdentity(version="0.3.37")).exact is None
    assert ADAPTER.exactness(make_cell(windowed, method=lookup(4)), KNOWN).exact is None
    assert ADAPTER.exactness(make_cell(target, sampling=GREEDY), KNOWN).rule is Rule.NONE


def test_a_drafter_in_a_baseline_and_none_where_one_is_asked_for() -> None:
    case = load_case(GOLDEN / "llama_cpp_python" / "baseline-speculates")
    refusal = ADAPTER.check_ready(case.cell, case.capture().ready, case.stdout.decode(), "")
    assert refusal is not None
    assert refusal.status is Status.CONTAMINATED
    plain = load_case(GOLDEN / "llama_cpp_python" / "none").stdout.decode()
    asked = ADAPTER.check_ready(make_cell("/m", method=lookup(4)), case.capture().ready, plain, "")
    assert asked is not None
    assert asked.status is Status.NOT_ENGAGED
    missing = ADAPTER.check_ready(case.cell, case.capture().ready, "", "")
    assert missing is not None
    assert missing.status is Status.FAILED
