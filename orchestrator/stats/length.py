"""Whether two arms wrote answers of the same length, without which their total waits are not comparable."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from orchestrator.schema.units import ratio, ratio_interval
from orchestrator.stats.estimate import NO_SPREAD, RANGE_ONLY, estimate_of
from orchestrator.stats.pairing import pair
from orchestrator.stats.student import NO_SPREAD_LOG

if TYPE_CHECKING:
    import pandas as pd

MARGIN = 0.02
"""Token counts whose ratio lies within 1/1.02 and 1.02 are one length (docs/methodology, natural length)."""
REFUSAL = "not comparable: length"


def length_comparable(cell_tokens: pd.DataFrame, base_tokens: pd.DataFrame, level: float = 0.95) -> tuple[bool, str]:
    """Whether total waits may be compared, and the sentence that says why.

    Args:
        cell_tokens: columns ``set_index``, ``prompt_id`` and ``value`` = output tokens of each measured trial.
        base_tokens: likewise for the baseline.
        level: of the interval of the token-count ratio.

    Equal counts in every pair, as under a fixed length, are comparable. Otherwise the interval of the ratio must
    lie within ±2 %. Where there is none, because greedy output repeats itself or there are fewer than three
    sessions, every session's ratio must.
    """
    paired = pair(cell_tokens, base_tokens)
    if paired.refusal:
        return False, f"{REFUSAL} ({paired.refusal})"
    every = [log for row in paired.logs.values() for log in row.values()]
    if all(abs(log) <= NO_SPREAD_LOG for log in every):
        return True, "equal token counts in every pair of session and prompt"
    estimate = estimate_of(paired.sessions, level)
    if estimate.low is not None and estimate.high is not None:
        bounds = (estimate.low, estimate.high)
        how = f"{round(100 * level)} % interval {ratio_interval(*bounds)}"
    elif estimate.method in (RANGE_ONLY, NO_SPREAD):
        bounds = (math.exp(min(paired.sessions)), math.exp(max(paired.sessions)))
        how = "the same in every session" if estimate.method == NO_SPREAD else f"range {ratio_interval(*bounds)}"
    else:
        return False, f"{REFUSAL} ({estimate.method})"
    inside = max(abs(math.log(bounds[0])), abs(math.log(bounds[1]))) <= math.log1p(MARGIN)
    extreme = max(paired.prompts.items(), key=lambda item: abs(item[1]))
    most = f"largest difference {ratio(math.exp(extreme[1]))} ({extreme[0]})"
    words = f"token counts {ratio(estimate.point)}, {how}; {most}"
    return inside, words if inside else f"{REFUSAL} ({words})"
