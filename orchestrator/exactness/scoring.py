"""Text judged token by token under the baseline's own probabilities: surprisal, and ranks that cannot be.

Finds in long outputs what short generations cannot, such as a cache that was not rolled back.

The tail of a sum of surprisals is not normal: where one token is nearly certain, the sum is like a Poisson count of the
others, and a normal level of 0.0001 rejects up to thirteen times as often. So no verdict rests on the normal. For any
fixed λ the product over tokens of exp(λ·surprisal) ÷ E exp(λ·surprisal) has mean 1 when the tokens are drawn from the
baseline, however the places depend on what was drawn before; so has the mean of such products over a fixed set of λ,
and it reaches 1 ÷ α with a chance of α at most (Markov; Ville 1939). :func:`surprisal_p` is one over that mean.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.schema.result import CheckResult, Verdict

CROSS_SCORING = "cross-scoring"
ALPHA = 0.01
TILTS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""The λ at which the product is taken, each with both signs; fixed beforehand, since the bound asks for that."""
NEGLIGIBLE = 1e-7
"""Probability that need not be told: the rounding of sums in single precision."""
POLE = 0.9
"""λ·scale of the gamma for what was not told is kept below it: it has no mean at 1, which a finite vocabulary has."""


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """One emitted token under the baseline's full distribution at that place, after all samplers.

    Args:
        logprob: natural logarithm of its probability; minus infinity where the baseline could not have drawn it.
        rank: 1 for the most likely token.
        entropy: −Σ p ln p of the distribution, nat.
        variance: Σ p ln² p − entropy², nat².
        gap: how far below the most likely token it is, nat; used where tokens are not drawn (temperature 0).
        top: log-probabilities of the most likely tokens as far as they were told, best first.
    """

    logprob: float
    rank: int
    entropy: float
    variance: float
    gap: float = 0.0
    top: tuple[float, ...] = ()


def surprisal_z(tokens: Sequence[ScoredToken]) -> float | None:
    """Σ (−logprob − entropy) ÷ √Σ variance: mean 0, variance 1 when the text was drawn from the baseline.

    Blind to errors that leave the mean surprisal alone, such as a missing residual between tokens of like
    probability.

    Returns:
        ``None`` where nothing varies (greedy or empty text) or a token was impossible, which is worse than any z.
    """
    variance = math.fsum(one.variance for one in tokens)
    if variance <= 0 or any(one.logprob == -math.inf for one in tokens):
        return None
    return math.fsum(-one.logprob - one.entropy for one in tokens) / math.sqrt(variance)


def surprisal_p(tokens: Sequence[ScoredToken]) -> float:
    """At least the chance that drawn text is as unlikely, or as likely, as this one; 1 where nothing varies.

    The tokens that were told enter with their probabilities. What was not told of a distribution enters as a gamma
    beyond the last of them, with the mean and the variance that entropy and variance leave for it.
    """
    varying = Counter(one for one in tokens if one.variance > 0)
    if not varying:
        return 1.0
    tilts = np.asarray([sign * tilt for sign in (1, -1) for tilt in TILTS])
    exponent = np.zeros(len(tilts))
    for one, count in varying.items():
        exponent += count * (-tilts * one.logprob - _log_mean(one, tilts))
    return float(min(1.0, np.exp(np.log(len(tilts)) - np.logaddexp.reduce(exponent))))


def _log_mean(one: ScoredToken, tilts: np.ndarray) -> np.ndarray:
    """The ln of E exp(λ·surprisal) at the place, by λ."""
    logs = np.asarray(one.top, dtype=float)
    probs = np.exp(logs)
    told = (probs[:, None] * np.exp(-logs[:, None] * tilts)).sum(axis=0)
    rest = 1 - float(probs.sum())
    if rest <= NEGLIGIBLE:
        return np.asarray(np.log(told))
    start = -one.top[-1] if one.top else 0.0
    mean = max((one.entropy + float((probs * logs).sum())) / rest - start, 0.0)
    second = (one.variance + one.entropy**2 - float((probs * logs**2).sum())) / rest
    variance = max(second - (mean + start) ** 2, 0.0)
    if mean <= 0 or variance <= 0:
        return np.asarray(np.log(told + rest * np.exp(tilts * (start + mean))))
    scale = np.minimum(variance / mean, np.where(tilts > 0, POLE / np.abs(tilts), np.inf))
    gamma = (1 - tilts * scale) ** (-mean / scale)
    return np.asarray(np.log(told + rest * np.exp(tilts * start) * gamma))


def cross_scoring(
    own: Sequence[ScoredToken],
    speculative: Sequence[ScoredToken],
    *,
    max_rank: int | None,
    max_gap: float | None = None,
    alpha: float = ALPHA,
) -> CheckResult:
    """Whether the baseline finds the speculative text as likely as its own.

    Args:
        own: the baseline's own text, teacher-forced: the control, which must pass the same rules.
        speculative: the other arm's text, likewise.
        max_rank: worst rank that can be: 2 at temperature 0 (a near-tie may take the second), the top-k of the
            sampling policy where one is set, ``None`` where every token can be drawn.
        max_gap: at temperature 0, how far below the best token a token may be, nat: the limit of a near-tie.
        alpha: of the surprisal test, both sides together.
    """
    if not own or not speculative:
        return CheckResult(CROSS_SCORING, Verdict.NOT_TESTED, "not tested: no scored text of both arms")
    fault = _fault(own, max_rank, max_gap, alpha)
    if fault:
        words = f"the baseline's own text does not pass: {fault}"
        return CheckResult(CROSS_SCORING, Verdict.UNINFORMATIVE, words)
    fault = _fault(speculative, max_rank, max_gap, alpha)
    if fault:
        return CheckResult(CROSS_SCORING, Verdict.FAIL, fault)
    z = surprisal_z(speculative)
    if z is None and max_rank is None and max_gap is None:
        words = "nothing could have failed: no spread of surprisal and no limit of rank"
        return CheckResult(CROSS_SCORING, Verdict.UNDERPOWERED, words)
    said = f"surprisal z {z:.2f}" if z is not None else f"no rank beyond {max_rank}"
    return CheckResult(CROSS_SCORING, Verdict.PASS, f"{len(speculative)} tokens, {said}")


def _fault(tokens: Sequence[ScoredToken], max_rank: int | None, max_gap: float | None, alpha: float) -> str:
    for index, one in enumerate(tokens):
        if one.logprob == -math.inf or (max_rank is not None and one.rank > max_rank):
            return f"token {index} of {len(tokens)} has rank {one.rank}, which the baseline cannot draw"
        if max_gap is not None and one.gap > max_gap:
            return f"token {index} of {len(tokens)} is {one.gap:.3f} nat below the baseline's own, no near-tie"
    z = surprisal_z(tokens)
    if z is not None and (p := surprisal_p(tokens)) < alpha:
        side = "less" if z > 0 else "more"
        return f"{len(tokens)} tokens are {side} likely than drawn text (surprisal z {z:.1f}, p at most {p:.2g})"
    return ""
