"""When ds4 began to read the prompt: what it does before that is no part of the wait for the first token."""

from __future__ import annotations

import json

import pytest
from ds4_cells import make_cell, mtp
from golden_cases import GOLDEN, load_case

from adapters.ds4.adapter import ADAPTER
from adapters.ds4.beginning import Told, beginning
from adapters.ds4.run import read_run
from orchestrator.schema.adapter import Honoured
from orchestrator.schema.capture import RawEvent, SessionCapture, StepCapture, TrialCapture
from orchestrator.schema.errors import CaptureError

DETAIL = "ds4: memory detail: ctx=8192 prefill_cap=4096 raw_kv_rows=4352 compressed_kv_rows=2050 backend=metal\n"
WORD = " red"


def dumped(words: list[str]) -> list[RawEvent]:
    """What ``--dump-tokens`` prints of so many words."""
    text = f"[{', '.join('7' for _ in words)}]\n" + "".join(f"     7  {word.replace(' ', 'Ġ')}\n" for word in words)
    return [
        RawEvent(90.0, json.dumps({"stream": "stdout", "text": text})),
        RawEvent(90.1, json.dumps({"exit": 0})),
    ]


def september(
    lines: list[tuple[float, str]], *, tokens: int, first_s: float, prefill_s: float, pass_s: float, prompt: int = 9
) -> TrialCapture:
    """An answer whose words come every ``pass_s`` from ``first_s`` on, by a process that started at 0."""
    events = [RawEvent(t_s, json.dumps({"stream": "stderr", "text": text})) for t_s, text in lines]
    stamps = [first_s + number * pass_s for number in range(tokens)]
    events += [RawEvent(t_s, json.dumps({"stream": "stdout", "text": WORD})) for t_s in stamps]
    decode_s = max((tokens - 1) * pass_s, 1e-3)
    rates = f"ds4: prefill: {prompt / prefill_s:.2f} t/s, generation: {tokens / decode_s:.2f} t/s\n"
    events += [
        RawEvent(stamps[-1], json.dumps({"stream": "stderr", "text": rates})),
        RawEvent(stamps[-1] + 0.5, json.dumps({"exit": 0})),
    ]
    steps = {
        "generate": StepCapture("generate", 0.0, "{}", tuple(events), stamps[-1] + 0.5),
        "tokens": StepCapture("tokens", 89.0, "{}", tuple(dumped([WORD] * tokens)), 90.2),
        "prompt": StepCapture("prompt", 89.0, "{}", tuple(dumped([WORD] * prompt)), 90.2),
    }
    return TrialCapture(0, steps, "", complete=True)


def cell_of(tokens: int):
    return make_cell(generation="2026-09", tokens=tokens)


def wait(cell, capture) -> float:
    came = ADAPTER.arrivals(cell, capture)
    return came.tokens[0].t_s - came.sent_s


def apart(cell, capture):
    (found,) = [item for item in ADAPTER.conditions(cell, capture) if item.name == "load_apart"]
    return found


BEGUN = [(10.0, DETAIL), (11.1, "processing 9 input tokens: 0/9 (0.0%)\n")]


@pytest.mark.parametrize("tokens", [2, 64])
def test_the_line_of_prefill_is_the_beginning_and_not_the_one_before_the_warm_up(tokens):
    capture = september(BEGUN, tokens=tokens, first_s=11.4, prefill_s=0.3, pass_s=0.03)
    assert wait(cell_of(tokens), capture) == pytest.approx(0.3), "1.4 s with session and warm-up"
    found = apart(cell_of(tokens), capture)
    assert found.verdict is Honoured.HONOURED
    assert "by the line that ds4 prints" in found.effective


def test_a_line_that_ds4_s_own_rates_contradict_is_said():
    capture = september(BEGUN, tokens=64, first_s=11.4, prefill_s=1.3, pass_s=0.03)
    assert wait(cell_of(64), capture) == pytest.approx(0.3)
    found = apart(cell_of(64), capture)
    assert found.verdict is Honoured.CHANGED
    assert "its own rates put it 1001 ms earlier" in found.effective


def test_without_such_a_line_the_beginning_is_counted_back_by_ds4_s_own_rates():
    """A short prompt on the GPU prints no line as it begins, in both generations (ds4.c, ``ds4_session_sync``)."""
    capture = september(BEGUN[:1], tokens=64, first_s=11.4, prefill_s=0.3, pass_s=0.03)
    assert wait(cell_of(64), capture) == pytest.approx(0.3, abs=0.001)
    found = apart(cell_of(64), capture)
    assert (found.verdict, found.effective) == (Honoured.HONOURED, f"yes, by {Told.RATES}")


@pytest.mark.parametrize(
    ("tokens", "prefill_s"),
    [
        pytest.param(8, 0.3, id="too-few-tokens-for-a-rate"),
        pytest.param(64, 30.0, id="rates-that-reach-before-the-load"),
        pytest.param(64, 2000.0, id="a-rate-that-rounding-moves"),
    ],
)
def test_where_neither_tells_the_wait_is_changed_and_says_why(tokens, prefill_s):
    capture = september(BEGUN[:1], tokens=tokens, first_s=11.4, prefill_s=prefill_s, pass_s=0.03)
    assert wait(cell_of(tokens), capture) == pytest.approx(1.4)
    found = apart(cell_of(tokens), capture)
    assert found.verdict is Honoured.CHANGED
    assert found.effective == f"loading alone, by {Told.BEFORE}"


def test_a_line_with_progress_already_made_is_no_beginning():
    late = [*BEGUN[:1], (11.35, "processing 9 input tokens: 9/9 (100.0%)\n")]
    capture = september(late, tokens=8, first_s=11.4, prefill_s=0.3, pass_s=0.03)
    assert apart(cell_of(8), capture).verdict is Honoured.CHANGED
    assert wait(cell_of(8), capture) == pytest.approx(1.4)


@pytest.mark.parametrize(
    "line",
    [
        "ds4: mtp spec miss first draft=17\n",
        "ds4: mtp timing micro drafted=2 committed=2 draft=1.0 ms\n",
        "ds4: glm mtp cycle: verify2 40.0 ms, head+draft 4.0 ms, reject (draft 7 ' red' vs true 8 ' blue')\n",
        "ds4: DSpark spec enter accepted=1 max=64\n",
    ],
)
@pytest.mark.parametrize("tokens", [8, 64])
def test_the_line_of_the_first_cycle_which_comes_before_its_tokens_is_not_taken_for_the_end_of_loading(line, tokens):
    capture = september([*BEGUN[:1], (11.399, line)], tokens=tokens, first_s=11.4, prefill_s=0.3, pass_s=0.03)
    assert wait(cell_of(tokens), capture) == pytest.approx(0.3 if tokens == 64 else 1.4, abs=0.001), "not a millisecond"


def test_the_load_ends_where_prefill_begins_and_its_definition_says_which_of_the_two_is_meant():
    def load(capture):
        (found,) = ADAPTER.parse_session(cell_of(8), SessionCapture({0: capture}))
        return found.value, found.definition

    begun, unsure = (
        september(lines, tokens=8, first_s=11.4, prefill_s=0.3, pass_s=0.03) for lines in (BEGUN, BEGUN[:1])
    )
    assert load(begun) == (11.1, "ds4:start to the beginning of prefill")
    assert load(unsure) == (10.0, "ds4:start to last line before prefill")


def test_on_the_cpu_the_first_layer_s_line_is_the_beginning():
    """In the real capture the line before it came 49 ms earlier, and each layer took five seconds."""
    case = load_case(GOLDEN / "ds4" / "may-none")
    run = read_run(case.trial_of(case.capture()))
    found = beginning(run, 3, 6, early_line=True)
    (line,) = [line for line in run.lines if line.text == "ds4: prefill layer 1/43"]
    assert (found.t_s, found.told) == (line.t_s, Told.LINE)


def test_the_early_line_on_buffers_tells_nothing_of_loading_in_may():
    early = [(0.5, "ds4: context buffers 1.00 MiB (ctx=256, backend=metal, prefill_chunk=0)\n")]
    capture = september(early, tokens=8, first_s=3.0, prefill_s=0.3, pass_s=0.03)
    with pytest.raises(CaptureError, match="when the model was loaded"):
        ADAPTER.parse_trial(make_cell(generation="2026-05", tokens=8), capture)
    assert beginning(read_run(capture), 8, 9, early_line=False).t_s == 0.5
    (found,) = [
        item
        for item in ADAPTER.conditions(make_cell(method=mtp(2), generation="2026-05", tokens=8), capture)
        if item.name == "load_apart"
    ]
    assert found.verdict is Honoured.UNKNOWN
