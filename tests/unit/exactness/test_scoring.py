"""Surprisal and rank of text under the baseline's own probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.exactness.scoring import ScoredToken, cross_scoring, surprisal_z, two_sided_p
from orchestrator.schema.result import Verdict

P = np.asarray([0.5, 0.25, 0.125, 0.125])
ENTROPY = float(-(P * np.log(P)).sum())
VARIANCE = float((P * np.log(P) ** 2).sum() - ENTROPY**2)


def token(rank: int) -> ScoredToken:
    return ScoredToken(math.log(P[rank - 1]), rank, ENTROPY, VARIANCE)


def text(probabilities: np.ndarray, count: int, seed: int) -> list[ScoredToken]:
    drawn = np.random.default_rng(seed).choice(4, count, p=probabilities)
    return [token(int(one) + 1) for one in drawn]


def test_z_known_answer() -> None:
    # Surprisals ln 2 and ln 8; mean entropy 1.75 ln 2: (1 + 3 − 3.5) ln 2 ÷ √(2 × 0.6875 ln² 2).
    assert surprisal_z([token(1), token(3)]) == pytest.approx(0.5 / math.sqrt(1.375))
    assert two_sided_p(1.959964) == pytest.approx(0.05, rel=1e-5)


def test_z_is_standard_normal_on_drawn_text() -> None:
    found = [surprisal_z(text(P, 200, seed)) for seed in range(400)]
    scores = np.asarray([z for z in found if z is not None])
    assert len(scores) == 400
    assert abs(scores.mean()) < 0.15
    assert 0.9 < scores.std() < 1.1


def test_z_does_not_exist_where_nothing_varies_or_something_is_impossible() -> None:
    assert surprisal_z([]) is None
    assert surprisal_z([ScoredToken(0.0, 1, 0.0, 0.0)]) is None
    assert surprisal_z([token(1), ScoredToken(-math.inf, 50, ENTROPY, VARIANCE)]) is None


def test_drawn_text_passes_and_other_text_fails() -> None:
    own = text(P, 1000, 1)
    assert cross_scoring(own, text(P, 1000, 2), max_rank=4).verdict is Verdict.PASS
    flat = cross_scoring(own, text(np.full(4, 0.25), 1000, 3), max_rank=4)
    assert flat.verdict is Verdict.FAIL
    assert "less likely" in flat.evidence
    sharp = cross_scoring(own, text(np.asarray([0.7, 0.2, 0.05, 0.05]), 1000, 4), max_rank=4)
    assert (sharp.verdict, "more likely" in sharp.evidence) == (Verdict.FAIL, True)


def test_one_token_of_impossible_rank_fails() -> None:
    own = [ScoredToken(-0.1, 1, 0.0, 0.0)] * 50
    tie = [*own[:49], ScoredToken(-0.7, 2, 0.0, 0.0)]
    wrong = [*own[:49], ScoredToken(-6.0, 31, 0.0, 0.0)]
    assert cross_scoring(own, tie, max_rank=2).verdict is Verdict.PASS
    found = cross_scoring(own, wrong, max_rank=2)
    assert (found.verdict, found.evidence) == (
        Verdict.FAIL,
        "token 49 of 50 has rank 31, which the baseline cannot draw",
    )
    assert cross_scoring(wrong, tie, max_rank=2).verdict is Verdict.UNINFORMATIVE


def test_what_could_not_fail_does_not_pass() -> None:
    own = [ScoredToken(-0.1, 1, 0.0, 0.0)] * 5
    assert cross_scoring(own, own, max_rank=None).verdict is Verdict.UNDERPOWERED
    assert cross_scoring([], own, max_rank=2).verdict is Verdict.NOT_TESTED
