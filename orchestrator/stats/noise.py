"""The baseline against its own twin: how large a difference looks when there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.schema.result import Estimate
from orchestrator.schema.units import percent, ratio, ratio_interval
from orchestrator.stats.estimate import NO_SPREAD, RANGE_ONLY, estimate_of
from orchestrator.stats.pairing import pair
from orchestrator.stats.student import NO_SPREAD_LOG, half_width, ratio_bounds, spread

if TYPE_CHECKING:
    import pandas as pd

ALARM_LEVEL = 0.99
"""An A/A interval of this level that excludes 1 makes the block inconclusive."""
CANARY_LIMIT = 0.02
"""A larger change of the baseline between its two measurements confounds a blocked design."""


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """What an A/A comparison says.

    Args:
        half_width: of the 95 % interval as a ratio minus one; 0 where twin and baseline are equal in every session;
            ``None`` where there is no interval.
        ratio: twin ÷ baseline; ``None`` when nothing could be paired.
        inconclusive: twin and baseline differ although they are the same, so no comparison of the block counts.
        reason: in words.
    """

    half_width: float | None
    ratio: Estimate | None
    inconclusive: bool
    reason: str


def noise_floor(twin: pd.DataFrame, base: pd.DataFrame, level: float = 0.95) -> NoiseFloor:
    """The noise floor of one block; arguments as in :func:`orchestrator.stats.estimate.ratio_estimate`."""
    paired = pair(twin, base)
    if paired.refusal:
        return NoiseFloor(None, None, inconclusive=False, reason=f"no A/A comparison: {paired.refusal}")
    return _judge(paired.sessions, level)


def canary(before: pd.DataFrame, after: pd.DataFrame, limit: float = CANARY_LIMIT) -> tuple[bool, str]:
    """Whether the baseline stayed within ``limit`` between its measurement before and after the others.

    Returns:
        ``(steady, sentence)``. Not steady, or not measurable, marks the comparison ``confounded``.
    """
    paired = pair(after, before)
    if paired.refusal:
        return False, f"the canary says nothing: {paired.refusal}"
    mean = spread(paired.sessions).mean
    steady = abs(mean) <= math.log1p(limit)
    words = f"the baseline measured {ratio(math.exp(mean))} of its first value after the other cells"
    return steady, f"{words} (limit ±{percent(limit)})"


def blocked_floor(after: pd.DataFrame, before: pd.DataFrame, level: float = 0.95) -> NoiseFloor:
    """The noise floor of a blocked order, where the twin is the baseline measured once more after all other cells.

    It differs from the baseline by the drift between them, which is no alarm as long as :func:`canary` bears it, and
    no comparison in between can tell such a change from an effect: the floor is the farther end of the interval.
    """
    plain = noise_floor(after, before, level)
    if plain.ratio is None or plain.ratio.low is None or plain.ratio.high is None:
        return NoiseFloor(None, plain.ratio, inconclusive=False, reason=plain.reason)
    farthest = max(abs(math.log(plain.ratio.low)), abs(math.log(plain.ratio.high)))
    words = f"A/A {ratio(plain.ratio.point)} {ratio_interval(plain.ratio.low, plain.ratio.high)}, before and after"
    return NoiseFloor(math.expm1(farthest), plain.ratio, inconclusive=False, reason=words)


def _judge(logs: Sequence[float], level: float) -> NoiseFloor:
    found, overall = spread(logs), estimate_of(logs, level)
    if overall.method == RANGE_ONLY:
        return NoiseFloor(None, overall, inconclusive=False, reason=f"A/A of {overall.n} sessions: a range, no floor")
    if overall.method == NO_SPREAD:
        if abs(math.log(overall.point)) <= NO_SPREAD_LOG:
            return NoiseFloor(0.0, overall, inconclusive=False, reason="A/A: the baseline equals its twin exactly")
        words = "differs from itself by the same factor in every session"
        return NoiseFloor(None, overall, inconclusive=True, reason=f"A/A: the baseline {words}; no floor")
    alarm = ratio_bounds(found, ALARM_LEVEL)
    inconclusive = alarm is not None and not alarm[0] <= 1 <= alarm[1]
    floor = math.expm1(half_width(found.sd, found.n, level))
    words = f"A/A {ratio(overall.point)}"
    if overall.low is not None and overall.high is not None:
        words += f" {ratio_interval(overall.low, overall.high)}"
    if inconclusive and alarm is not None:
        words += f"; the 99 % interval {ratio_interval(*alarm)} excludes 1 although both arms are the same"
    return NoiseFloor(floor, overall, inconclusive, words)
