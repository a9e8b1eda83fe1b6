"""Paired right and wrong answers: the exact test against numbers from a printed binomial table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest

from orchestrator.stats import flips
from orchestrator.stats.flips import sign_flips
from orchestrator.stats.tasks import (
    MCNEMAR,
    SIGN_FLIP,
    PairedTruth,
    State,
    detectable,
    mcnemar,
    net_loss_limit,
    paired_truth,
)


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 32),
        (6, 0, 2 / 64),
        (0, 6, 2 / 64),
        (3, 3, 1.0),
        (10, 2, 2 * (1 + 12 + 66) / 4096),
        (1, 8, 2 * (1 + 9) / 512),
    ],
)
def test_p_is_that_of_fair_coins(lost: int, gained: int, p: float) -> None:
    assert mcnemar(lost, gained) == pytest.approx(p, abs=1e-12)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="lost=-1"):
        mcnemar(-1, 2)


@pytest.mark.parametrize("n", [6, 20, 100, 1_000])
def test_the_loss_that_n_can_show_has_the_power_it_is_said_to_have(n: int) -> None:
    share = detectable(n)
    assert share is not None
    # Six lost and none gained is the least that is significant at 5 %: 2 ÷ 64.
    power = 1 - sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(6))
    assert power == pytest.approx(0.9, abs=1e-6)


STATES = {"R": State.RIGHT, "W": State.WRONG, "S": State.SO_FAR, "U": State.UNTOLD}


def arm(**prompts: str) -> list[tuple[str, State]]:
    """Each prompt with its trials, one letter each."""
    return [(prompt, STATES[letter]) for prompt, letters in prompts.items() for letter in letters]


def compared(on: Sequence[tuple[str, State]], off: Sequence[tuple[str, State]], *, greedy: bool = True) -> PairedTruth:
    found = paired_truth(on, off, greedy=greedy)
    assert found is not None
    return found


def test_a_hundred_tasks_show_nine_points_and_five_show_nothing() -> None:
    share = detectable(100)
    assert share is not None
    assert round(100 * share) == 9
    assert detectable(5) is None
    assert detectable(0) is None


def test_prompts_are_the_unit_however_often_they_are_repeated() -> None:
    once, off = arm(a="R", b="W", c="R"), arm(a="R", b="R", c="R")
    one, many = compared(once, off), compared(once * 8, off * 8)
    assert (one.n, one.on, one.off, one.lost, one.gained, one.test) == (3, 2, 3, 1, 0, MCNEMAR)
    assert (many.n, many.p_value, many.detectable) == (one.n, one.p_value, one.detectable)
    assert (one.trials_on, many.trials_on, many.trials_off) == (3, 24, 24)


def test_a_greedy_prompt_counts_by_most_of_its_trials_and_a_tie_is_no_majority() -> None:
    found = compared(arm(a="RRW", b="RW"), arm(a="W", b="R"))
    assert (found.n, found.on, found.off, found.lost, found.gained, found.mixed) == (2, 1, 1, 1, 1, 2)


def test_only_prompts_of_both_arms_are_compared() -> None:
    found = compared(arm(a="R", b="R"), arm(b="W", c="R"))
    assert (found.n, found.gained) == (1, 1)
    assert paired_truth(arm(a="R"), arm(b="R"), greedy=True) is None
    assert paired_truth([], [], greedy=False) is None


@pytest.mark.parametrize(
    ("on", "off", "lost", "gained", "undetermined"),
    [
        ("W", "S", 1, 0, 0),
        ("S", "W", 0, 1, 0),
        ("S", "S", 0, 0, 1),
        ("R", "S", 0, 0, 1),
        ("S", "R", 0, 0, 1),
        ("R", "R", 0, 0, 0),
        ("W", "U", 0, 0, 1),
        ("U", "U", 0, 0, 1),
        ("U", "R", 0, 0, 1),
    ],
)
@pytest.mark.parametrize("greedy", [True, False])
def test_a_cut_answer_is_held_against_a_wrong_one(
    on: str, off: str, lost: int, gained: int, undetermined: int, greedy: bool
) -> None:
    found = compared(arm(a=on), arm(a=off), greedy=greedy)
    assert (found.lost, found.gained, found.undetermined) == (lost, gained, undetermined)
    assert found.n == (0 if "U" in on + off else 1)


def test_what_was_cut_stays_in_the_share_that_is_right() -> None:
    names = "abcdefghij"
    found = compared(arm(**dict.fromkeys(names[:8], "S"), i="W", j="W"), arm(**dict.fromkeys(names, "S")))
    # Not "0 of 2 beside 2 of 2": of ten, none to eight are right beside none to ten.
    assert (found.n, found.on, found.open_on, found.off, found.open_off) == (10, 0, 8, 0, 10)
    assert (found.lost, found.gained, found.undetermined, found.p_value) == (2, 0, 8, 0.5)


def test_drawn_answers_are_compared_by_their_mean_rates() -> None:
    on = arm(**{f"p{n}": "RRWWW" for n in range(8)})
    off = arm(**{f"p{n}": "RRRWW" for n in range(8)})
    found = compared(on, off, greedy=False)
    # By majorities it would be 0 of 8 beside 8 of 8; it is 40 % beside 60 %.
    assert (found.on / found.n, found.off / found.n) == pytest.approx((0.4, 0.6))
    assert (found.test, found.lost, found.p_value) == (SIGN_FLIP, 8, 2 / 2**8)
    uneven = compared(arm(a="WWWW", b="WWWW", c="RRRR"), arm(a="RRRR", b="RRRR", c="RRRW"), greedy=False)
    # Two wholes lost and a quarter gained: four of eight sets of signs have a sum as far from nothing or farther.
    assert (uneven.lost, uneven.gained, uneven.p_value) == (2, 1, 0.5)
    # All of them lost something, and how much is not part of the limit.
    assert found.net_loss_limit == 1.0


@pytest.mark.parametrize(
    "differences",
    [
        [0.25, -0.5, 0.75, 0.25, 0.0, -0.25],
        [1 / 3, 1 / 2, -1 / 6, 2 / 3],
        [1.0] * 6,
        [-0.2, 0.2],
    ],
)
def test_sign_flips_are_those_that_counting_all_of_them_gives(differences: list[float]) -> None:
    left = [one for one in differences if one]
    sums = [
        abs(sum(map(math.prod, zip(left, signs, strict=True))))
        for signs in itertools.product((1, -1), repeat=len(left))
    ]
    expected = sum(one >= abs(sum(left)) - 1e-9 for one in sums) / len(sums)
    assert sign_flips(differences) == pytest.approx(expected, abs=1e-12)


def test_without_a_difference_there_is_nothing_to_flip() -> None:
    assert sign_flips([]) == sign_flips([0.0, 0.0]) == 1.0


def test_where_counting_would_take_too_long_signs_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = [0.25, 0.25, 0.5, -0.25, 0.5, 0.75, 0.25]
    exact = sign_flips(differences)
    monkeypatch.setattr(flips, "MOST_STEPS", 1)
    assert sign_flips(differences) == pytest.approx(exact, abs=0.01)
    assert sign_flips(differences) == sign_flips(differences)


def test_only_what_is_right_without_it_could_have_been_lost() -> None:
    names = [f"p{n}" for n in range(100)]
    off = arm(**{name: "R" if n < 5 else "W" for n, name in enumerate(names)})
    found = compared(off, off)
    assert (found.n, found.losable, found.detectable) == (100, 5, None)
    more = compared(off, arm(**{name: "S" if n < 20 else "W" for n, name in enumerate(names)}))
    assert (more.losable, more.detectable) == (20, detectable(20))


@pytest.mark.parametrize(
    ("lost", "gained", "n", "whole", "limit"),
    [
        (0, 0, 10, True, 1 - 0.025 ** (1 / 10)),
        (0, 0, 10, False, 1 - 0.05 ** (1 / 10)),
        (0, 10, 10, True, 1 - 0.025 ** (1 / 10) - 0.025 ** (1 / 10)),
        (10, 0, 10, True, 1.0),
        # Printed tables: 2 of 20 has the 95 % interval 1.2 % to 31.7 %, 4 of 20 5.7 % to 43.7 %.
        (2, 0, 20, True, 0.317),
        (4, 2, 20, True, 0.437 - 0.0123),
    ],
)
def test_the_limit_of_the_net_loss_is_clopper_and_pearsons(
    lost: int, gained: int, n: int, whole: bool, limit: float
) -> None:
    assert net_loss_limit(lost, gained, n, whole=whole) == pytest.approx(limit, abs=6e-4)


def test_the_limit_of_the_net_loss_holds_as_often_as_it_says() -> None:
    n, lose, gain = 25, 0.12, 0.08
    held = 0.0
    for lost in range(n + 1):
        for gained in range(n - lost + 1):
            ways = math.comb(n, lost) * math.comb(n - lost, gained)
            chance = ways * lose**lost * gain**gained * (1 - lose - gain) ** (n - lost - gained)
            held += chance * (net_loss_limit(lost, gained, n, whole=True) >= lose - gain)
    assert held >= 0.95


def test_counts_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="no limit"):
        net_loss_limit(3, 3, 5, whole=True)
