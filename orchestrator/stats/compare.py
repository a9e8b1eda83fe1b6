"""A cell against its own baseline in one metric, with the words of docs/methodology and the reasons for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.schema.metrics import Better
from orchestrator.schema.result import Comparison, Estimate, Outcome
from orchestrator.schema.units import percent
from orchestrator.stats.estimate import BOOTSTRAP_SEED, RANGE_ONLY, bootstrap_of, estimate_of, sign_flip_p
from orchestrator.stats.pairing import pair
from orchestrator.stats.student import (
    MIN_SESSIONS,
    NO_SPREAD_LOG,
    half_width,
    ratio_bounds,
    sessions_for,
    spread,
    two_sided_p,
)

if TYPE_CHECKING:
    import pandas as pd

WANTED_PRECISION = 0.02
"""Half-width for which ``sessions_needed`` is given."""
EQUIVALENCE_LEVEL = 0.90
"""Two one-sided tests at 5 % each."""
LEAST_RELEVANT = 0.001
"""A smaller difference is neither lower nor higher, however sure: no figure on a page would show it."""


def compare(
    cell_id: str,
    base_id: str,
    metric: str,
    cell: pd.DataFrame,
    base: pd.DataFrame,
    *,
    better: Better,
    noise_floor: float | None,
    equivalence: float = 0.02,
    level: float = 0.95,
    refused: str = "",
    seed: int = BOOTSTRAP_SEED,
) -> Comparison:
    """The comparison of one metric: ratio, interval, checks and the outcome in words.

    Args:
        cell_id: the speculative cell.
        base_id: its baseline in the same block attempt.
        metric: a name of the vocabulary.
        cell: columns ``set_index``, ``prompt_id``, ``value`` (> 0); measured trials of complete sets.
        base: likewise.
        better: which direction people want; decides only which prompts count as worse.
        noise_floor: half-width of the A/A interval as a ratio minus one; ``None`` without a twin.
        equivalence: margin as a ratio minus one, symmetric on the log scale (0.02: from 1/1.02 to 1.02), so that
            exchanging the arms never changes the word.
        level: of the interval that decides.
        refused: a reason known to the caller why the figures must not be compared, e.g. unequal lengths.
        seed: of the bootstrap check.

    Returns:
        ``sessions_needed`` is the number of sessions in all, those measured included, for a half-width of 2 %.
    """
    paired = pair(cell, base)
    reason = refused or paired.refusal
    if reason:
        return Comparison(cell_id, base_id, metric, None, Outcome.NOT_COMPARABLE, reason, noise_floor)
    logs = paired.sessions
    found = spread(logs)
    ratio = estimate_of(logs, level)
    outcome, reason = _outcome(ratio, logs, noise_floor, equivalence)
    if paired.missing:
        reason = _join(reason, f"{paired.missing} pairs of session and prompt are in one arm only and left out")
    by_prompt = paired.prompts
    worse = sum(1 for log in by_prompt.values() if _worse(log, better))
    return Comparison(
        cell_id,
        base_id,
        metric,
        ratio,
        outcome,
        reason,
        noise_floor,
        worse,
        len(by_prompt),
        two_sided_p(found),
        None,
        sign_flip_p(logs),
        bootstrap_of(paired, seed, level) if ratio.low is not None else None,
        tuple(math.exp(log) for log in logs),
        sessions_for(found.sd, WANTED_PRECISION, level) if found.n >= MIN_SESSIONS else None,
    )


def apply_holm(comparisons: Sequence[Comparison], alpha: float = 0.05) -> tuple[Comparison, ...]:
    """The same comparisons with Holm's adjusted p values over the whole sequence as one family.

    A family is several speculative cells on one baseline in one metric; other metrics are other questions and
    other families. Comparisons without a p value pass unchanged and do not count.

    Returns:
        In the given order. A ``lower`` or ``higher`` whose adjusted p is not below ``alpha`` becomes
        ``no detectable difference``, and its reason says so.

    Source: Holm (1979), step-down; adjusted p values made monotone and cut at 1.
    """
    ranked = sorted((row.p_value, index) for index, row in enumerate(comparisons) if row.p_value is not None)
    adjusted: dict[int, float] = {}
    largest = 0.0
    for rank, (p, index) in enumerate(ranked):
        largest = max(largest, min(1.0, p * (len(ranked) - rank)))
        adjusted[index] = largest
    return tuple(
        _after_holm(row, adjusted[index], len(ranked), alpha) if index in adjusted else row
        for index, row in enumerate(comparisons)
    )


def _after_holm(row: Comparison, p_holm: float, family: int, alpha: float) -> Comparison:
    if row.outcome not in (Outcome.LOWER, Outcome.HIGHER) or p_holm < alpha:
        return replace(row, p_holm=p_holm)
    words = f"{row.outcome.value} if it stood alone, not among {family} on one baseline (Holm p {p_holm:.3f})"
    return replace(row, p_holm=p_holm, outcome=Outcome.NO_DIFFERENCE, reason=_join(words, row.reason))


def _outcome(
    ratio: Estimate, logs: Sequence[float], noise_floor: float | None, equivalence: float
) -> tuple[Outcome, str]:
    if ratio.low is None or ratio.high is None:
        if ratio.method == RANGE_ONLY:
            if ratio.n == 1:
                return Outcome.RANGE_ONLY, f"{ratio.n} session: no range; an interval needs {MIN_SESSIONS}"
            return Outcome.RANGE_ONLY, f"{ratio.n} sessions: a range; an interval needs {MIN_SESSIONS}"
        return Outcome.RANGE_ONLY, ratio.method
    found = spread(logs)
    half = math.expm1(half_width(found.sd, found.n, ratio.level))
    excludes = ratio.low > 1 or ratio.high < 1
    size = abs(math.log(ratio.point))
    quiet = noise_floor is not None and size <= math.log1p(noise_floor)
    tiny = not quiet and size < math.log1p(LEAST_RELEVANT)
    if excludes and not quiet and not tiny:
        note = "no A/A twin: the noise floor is not known" if noise_floor is None else ""
        return (Outcome.LOWER if ratio.high < 1 else Outcome.HIGHER), note
    inside = ""
    if excludes:
        floor = f"inside the noise floor of ±{percent(noise_floor or 0.0, 1)}"
        inside = f"a difference below {percent(LEAST_RELEVANT, 1)}" if tiny else floor
    narrow = ratio_bounds(found, EQUIVALENCE_LEVEL)
    if narrow is not None and max(-math.log(narrow[0]), math.log(narrow[1])) <= math.log1p(equivalence):
        return Outcome.EQUIVALENT, _join(inside, f"the 90 % interval lies within ±{percent(equivalence, 1)}")
    return Outcome.NO_DIFFERENCE, _join(inside, f"±{percent(half, 1)}")


def _worse(log: float, better: Better) -> bool:
    if better is Better.LOWER:
        return log > NO_SPREAD_LOG
    return better is Better.HIGHER and log < -NO_SPREAD_LOG


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
