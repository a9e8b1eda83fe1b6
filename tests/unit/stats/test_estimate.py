"""Known answers and properties of ratio estimates, their interval and the two checks beside it."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.schema.result import Summary
from orchestrator.stats.estimate import (
    NO_SPREAD,
    RANGE_ONLY,
    bootstrap_ratio,
    ratio_estimate,
    session_ratios,
    sign_flip_p,
    summary,
)
from orchestrator.stats.pairing import pair
from orchestrator.stats.student import sessions_for


def frame(rows: list[tuple[int, str, float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["set_index", "prompt_id", "value"])


def arm(values: list[float], prompt: str = "a") -> pd.DataFrame:
    return frame([(index, prompt, value) for index, value in enumerate(values)])


def ones(count: int) -> pd.DataFrame:
    return arm([1.0] * count)


def test_summary_known_answer() -> None:
    assert summary([3.0, 1.0, 2.0, 100.0]) == Summary(2.5, 1.0, 4, (3.0, 1.0, 2.0, 100.0))


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_summary_refuses_what_is_no_measurement(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        summary(values)


def test_t_interval_known_answer() -> None:
    # Log ratios 0.1, 0.2, 0.3: mean 0.2, sd 0.1, t(0.975, 2) = 4.302653; half = 4.302653 × 0.1 ÷ √3 = 0.248414.
    found = ratio_estimate(arm([math.exp(0.1), math.exp(0.2), math.exp(0.3)]), ones(3))
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.point == pytest.approx(math.exp(0.2))
    assert found.low == pytest.approx(math.exp(0.2 - 0.2484138), rel=1e-6)
    assert found.high == pytest.approx(math.exp(0.2 + 0.2484138), rel=1e-6)
    assert (found.n, found.level) == (3, 0.95)


def test_trials_average_within_session_and_prompt_before_sessions_do() -> None:
    # Session 0 has a prompt with four trials; it weighs no more than the other prompt, nor than session 1.
    cell = frame([(0, "a", math.e)] * 4 + [(0, "b", 1.0), (1, "a", 1.0), (1, "b", 1.0)])
    base = frame([(0, "a", 1.0), (0, "b", 1.0), (1, "a", 1.0), (1, "b", 1.0)])
    assert session_ratios(cell, base) == pytest.approx((math.exp(0.5), 1.0))
    found = ratio_estimate(cell, base)
    assert found is not None
    assert found.point == pytest.approx(math.exp(0.25))


def test_only_pairs_in_both_arms_count_and_the_others_are_counted() -> None:
    cell = frame([(0, "a", 2.0), (0, "b", 8.0), (1, "a", 2.0), (2, "a", 9.0)])
    base = frame([(0, "a", 1.0), (1, "a", 1.0), (1, "c", 5.0)])
    paired = pair(cell, base)
    assert {session: tuple(row) for session, row in paired.logs.items()} == {0: ("a",), 1: ("a",)}
    assert paired.missing == 3
    assert session_ratios(cell, base) == pytest.approx((2.0, 2.0))


def test_below_three_sessions_there_is_a_range_and_no_interval() -> None:
    found = ratio_estimate(arm([2.0, 4.0]), ones(2))
    assert found is not None
    assert (found.low, found.high, found.n, found.method) == (None, None, 2, RANGE_ONLY)
    assert found.point == pytest.approx(math.sqrt(8))
    assert session_ratios(arm([2.0, 4.0]), ones(2)) == pytest.approx((2.0, 4.0))


def test_no_spread_gives_no_interval_rather_than_one_of_zero_width() -> None:
    cell, base = arm([2.2, 3.3, 4.4, 5.5]), arm([2.0, 3.0, 4.0, 5.0])
    for found in (ratio_estimate(cell, base), bootstrap_ratio(cell, base)):
        assert found is not None
        assert found.point == pytest.approx(1.1)
        assert (found.low, found.high, found.method) == (None, None, NO_SPREAD)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_value_without_a_logarithm_refuses_the_whole_comparison(bad: float) -> None:
    paired = pair(arm([1.0, bad, 1.0]), ones(3))
    assert paired.refusal == "1 of 3 values of the cell are not positive numbers, and a ratio needs positive ones"
    assert ratio_estimate(ones(3), arm([1.0, bad, 1.0])) is None
    assert bootstrap_ratio(ones(3), arm([1.0, bad, 1.0])) is None
    assert session_ratios(arm([bad]), ones(1)) == ()


def test_empty_and_disjoint_arms_are_refused_with_the_reason() -> None:
    assert pair(pd.DataFrame(), ones(1)).refusal == "the cell has no measured value"
    assert pair(ones(1), frame([])).refusal == "the baseline has no measured value"
    assert "no session and prompt" in pair(arm([1.0], "a"), arm([1.0], "b")).refusal


def test_a_missing_column_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="lacks the columns prompt_id"):
        pair(pd.DataFrame({"set_index": [0], "value": [1.0]}), ones(1))


def test_an_interval_too_wide_for_a_number_is_none() -> None:
    found = ratio_estimate(arm([1e-90, 1.0, 1e90]), ones(3))
    assert found is not None
    assert found.low is None
    assert "wider" in found.method


values = st.floats(1e-3, 1e3)
tables = st.integers(1, 7).flatmap(
    lambda sessions: st.integers(1, 4).flatmap(
        lambda prompts: st.lists(
            st.tuples(values, values), min_size=sessions * prompts, max_size=sessions * prompts
        ).map(
            lambda cells: (
                frame([(i // prompts, f"p{i % prompts}", mine) for i, (mine, _) in enumerate(cells)]),
                frame([(i // prompts, f"p{i % prompts}", theirs) for i, (_, theirs) in enumerate(cells)]),
            )
        )
    )
)


@settings(max_examples=60, deadline=None)
@given(tables)
def test_exchanging_the_arms_inverts_ratio_and_interval(arms: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    for estimator in (ratio_estimate, bootstrap_ratio):
        there, back = estimator(*arms), estimator(*reversed(arms))
        assert there is not None
        assert back is not None
        assert there.point == pytest.approx(1 / back.point, rel=1e-9)
        assert (there.low is None) == (back.high is None)
        if there.low is not None and there.high is not None and back.low is not None and back.high is not None:
            assert there.low == pytest.approx(1 / back.high, rel=1e-9)
            assert there.high == pytest.approx(1 / back.low, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(arms: tuple[pd.DataFrame, pd.DataFrame], random: object) -> None:
    seed = random.randrange(2**31)  # type: ignore[attr-defined]
    shuffled = tuple(one.sample(frac=1, random_state=seed) for one in arms)
    assert ratio_estimate(*shuffled) == ratio_estimate(*arms)
    assert bootstrap_ratio(*shuffled) == bootstrap_ratio(*arms)


@settings(max_examples=60, deadline=None)
@given(tables, st.floats(1e-3, 1e3))
def test_a_common_unit_cancels(arms: tuple[pd.DataFrame, pd.DataFrame], factor: float) -> None:
    plain = ratio_estimate(*arms)
    scaled = ratio_estimate(*(one.assign(value=one["value"] * factor) for one in arms))
    assert plain is not None
    assert scaled is not None
    assert scaled.point == pytest.approx(plain.point, rel=1e-9)
    if plain.high is not None and scaled.high is not None:
        assert scaled.high == pytest.approx(plain.high, rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(tables)
def test_nothing_is_nan_and_no_interval_has_zero_width(arms: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    for found in (ratio_estimate(*arms), bootstrap_ratio(*arms)):
        assert found is not None
        assert math.isfinite(found.point)
        assert (found.low is None) == (found.high is None)
        if found.low is not None and found.high is not None:
            assert math.isfinite(found.low)
            assert math.isfinite(found.high)
            assert found.low < found.high


def test_bootstrap_is_repeatable_and_says_its_seed() -> None:
    cell = frame([(s, p, 1.0 + 0.1 * s + 0.03 * k) for s in range(4) for k, p in enumerate("abc")])
    base = frame([(s, p, 1.0) for s in range(4) for p in "abc"])
    first, again, other = (bootstrap_ratio(cell, base, seed) for seed in (1, 1, 2))
    assert first == again
    assert first is not None
    assert other is not None
    assert first.low is not None
    assert other.low is not None
    assert first.low != other.low
    assert first.low == pytest.approx(other.low, rel=0.01)
    assert first.method == "hierarchical bootstrap (sessions, then prompts), 9999 draws, seed 1"


def test_bootstrap_resamples_sessions_and_prompts_within_them() -> None:
    # Prompts agree and sessions differ: the resampled mean has the sessions' variance ÷ n (n, not n − 1).
    logs = [0.0, 0.1, 0.2, 0.3]
    cell = frame([(s, p, math.exp(log)) for s, log in enumerate(logs) for p in "ab"])
    base = frame([(s, p, 1.0) for s in range(4) for p in "ab"])
    found = bootstrap_ratio(cell, base, level=0.6827)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    half = (math.log(found.high) - math.log(found.low)) / 2
    assert half == pytest.approx(math.sqrt(0.0125 / 4), rel=0.15)  # 0.0125 = Σ(x − 0.15)² ÷ 4


def test_sign_flip_known_answers() -> None:
    assert sign_flip_p([0.1] * 5) is None
    assert sign_flip_p([0.1] * 6) == 2 / 64
    assert sign_flip_p([-0.3, -0.1, -0.2, -0.4, -0.5, -0.6]) == 2 / 64
    # |sum| ≥ 4 over ±1⁶ happens for 0 or 1 minus signs and their mirror: 2 × (1 + 6) of 64.
    assert sign_flip_p([0.1, 0.1, 0.1, 0.1, 0.1, -0.1]) == 14 / 64
    assert sign_flip_p([0.0] * 6) == 1.0
    assert sign_flip_p([0.1] * 21) is None


def test_sessions_needed_known_answer() -> None:
    # t(0.975, n − 1) × 0.02 ÷ √n ≤ ln 1.02 = 0.019803: n = 6 gives 0.02099, n = 7 gives 0.01850.
    assert sessions_for(0.02, 0.02, 0.95) == 7
    assert sessions_for(1e-4, 0.02, 0.95) == 3
    assert sessions_for(0.0, 0.02, 0.95) is None
    assert sessions_for(1e6, 0.02, 0.95) is None
