"""A/A floors, the canary, and when answers count as equally long."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from orchestrator.stats.length import length_comparable
from orchestrator.stats.noise import canary, noise_floor


def arm(logs: list[float], prompt: str = "a") -> pd.DataFrame:
    rows = [(s, prompt, math.exp(log)) for s, log in enumerate(logs)]
    return pd.DataFrame(rows, columns=["set_index", "prompt_id", "value"])


def zeros(count: int) -> pd.DataFrame:
    return arm([0.0] * count)


def tokens(rows: list[tuple[int, str, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["set_index", "prompt_id", "value"])


def test_floor_known_answer() -> None:
    # sd 0.02, t(0.975, 2) = 4.302653: half = 4.302653 × 0.02 ÷ √3 = 0.0496828.
    found = noise_floor(arm([-0.02, 0.0, 0.02]), zeros(3))
    assert found.half_width == pytest.approx(math.expm1(0.0496828), rel=1e-5)
    assert not found.inconclusive
    assert found.ratio is not None
    assert found.ratio.point == pytest.approx(1.0)
    assert found.reason == "A/A 1.00× [0.95, 1.05]"


def test_a_twin_that_differs_makes_the_block_inconclusive() -> None:
    # t(0.995, 3) = 5.8409: mean 0.05, half = 5.8409 × 0.008165 ÷ 2 = 0.02385.
    found = noise_floor(arm([0.04, 0.05, 0.06, 0.05]), zeros(4))
    assert found.inconclusive
    assert "99 % interval" in found.reason
    # The 95 % interval excludes 1 here and the 99 % one does not: no alarm.
    # sd 0.02, t(0.975, 3) = 3.1824 → half 0.0318; t(0.995, 3) → 0.0584; mean 0.04.
    assert not noise_floor(arm([0.02, 0.06, 0.02, 0.06]), zeros(4)).inconclusive


def test_floor_without_an_interval_is_none_with_its_reason() -> None:
    few = noise_floor(arm([0.0, 0.1]), zeros(2))
    assert (few.half_width, few.inconclusive, few.reason) == (None, False, "A/A of 2 sessions: a range, no floor")
    same = noise_floor(zeros(4), zeros(4))
    assert (same.half_width, same.inconclusive, same.reason) == (
        0.0,
        False,
        "A/A: the baseline equals its twin exactly",
    )
    shifted = noise_floor(arm([0.1] * 4), zeros(4))
    assert (shifted.half_width, shifted.inconclusive) == (None, True)
    absent = noise_floor(pd.DataFrame(), zeros(4))
    assert (absent.half_width, absent.ratio, absent.inconclusive) == (None, None, False)
    assert "the cell has no measured value" in absent.reason


def test_canary() -> None:
    assert canary(zeros(2), arm([0.019, 0.019]))[0] is True
    steady, words = canary(zeros(2), arm([0.03, 0.03]))
    assert (steady, words) == (
        False,
        "the baseline measured 1.03× of its first value after the other cells (limit ±2 %)",
    )
    assert canary(pd.DataFrame(), zeros(1))[0] is False


def test_equal_lengths_are_comparable_even_in_one_session() -> None:
    same = tokens([(0, "a", 64), (0, "b", 17)])
    assert length_comparable(same, same) == (True, "equal token counts in every pair of session and prompt")


def test_natural_lengths_are_judged_by_the_interval() -> None:
    base = tokens([(s, "a", 1000) for s in range(4)])
    near = tokens([(s, "a", n) for s, n in enumerate((1001, 999, 1002, 998))])
    far = tokens([(s, "a", n) for s, n in enumerate((900, 1000, 1100, 1000))])
    assert length_comparable(near, base)[0] is True
    comparable, words = length_comparable(far, base)
    assert comparable is False
    assert words.startswith("not comparable: length (token counts 1.00×, 95 % interval [")


def test_a_difference_that_repeats_exactly_is_judged_by_itself() -> None:
    base = tokens([(s, "a", 100) for s in range(4)])
    assert length_comparable(tokens([(s, "a", 101) for s in range(4)]), base)[0] is True
    comparable, words = length_comparable(tokens([(s, "a", 103) for s in range(4)]), base)
    assert comparable is False
    assert "the same in every session" in words


def test_below_three_sessions_every_session_must_agree() -> None:
    base = tokens([(0, "a", 100), (1, "a", 100)])
    assert length_comparable(tokens([(0, "a", 101), (1, "a", 100)]), base)[0] is True
    assert length_comparable(tokens([(0, "a", 101), (1, "a", 110)]), base)[0] is False


def test_an_answer_without_tokens_is_not_comparable() -> None:
    comparable, words = length_comparable(tokens([(0, "a", 0)]), tokens([(0, "a", 5)]))
    assert (comparable, words) == (
        False,
        "not comparable: length (1 of 1 values of the cell are not positive numbers, and a ratio needs positive ones)",
    )
