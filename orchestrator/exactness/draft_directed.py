"""Are emitted tokens drawn towards what the drafter likes? Needs the draft's probabilities, which few engines tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.schema.result import CheckResult, Verdict

CHECK = "draft-directed z"
NOT_TOLD = CheckResult(CHECK, Verdict.NOT_APPLICABLE, "not available: the engine reports no draft probabilities")


@dataclass(frozen=True, slots=True)
class Judged:
    """One emitted token of a verify round.

    Args:
        q: the draft's probability of the emitted token.
        expected: Σ p·q over all tokens, with p the baseline's distribution there.
        variance: Σ p·q² − expected².
    """

    q: float
    expected: float
    variance: float


def draft_directed_z(tokens: Sequence[Judged]) -> float | None:
    """Σ (q − expected) ÷ √Σ variance: standard normal when the tokens are drawn from the baseline's distribution.

    An exact rule makes the emitted token independent of what the drafter likes, once p is given. Greedy acceptance
    or a missing residual pulls the tokens towards the draft, which makes z large.

    Returns:
        ``None`` where nothing varies.
    """
    variance = math.fsum(one.variance for one in tokens)
    if variance <= 0:
        return None
    return math.fsum(one.q - one.expected for one in tokens) / math.sqrt(variance)
