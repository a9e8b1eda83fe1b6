"""Greedy identity: the table of verdicts, the counts, and the replay that tells a near-tie from a fault."""

from __future__ import annotations

import pytest

from orchestrator.exactness.greedy import greedy_identity
from orchestrator.exactness.neartie import Replay, Tie, adjudicate
from orchestrator.schema.record import Phase
from orchestrator.schema.result import Divergence, GreedyIdentity, Output, Verdict

BASE, CELL, TWIN = "e/m/none", "e/m/draft", "e/m/none~twin"


def out(
    cell: str,
    ids: tuple[int, ...],
    *,
    prompt: str = "p",
    session: int = 0,
    attempt: int = 1,
    phase: Phase = Phase.MEASURED,
) -> Output:
    return Output(cell, attempt, session, 0, phase, prompt, ids, "·".join(map(str, ids)))


def judge(
    *outputs: Output, exact: bool = False, replays: tuple[Replay, ...] = (), jitter: float | None = None
) -> GreedyIdentity:
    return greedy_identity(CELL, BASE, outputs, TWIN, numerics_exact=exact, replays=replays, jitter_nat=jitter)


SAME = (out(BASE, (1, 2, 3)), out(BASE, (1, 2, 3), session=1), out(TWIN, (1, 2, 3)), out(CELL, (1, 2, 3)))
FLIP = (*SAME, out(CELL, (1, 9, 3), session=1))


def replay(top: tuple[tuple[int, float], ...], prefix: tuple[int, ...] = (1,)) -> Replay:
    return Replay("p", len(prefix), prefix, top)


def test_all_equal_is_bit_exact() -> None:
    found = judge(*SAME)
    assert (found.verdict, found.same, found.compared) == (Verdict.PASS, 1, 1)
    assert (found.control_same, found.control_compared) == (2, 2)
    assert (found.flips_per_1000, found.divergences) == (0.0, ())
    assert found.evidence == "bit-exact: 1/1 outputs token for token those of the baseline (control 2/2 equal)"


def test_a_difference_is_counted_and_shown_and_not_called_a_failure_unadjudicated() -> None:
    found = judge(*FLIP)
    assert found.verdict is Verdict.UNINFORMATIVE
    assert (found.same, found.compared) == (1, 2)
    # Tokens up to the flip: 3 of the equal output and 2 of the other.
    assert found.flips_per_1000 == pytest.approx(200.0)
    why = "p at token 1: no replay on the baseline"
    parted = Divergence("p", 1, 3, (1, 2, 3), (1, 9, 3), "1·2·3", "1·9·3", "not adjudicated", why)
    assert found.divergences == (parted,)
    assert found.evidence.startswith("differs; near-tie not adjudicated: 1/2 outputs")
    assert "first difference at token 1" in found.evidence


def test_exact_numerics_leave_no_near_tie() -> None:
    found = judge(*FLIP, exact=True)
    assert found.verdict is Verdict.FAIL
    assert found.evidence.startswith("divergent: ")


@pytest.mark.parametrize("exact", [False, True])
def test_a_baseline_that_differs_from_itself_says_nothing(exact: bool) -> None:
    for extra in (out(BASE, (1, 2, 4), session=2), out(TWIN, (1, 2, 4), session=2)):
        found = judge(*FLIP, extra, exact=exact)
        assert found.verdict is Verdict.UNINFORMATIVE
        assert (found.control_same, found.control_compared) == (2, 3)
        # 2 equal outputs of 3 tokens and one that parts at its third: 1 flip in 9 tokens.
        assert found.evidence == (
            "the baseline differs from itself in 1 of 3 outputs, 111 per 1 000 tokens: says nothing about speculation"
        )


@pytest.mark.parametrize("exact", [False, True])
def test_a_difference_without_a_control_is_never_a_failure(exact: bool) -> None:
    found = judge(out(BASE, (1, 2)), out(CELL, (1, 3)), exact=exact)
    assert (found.verdict, found.control_compared) == (Verdict.UNINFORMATIVE, 0)
    assert "no control" in found.evidence


def test_equality_without_a_control_passes_and_says_so() -> None:
    found = judge(out(BASE, (1, 2)), out(CELL, (1, 2)))
    assert (found.verdict, found.control_compared) == (Verdict.PASS, 0)
    assert "no control" in found.evidence


def test_what_cannot_be_compared_is_not_tested() -> None:
    empty = judge(out(BASE, ()), out(CELL, ()))
    warm = judge(out(BASE, (1,)), out(CELL, (1,), phase=Phase.WARMUP))
    other_attempt = judge(out(BASE, (1,)), out(CELL, (1,), attempt=2))
    for found in (empty, warm, other_attempt, judge()):
        assert (found.verdict, found.compared, found.flips_per_1000) == (Verdict.NOT_TESTED, 0, None)
    assert "1 prompts have no output of the baseline" in other_attempt.evidence


def test_a_prefix_is_a_difference_at_its_end() -> None:
    found = judge(*SAME, out(CELL, (1, 2), session=1))
    assert [(one.index, one.length) for one in found.divergences] == [(2, 2)]
    assert found.verdict is Verdict.UNINFORMATIVE


def test_equal_divergences_are_listed_once_and_counted_each() -> None:
    found = judge(*FLIP, out(CELL, (1, 9, 3), session=2), out(CELL, (1, 9, 4), session=3))
    assert (found.compared - found.same, len(found.divergences)) == (3, 2)


def test_the_order_of_outputs_never_matters() -> None:
    mixed = (*FLIP, out(CELL, (5,), prompt="q"), out(BASE, (6,), prompt="q"), out(TWIN, (6,), prompt="q"))
    assert judge(*mixed) == judge(*reversed(mixed))


def test_a_near_tie_by_replay_passes_and_is_called_one() -> None:
    found = judge(*FLIP, replays=(replay(((2, -0.65), (9, -0.746))),))
    assert found.verdict is Verdict.PASS
    assert found.evidence.startswith("near-tie: ")
    assert "0.096 nat below the baseline's best token, assumed jitter 0.1 nat" in found.evidence


def test_a_replay_that_sees_no_tie_fails_even_beside_an_open_one() -> None:
    other = (out(BASE, (6, 7), prompt="q"), out(TWIN, (6, 7), prompt="q"), out(CELL, (6, 8), prompt="q"))
    found = judge(*FLIP, *other, replays=(replay(((2, -0.1), (9, -3.0))),))
    assert found.verdict is Verdict.FAIL
    assert "2.900 nat below" in found.evidence


def test_one_open_difference_keeps_the_verdict_open() -> None:
    other = (out(BASE, (6, 7), prompt="q"), out(TWIN, (6, 7), prompt="q"), out(CELL, (6, 8), prompt="q"))
    found = judge(*FLIP, *other, replays=(replay(((2, -0.65), (9, -0.7))),))
    assert found.verdict is Verdict.UNINFORMATIVE


CASE = Divergence("p", 1, 3, (1, 2, 3), (1, 9, 3), "", "")


@pytest.mark.parametrize(
    ("top", "jitter", "tie"),
    [
        (((2, -0.65), (9, -0.70)), None, Tie.NEAR_TIE),
        (((9, -0.65), (2, -0.70)), None, Tie.NEAR_TIE),
        (((2, -0.65), (9, -0.70)), 0.01, Tie.DIVERGENT),
        (((2, -0.65), (9, -1.65)), None, Tie.DIVERGENT),
        (((2, -0.65), (9, -1.65)), 1.5, Tie.NEAR_TIE),
        # Of three tokens that are almost tied rounding may take any; rank decides nothing.
        (((2, -0.65), (5, -0.70), (9, -0.71)), None, Tie.NEAR_TIE),
        (((2, -0.65), (5, -0.70), (9, -0.76)), None, Tie.DIVERGENT),
        (((5, -0.65), (2, -0.66), (9, -0.67)), 0.03, Tie.NEAR_TIE),
        (((5, -0.65), (2, -0.66), (9, -0.69)), 0.03, Tie.DIVERGENT),
        (((5, -0.65), (2, -0.70)), None, Tie.DIVERGENT),
        # These replays do not give the baseline's own token back: nothing can be built on them.
        (((9, -0.65), (2, -1.65)), None, Tie.OPEN),
        (((5, -0.65), (9, -0.70)), None, Tie.OPEN),
        (((2, -0.65),), None, Tie.OPEN),
    ],
)
def test_adjudication(top: tuple[tuple[int, float], ...], jitter: float | None, tie: Tie) -> None:
    assert adjudicate(CASE, (replay(top),), jitter).tie is tie


def test_a_replay_of_another_place_is_ignored() -> None:
    tie = ((2, -0.65), (9, -0.70))
    wrong = (Replay("q", 1, (1,), tie), Replay("p", 2, (1, 2), tie), Replay("p", 1, (7,), tie))
    assert adjudicate(CASE, wrong).tie is Tie.OPEN
    assert adjudicate(CASE, (*wrong, replay(tie))).tie is Tie.NEAR_TIE


def test_an_output_that_ends_early_cannot_be_ranked() -> None:
    early = Divergence("p", 1, 1, (1,), (1, 9), "", "")
    assert adjudicate(early, (replay(((2, -0.65), (9, -0.70))),)).tie is Tie.OPEN
