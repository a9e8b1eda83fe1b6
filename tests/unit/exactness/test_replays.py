"""Which replays answers call for, what they say of jitter, and cross-scoring from the journal's lines."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.exactness.cross import cross_scored
from orchestrator.exactness.neartie import JITTER_FLOOR_NAT, jitter_limit
from orchestrator.exactness.replays import (
    JITTER_PLACES,
    MOST_DIVERGENCES,
    MOST_TEXTS,
    Replayed,
    gap_of,
    replayed,
    scored_answers,
    wanted,
    worst_rank,
)
from orchestrator.report.analysis.checks import run_checks
from orchestrator.schema.cell import Role
from orchestrator.schema.codec import dump_record, load_record
from orchestrator.schema.record import Phase, ReplayRecord
from orchestrator.schema.replay import Purpose, Ranked, Width
from orchestrator.schema.result import Output, Verdict
from orchestrator.schema.status import Status
from orchestrator.store.index import Index
from orchestrator.store.states import CellState

BASE, CELL, BLOCK = "e/m/none/greedy/w", "e/m/draft/greedy/w", "e/m/greedy/w"
SETTINGS = {
    "engine": {"name": "e"},
    "method": {"kind": "draft"},
    "sampling": {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
}
TEXT = tuple(range(100, 140))


class Trial:
    """As much of a trial record as outputs are made of."""

    def __init__(self, cell: str, ids: tuple[int, ...], prompt: str, number: int) -> None:
        self.place = type("P", (), {"cell": cell, "attempt": 1, "set_index": 0})()
        self.trial, self.phase, self.prompt_id, self.token_ids, self.text = number, "measured", prompt, ids, ""
        self.observations = ()


def state(cell: str, role: Role, answers: dict[str, tuple[int, ...]], temperature: float = 0.0) -> CellState:
    trials = tuple(Trial(cell, ids, prompt, n) for n, (prompt, ids) in enumerate(answers.items()))
    settings = {**SETTINGS, "sampling": {**SETTINGS["sampling"], "temperature": temperature}}
    return CellState(
        cell,
        BLOCK,
        role,
        BASE,
        "f",
        Status.OK,
        "",
        "",
        1,
        1,
        1,
        (),
        trials,
        (),
        (),
        (),
        (),
        (),
        None,
        settings,
        None,
        (),
    )


def index(
    off: dict[str, tuple[int, ...]], on: dict[str, tuple[int, ...]], *replays: ReplayRecord, warm: float = 0.0
) -> Index:
    cells = {BASE: state(BASE, Role.BASELINE, off, warm), CELL: state(CELL, Role.SPECULATIVE, on, warm)}
    return Index(None, cells, {}, (), replays)


def wants(found: Index, *, scoring: bool = False):
    return wanted(found, BLOCK, adjudicate=True, scoring=scoring, scoring_width=Width.SINGLE, cells=frozenset({CELL}))


def flipped(ids: tuple[int, ...], at: int, to: int = 7) -> tuple[int, ...]:
    return (*ids[:at], to, *ids[at + 1 :])


def line(want, ranked=(), status=Status.OK, reason=""):
    return ReplayRecord(
        want.block,
        want.attempt,
        BASE,
        "f",
        want.purpose,
        want.about,
        want.prompt_id,
        want.ids,
        want.places,
        want.width,
        want.full,
        tuple(ranked),
        status,
        reason,
        0.1,
        "x",
        "now",
    )


def row(place: int, *top: tuple[int, float], logprob=None, rank=None) -> Ranked:
    return Ranked(place, top, logprob, rank, None, None)


def test_equal_answers_call_for_nothing() -> None:
    assert wants(index({"p": TEXT}, {"p": TEXT})) == ()


def test_a_difference_calls_for_its_own_place_and_for_the_jitter() -> None:
    found = wants(index({"p": TEXT}, {"p": flipped(TEXT, 5)}))
    assert [one.purpose for one in found] == [Purpose.JITTER, Purpose.JITTER, Purpose.DIVERGENCE]
    assert (found[2].ids, found[2].places, found[2].width) == (TEXT[:5], (5,), Width.BATCHED)
    single, batched = found[0], found[1]
    assert single.places == tuple(range(40))
    assert (len(batched.places), batched.places[-1]) == (JITTER_PLACES, 39)
    assert set(batched.places) <= set(single.places)


def test_what_was_replayed_is_not_replayed_again_whatever_came_of_it() -> None:
    before = index({"p": TEXT}, {"p": flipped(TEXT, 5)})
    made = [line(want, status=Status.FAILED, reason="it died") for want in wants(before)]
    after = replace(before, replays=tuple(made))
    assert wants(after) == ()
    assert replayed(after, after.cells[CELL]).failures == ("it died",)
    assert wants(replace(before, replays=tuple(made[1:])))[0].width is Width.SINGLE


@pytest.mark.parametrize(
    "on",
    [TEXT[:5], flipped((*TEXT[:3], -2, *TEXT[4:]), 9), flipped(TEXT, 5, to=-9)],
    ids=["ends early", "a withheld id before", "a withheld id there"],
)
def test_what_no_replay_can_rank_is_not_asked(on: tuple[int, ...]) -> None:
    off = on[:9] + TEXT[9:] if -2 in on else TEXT
    assert wants(index({"p": off}, {"p": on})) == ()


def test_the_count_is_bounded_over_all_runs() -> None:
    off = {f"p{n}": TEXT for n in range(40)}
    first = index(off, {name: flipped(ids, 5 + n % 20) for n, (name, ids) in enumerate(off.items())})
    asked = [want for want in wants(first) if want.purpose is Purpose.DIVERGENCE]
    assert len(asked) == MOST_DIVERGENCES
    assert wants(replace(first, replays=tuple(line(want) for want in wants(first)))) == ()


def test_a_text_of_both_arms_is_scored_once_and_its_unknown_end_is_left_out() -> None:
    off = {"p": TEXT, "q": (*TEXT[:20], -2, 5)}
    found = [want for want in wants(index(off, off), scoring=True) if want.purpose is Purpose.SCORING]
    assert [(want.about, len(want.ids), want.full) for want in found] == [(BASE, 40, False), (BASE, 20, False)]
    drawn = wants(index(off, {"p": TEXT[:30]}, warm=0.8), scoring=True)
    assert [(want.about, want.full) for want in drawn] == [(BASE, True), (BASE, True), (CELL, True)]


def test_jitter_is_three_times_the_largest_change_of_a_gap_with_a_floor() -> None:
    single = [((1, -0.5), (2, -1.0))] * 8
    assert jitter_limit(single, [((1, -0.5), (2, -1.0))] * 8) == JITTER_FLOOR_NAT
    moved = [*[((1, -0.5), (2, -1.0))] * 7, ((2, -0.60), (1, -0.62))]
    assert jitter_limit(single, moved) == pytest.approx(3 * 0.52)
    assert jitter_limit(single[:7], single[:7]) is None


def near(gap: float, moved: float) -> Index:
    """One difference whose two tokens are ``gap`` apart, on an engine whose jitter is ``moved``."""
    before = index({"p": TEXT}, {"p": flipped(TEXT, 5)})
    made = []
    for want in wants(before):
        if want.purpose is Purpose.DIVERGENCE:
            made.append(line(want, [row(5, (TEXT[5], -0.7), (7, -0.7 - gap), (3, -9.0))]))
        else:
            shift = moved if want.width is Width.BATCHED else 0.0
            made.append(line(want, [row(place, (1, -0.5), (2, -1.5 - shift)) for place in want.places]))
    return replace(before, replays=tuple(made))


def test_from_the_journal_to_the_verdict_with_margin_and_limit() -> None:
    found = run_checks(near(0.05, 0.02)).identities[CELL]
    assert (found.verdict, found.evidence.partition(":")[0]) == (Verdict.PASS, "near-tie")
    (one,) = found.divergences
    assert (one.tie, one.margin_nat, one.limit_nat) == ("near-tie", pytest.approx(0.05), pytest.approx(0.06))
    far = run_checks(near(0.07, 0.02)).identities[CELL]
    assert far.verdict is Verdict.FAIL
    assert far.divergences[0].tie == "divergent"


def scored(*tokens: Ranked, ids=TEXT, about=CELL) -> ReplayRecord:
    where = tuple(range(len(tokens)))
    return ReplayRecord(
        BLOCK,
        1,
        BASE,
        "f",
        Purpose.SCORING,
        about,
        "p",
        ids[: len(tokens)],
        where,
        Width.SINGLE,
        False,
        tokens,
        Status.OK,
        "",
        0.1,
        "x",
        "now",
    )


def best(place: int) -> Ranked:
    return row(place, (TEXT[place], -0.1), (7, -2.5), logprob=-0.1, rank=1)


def judge(*last: Ranked, limit: float | None = None) -> Verdict:
    theirs = flipped(TEXT[:6], 5)
    records = (
        scored(*map(best, range(6)), ids=TEXT[:6], about=BASE),
        scored(*map(best, range(5)), *last, ids=theirs),
    )
    told = Replayed((), limit, (), records)
    texts = {BASE: [("p", TEXT[:6])], CELL: [("p", theirs)]}
    return cross_scored(index({}, {}).cells[CELL], told, texts).verdict


def test_a_greedy_text_passes_while_each_token_is_the_best_or_tied_with_it() -> None:
    assert judge(row(5, (TEXT[5], -0.7), (7, -0.75), logprob=-0.75, rank=2)) is Verdict.PASS
    assert judge(row(5, (TEXT[5], -0.7), (7, -0.75), logprob=-0.75, rank=2), limit=0.01) is Verdict.FAIL
    assert judge(row(5, (TEXT[5], -0.7), (7, -3.0), logprob=-3.0, rank=2)) is Verdict.FAIL
    assert judge(row(5, (TEXT[5], -0.7), (8, -3.0))) is Verdict.FAIL  # not among what the engine told


def test_without_scored_text_nothing_was_tested() -> None:
    none = cross_scored(index({}, {}).cells[CELL], Replayed((), None, ("no way",), ()), {})
    assert (none.verdict, "no way" in none.evidence) == (Verdict.NOT_TESTED, True)


def drawn(outside: int, *, truncated: bool) -> Verdict:
    half = Ranked(0, ((1, math.log(0.5)), (2, math.log(0.5))), math.log(0.5), 1, math.log(2), 0.25)
    lost = Ranked(0, ((1, math.log(0.5)), (2, math.log(0.5))), None, None, math.log(2), 0.25)
    own = replace(scored(*[half] * 40, ids=TEXT, about=BASE), full=True)
    theirs = replace(scored(*[lost] * outside, *[half] * (40 - outside), ids=TEXT[::-1]), full=True)
    cell = index({}, {}, warm=0.8).cells[CELL]
    if truncated:
        cell = replace(cell, settings={**cell.settings, "sampling": {**cell.settings["sampling"], "top_k": 2}})
    texts = {BASE: [("p", TEXT)], CELL: [("p", TEXT[::-1])]}
    return cross_scored(cell, Replayed((), None, (), (own, theirs)), texts).verdict


@pytest.mark.parametrize(
    ("outside", "truncated", "verdict"),
    [
        (0, False, Verdict.PASS),
        (1, False, Verdict.FAIL),
        (1, True, Verdict.PASS),  # at the border of a truncated distribution rounding decides
        (2, True, Verdict.FAIL),
    ],
)
def test_a_token_that_cannot_be_drawn(outside: int, truncated: bool, verdict: Verdict) -> None:
    assert drawn(outside, truncated=truncated) is verdict


def out(cell: str, ids: tuple[int, ...], number: int, prompt: str = "p") -> Output:
    return Output(cell, 1, number // 3, number % 3, Phase.MEASURED, prompt, ids, "")


def test_above_temperature_0_the_first_answers_count_each_time_that_they_were_given() -> None:
    # A rule that took distinct answers would take the rare ones: unlikely text, and an exact engine fails.
    given = [*[(1, 1)] * 5, (1, 2), *[(1, 1)] * 20, (2, 2)]
    ours = [out(CELL, ids, number) for number, ids in enumerate(given)]
    assert scored_answers(ours[::-1], CELL, greedy=False) == tuple(("p", ids) for ids in given[:MOST_TEXTS])
    assert scored_answers(ours, CELL, greedy=True) == (("p", (1, 1)), ("p", (1, 2)), ("p", (2, 2)))


def test_exact_samplers_pass_without_a_bias_from_answers_to_verdict() -> None:
    # 24 answers of 20 tokens from a distribution so sharp that most are equal.
    likely, length, repeats = 0.97, 20, 100
    probs = (likely, *[(1 - likely) / 3] * 3)
    logs = [math.log(p) for p in probs]
    entropy = -sum(p * log for p, log in zip(probs, logs, strict=True))
    variance = sum(p * log**2 for p, log in zip(probs, logs, strict=True)) - entropy**2
    top = tuple(enumerate(logs))
    ranks = [Ranked(0, top, log, rank + 1, entropy, variance) for rank, log in enumerate(logs)]
    cell, generator, verdicts = index({}, {}, warm=0.8).cells[CELL], np.random.default_rng(13), Counter[Verdict]()
    told: list[float] = []
    for _ in range(repeats):
        drawn = {name: generator.choice(4, (24, length), p=probs) for name in (BASE, CELL)}
        ours = [
            out(name, tuple(map(int, row)), number, f"p{number % 3}")
            for name, rows in drawn.items()
            for number, row in enumerate(rows)
        ]
        answers = {name: scored_answers(ours, name, greedy=False) for name in (BASE, CELL)}
        records = tuple(
            replace(scored(*[ranks[token] for token in ids], ids=TEXT), ids=ids, prompt_id=prompt, full=True)
            for prompt, ids in dict.fromkeys((*answers[BASE], *answers[CELL]))
        )
        found = cross_scored(cell, Replayed((), None, (), records), answers)
        verdicts[found.verdict] += 1
        told.append(float(found.evidence.rpartition(" ")[2]))
    assert verdicts == {Verdict.PASS: repeats}
    # Four standard errors of the mean of z: which answers count hangs on no text. Distinct ones alone are 1.5 off.
    assert abs(np.mean(told)) < 4 / math.sqrt(repeats)


def test_an_answer_that_could_not_be_scored_leaves_drawn_text_untested() -> None:
    half = Ranked(0, ((1, math.log(0.5)), (2, math.log(0.5))), math.log(0.5), 1, math.log(2), 0.25)
    records = (replace(scored(*[half] * 6, ids=TEXT), full=True), replace(scored(*[half] * 5, ids=TEXT), full=True))
    cell = index({}, {}, warm=0.8).cells[CELL]
    answers = {BASE: (("p", TEXT[:6]),), CELL: (("p", TEXT[:5]), ("q", TEXT[:5]))}
    found = cross_scored(cell, Replayed((), None, ("it died",), records), answers)
    assert (found.verdict, found.evidence) == (
        Verdict.NOT_TESTED,
        "not tested: 1 of 3 answers are not scored: it died",
    )


def test_what_the_engine_did_not_tell_is_as_bad_as_can_be() -> None:
    assert gap_of(row(0, (1, -0.1))) == math.inf
    assert worst_rank(row(0, (1, -0.1))) > 10**5


def test_a_replay_is_a_line_of_the_journal_that_reads_back() -> None:
    for record in near(0.05, 0.02).replays:
        assert load_record(dump_record(record), "here") == record
