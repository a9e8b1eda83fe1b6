"""The optional adaptive stop: whole sets, at least four, until the interval is narrow or the limit is reached."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orchestrator.schema.result import Comparison
from orchestrator.schema.units import percent

MIN_SETS = 4


def enough(
    comparisons: Sequence[Comparison], sets_done: int, max_sets: int, half_width: float = 0.02
) -> tuple[bool, str]:
    """Whether a block may stop after ``sets_done`` complete sets, and why.

    The half-width is a ratio minus one. Comparisons without an interval (counted values, refused ones) cannot
    get narrower by measuring more and do not hold the block up.
    """
    if sets_done >= max_sets:
        return True, f"{sets_done} of at most {max_sets} sets"
    if sets_done < MIN_SETS:
        return False, f"{sets_done} sets; at least {MIN_SETS} before stopping early"
    widths = [
        math.sqrt(row.ratio.high / row.ratio.low) - 1
        for row in comparisons
        if row.ratio is not None and row.ratio.low is not None and row.ratio.high is not None
    ]
    if not widths:
        return False, "no interval to judge by yet"
    widest = max(widths)
    return widest <= half_width, f"widest interval ±{percent(widest, 1)}, wanted ±{percent(half_width, 1)}"
