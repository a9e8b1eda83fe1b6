"""The speed-up identity, the i.i.d. model and the sentence made of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.schema.result import Estimate
from orchestrator.stats.speedup import alpha_of, best_measured, decompose, expected_tokens


def test_a_free_drafter_leaves_everything_to_the_verify_pass() -> None:
    found = decompose(speedup=0.5, tokens_per_pass=2.0, mean_draft_length=4.0, acceptance=0.25, draft_is_free=True)
    assert (found.pass_cost, found.draft_cost, found.verify_cost_low, found.verify_cost_high) == (4.0, 0.0, 4.0, 4.0)
    assert found.break_even_acceptance == 0.75
    assert found.words() == (
        "25 % of the drafted tokens accepted, 2.00 tokens per pass, but one verify pass costs 4.00 plain passes "
        "and its draft nothing: 0.50× the decode rate; at this cost it pays above 75 % acceptance"
    )


def test_a_measured_draft_time_separates_the_costs() -> None:
    found = decompose(
        speedup=1.5, tokens_per_pass=3.0, mean_draft_length=4.0, plain_pass_s=0.010, draft_s_per_pass=0.004
    )
    assert found.pass_cost == pytest.approx(2.0)
    assert found.draft_cost == pytest.approx(0.4)
    assert found.verify_cost_low == found.verify_cost_high == pytest.approx(1.6)
    assert found.break_even_acceptance == pytest.approx(0.25)
    # The model's α gives back A = 3 by construction; with a verify pass of one plain pass 3 ÷ 1.4.
    assert found.model_speedup == pytest.approx(3 / 1.4)
    # Identity: A ÷ (γc + v).
    assert found.tokens_per_pass / (found.draft_cost + found.verify_cost_low) == pytest.approx(1.5)


def test_an_unreported_draft_time_gives_bounds_and_says_so() -> None:
    found = decompose(speedup=0.8, tokens_per_pass=3.2, mean_draft_length=4.0)
    assert (found.draft_cost, found.verify_cost_low, found.model_speedup) == (None, 1.0, None)
    assert found.verify_cost_high == pytest.approx(4.0)
    assert "the drafter's share is not reported" in found.words()


def test_an_impossible_draft_time_is_not_used() -> None:
    found = decompose(speedup=1.0, tokens_per_pass=2.0, mean_draft_length=4.0, plain_pass_s=0.01, draft_s_per_pass=0.03)
    assert found.draft_cost is None
    assert "longer than the whole pass" in found.words()


def test_costs_that_nothing_or_everything_pays() -> None:
    dear = decompose(speedup=0.2, tokens_per_pass=2.0, mean_draft_length=4.0)
    assert (dear.break_even_acceptance, dear.break_even_alpha) == (None, None)
    assert "not even all of 4.00 drafted tokens" in dear.words()
    cheap = decompose(speedup=4.0, tokens_per_pass=3.0, mean_draft_length=4.0)
    assert (cheap.break_even_acceptance, cheap.break_even_alpha) == (0.0, 0.0)
    assert "any acceptance pays" in cheap.words()
    idle = decompose(speedup=0.9, tokens_per_pass=1.0, mean_draft_length=0.0)
    assert (idle.break_even_acceptance, idle.break_even_alpha, idle.model_alpha) == (None, None, None)
    assert idle.words().endswith("nothing was drafted")


def test_expectation_known_answers() -> None:
    assert expected_tokens(0.0, 4) == 1.0
    assert expected_tokens(1.0, 4) == 5.0
    assert expected_tokens(0.5, 2) == 1.75
    assert expected_tokens(0.8, 4) == pytest.approx(1 + 0.8 + 0.64 + 0.512 + 0.4096)
    assert alpha_of(1.75, 2) == pytest.approx(0.5)
    assert (alpha_of(1.0, 4), alpha_of(5.0, 4)) == (pytest.approx(0.0), pytest.approx(1.0))
    assert (alpha_of(0.9, 4), alpha_of(5.1, 4), alpha_of(1.0, 0)) == (None, None, None)


@given(st.floats(0, 1), st.floats(0.1, 16))
def test_alpha_inverts_the_expectation(alpha: float, length: float) -> None:
    found = alpha_of(min(expected_tokens(alpha, length), length + 1), length)
    assert found is not None
    assert expected_tokens(found, length) == pytest.approx(expected_tokens(alpha, length), abs=1e-6)


@given(st.floats(0.05, 10), st.floats(1, 9), st.floats(0.1, 16))
def test_break_even_acceptance_and_alpha_agree(speedup: float, tokens: float, length: float) -> None:
    found = decompose(speedup=speedup, tokens_per_pass=tokens, mean_draft_length=length)
    assert (found.break_even_alpha is None) == (found.break_even_acceptance is None)
    if found.break_even_alpha and found.break_even_acceptance is not None:
        assert expected_tokens(found.break_even_alpha, length) == pytest.approx(
            1 + length * found.break_even_acceptance, abs=1e-6
        )


@pytest.mark.parametrize(("speedup", "tokens", "length"), [(0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, -1.0)])
def test_numbers_out_of_range_are_refused(speedup: float, tokens: float, length: float) -> None:
    with pytest.raises(ValueError, match="no speed-up model"):
        decompose(speedup=speedup, tokens_per_pass=tokens, mean_draft_length=length)


def test_best_measured_draft_length() -> None:
    def row(point: float, low: float | None, high: float | None) -> Estimate:
        return Estimate(point, low, high, 0.95, 4, "t")

    assert best_measured({2: row(1.1, 1.05, 1.15), 4: row(1.3, 1.2, 1.4), 8: row(1.0, 0.9, 1.1)}) == (4, True)
    assert best_measured({2: row(1.1, 1.05, 1.25), 4: row(1.3, 1.2, 1.4)}) == (4, False)
    assert best_measured({2: row(1.1, None, None), 4: row(1.3, 1.2, 1.4)}) == (4, False)
    assert best_measured({}) is None
