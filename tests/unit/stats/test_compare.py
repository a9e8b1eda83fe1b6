"""The words of a comparison, the reasons for them, and Holm over a family."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.schema.metrics import Better
from orchestrator.schema.result import Comparison, Estimate, Outcome
from orchestrator.stats.compare import apply_holm, compare
from orchestrator.stats.stopping import enough


def arm(logs: list[float], prompts: str = "a") -> pd.DataFrame:
    rows = [(s, p, math.exp(log)) for s, log in enumerate(logs) for p in prompts]
    return pd.DataFrame(rows, columns=["set_index", "prompt_id", "value"])


def run(
    logs: list[float], *, floor: float | None = 0.001, better: Better = Better.LOWER, refused: str = ""
) -> Comparison:
    return compare(
        "cell",
        "base",
        "e2e_latency",
        arm(logs),
        arm([0.0] * len(logs)),
        better=better,
        noise_floor=floor,
        refused=refused,
    )


@pytest.mark.parametrize(
    ("logs", "floor", "outcome"),
    [
        ([-0.30, -0.31, -0.29, -0.30], 0.01, Outcome.LOWER),
        ([0.30, 0.31, 0.29, 0.30], 0.01, Outcome.HIGHER),
        # The interval excludes 1, but a twin differs as much.
        ([0.030, 0.031, 0.029, 0.030], 0.05, Outcome.NO_DIFFERENCE),
        ([0.010, 0.011, 0.009, 0.010], 0.05, Outcome.EQUIVALENT),
        ([0.001, -0.001, 0.002, -0.002], 0.01, Outcome.EQUIVALENT),
        # sd 0.01254, 90 % half-width 2.353 × 0.01254 ÷ 2 = 0.01475; 0.006 + 0.01475 is beyond ln 1.02 = 0.0198.
        ([0.02, -0.01, 0.01, 0.004], 0.01, Outcome.NO_DIFFERENCE),
        ([0.3, -0.3, 0.2, -0.2], None, Outcome.NO_DIFFERENCE),
        # Sure, and too small to show: 0.05 % with a twin that is equal in every session.
        ([0.0005, 0.00051, 0.00049, 0.0005], 0.0, Outcome.EQUIVALENT),
        ([0.0012, 0.00121, 0.00119, 0.0012], 0.0, Outcome.HIGHER),
        ([-0.3, -0.31], 0.01, Outcome.RANGE_ONLY),
        ([-0.3, -0.3, -0.3], 0.01, Outcome.RANGE_ONLY),
    ],
)
def test_outcome_words(logs: list[float], floor: float | None, outcome: Outcome) -> None:
    assert run(logs, floor=floor).outcome is outcome


def test_reasons_say_what_a_reader_must_know() -> None:
    assert run([-0.3, -0.31, -0.29], floor=None).reason == "no A/A twin: the noise floor is not known"
    assert run([-0.3, -0.31, -0.29], floor=0.01).reason == ""
    assert run([-0.3, -0.31]).reason == "2 sessions: a range; an interval needs 3"
    assert run([-0.3]).reason == "1 session: no range; an interval needs 3"
    assert "no spread" in run([-0.3, -0.3, -0.3]).reason
    quiet = run([0.030, 0.031, 0.029, 0.030], floor=0.05)
    assert quiet.reason.startswith("inside the noise floor of ±5.0 %; ±0.1 %")
    tiny = run([0.0005, 0.00051, 0.00049, 0.0005], floor=0.0)
    assert tiny.reason == "a difference below 0.1 %; the 90 % interval lies within ±2.0 %"
    assert run([0.1, -0.1, 0.1, -0.1]).reason == "±20.2 %"  # 3.182446 × 0.11547 ÷ 2 = 0.18374


def test_not_comparable_carries_its_reason_and_no_number() -> None:
    empty = compare("c", "b", "ttft", pd.DataFrame(), arm([0.0]), better=Better.LOWER, noise_floor=None)
    refused = run([0.1, 0.2, 0.3], refused="not comparable: length")
    for row, reason in ((empty, "the cell has no measured value"), (refused, "not comparable: length")):
        assert (row.outcome, row.ratio, row.reason) == (Outcome.NOT_COMPARABLE, None, reason)
        assert (row.p_value, row.session_ratios, row.bootstrap, row.sessions_needed) == (None, (), None, None)


def test_all_fields_of_a_full_comparison() -> None:
    row = run([0.1, 0.2, 0.3])
    assert row.ratio is not None
    assert (row.cell, row.baseline, row.metric, row.noise_floor) == ("cell", "base", "e2e_latency", 0.001)
    assert row.session_ratios == pytest.approx([math.exp(x) for x in (0.1, 0.2, 0.3)])
    # t = 0.2 ÷ (0.1 ÷ √3) = 3.4641 at 2 df: p = 1 − t ÷ √(t² + 2) = 0.0741799.
    assert row.p_value == pytest.approx(0.0741799, rel=1e-5)
    assert row.p_holm is None
    assert row.sign_flip_p is None
    assert row.bootstrap is not None
    assert row.bootstrap.low is not None
    # t(0.975, 99) × 0.1 ÷ √100 = 0.019842 > ln 1.02 = 0.019803; t(0.975, 100) × 0.1 ÷ √101 = 0.019741.
    assert row.sessions_needed == 101
    assert run([-0.3, -0.31, -0.29, -0.3, -0.32, -0.3]).sign_flip_p == 2 / 64


def test_prompts_that_got_worse_follow_the_direction() -> None:
    rows = [(s, p, math.exp(0.01 * s + shift)) for s in range(3) for p, shift in (("a", 0.2), ("b", -0.2), ("c", -0.3))]
    cell = pd.DataFrame(rows, columns=["set_index", "prompt_id", "value"])
    base = cell.assign(value=1.0)
    counted = {
        better: compare("c", "b", "m", cell, base, better=better, noise_floor=None).prompts_worse for better in Better
    }
    assert counted == {Better.LOWER: 1, Better.HIGHER: 2, Better.NEITHER: 0}


def test_left_out_pairs_are_said() -> None:
    cell = arm([0.1, 0.2, 0.3], "ab")
    row = compare("c", "b", "m", cell, arm([0.0, 0.0, 0.0]), better=Better.LOWER, noise_floor=0.0)
    assert "3 pairs of session and prompt are in one arm only" in row.reason
    assert row.prompts == 1


FLIPPED = {Outcome.LOWER: Outcome.HIGHER, Outcome.HIGHER: Outcome.LOWER}


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-0.1, 0.1), min_size=1, max_size=8),
    st.one_of(st.none(), st.floats(0, 0.1)),
)
def test_exchanging_the_arms_exchanges_the_words(logs: list[float], floor: float | None) -> None:
    there = compare("a", "b", "m", arm(logs), arm([0.0] * len(logs)), better=Better.LOWER, noise_floor=floor)
    back = compare("b", "a", "m", arm([0.0] * len(logs)), arm(logs), better=Better.LOWER, noise_floor=floor)
    assert back.outcome is FLIPPED.get(there.outcome, there.outcome)
    assert back.sessions_needed == there.sessions_needed
    assert back.p_value == there.p_value


def with_p(p: float | None, outcome: Outcome = Outcome.LOWER) -> Comparison:
    return Comparison("c", "b", "m", Estimate(0.9, 0.8, 0.99, 0.95, 4, "t"), outcome, "", p_value=p)


def test_holm_known_answer() -> None:
    # Sorted .005 .01 .03 .04 × 4 3 2 1 = .02 .03 .06 .04 → monotone .02 .03 .06 .06.
    found = apply_holm([with_p(0.01), with_p(0.04), with_p(None), with_p(0.03), with_p(0.005)])
    assert [row.p_holm for row in found] == [
        pytest.approx(0.03),
        pytest.approx(0.06),
        None,
        pytest.approx(0.06),
        pytest.approx(0.02),
    ]
    assert [row.outcome for row in found] == [
        Outcome.LOWER,
        Outcome.NO_DIFFERENCE,
        Outcome.LOWER,
        Outcome.NO_DIFFERENCE,
        Outcome.LOWER,
    ]
    assert found[1].reason == "lower if it stood alone, not among 4 on one baseline (Holm p 0.060)"


def test_holm_on_small_families() -> None:
    assert apply_holm([]) == ()
    assert apply_holm([with_p(0.04)])[0].p_holm == 0.04
    assert apply_holm([with_p(0.9, Outcome.NO_DIFFERENCE)] * 3)[0].p_holm == 1.0
    kept = apply_holm([with_p(0.5, Outcome.EQUIVALENT), with_p(0.6, Outcome.EQUIVALENT)])
    assert [row.outcome for row in kept] == [Outcome.EQUIVALENT] * 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_p_and_keeps_its_order(ps: list[float]) -> None:
    adjusted = [row.p_holm for row in apply_holm([with_p(p) for p in ps])]
    for p, holm in zip(ps, adjusted, strict=True):
        assert holm is not None
        assert p <= holm <= min(1.0, p * len(ps) + 1e-12)
    order = sorted(range(len(ps)), key=lambda index: ps[index])
    ranked = [adjusted[index] for index in order]
    assert ranked == sorted(ranked, key=lambda holm: holm or 0.0)


def test_stopping_waits_for_whole_sets_and_the_widest_interval() -> None:
    narrow, wide = run([0.0, 0.001, 0.002, 0.001]), run([0.0, 0.1, -0.1, 0.05])
    assert enough([narrow], 3, 10) == (False, "3 sets; at least 4 before stopping early")
    assert enough([narrow], 4, 10)[0] is True
    assert enough([narrow, wide], 4, 10)[0] is False
    assert enough([narrow, wide], 10, 10)[0] is True
    assert enough([], 4, 10) == (False, "no interval to judge by yet")
