"""What ds4 prints, line by line: each rule that keeps a number honest has a test that fails without it."""

from __future__ import annotations

import json

import pytest
from ds4_cells import GREEDY, NONE, WARM, make_cell, mtp
from golden_cases import GOLDEN, load_case

from adapters.ds4.adapter import ADAPTER
from adapters.ds4.command import _problems
from adapters.ds4.conditions import _context
from adapters.ds4.dspark import dspark_totals
from adapters.ds4.observations import LEAST_TOKENS, engine_times, passes_of, speculative
from adapters.ds4.rounds import embedded_cycles, support_cycles
from adapters.ds4.run import GENERATE, Line, Speed, read_run
from adapters.ds4.tokens import read_answer, read_dump, spelled_out
from orchestrator.schema.adapter import Honoured, session_conditions
from orchestrator.schema.capture import RawEvent, StepCapture, TrialCapture
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence

TIMES = "draft=1.000 ms snapshot=0.500 ms verify=4.000 ms"
DSPARK = (
    "ds4: DSpark stats cycles=88 first_tokens=88 proposed=44 accepted_draft=31 accept_rate=70.45% avg_accept=0.352 "
    "full=14 partial=2 miss_first=7 no_draft=65 no_room=0 invalid=0 scheduler_skips=52 errors=0 "
    "draft_len_hist=1:10,2:6,3:6,4:1 accepted_len_hist=0:72,1:6,2:5,3:5 time_ms propose=332.0 verify=964.4 replay=1063.1"
)
"""The figures of a run that a user of DSpark published (its histograms and outcomes agree); the spelling is the format's."""


def lines(*texts: str) -> list[Line]:
    return [Line(1.0, text) for text in texts]


def capture(
    pieces: list[tuple[float, str, str]],
    ids: list[tuple[int, str]],
    *,
    exit_code: object = 0,
    args: list[str] | None = None,
) -> TrialCapture:
    """A trial of the command: pieces are (seconds, stream, text), ids the dump."""
    events = [RawEvent(t_s, json.dumps({"stream": stream, "text": text})) for t_s, stream, text in pieces]
    events.append(RawEvent(9.0, json.dumps({"exit": exit_code})))
    dump = (
        "["
        + ", ".join(str(token) for token, _ in ids)
        + "]\n"
        + "".join(f"{token:6d}  {text}\n" for token, text in ids)
    )
    said = (RawEvent(9.5, json.dumps({"stream": "stdout", "text": dump})), RawEvent(9.6, json.dumps({"exit": 0})))
    body = json.dumps({"args": args or []})
    steps = {
        "generate": StepCapture("generate", 0.0, body, tuple(events), 9.0),
        "tokens": StepCapture("tokens", 9.1, "{}", said, 9.7),
    }
    return TrialCapture(0, steps, "", complete=True)


SPOKEN = [
    (0.5, "stderr", "ds4: context buffers 1.00 MiB (ctx=256, backend=metal, prefill_chunk=0)\n"),
    (2.0, "stderr", "ds4: metal backend initialized for graph diagnostics\n"),
    (2.5, "stderr", "ds4: gpu prefill layer 1/43\rds4: gpu prefill layer 2/43\r"),
    (3.0, "stderr", "ds4: prefill 6/6 done\n"),
    (3.1, "stdout", " red"),
    (3.2, "stdout", " blue"),
    (3.3, "stdout", "\n"),
    (3.3, "stderr", "ds4: prefill: 6.00 t/s, generation: 20.00 t/s\n"),
]
IDS = [(7, "Ġred"), (8, "Ġblue"), (9, "Ċ")]


# --- one-stage MTP ---------------------------------------------------------------------------------------------------


def test_misses_are_counted_or_acceptance_would_be_too_high():
    hits = ["ds4: mtp timing micro drafted=2 committed=2 " + TIMES] * 3
    misses = ["ds4: mtp spec miss first draft=17"] * 6
    said = support_cycles(lines(*hits, *misses))
    assert (said.drafted, said.accepted, said.rejected, said.cycles) == (12, 6, 6, 9)
    assert said.accepted / said.drafted == 0.5
    without = support_cycles(lines(*hits))
    assert without.accepted / without.drafted == 1.0


@pytest.mark.parametrize(
    ("line", "drafted", "accepted", "rejected", "dropped"),
    [
        ("decode2 drafted=2 committed=1 " + TIMES + " prefix=0.1 ms total=6 ms", 2, 1, 1, 0),
        ("micro drafted=4 committed=2 " + TIMES + " replay=2.000 ms total=6 ms", 4, 2, 1, 0),
        ("micro drafted=2 committed=1 " + TIMES + " prefix=0.1 ms total=6 ms noreplay=1", 2, 1, 1, 0),
        ("seq drafted=3 verified=0 draft=1 ms verify=4 ms total=5 ms", 3, 0, 1, 0),
        ("seq drafted=3 verified=3 draft=1 ms verify=4 ms total=5 ms", 3, 3, 0, 0),
        ("margin-skip drafted=2 committed=1 margin=0.5 threshold=3.0 draft=1 ms verify=4 ms", 1, 1, 0, 1),
    ],
)
def test_each_path_of_the_verifier(line, drafted, accepted, rejected, dropped):
    said = support_cycles(lines(f"ds4: mtp timing {line}"))
    assert (said.drafted, said.accepted, said.rejected, said.dropped) == (drafted, accepted, rejected, dropped)


def test_a_draft_that_is_withdrawn_unasked_is_no_draft_that_was_refused():
    said = support_cycles(
        lines("ds4: mtp timing margin-skip drafted=2 committed=1 margin=0.5 threshold=3.0 draft=1 ms")
    )
    assert said.lengths == (1,)
    assert said.accepted / said.drafted == 1.0


def test_the_lines_of_the_log_that_repeat_a_timing_are_not_counted_again():
    said = support_cycles(
        lines(
            "ds4: mtp timing seq drafted=2 verified=2 draft=1 ms verify=4 ms total=5 ms",
            "ds4: mtp spec seq accept drafted=2 accepted=3",
            "ds4: mtp probe token=4 draft=4 hit=1/1",
            "ds4: mtp conf drafted=2 committed=2 mtp_top=1 runner=2 margin=0.1 target_next=1 draft_next=1",
        )
    )
    assert (said.cycles, said.drafted) == (1, 2)


def test_times_are_seconds_and_rollback_is_saving_restoring_and_replaying():
    said = support_cycles(lines(f"ds4: mtp timing micro drafted=2 committed=1 {TIMES} replay=2.000 ms total=7.5 ms"))
    assert said.draft_s == pytest.approx(0.001)
    assert said.verify_s == pytest.approx(0.004)
    assert said.back_s == pytest.approx(0.0025)
    assert said.replays == 1


def test_a_verifier_that_failed_is_a_problem():
    told = lines("ds4: mtp spec micro verifier failed, falling back to sequential", "ds4: mtp spec miss first draft=-1")
    assert len(support_cycles(told).problems) == 1


@pytest.mark.parametrize("text", ["drafted=2 committed=3", "drafted=2", "committed=1", "drafted=x committed=1"])
def test_a_line_that_cannot_be_is_refused(text):
    with pytest.raises(CaptureError):
        support_cycles(lines(f"ds4: mtp timing micro {text} draft=1 ms"))


def test_silence_is_not_zero_cycles():
    assert support_cycles(lines("ds4: prefill: 1.00 t/s, generation: 2.00 t/s")) is None
    assert dspark_totals([]) is None
    assert embedded_cycles([]) is None


# --- DSpark ----------------------------------------------------------------------------------------------------------


def test_cycles_without_a_draft_stand_apart():
    said = dspark_totals(lines(DSPARK))
    assert (said.cycles, said.idle) == (23, 65)
    assert (said.drafted, said.accepted, said.rejected) == (44, 31, 9)
    assert said.accepted / said.cycles == pytest.approx(31 / 23), "over all 88 cycles it would be 0.35"
    assert said.lengths is not None
    assert [sum(size > place for size in said.lengths) for place in range(4)] == [23, 13, 7, 1]
    assert [sum(size > place for size in said.kept) for place in range(4)] == [16, 10, 5, 0]
    assert said.draft_s == pytest.approx(0.332)
    assert said.problems == ()


def test_totals_are_running_so_that_the_last_line_counts():
    earlier = DSPARK.replace("cycles=88", "cycles=40").replace("proposed=44", "proposed=20")
    assert dspark_totals(lines(earlier, DSPARK)).drafted == 44


def test_any_order_and_unknown_keys_are_read():
    words = DSPARK.removeprefix("ds4: DSpark stats ").split(" ")
    told = "ds4: DSpark stats future=1 " + " ".join(reversed(words))
    assert dspark_totals(lines(told)) == dspark_totals(lines(DSPARK))


def test_outcomes_that_do_not_add_up_are_a_problem():
    (problem,) = dspark_totals(lines(DSPARK.replace("full=14", "full=15"))).problems
    assert "24 judged cycles by outcome and 23 by subtraction" in problem


def test_lengths_that_do_not_add_up_are_not_told():
    said = dspark_totals(lines(DSPARK.replace("1:10,2:6", "1:9,2:6")))
    assert said.lengths is None
    assert said.drafted == 44


@pytest.mark.parametrize(
    "told",
    [
        DSPARK.replace("proposed=44", "proposed=30"),
        DSPARK.replace("no_draft=65", "no_draft=89"),
        "ds4: DSpark stats x=1",
    ],
)
def test_totals_that_contradict_each_other_are_refused(told):
    with pytest.raises(CaptureError):
        dspark_totals(lines(told))


def told_of(said, tokens, *, at_end_of_text=False):
    return {item.metric: item for item in speculative(said, tokens, "here", at_end_of_text=at_end_of_text)}


TAIL = (
    "ds4: DSpark stats cycles=30 first_tokens=30 proposed=75 accepted_draft=60 full=20 partial=0 miss_first=5 no_draft=5 "
    "no_room=0 invalid=0 errors=0 scheduler_skips=0 tail_skips=3"
)
"""30 cycles and 60 drafts are 90 tokens; the passes near the limit are in no total."""
NO_DRAFT = (
    "ds4: DSpark stats cycles=247 first_tokens=247 proposed=0 accepted_draft=0 full=0 partial=0 miss_first=0 "
    "no_draft=247 no_room=0 invalid=0 errors=0 scheduler_skips=223 tail_skips=8"
)
"""The figures of a run of 256 tokens that a user published: 247 + 8 + 1."""


@pytest.mark.parametrize(("tokens", "idle"), [(90, 5), (91, 6), (94, 9)])
def test_passes_that_are_no_cycle_are_passes_without_a_draft(tokens, idle):
    said = dspark_totals(lines(TAIL))
    found = told_of(said, tokens)
    assert list(_problems(said, tokens)) == []
    assert found["no_draft_rounds"].value == idle
    assert ("(inferred)" in found["no_draft_rounds"].source) is (tokens > 90), "what is inferred says so"
    assert found["tokens_per_round"].value == (25 + 60) / 25
    assert found["speculative_coverage"].value == (25 + 60) / tokens


def test_every_token_of_a_published_run_that_never_drafted_is_accounted_for():
    said = dspark_totals(lines(NO_DRAFT))
    assert list(_problems(said, 256)) == []
    found = told_of(said, 256)
    assert found["no_draft_rounds"].value == 256
    assert "247 cycles without a draft, and 9 tokens" in found["no_draft_rounds"].note


def test_an_end_of_text_that_was_a_draft_is_said_where_it_may_hide():
    said = dspark_totals(lines(TAIL))
    assert "where the end of text was a draft" in told_of(said, 93, at_end_of_text=True)["no_draft_rounds"].note
    assert told_of(said, 89)["tokens_per_round"].absent is Absence.NOT_REPORTED
    assert list(_problems(said, 89)) == []
    assert list(_problems(said, 88)) == ["ds4's lines account for 90 tokens, the text has 88"]


EXACT = (
    "ds4: DSpark stats cycles=22 first_tokens=22 proposed=42 accepted_draft=26 full=4 partial=3 miss_first=4 no_draft=11 "
    "no_room=0 invalid=0 errors=0"
)


def test_an_exact_cycle_of_dspark_that_refuses_prints_a_token_more():
    """22 cycles, 26 drafts and 7 tokens in the place of refused ones are 55 tokens."""
    said = dspark_totals(lines(EXACT), exact=True)
    found = told_of(said, 55)
    assert list(_problems(said, 55)) == []
    assert found["tokens_per_round"].value == 44 / 11
    assert found["speculative_coverage"].value == 44 / 55
    assert found["no_draft_rounds"].value == 11
    assert found["mean_accepted_length"].value == 26 / 11
    assert dspark_totals(lines(EXACT)).by_rounds == 37, "otherwise the next cycle begins with that token"


def test_without_outcomes_an_exact_run_gives_no_figure_that_needs_them():
    told = EXACT.replace("full=4 partial=3 miss_first=4 ", "")
    found = told_of(dspark_totals(lines(told), exact=True), 55)
    for metric in ("tokens_per_round", "speculative_coverage", "cut_rounds", "no_draft_rounds"):
        assert found[metric].absent is Absence.NOT_REPORTED
    assert found["acceptance_rate"].value == 26 / 42


# --- built-in MTP ----------------------------------------------------------------------------------------------------


def glm(result: str, committed: int) -> str:
    """As a branch prints a cycle."""
    return (
        f"ds4: glm mtp utility: width=2 pos=7 setup=1.0 ms verify[batch]=40.0 ms rollback=0.5 ms draft=4.0 ms other=1.0 ms "
        f"result={result} committed={committed} total=46.5 ms utility=1.0 tok/s-cycle"
    )


def cycle(word: str, text: str = " red") -> str:
    """As ds4 itself prints it (ds4.c at 000401c)."""
    return f"ds4: glm mtp cycle: verify2 40.0 ms, head+draft 4.0 ms, {word} (draft 7 '{text}' vs true 8 ' blue')"


def test_the_width_of_a_cycle_holds_its_own_token():
    said = embedded_cycles(lines(glm("ACCEPT", 2), glm("reject", 1), glm("ACCEPT", 2)))
    assert (said.drafted, said.accepted, said.rejected, said.cycles, said.replaced) == (3, 2, 1, 3, 0)
    assert said.verify_s == pytest.approx(0.12)


def test_the_line_of_a_cycle_is_read_as_ds4_prints_it():
    said = embedded_cycles(lines(cycle("ACCEPT"), cycle("reject"), cycle("ACCEPT", " a'"), cycle("ACCEPT", "(")))
    assert (said.drafted, said.accepted, said.rejected, said.cycles, said.replaced) == (4, 3, 1, 4, 0)
    assert said.verify_s == pytest.approx(0.16)
    assert said.draft_s is said.back_s is None, "a time that is not told is not 0"


@pytest.mark.parametrize("told", [(cycle("EXACT_ACCEPT"), cycle("exact_reject")), (glm("ACCEPT", 2), glm("reject", 2))])
def test_an_exact_cycle_that_refuses_prints_the_token_in_the_draft_s_place(told):
    """Both print two tokens; only one was a draft. Counted as accepted, acceptance would be 1."""
    said = embedded_cycles(lines(*told), exact=True)
    assert (said.drafted, said.accepted, said.rejected, said.replaced) == (2, 1, 1, 1)
    assert said.by_rounds == 4


def test_totals_without_refusals_do_not_tell_what_an_exact_cycle_prints():
    line = lines("ds4: Qwen3.8 mtp: 24 verify cycles, 30 drafts accepted (125.0%)")
    assert embedded_cycles(line).by_rounds == 54
    found = told_of(embedded_cycles(line, exact=True), 70)
    assert found["tokens_per_round"].absent is found["no_draft_rounds"].absent is Absence.NOT_REPORTED
    assert found["mean_accepted_length"].value == 30 / 24


def test_a_total_without_what_was_proposed_gives_no_acceptance():
    said = embedded_cycles(lines("ds4: Qwen3.8 mtp: 24 verify cycles, 30 drafts accepted (125.0%)"))
    assert (said.drafted, said.accepted, said.cycles) == (None, 30, 24)


def test_lines_are_read_in_their_generation_alone():
    """A May build has no ``--mtp-timing``: the same line there is not taken for a count."""
    pieces = [*SPOKEN, (3.4, "stderr", glm("ACCEPT", 2) + "\n" + DSPARK + "\n")]
    may = make_cell("ds4", mtp(2), generation="2026-05", tokens=2)
    found = {item.metric: item for item in ADAPTER.parse_trial(may, capture(pieces, IDS)).observations}
    assert found["drafted_tokens"].value == 0


# --- rates -----------------------------------------------------------------------------------------------------------


def times(cell, speed, tokens, prompt=10):
    return {item.metric: item for item in engine_times(cell, speed, tokens, prompt)}


def test_plain_decoding_makes_one_pass_less_than_tokens():
    found = times(make_cell(), Speed(100.0, 40.0), 64)
    assert found["engine_decode_time"].value == pytest.approx(64 / 40)
    assert found["engine_decode_rate"].value == pytest.approx(63 / 64 * 40)
    assert found["engine_decode_rate"].definition == "ds4:(n-1)/(n/generation rate)"


def test_where_each_token_is_evaluated_before_it_is_printed_nothing_is_taken_off():
    assert passes_of(make_cell(method=mtp(2), generation="2026-05"), 64) == 64
    assert passes_of(make_cell(sampling=WARM, generation="2026-05"), 64) == 64
    assert passes_of(make_cell(sampling=WARM, generation="2026-09"), 64) == 63
    assert passes_of(make_cell(sampling=GREEDY, generation="2026-05"), 64) == 63


def test_the_rate_of_few_tokens_is_not_given():
    assert times(make_cell(), Speed(100.0, 10077.8), 1)["engine_decode_rate"].absent is Absence.SUPPRESSED
    assert times(make_cell(), Speed(100.0, 40.0), LEAST_TOKENS - 1)["engine_decode_rate"].absent is Absence.SUPPRESSED
    assert times(make_cell(), Speed(100.0, 40.0), LEAST_TOKENS)["engine_decode_rate"].absent is None


def test_the_real_rate_of_one_token_is_nonsense_and_is_not_given():
    case = load_case(GOLDEN / "ds4" / "may-one-token")
    trial = case.trial_of(case.capture())
    assert read_run(trial, GENERATE).speed.generation > 100, "no such rate on a CPU: no pass was made"
    found = {item.metric: item for item in ADAPTER.parse_trial(case.cell, trial).observations}
    assert found["engine_decode_rate"].absent is Absence.SUPPRESSED
    assert found["output_tokens"].value == 1


@pytest.mark.parametrize(("rate", "given"), [(0.11, False), (0.49, False), (0.5, True), (39.41, True), (0.0, False)])
def test_a_rate_that_rounding_moves_is_not_given(rate, given):
    found = times(make_cell(), Speed(rate, rate), 64)
    for metric in ("engine_decode_rate", "engine_decode_time", "engine_prefill_time"):
        assert (found[metric].absent is None) is given


def test_a_prefill_rate_without_a_count_gives_no_time():
    assert times(make_cell(), Speed(100.0, 40.0), 64, None)["engine_prefill_time"].absent is Absence.NOT_REPORTED


# --- pieces, lines and loading ---------------------------------------------------------------------------------------


def test_progress_that_only_returns_the_carriage_is_read_line_by_line():
    run = read_run(capture(SPOKEN, IDS), GENERATE)
    texts = [line.text for line in run.lines]
    assert texts.count("ds4: gpu prefill layer 2/43") == 1
    assert "ds4: prefill 6/6 done" in texts
    assert run.prompt_tokens == 6


def test_a_character_that_two_reads_part_is_put_together():
    whole = "é".encode()
    events = [
        RawEvent(1.0, json.dumps({"stream": "stderr", "text": "ds4: metal backend initialized\n"})),
        RawEvent(2.0, json.dumps({"stream": "stdout", "hex": whole[:1].hex()})),
        RawEvent(2.1, json.dumps({"stream": "stdout", "hex": whole[1:].hex()})),
        RawEvent(2.2, json.dumps({"exit": 0})),
    ]
    run = read_run(
        TrialCapture(0, {"generate": StepCapture("generate", 0.0, "{}", tuple(events), 2.2)}, "", complete=True)
    )
    assert run.output.decode() == "é"


@pytest.mark.parametrize("code", [1, None, True, "0"])
def test_a_command_that_did_not_end_well_gives_no_number(code):
    with pytest.raises(CaptureError):
        ADAPTER.parse_trial(make_cell(generation="2026-05"), capture(SPOKEN, IDS, exit_code=code))


def test_an_answer_without_rates_gives_no_number():
    silent = [piece for piece in SPOKEN if "generation" not in piece[2]]
    with pytest.raises(CaptureError, match="did not print its rates"):
        ADAPTER.parse_trial(make_cell(generation="2026-05"), capture(silent, IDS))


# --- tokens of printed text ------------------------------------------------------------------------------------------


def test_the_newline_that_ends_the_output_is_not_the_model_s():
    parsed = ADAPTER.parse_trial(make_cell(generation="2026-05", tokens=48), capture(SPOKEN, IDS))
    assert parsed.token_ids == (7, 8)
    assert parsed.finish_reason == "eos"


def test_a_newline_that_makes_the_limit_whole_is_the_model_s():
    parsed = ADAPTER.parse_trial(make_cell(generation="2026-05", tokens=3), capture(SPOKEN, IDS))
    assert parsed.token_ids == (7, 8, 9)
    assert parsed.finish_reason == "length"


def test_tokens_of_another_text_are_refused():
    with pytest.raises(CaptureError, match="do not make up the answer"):
        ADAPTER.parse_trial(make_cell(generation="2026-05"), capture(SPOKEN, [(7, "Ġred"), (8, "Ġgreen"), (9, "Ċ")]))


@pytest.mark.parametrize("text", ["", "[1, 2]\n     1  a\n", "[1]\n     2  a\n", '["a"]\n     1  a\n', "nonsense"])
def test_a_dump_that_cannot_be_read_is_refused(text):
    with pytest.raises(CaptureError):
        read_dump(text.encode())


def test_the_spelling_of_the_vocabulary_is_undone():
    assert spelled_out("ĠÃ©Ċ") == " é\n".encode()
    assert spelled_out("<｜User｜>") == "<｜User｜>".encode()


def test_tokens_whose_pieces_come_together_are_one_burst():
    close = [*SPOKEN[:4], (3.1, "stdout", " red"), (3.1005, "stdout", " blue"), (3.2, "stdout", "\n"), SPOKEN[-1]]
    came = ADAPTER.arrivals(make_cell(generation="2026-05", tokens=3), capture(close, IDS))
    assert [arrival.burst for arrival in came.tokens] == ["b0", "b0", "b1"]
    assert came.burst_source == "inferred"


def test_the_text_of_a_run_and_of_its_dump_agree_in_the_real_capture():
    case = load_case(GOLDEN / "ds4" / "may-none")
    trial = case.trial_of(case.capture())
    answer = read_answer(read_run(trial), read_run(trial, "tokens"), 3)
    assert answer.text == " zero zero zero"
    assert len(answer.tokens) == 3


def test_decode_passes_that_do_not_fit_the_tokens_give_no_number():
    """In a real run of a model without merges 20 letters came back for 4 words: rates would have been five times as high."""
    evals = "".join(f"ds4: gpu decode eval {number} took 5.000 ms\n" for number in range(1, 6))
    pieces = [*SPOKEN[:-1], (3.25, "stderr", evals), SPOKEN[-1]]
    with pytest.raises(CaptureError, match="2 tokens by --dump-tokens, against the 5 decode passes"):
        ADAPTER.parse_trial(make_cell(generation="2026-05"), capture(pieces, IDS))
    assert ADAPTER.arrivals(make_cell(generation="2026-05"), capture(pieces, IDS)) is None


def test_more_tokens_than_were_asked_for_give_no_number():
    with pytest.raises(CaptureError, match="against the limit of 1"):
        ADAPTER.parse_trial(make_cell(generation="2026-05", tokens=1), capture(SPOKEN, IDS))


@pytest.mark.parametrize(
    ("told", "found"), [(["ds4: mtp spec miss first draft=1"] * 3, 0), (["ds4: mtp spec miss first draft=1"] * 4, 1)]
)
def test_lines_for_more_tokens_than_the_text_has_are_a_problem(told, found):
    """One more is the end-of-text token, which is judged and not printed."""
    pieces = [*SPOKEN, (3.4, "stderr", "".join(line + "\n" for line in told))]
    parsed = ADAPTER.parse_trial(make_cell(method=mtp(2), generation="2026-05"), capture(pieces, IDS))
    assert len(parsed.problems) == found


# --- conditions ------------------------------------------------------------------------------------------------------


def told(cell, captured):
    return {item.name: item for item in ADAPTER.conditions(cell, captured)}


def test_settings_that_thinking_ignores_are_changed():
    case = load_case(GOLDEN / "ds4" / "may-server-thinking")
    found = told(case.cell, case.trial_of(case.capture()))
    assert (found["temperature"].requested, found["temperature"].effective) == ("0", "1")
    assert found["temperature"].verdict is Honoured.CHANGED
    assert found["min_p"].verdict is Honoured.CHANGED
    assert found["top_p"].verdict is Honoured.HONOURED


def test_a_token_that_the_server_sends_in_two_events_is_one_token():
    case = load_case(GOLDEN / "ds4" / "may-server-thinking")
    trial = case.trial_of(case.capture())
    assert sum("reasoning_content" in event.data for event in trial.steps["request"].events) == 2
    parsed = ADAPTER.parse_trial(case.cell, trial)
    assert len(parsed.token_ids) == 1
    assert parsed.problems == ()
    assert parsed.text == "<unused105777>"


def test_context_and_backend_are_told_as_it_starts():
    for name in ("may-none", "may-server-mtp"):
        case = load_case(GOLDEN / "ds4" / name)
        found = {item.name: item for item in session_conditions(ADAPTER, case.cell, case.capture())}
        assert (found["context"].effective, found["context"].verdict) == ("256", Honoured.HONOURED)
        assert found["backend"].effective == "cpu"


def test_the_chat_template_that_ds4_always_applies_is_said():
    found = told(make_cell(generation="2026-05"), capture(SPOKEN, IDS))["prompt"]
    assert found.verdict is Honoured.CHANGED
    assert "chat template, thinking off" in found.effective


def test_a_seed_of_zero_is_another_one():
    cell = make_cell(sampling=WARM, generation="2026-09")
    asked = ["--temp", "0.8", "--seed", "2147483648"]
    found = told(cell, capture(SPOKEN, IDS, args=asked))["seed"]
    assert (found.requested, found.effective, found.verdict) == ("0", "2147483648", Honoured.CHANGED)
    assert told(cell, capture(SPOKEN, IDS, args=["--seed", "7"]))["seed"].verdict is Honoured.UNKNOWN
    assert "seed" not in told(make_cell(method=NONE), capture(SPOKEN, IDS, args=asked))


@pytest.mark.parametrize(
    ("line", "context", "backend"),
    [
        ("ds4: context buffers 17.65 MiB (ctx=8192, backend=metal, prefill_chunk=0)", "8192", "metal"),
        (
            "ds4: memory detail: ctx=8192 prefill_cap=4096 raw_kv_rows=4352 compressed_kv_rows=9 backend=metal",
            "8192",
            "metal",
        ),
        ("ds4: memory detail: ctx=4096 prefill_cap=4096 raw_kv_rows=4352 compressed_kv_rows=9", "4096", None),
        (
            "0919 07:04:58 ds4-server: context buffers 1.00 MiB (ctx=8192, backend=cuda, prefill_chunk=0)",
            "8192",
            "cuda",
        ),
        ("ds4: memory: KV 0.61 GiB (raw 0.36 + compressed 0.25) + buffers 0.25 GiB = 0.86 GiB context", None, None),
    ],
)
def test_context_and_backend_are_read_in_the_form_of_each_generation(line, context, backend):
    cell = make_cell(generation="2026-09", backend="metal")
    found = {item.name: item for item in _context(cell, f"ds4: x\n{line}\n")}
    assert (found["context"].effective, found["backend"].effective) == (context, backend)
    assert found["context"].verdict is (
        {"8192": Honoured.HONOURED, None: Honoured.UNKNOWN}.get(context, Honoured.CHANGED)
    )


def test_an_exact_verifier_that_does_not_exist_is_changed():
    cell = make_cell(method=mtp(4), generation="2026-05", quality=True)
    assert told(cell, capture(SPOKEN, IDS))["verifier"].verdict is Honoured.CHANGED
    assert "verifier" not in told(make_cell(method=mtp(2), generation="2026-05", quality=True), capture(SPOKEN, IDS))


def test_a_first_token_that_waits_for_its_own_pass_is_said():
    late = told(make_cell(method=mtp(2), generation="2026-05"), capture(SPOKEN, IDS))["first_token"]
    soon = told(make_cell(generation="2026-05"), capture(SPOKEN, IDS))["first_token"]
    assert (late.verdict, soon.verdict) == (Honoured.CHANGED, Honoured.HONOURED)
