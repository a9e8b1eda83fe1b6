"""Student's t on session means, on the log scale: intervals, p values and the sessions a precision needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from scipy.special import stdtr, stdtrit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_SESSIONS = 3
"""Below this there is a range and no interval (docs/methodology)."""
NO_SPREAD_LOG = 1e-9
"""A standard deviation of session means below this (a billionth) is no noise that a clock could show."""
_WIDEST_LOG = 200.0
_MOST_SESSIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation (n − 1) of session-level log ratios."""

    mean: float
    sd: float
    n: int

    @property
    def usable(self) -> bool:
        """Whether an interval can be formed: enough sessions, and some spread between them."""
        return self.n >= MIN_SESSIONS and self.sd > NO_SPREAD_LOG


def spread(logs: Sequence[float]) -> Spread:
    """Mean and standard deviation; 0 for a single value, where nothing is known of the spread.

    Raises:
        ValueError: there is no value at all.
    """
    if not logs:
        raise ValueError("no session to average")
    mean = math.fsum(logs) / len(logs)
    if len(logs) == 1:
        return Spread(mean, 0.0, 1)
    sd = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1))
    return Spread(mean, sd, len(logs))


def half_width(sd: float, n: int, level: float, df: int | None = None) -> float:
    """Half of the two-sided interval at ``level``, on the log scale; ``df`` defaults to ``n`` − 1."""
    return _quantile(n - 1 if df is None else df, 0.5 + level / 2) * sd / math.sqrt(n)


@lru_cache(maxsize=1024)
def _quantile(df: int, p: float) -> float:
    return float(stdtrit(df, p))


def ratio_bounds(found: Spread, level: float) -> tuple[float, float] | None:
    """The interval as ratios; ``None`` where none can be formed or a number could not hold it."""
    if not found.usable:
        return None
    half = half_width(found.sd, found.n, level)
    if abs(found.mean) + half > _WIDEST_LOG:
        return None
    return math.exp(found.mean - half), math.exp(found.mean + half)


def two_sided_p(found: Spread) -> float | None:
    """P of the t test of "no difference"; ``None`` where there is no interval either."""
    if not found.usable:
        return None
    t = abs(found.mean) / (found.sd / math.sqrt(found.n))
    return min(1.0, 2 * float(stdtr(found.n - 1, -t)))


def sessions_for(sd: float, width: float, level: float) -> int | None:
    """How many sessions in all give a half-width of ``width`` (0.02 is ±2 %) at the observed spread.

    Returns:
        At least 3. ``None`` without spread, and where more than a million would be needed.
    """
    if sd <= NO_SPREAD_LOG or width <= 0:
        return None
    wanted = math.log1p(width)
    low, high = MIN_SESSIONS - 1, MIN_SESSIONS
    while half_width(sd, high, level) > wanted:
        low, high = high, high * 2
        if high > _MOST_SESSIONS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if half_width(sd, middle, level) <= wanted else (middle, high)
    return high


def two_sided_p_of_slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float] | None:
    """Least-squares slope of ``y`` on ``x`` with the two-sided p of its t test, one point per session.

    Returns:
        ``None`` below 4 points, or where ``x`` or ``y`` does not vary.
    """
    count = len(x)
    if count < MIN_SESSIONS + 1:
        return None
    dx, dy = x - x.mean(), y - y.mean()
    sxx, syy = float(dx @ dx), float(dy @ dy)
    if sxx <= 0 or syy <= NO_SPREAD_LOG**2:
        return None
    slope = float(dx @ dy) / sxx
    rest = max(syy - slope * slope * sxx, 0.0) / (count - 2)
    if rest <= NO_SPREAD_LOG**2:
        return slope, 0.0
    return slope, min(1.0, 2 * float(stdtr(count - 2, -abs(slope) / math.sqrt(rest / sxx))))
