"""Surprisal and rank of text under the baseline's own probabilities."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.exactness.cross import ALPHA
from orchestrator.exactness.scoring import TILTS, ScoredToken, cross_scoring, surprisal_p, surprisal_z
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


def whole(probs: np.ndarray) -> list[ScoredToken]:
    """By token, as an engine tells it that tells the whole distribution."""
    logs = np.log(probs)
    entropy = float(-(probs * logs).sum())
    variance = float((probs * logs**2).sum() - entropy**2)
    top = tuple(sorted(map(float, logs), reverse=True))
    return [ScoredToken(float(log), rank + 1, entropy, variance, top=top) for rank, log in enumerate(logs)]


def test_the_bound_by_hand() -> None:
    one, other = whole(np.asarray([0.75, 0.25]))
    tilts = np.asarray([sign * tilt for tilt in TILTS for sign in (1, -1)])
    mean = 0.75 ** (1 - tilts) + 0.25 ** (1 - tilts)
    products = 0.25 ** (-40 * tilts) * 0.75**-tilts / mean**41
    assert surprisal_p([other] * 40 + [one]) == pytest.approx(1 / products.mean())
    assert surprisal_p([one]) == 1.0
    assert surprisal_p([]) == 1.0


def test_what_was_not_told_has_the_mean_and_variance_that_are_left() -> None:
    # λ → 0: ln E exp(λX) = λ·mean + λ²·variance ÷ 2, whatever share of the distribution was told.
    probs = 1 / np.arange(1, 200)
    (full, *_), told = whole(probs / probs.sum()), 16
    part = ScoredToken(full.logprob, 1, full.entropy, full.variance, top=full.top[:told])
    assert surprisal_p([part] * 300) == pytest.approx(surprisal_p([full] * 300), rel=0.1)


def test_a_rounded_rest_does_not_blind_the_bound() -> None:
    # A part of 1e-5 that was not told, with a variance far beyond its mean, as rounding leaves it.
    kinds = whole(np.asarray([0.9, 0.1]))
    noisy = [replace(one, top=(one.top[0] - 1e-5, one.top[1]), variance=one.variance + 1e-3) for one in kinds]
    assert surprisal_p([noisy[1]] * 60) < 1e-20
    assert surprisal_p([noisy[0]] * 54 + [noisy[1]] * 6) > 0.5


@pytest.mark.parametrize("exponent", [1.25, 1.6, 2.5])
def test_long_tails_of_which_sixteen_tokens_are_told_keep_the_level(exponent: float) -> None:
    probs = 1 / np.arange(1, 5001) ** exponent
    probs /= probs.sum()
    logs = np.log(probs)
    entropy = float(-(probs * logs).sum())
    variance = float((probs * logs**2).sum() - entropy**2)
    top = tuple(map(float, logs[:16]))
    generator, cumulative = np.random.default_rng(14), probs.cumsum()
    failed = 0
    for _ in range(400):
        drawn = logs[np.minimum(np.searchsorted(cumulative, generator.random(80)), 4999)]
        # The sum of surprisals is all that the bound looks at besides the distribution.
        failed += surprisal_p([ScoredToken(float(drawn.mean()), 1, entropy, variance, top=top)] * 80) < 10 * ALPHA
    assert failed <= 4


@pytest.mark.parametrize(("likely", "tokens"), [(0.995, 480), (0.99, 480), (0.97, 96), (0.9, 36), (0.5, 480)])
def test_drawn_text_hardly_ever_fails_whatever_the_skew(likely: float, tokens: int) -> None:
    # A normal tail rejects up to 13 times its level here; the bound stays below its own.
    repeats, probs = 20_000, np.asarray([likely, *[(1 - likely) / 3] * 3])
    kinds = whole(probs)
    drawn = np.random.default_rng(11).multinomial(tokens, probs, size=repeats)
    tails, counts = np.unique(np.column_stack([drawn[:, 0], tokens - drawn[:, 0]]), axis=0, return_counts=True)
    failed = sum(
        int(count)
        for (often, seldom), count in zip(tails, counts, strict=True)
        if surprisal_p([kinds[0]] * int(often) + [kinds[1]] * int(seldom)) < ALPHA
    )
    assert failed <= 4  # 20 allowed by the level


@pytest.mark.parametrize(("shift", "caught"), [(0.12, 0.9), (-0.08, 0.9)])
def test_text_that_is_not_drawn_is_caught(shift: float, caught: float) -> None:
    probs = np.asarray([0.9, 0.06, 0.03, 0.01])
    other = np.asarray([0.9 - shift, *(probs[1:] * (1 + shift / 0.1))])
    kinds, generator = whole(probs), np.random.default_rng(12)
    found = [surprisal_p([kinds[one] for one in generator.choice(4, 480, p=other)]) < ALPHA for _ in range(50)]
    assert sum(found) >= caught * len(found)
