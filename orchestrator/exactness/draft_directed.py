"""Are emitted tokens drawn towards what the drafter likes? Needs the draft's probabilities, which few engines tell.

Why a sum over judged places has mean 0. Let F be everything before a token is drawn: the emitted tokens, and which
drafts of the round were kept. Given F the draft's distribution q is fixed, and with it the mean Σ p·q, the variance,
and whether the place is *judged*: a draft was proposed for it and all earlier ones of its round were kept. A rule that
judges its drafts from left to right and is exact (sample match; rejection with its residual) draws the token from p
given F. So q(token) − Σ p·q, counted at judged places alone, are martingale differences, whatever ends a generation.
Leaving places out by what came *before* them is harmless; choosing by the token itself (kept drafts alone) would not
be. Under a rule that judges a whole draft at once (block verification) it hangs on later tokens whether a place is
reached, and this test does not apply.

The sum over its standard deviation tends to a standard normal, but slowly where a good share of the variance comes from
tokens that the draft likes and the baseline hardly ever draws: then the sum is like a Poisson count. So the verdict
does not rest on the normal: each difference is at most 1, and Bennett's inequality (for martingales: Freedman 1975)
bounds the tail at any size, P(S ≥ x) ≤ exp(−V·h(x ÷ V)) with h(u) = (1 + u)·ln(1 + u) − u and V = Σ variance.

The test is made once, on all of arm ``on``, after the looks of the prefix tree ended. Where a look ended it early the
tree has rejected already, so that the two together err with at most the sum of their levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtri

from orchestrator.schema.judged import Judged
from orchestrator.schema.result import CheckResult, Verdict

CHECK = "draft-directed z"
ALPHA = 0.001
"""Two-sided, by the bound: with the tree's 0.01 an exact engine fails one of the two in at most 1.1 % of all checks."""
POWER = 0.9
SMALLEST = 1e-300
"""A bound below it is not told apart from 0, which no bound is."""
HALVINGS = 60
NOT_TOLD = "the engine reports no draft probabilities"
NONE_HELD = "these records hold no draft probabilities"


def draft_directed_z(tokens: Sequence[Judged]) -> float | None:
    """Σ (q − expected) ÷ √Σ variance: mean 0, variance 1 when the tokens are drawn from the baseline's distribution.

    An exact rule makes the emitted token independent of what the drafter likes, once p is given. Greedy acceptance
    or a missing residual pulls the tokens towards the draft, which makes z large.

    Returns:
        ``None`` where nothing varies.
    """
    variance = math.fsum(one.variance for one in tokens)
    if variance <= 0:
        return None
    return math.fsum(one.q - one.expected for one in tokens) / math.sqrt(variance)


def bounded_p(z: float, variance: float) -> float:
    """At least the chance of a sum as far from 0 on either side, whatever the distributions (Bennett's inequality)."""
    return max(SMALLEST, min(1.0, 2 * math.exp(-variance * _h(abs(z) / math.sqrt(variance)))))


def critical_z(variance: float, alpha: float = ALPHA) -> float:
    """The z from which on :func:`bounded_p` is below ``alpha``."""
    wanted = math.log(2 / alpha) / variance
    low, high = 0.0, 1.0
    while _h(high) < wanted:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _h(middle) < wanted else (low, middle)
    return high * math.sqrt(variance)


def unavailable(why: str) -> CheckResult:
    """No verdict, for want of draft probabilities."""
    return CheckResult(CHECK, Verdict.NOT_APPLICABLE, f"not available: {why}")


def draft_directed(tokens: Sequence[Judged], *, alpha: float = ALPHA) -> CheckResult:
    """The verdict over the judged places of all generations.

    A pass says at what share of the places the draft's most likely token could have stood instead of the one drawn
    before the test had seen it; where all of them would not have been enough it is ``underpowered``. The test looks in
    one direction, and settles no claim by itself.
    """
    places, variance = len(tokens), math.fsum(one.variance for one in tokens)
    z = draft_directed_z(tokens)
    if z is None:
        words = f"nothing to judge: the draft's probabilities do not vary at {places} judged places"
        return CheckResult(CHECK, Verdict.UNDERPOWERED, words)
    p, own, expected = bounded_p(z, variance), _mean(tokens, "q"), _mean(tokens, "expected")
    size = (
        f"z {z:.2f}, two-sided p at most {p:.2g} (Bennett's bound, {alpha:g} decides); the draft gives the tokens of "
        f"{places} judged places {own:.4f} in the mean, {expected:.4f} is expected"
    )
    if p < alpha:
        side = "tokens are drawn towards the draft" if z > 0 else "tokens are drawn away from the draft"
        return CheckResult(CHECK, Verdict.FAIL, f"{side}: {size}")
    needed = (critical_z(variance, alpha) + float(ndtri(POWER))) * math.sqrt(variance)
    moved = math.fsum(one.favourite - one.expected for one in tokens)
    if moved <= needed:
        words = f"too little to judge: the draft's favourite at every place would not have been seen; {size}"
        return CheckResult(CHECK, Verdict.UNDERPOWERED, words)
    share = f"{100 * needed / moved:.2g} % of them the draft's favourite instead"
    power = f"were {share}, it would have been seen with {100 * POWER:.0f} % power"
    return CheckResult(CHECK, Verdict.PASS, f"tokens do not follow the draft: {size}; {power}")


def _h(u: float) -> float:
    return (1 + u) * math.log1p(u) - u


def _mean(tokens: Sequence[Judged], name: str) -> float:
    return math.fsum(getattr(one, name) for one in tokens) / len(tokens)
