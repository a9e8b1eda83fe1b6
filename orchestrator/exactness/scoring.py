"""Text judged token by token under the baseline's own probabilities: surprisal, and ranks that cannot be.

Finds in long outputs what short generations cannot, such as a cache that was not rolled back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtr

from orchestrator.schema.result import CheckResult, Verdict

CROSS_SCORING = "cross-scoring"
ALPHA = 0.01


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """One emitted token under the baseline's full distribution at that place, after all samplers.

    Args:
        logprob: natural logarithm of its probability; minus infinity where the baseline could not have drawn it.
        rank: 1 for the most likely token.
        entropy: −Σ p ln p of the distribution, nat.
        variance: Σ p ln² p − entropy², nat².
        gap: how far below the most likely token it is, nat; used where tokens are not drawn (temperature 0).
    """

    logprob: float
    rank: int
    entropy: float
    variance: float
    gap: float = 0.0


def surprisal_z(tokens: Sequence[ScoredToken]) -> float | None:
    """Σ (−logprob − entropy) ÷ √Σ variance: standard normal when the text was drawn from the baseline.

    Blind to errors that leave the mean surprisal alone, such as a missing residual between tokens of like
    probability.

    Returns:
        ``None`` where nothing varies (greedy or empty text) or a token was impossible, which is worse than any z.
    """
    variance = math.fsum(one.variance for one in tokens)
    if variance <= 0 or any(one.logprob == -math.inf for one in tokens):
        return None
    return math.fsum(-one.logprob - one.entropy for one in tokens) / math.sqrt(variance)


def two_sided_p(z: float) -> float:
    """P of a standard normal farther from 0 than ``z``."""
    return min(1.0, 2 * float(ndtr(-abs(z))))


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
        alpha: of the surprisal test, two-sided.
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
    if z is not None and two_sided_p(z) < alpha:
        return f"{len(tokens)} tokens are {'less' if z > 0 else 'more'} likely than drawn text (surprisal z {z:.1f})"
    return ""
