"""llama.cpp's three records of a trial: each read rightly, and any disagreement told."""

from __future__ import annotations

import dataclasses
import json

import pytest
from golden_cases import GOLDEN, load_case
from llama_cells import NONE, make_cell

from adapters.llama_cpp.counters import BY_POSITION, DRAFTED, PREDICTED, ROUNDS, read_deltas
from adapters.llama_cpp.embedded import ADAPTER
from adapters.llama_cpp.stream import LOST_AT_END, read_stream
from adapters.llama_cpp.trace import Round, drafter_seconds, read_rounds
from orchestrator.schema.capture import RawEvent, StepCapture, TrialCapture
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence

END = (
    "0.00.1 I slot print_timing: id  0 | task 7 |       total time =      42.08 ms /    50 tokens\n"
    "0.00.1 I slot      release: id  0 | task 7 | stop processing: n_tokens = 49, truncated = 0\n"
)


def line(accepted, drafted, *, restore=False, task=7):
    mark = " (restore checkpoint)" if restore else ""
    return f"0.00.1 I slot   operator(): id  0 | task {task} | accepted {accepted:2}/{drafted:2} draft tokens{mark}\n"


def golden(name):
    case = load_case(GOLDEN / "llama_cpp_embedded" / name)
    return case, case.trial_of(case.capture())


def parsed(case, capture):
    return ADAPTER.parse_trial(case.cell, capture)


def values(result):
    return {item.metric: item.value for item in result.observations if item.absent is None}


def with_step(capture, name, change):
    step = capture.steps[name]
    events = tuple(RawEvent(event.t_s, change(event.data)) for event in step.events)
    return dataclasses.replace(capture, steps={**capture.steps, name: dataclasses.replace(step, events=events)})


def test_rounds_are_the_lines_of_this_request():
    assert read_rounds(line(2, 4) + line(4, 4) + line(9, 9, task=3) + END) == (Round(4, 2, 0), Round(4, 4, 0))


def test_a_replay_belongs_to_its_round_and_its_correction_is_no_accepted_token():
    log = line(2, 4, restore=True) + line(3, 3) + line(0, 3, restore=True) + line(1, 1) + line(4, 4) + END
    assert read_rounds(log) == (Round(4, 2, 1), Round(3, 0, 1), Round(4, 4, 0))


def test_a_replay_that_fails_is_repeated():
    log = line(2, 4, restore=True) + line(1, 3, restore=True) + line(2, 2) + END
    assert read_rounds(log) == (Round(4, 1, 2),)


@pytest.mark.parametrize(
    "log", ["", line(1, 2), line(1, 2) + END.splitlines()[0] + "\n", END + END, line(1, 2, restore=True) + END]
)
def test_a_log_that_is_not_whole_tells_nothing(log):
    assert read_rounds(log) is None


def test_a_request_without_rounds_has_none():
    assert read_rounds(END) == ()


def test_drafter_time_is_the_last_total_of_each_drafter():
    said = (
        "I spec common_specu: statistics {:>16}: #calls(b,g,a) = 1 2 2, #gen drafts = 2, dur(b,g,a) = 0.1, {}, 0.2 ms\n"
    )
    log = said.format("draft-simple", "5.0") + said.format("ngram-simple", "1.5") + said.format("draft-simple", "9.5")
    assert drafter_seconds(log) == pytest.approx(0.011)
    assert drafter_seconds("nothing of the kind") is None


def scrape(totals):
    text = "".join(f"# HELP llamacpp:{name} words\nllamacpp:{name} {value}\n" for name, value in totals.items())
    return (RawEvent(1.0, text),)


def scraped(before, after):
    steps = {
        name: StepCapture(name, 1.0, "", scrape(totals), 2.0, 200)
        for name, totals in (("metrics_before", before), ("metrics_after", after))
    }
    return TrialCapture(0, steps, "", complete=True)


def test_totals_are_subtracted_by_name_and_position():
    position = BY_POSITION + '{{position="{}"}}'
    before = {PREDICTED: 10, ROUNDS: 3, position.format(0): 2}
    after = {PREDICTED: 42, ROUNDS: 9, position.format(0): 7, position.format(1): 4}
    found = read_deltas(scraped(before, after))
    assert found.counts == {PREDICTED: 32, ROUNDS: 6}
    assert found.accepted_by_position == (5, 4)


@pytest.mark.parametrize(("before", "after"), [("999990", "1e+06"), ("1.00001e+06", "1.00002e+06"), ("5", "4")])
def test_totals_too_large_to_subtract_are_left_out(before, after):
    found = read_deltas(scraped({PREDICTED: 1, DRAFTED: before}, {PREDICTED: 2, DRAFTED: after}))
    assert found.counts == {PREDICTED: 1}


def test_foreign_totals_are_refused():
    with pytest.raises(CaptureError, match="not the counters"):
        read_deltas(scraped({"something": 1}, {PREDICTED: 2}))


def event(count, ids, text, ms):
    return RawEvent(
        ms / 1e3,
        json.dumps(
            {
                "content": text,
                "tokens": ids,
                "stop": False,
                "tokens_predicted": count,
                "timings": {"predicted_ms": ms, "predicted_n": count},
            }
        ),
    )


def streamed(*events, predicted):
    final = {"stop": True, "stop_type": "limit", "timings": {"predicted_n": predicted, "predicted_ms": 9.0}}
    step = StepCapture("request", 0.0, "{}", (*events, RawEvent(1.0, json.dumps(final))), 1.0, 200)
    return read_stream(TrialCapture(0, {"request": step}, "", complete=True))


def test_ids_inside_a_character_are_stood_in_for_and_counted():
    one = streamed(event(1, [5], "a", 1.0), event(4, [9], "가", 2.0), event(5, [6], "b", 3.0), predicted=5)
    assert len(one.token_ids) == 5
    assert (one.token_ids[0], one.token_ids[3], one.token_ids[4]) == (5, 9, 6)
    assert all(token < LOST_AT_END for token in one.token_ids[1:3])
    assert one.withheld == 2
    other = streamed(event(1, [5], "a", 1.0), event(4, [9], "나", 2.0), event(5, [6], "b", 3.0), predicted=5)
    assert other.token_ids != one.token_ids
    again = streamed(event(1, [5], "a", 4.0), event(4, [9], "가", 5.0), event(5, [6], "b", 6.0), predicted=5)
    assert again.token_ids == one.token_ids


def test_an_answer_that_ends_inside_a_character_keeps_its_count():
    found = streamed(event(1, [5], "a", 1.0), predicted=3)
    assert found.token_ids == (5, LOST_AT_END, LOST_AT_END)


def test_real_answers_keep_their_count_where_characters_are_split():
    case, capture = golden("none-split-characters")
    result = parsed(case, capture)
    assert len(result.token_ids) == values(result)["output_tokens"] == 32
    assert sum(token < LOST_AT_END for token in result.token_ids) == 2
    assert ADAPTER.arrivals(case.cell, capture).burst_source == "inferred"
    case, capture = golden("draft-ends-inside-character")
    result = parsed(case, capture)
    found = {item.metric: item for item in result.observations}
    assert result.token_ids[-2:] == (LOST_AT_END, LOST_AT_END)
    assert found["output_tokens"].value == len(result.token_ids) == 32
    assert "last 2 token(s)" in found["output_tokens"].note
    assert found["target_passes"].value == 31 - found["accepted_tokens"].value


def test_a_count_that_runs_back_is_refused():
    with pytest.raises(CaptureError, match="running count"):
        streamed(event(2, [5, 6], "a", 1.0), event(2, [7], "b", 2.0), predicted=2)


@pytest.mark.parametrize("name", ["draft-greedy", "draft-t08", "mtp", "ngram", "hybrid-replay", "draft-end-of-text"])
def test_the_invariants_hold_in_real_runs(name):
    case, capture = golden(name)
    found = values(parsed(case, capture))
    assert parsed(case, capture).problems == ()
    assert found["target_passes"] == found["verify_rounds"] + found["no_draft_rounds"] + found["replay_passes"]
    assert found["drafted_tokens"] == sum(found["drafted_by_position"])
    assert found["accepted_tokens"] == sum(found["accepted_by_position"])
    assert found["drafted_tokens"] == found["accepted_tokens"] + found["rejected_tokens"] + found["discarded_tokens"]
    if not found["cut_rounds"]:
        assert found["tokens_per_round"] == pytest.approx(1 + found["mean_accepted_length"])
        assert found["output_tokens"] == 1 + found["accepted_tokens"] + found["target_passes"]


def test_nothing_drafted_is_zero_while_speculation_is_on_and_not_applicable_without():
    case, capture = golden("ngram-nothing-drafted")
    assert "draft_n" not in json.loads(capture.steps["request"].events[-1].data)["timings"]
    found = {item.metric: item for item in parsed(case, capture).observations}
    assert (found["drafted_tokens"].value, found["verify_rounds"].value, found["no_draft_rounds"].value) == (0, 0, 31)
    assert found["acceptance_rate"].absent is Absence.NOT_APPLICABLE
    case, capture = golden("none")
    found = {item.metric: item for item in parsed(case, capture).observations}
    assert found["drafted_tokens"].absent is Absence.NOT_APPLICABLE


def test_a_drafter_in_a_baseline_is_told():
    case, capture = golden("draft-t08")
    baseline = dataclasses.replace(case.cell, method=NONE)
    result = ADAPTER.parse_trial(baseline, capture)
    assert values(result)["drafted_tokens"] == 41
    assert any("one pass of a baseline" in problem for problem in result.problems)


def test_an_end_inside_a_draft_leaves_the_refused_token_untold():
    case, capture = golden("draft-end-of-text-korean")
    found = {item.metric: item for item in parsed(case, capture).observations}
    assert found["rejected_tokens"].absent is Absence.NOT_REPORTED
    assert found["cut_rounds"].value == 1


def test_the_rate_divides_by_one_token_less():
    case, capture = golden("none")
    timings = json.loads(capture.steps["request"].events[-1].data)["timings"]
    rate = values(parsed(case, capture))["engine_decode_rate"]
    assert rate == pytest.approx((timings["predicted_n"] - 1) / timings["predicted_ms"] * 1e3)
    assert rate == pytest.approx(timings["predicted_per_second"])


@pytest.mark.parametrize(
    ("step", "old", "new", "words"),
    [
        ("request", '"draft_n_accepted":19', '"draft_n_accepted":18', "accepted"),
        ("metrics_after", "spec_decode_num_draft_tokens_total 41", "spec_decode_num_draft_tokens_total 42", "drafted"),
        ("metrics_after", "spec_decode_num_drafts_total 11", "spec_decode_num_drafts_total 12", "rounds"),
        ("metrics_after", "tokens_predicted_total 32", "tokens_predicted_total 64", "output"),
        ("request", '"cache_n":0', '"cache_n":4', "cache"),
        ("request", '"truncated":false', '"truncated":true', "context was full"),
        ("request", '"stop_type":"limit"', '"stop_type":"word"', "not asked for"),
    ],
)
def test_records_that_disagree_are_told(step, old, new, words):
    case, capture = golden("draft-t08")
    assert any(old in item.data for item in capture.steps[step].events)
    result = parsed(case, with_step(capture, step, lambda data: data.replace(old, new)))
    assert any(words in problem for problem in result.problems), result.problems


def test_a_lost_round_line_is_told():
    case, capture = golden("draft-t08")
    lines = capture.log.splitlines(keepends=True)
    first = next(number for number, text in enumerate(lines) if "draft tokens" in text)
    result = parsed(case, dataclasses.replace(capture, log="".join(lines[:first] + lines[first + 1 :])))
    assert any("by the log's lines" in problem for problem in result.problems)


def test_without_the_log_a_replay_is_unknown_and_not_zero():
    case, capture = golden("hybrid-replay")
    found = values(parsed(case, dataclasses.replace(capture, log="")))
    assert not {"replay_passes", "target_passes", "rejected_tokens", "tokens_per_pass"} & set(found)
    assert found["verify_rounds"] == values(parsed(case, capture))["verify_rounds"]


@pytest.mark.parametrize("name", ["draft-end-of-text", "draft-end-of-text-korean"])
def test_without_the_log_an_end_of_text_may_hide_a_replay(name):
    case, capture = golden(name)
    assert values(parsed(case, capture))["replay_passes"] == 0
    assert "replay_passes" not in values(parsed(case, dataclasses.replace(capture, log="")))


def test_without_the_log_the_stream_proves_that_nothing_was_replayed():
    case, capture = golden("draft-t08")
    whole = values(parsed(case, capture))
    assert values(parsed(case, dataclasses.replace(capture, log=""))) == whole
    assert whole["replay_passes"] == 0


def test_a_trial_that_was_not_ended_gives_no_number():
    case, capture = golden("draft-t08")
    with pytest.raises(CaptureError, match="ends early"):
        parsed(case, dataclasses.replace(capture, complete=False))


def test_cached_prompt_tokens_are_prompt_tokens():
    case, capture = golden("none")
    cached = with_step(capture, "request", lambda data: data.replace('"cache_n":0', '"cache_n":4'))
    found = values(parsed(case, cached))
    assert (found["cached_tokens"], found["prompt_tokens"]) == (4, values(parsed(case, capture))["prompt_tokens"] + 4)


def test_an_engine_error_is_passed_on():
    case, capture = golden("prompt-too-long")
    with pytest.raises(CaptureError, match="exceeds the available context size"):
        parsed(case, capture)


def test_changed_settings_are_seen():
    case, capture = golden("draft-t08")
    assert {item.verdict.value for item in ADAPTER.conditions(case.cell, capture)} == {"honoured"}
    changed = with_step(capture, "request", lambda data: data.replace('"top_k":40', '"top_k":20'))
    verdicts = {item.name: item.verdict.value for item in ADAPTER.conditions(case.cell, changed)}
    assert verdicts["top_k"] == "changed"
    order = with_step(
        capture, "request", lambda data: data.replace('"samplers":["penalties","dry"', '"samplers":["dry","penalties"')
    )
    assert {item.name: item.verdict.value for item in ADAPTER.conditions(case.cell, order)}["samplers"] == "changed"
    other = dataclasses.replace(case.cell, engine=make_cell("x", "t", context=4096).engine)
    assert {i.name: i.verdict.value for i in ADAPTER.conditions(other, capture)}["context"] == "changed"
