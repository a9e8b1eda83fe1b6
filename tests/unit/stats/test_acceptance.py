"""Pooled acceptance, and acceptance by draft position with bounds where the counts leave room."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from orchestrator.stats.acceptance import by_position, flatness, pooled


def frame(rows: list[tuple[str, int, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["prompt_id", "drafted", "accepted"])


def test_ratio_of_sums_and_not_a_mean_of_rates() -> None:
    found = pooled(frame([("a", 100, 90), ("b", 10, 1), ("c", 90, 9)]))
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.point == 0.5  # 100 ÷ 200; the mean of rates would be 0.367
    assert found.n == 3
    assert 0 < found.low < 0.5 < found.high < 1


def test_trials_of_one_prompt_are_one_unit() -> None:
    split = frame([("a", 50, 45), ("a", 50, 45), ("b", 10, 1), ("c", 90, 9)])
    assert pooled(split) == pooled(frame([("a", 100, 90), ("b", 10, 1), ("c", 90, 9)]))


def test_zero_percent_is_a_result_and_nothing_drafted_is_none() -> None:
    zero = pooled(frame([("a", 10, 0), ("b", 10, 0), ("c", 10, 0)]))
    assert zero is not None
    assert (zero.point, zero.low, zero.high) == (0.0, None, None)
    assert "no spread" in zero.method
    assert pooled(frame([("a", 0, 0)])) is None
    assert pooled(pd.DataFrame()) is None


def test_two_prompts_give_no_interval() -> None:
    found = pooled(frame([("a", 10, 1), ("b", 10, 9)]))
    assert found is not None
    assert (found.point, found.low, found.n) == (0.5, None, 2)


def test_prompts_that_drafted_nothing_are_no_evidence() -> None:
    found = pooled(frame([("a", 10, 5), ("b", 0, 0), ("c", 0, 0), ("d", 10, 7)]))
    assert found is not None
    assert (found.point, found.low, found.n) == (0.6, None, 2)


def test_the_interval_known_answer() -> None:
    # By hand: residuals 4, -1, -3 around a rate of 0.5 over 30 drafted tokens; t of 2 degrees of freedom is 4.3027.
    found = pooled(frame([("a", 10, 9), ("b", 10, 4), ("c", 10, 2)]))
    assert found is not None
    deviation = math.sqrt(3 * 26 / 2) / 30
    half = 4.302652729911275 * deviation / 0.25
    assert found.low == pytest.approx(1 / (1 + math.exp(half)))
    assert found.high == pytest.approx(1 - found.low)


@pytest.mark.parametrize("prompts", [3, 8])
@pytest.mark.parametrize(("rate", "concentration"), [(0.15, 11.0), (0.7, 13.0), (0.9, 17.0)])
def test_the_interval_covers_nearly_as_often_as_it_says(prompts: int, rate: float, concentration: float) -> None:
    rng = np.random.default_rng(prompts)
    hits, runs = 0, 300
    for _ in range(runs):
        drafted = rng.integers(20, 200, prompts)
        accepted = rng.binomial(drafted, rng.beta(rate * concentration, (1 - rate) * concentration, prompts))
        found = pooled(
            frame([(str(i), int(d), int(a)) for i, (d, a) in enumerate(zip(drafted, accepted, strict=True))])
        )
        assert found is not None
        hits += found.low is not None and found.high is not None and found.low <= rate <= found.high
    assert 0.88 <= hits / runs <= 0.98


@pytest.mark.parametrize("row", [("a", 5, 6), ("a", 5, -1), ("a", -5, -6)])
def test_impossible_counts_are_refused(row: tuple[str, int, int]) -> None:
    with pytest.raises(ValueError, match="check the adapter"):
        pooled(frame([row]))


def test_positions_known_answer() -> None:
    first, second, third = by_position([((60, 60, 60), (50, 20, 10)), ((40, 40, 40), (30, 20, 10))])
    assert (first.drafted, first.accepted, first.unconditional) == (100, 80, 0.8)
    assert (first.conditional_low, first.conditional_high) == (0.8, 0.8)
    assert (second.unconditional, second.conditional_low, second.conditional_high) == (0.4, 0.5, 0.5)
    assert (third.unconditional, third.conditional_low) == (0.2, 0.5)


def test_drafts_of_different_length_leave_bounds() -> None:
    # 100 rounds, 80 passed position 1, but only 70 drafted position 2: between 50 and 70 of them were judged there.
    _, second = by_position([((100, 70), (80, 35))])
    assert (second.judged_low, second.judged_high) == (50, 70)
    assert (second.conditional_low, second.conditional_high) == (0.5, 0.7)


def test_positions_never_reached_have_no_conditional_rate() -> None:
    _, second = by_position([((10, 10), (0, 0))])
    assert (second.unconditional, second.conditional_low, second.conditional_high) == (0.0, None, None)
    assert by_position([]) == ()


@pytest.mark.parametrize("counts", [((10, 10), (5, 6)), ((10, 11), (5, 5)), ((10,), (5, 1)), ((10,), (11,))])
def test_counts_no_rounds_can_give_are_refused(counts: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(ValueError):
        by_position([counts])


def test_flatness_known_answer() -> None:
    # 80 of 100 and 40 of 80: pooled 2/3; χ² = 13.333² ÷ 22.222 + 13.333² ÷ 17.778 = 18, 1 df: p = 2.209e-5.
    assert flatness(by_position([((100, 100), (80, 40))])) == pytest.approx(2.2090e-5, rel=1e-3)
    assert flatness(by_position([((100, 100), (80, 64))])) == pytest.approx(1.0)


def test_a_position_that_never_accepts_counts_against_flatness() -> None:
    p = flatness(by_position([((100, 100), (50, 0))]))
    assert p is not None
    assert p < 1e-6


def test_flatness_is_not_judged_on_counts_that_do_not_carry_it() -> None:
    assert flatness(by_position([((100,), (50,))])) is None
    assert flatness(by_position([((30, 30), (10, 5))])) is None  # 10 judged at position 2
    assert flatness(by_position([((100, 70), (80, 35))])) is None  # 50 to 70 judged
    assert flatness(by_position([((100, 100), (100, 100))])) is None
    assert flatness(()) is None
