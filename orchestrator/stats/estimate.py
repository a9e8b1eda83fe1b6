"""Estimates: medians with their raw values, and ratios with intervals whose unit of replication is the session."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.schema.result import Estimate, Summary
from orchestrator.stats.pairing import Paired, pair
from orchestrator.stats.student import MIN_SESSIONS, ratio_bounds, spread

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

RANGE_ONLY = "range only"
"""``Estimate.method`` below three sessions; the range is that of the session ratios."""
NO_SPREAD = "no interval: no spread between sessions (a counted value, or a clock too coarse)"
"""``Estimate.method`` where all sessions agree: an interval of zero width would claim a certainty nobody has."""
DRAWS = 9_999
BOOTSTRAP_SEED = 20_260_211
"""The stored seed: the same records give the same interval."""
SIGN_FLIP_MIN, SIGN_FLIP_MAX = 6, 20
"""From six sessions on p can fall below 0.05; beyond twenty the enumeration is not worth its million sums."""


def summary(values: Iterable[float]) -> Summary:
    """Median, raw (unscaled) median absolute deviation and count, with the values as they came.

    Raises:
        ValueError: no value, or one that is not finite.
    """
    raw = tuple(float(value) for value in values)
    if not raw or not all(math.isfinite(value) for value in raw):
        raise ValueError(f"a summary needs at least one finite value and nothing else, got {raw!r}")
    # Of a handful of values: numpy's median takes fifty times as long over so few.
    middle = float(median(raw))
    return Summary(middle, float(median(abs(value - middle) for value in raw)), len(raw), raw)


def ratio_estimate(cell: pd.DataFrame, base: pd.DataFrame, level: float = 0.95) -> Estimate | None:
    """Cell ÷ baseline: exp of the mean session log ratio, with Student's t interval over sessions.

    Args:
        cell: columns ``set_index``, ``prompt_id``, ``value``; measured trials of complete sets of one attempt.
        base: likewise for the baseline.
        level: of the two-sided interval.

    Returns:
        ``None`` when nothing can be paired (:func:`orchestrator.stats.pairing.pair` says why). Without an
        interval ``method`` says why: :data:`RANGE_ONLY` or :data:`NO_SPREAD`.
    """
    paired = pair(cell, base)
    return None if paired.refusal else estimate_of(paired.sessions, level)


def session_ratios(cell: pd.DataFrame, base: pd.DataFrame) -> tuple[float, ...]:
    """One ratio per session in the order of their indices; empty when nothing can be paired."""
    return tuple(math.exp(log) for log in pair(cell, base).sessions)


def estimate_of(session_logs: Sequence[float], level: float = 0.95) -> Estimate:
    """The ratio and interval of session-level log ratios (at least one)."""
    found = spread(session_logs)
    point = math.exp(found.mean)
    if found.n < MIN_SESSIONS:
        return Estimate(point, None, None, level, found.n, RANGE_ONLY)
    if not found.usable:
        return Estimate(point, None, None, level, found.n, NO_SPREAD)
    bounds = ratio_bounds(found, level)
    if bounds is None:
        return Estimate(point, None, None, level, found.n, "no interval: wider than any useful number")
    return Estimate(point, *bounds, level, found.n, "Student's t over sessions, paired log ratios")


def bootstrap_ratio(
    cell: pd.DataFrame, base: pd.DataFrame, seed: int = BOOTSTRAP_SEED, level: float = 0.95, draws: int = DRAWS
) -> Estimate | None:
    """The hierarchical percentile bootstrap, sessions first and prompts within each: a check, not the interval.

    With few sessions it covers less than it says (simulated in docs/methodology), which is why the t interval is the
    one that decides.

    Returns:
        ``None`` when nothing can be paired; without an interval ``method`` says why.
    """
    paired = pair(cell, base)
    return None if paired.refusal else bootstrap_of(paired, seed, level, draws)


def bootstrap_of(paired: Paired, seed: int = BOOTSTRAP_SEED, level: float = 0.95, draws: int = DRAWS) -> Estimate:
    """The same on pairs that were already made (at least one)."""
    plain = estimate_of(paired.sessions, level)
    if plain.low is None:
        return plain
    logs = np.asarray([log for row in paired.logs.values() for log in row.values()])
    means = _weights(tuple(len(row) for row in paired.logs.values()), seed, draws) @ logs
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    method = f"hierarchical bootstrap (sessions, then prompts), {draws} draws, seed {seed}"
    return Estimate(plain.point, math.exp(float(low)), math.exp(float(high)), level, plain.n, method)


@lru_cache(maxsize=4)
def _weights(prompts_per_session: tuple[int, ...], seed: int, draws: int) -> NDArray[np.float64]:
    """Weight of each pair in each resampled mean, draws × pairs.

    A resampled mean is linear in the log ratios and its weights depend on the design alone, so that all cells of
    one design share them; drawn anew for each comparison they would cost a hundred times the rest of it.
    """
    generator = np.random.default_rng(seed)
    counts = np.asarray(prompts_per_session)
    starts = np.concatenate(([0], np.cumsum(counts)))
    sessions, pairs = len(counts), int(starts[-1])
    weights = np.zeros(draws * pairs)
    rows = np.arange(draws) * pairs
    for _ in range(sessions):
        drawn = generator.integers(0, sessions, draws)
        size = counts[drawn]
        for slot in range(int(counts.max())):
            # A session that lacks a prompt draws fewer of them: surplus slots have no weight.
            inside = slot < size
            picked = starts[drawn] + (generator.random(draws) * size).astype(np.intp)
            np.add.at(weights, (rows + picked)[inside], 1.0 / (sessions * size[inside]))
    shaped = weights.reshape(draws, pairs)
    shaped.setflags(write=False)
    return shaped


def sign_flip_p(session_log_ratios: Sequence[float]) -> float | None:
    """Exact two-sided p under "each session's log ratio is as likely to have the other sign".

    Returns:
        ``None`` below 6 sessions, where p cannot fall below 0.03, and above 20. 1 when all ratios are 1.
    """
    count = len(session_log_ratios)
    if not SIGN_FLIP_MIN <= count <= SIGN_FLIP_MAX:
        return None
    sums = np.zeros(1)
    for log in session_log_ratios:
        sums = np.concatenate((sums + log, sums - log))
    observed = abs(math.fsum(session_log_ratios))
    # Sums that are equal in exact arithmetic must count as equal: half a unit in the last place is no evidence.
    tolerance = 1e-12 * math.fsum(abs(log) for log in session_log_ratios)
    return float(np.count_nonzero(np.abs(sums) >= observed - tolerance) / sums.size)
