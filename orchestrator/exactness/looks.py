"""Several looks at growing samples with one total error: where to look, and how much of alpha each look may spend.

A broken engine is caught at a quarter of the generations, and a good one is not judged more often than alpha allows.
The spending is like that of O'Brien and Fleming: almost nothing early, almost all at the end. Each look spends its
own share, and the shares add up to alpha, so that the total error is at most alpha however the looks depend on each
other (a bound by the union of events, which needs no model of their dependence).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtr, ndtri

SHARES = (0.25, 0.5, 1.0)
BATCH = 100
"""Generations a journal line: looks fall on whole batches."""


def look_sizes(per_arm: int, batch: int = BATCH) -> tuple[int, ...]:
    """Generations per arm and context at each look: a quarter, half and all, rounded up to whole batches."""
    sizes = (min(per_arm, batch * math.ceil(share * per_arm / batch)) for share in SHARES)
    return tuple(sorted(set(sizes)))


def spending(sizes: Sequence[int], alpha: float) -> tuple[float, ...]:
    """The level of each look; together they are ``alpha``.

    Args:
        sizes: generations at each look, growing; the last is all of them.
        alpha: total chance of rejecting an exact engine.

    Source: Lan & DeMets (1983), spending function 2 − 2·Φ(z ÷ √t) with z at alpha ÷ 2, as increments.
    """
    bound = -float(ndtri(alpha / 2))
    spent = [2 * float(ndtr(-bound / math.sqrt(size / sizes[-1]))) for size in sizes]
    return tuple(now - before for before, now in zip((0.0, *spent), spent, strict=False))
