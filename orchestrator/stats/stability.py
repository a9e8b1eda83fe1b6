"""Whether one cell's values can be relied on: spread classes and flags. Nothing is ever dropped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.schema.metrics import Better
from orchestrator.schema.units import percent, plain
from orchestrator.stats.pairing import rows
from orchestrator.stats.student import NO_SPREAD_LOG, two_sided_p_of_slope

if TYPE_CHECKING:
    import pandas as pd

OUTLIER_MADS = 14.8
"""|x − median| ÷ raw MAD beyond which a value is flagged: ten standard deviations of a normal distribution."""
STABLE_CV, NOISY_CV = 0.03, 0.10
MODES_MIN, MODES_DISTANCE, MODES_RATIO = 12, 6.0, 1.02
"""Two modes are called from 12 values on, when the best split in two has Ashman's D above 6 and means 2 % apart.

Measured on 3 000 samples each: at most 1 % of normal and 1.4 % of skewed (log-normal, σ 0.6) samples of 12 to 120
values reach D = 6, and 90 to 100 % of two equal groups eight standard deviations apart do.
"""
SLOW_FIRST = 1.05
"""A first trial slower by more than the 5 % at which warm-up counts as over."""
DRIFT_CHANGE, DRIFT_P, DRIFT_MIN_SESSIONS = 0.02, 0.01, 4


class FlagKind(StrEnum):
    """What a reader must know before trusting a cell's median."""

    OUTLIER = "outlier"
    BIMODAL = "two modes"
    SLOW_FIRST = "slow first trial"
    NOISY = "noisy"
    UNSTABLE = "unstable"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True)
class Flag:
    """One warning; ``ranked`` is false where it takes the cell's place among others, not its verdict."""

    kind: FlagKind
    sentence: str
    ranked: bool = True


@dataclass(frozen=True, slots=True)
class Relative:
    """One value with its log distance from the centre of its own prompt."""

    session: int
    prompt: str
    value: float
    log: float
    order: int
    trial: int


def spread_cv(frame: pd.DataFrame) -> float | None:
    """Coefficient of variation within prompts, over sessions and trials alike; ``None`` without repeats.

    Args:
        frame: columns ``set_index``, ``prompt_id``, ``value`` (> 0).

    Prompts differ in length and difficulty, so each value counts against the mean log of its own prompt, and one
    degree of freedom is paid per prompt.
    """
    by_prompt: dict[str, list[float]] = {}
    for _, prompt, value in rows(frame):
        if not value > 0:
            return None
        by_prompt.setdefault(prompt, []).append(math.log(value))
    freedom = sum(len(logs) - 1 for logs in by_prompt.values())
    if freedom < 1:
        return None
    squares = math.fsum((log - math.fsum(logs) / len(logs)) ** 2 for logs in by_prompt.values() for log in logs)
    variance = min(squares / freedom, 100.0)  # e^50 is unstable enough to be called so
    return math.sqrt(math.expm1(variance))


def flags(frame: pd.DataFrame, better: Better = Better.LOWER) -> tuple[Flag, ...]:
    """Every warning about one cell's values of one metric, in a fixed order; empty when there is none.

    Args:
        frame: columns ``set_index``, ``prompt_id``, ``value``; optional ``order`` (place in the run; the session
            index without it) and ``trial`` (place in its session; no slow first trial is looked for without it).
        better: which direction is slow.

    A slow first trial shows only where its prompt is also measured later in some session: otherwise the prompt
    and the place cannot be told apart.
    """
    found = _relative(frame)
    if not found:
        return ()
    return (
        *_spread_flags(frame),
        *_outliers(found),
        *_modes(found),
        *(_slow_first(found, better) if "trial" in frame.columns else ()),
        *_drift(found),
    )


def _relative(frame: pd.DataFrame) -> tuple[Relative, ...]:
    triples = rows(frame)
    if not triples or not all(value > 0 for _, _, value in triples):
        return ()
    size = len(frame)
    order = frame["order"].tolist() if "order" in frame.columns else frame["set_index"].tolist()
    trial = frame["trial"].tolist() if "trial" in frame.columns else [0] * size
    columns = (frame["set_index"].tolist(), frame["prompt_id"].tolist(), frame["value"].tolist(), order, trial)
    by_prompt: dict[str, list[float]] = {}
    for _, prompt, value in triples:
        by_prompt.setdefault(prompt, []).append(math.log(value))
    centre = {prompt: float(np.median(logs)) for prompt, logs in by_prompt.items()}
    made = [
        Relative(int(s), str(p), float(v), math.log(v) - centre[str(p)], int(o), int(t))
        for s, p, v, o, t in zip(*columns, strict=True)
    ]
    return tuple(sorted(made, key=lambda one: (one.order, one.session, one.trial, one.prompt, one.value)))


def _spread_flags(frame: pd.DataFrame) -> tuple[Flag, ...]:
    cv = spread_cv(frame)
    if cv is None or cv < STABLE_CV:
        return ()
    words = f"coefficient of variation {percent(cv, 1)}"
    if cv < NOISY_CV:
        return (Flag(FlagKind.NOISY, f"{words} ({percent(STABLE_CV)} or less would be stable)"),)
    return (Flag(FlagKind.UNSTABLE, f"{words}, above {percent(NOISY_CV)}", ranked=False),)


def _outliers(found: tuple[Relative, ...]) -> tuple[Flag, ...]:
    logs = np.asarray([one.log for one in found])
    median = float(np.median(logs))
    mad = float(np.median(np.abs(logs - median)))
    # With one or two values per prompt most distances are 0 by construction, and every other value would stand out.
    if mad <= NO_SPREAD_LOG:
        return ()
    return tuple(
        Flag(
            FlagKind.OUTLIER,
            f"{plain(math.exp(one.log))}× its prompt's median ({one.prompt}, session {one.session}), "
            f"{abs(one.log - median) / mad:.0f} MADs away; kept",
        )
        for one in found
        if abs(one.log - median) / mad > OUTLIER_MADS
    )


def _modes(found: tuple[Relative, ...]) -> tuple[Flag, ...]:
    logs = np.sort(np.asarray([one.log for one in found]))
    count = len(logs)
    if count < MODES_MIN:
        return ()
    least = max(3, math.ceil(0.2 * count))
    cuts = range(least, count - least + 1)
    cut = min(cuts, key=lambda k: float(logs[:k].var() * k + logs[k:].var() * (count - k)))
    low, high = logs[:cut], logs[cut:]
    apart = float(high.mean() - low.mean())
    width = math.sqrt(float(low.var(ddof=1) + high.var(ddof=1)) / 2)
    if apart <= math.log(MODES_RATIO) or apart <= MODES_DISTANCE * width:
        return ()
    return (Flag(FlagKind.BIMODAL, f"{cut} and {count - cut} values in two groups {plain(math.exp(apart))}× apart"),)


def _slow_first(found: tuple[Relative, ...], better: Better) -> tuple[Flag, ...]:
    sign = -1.0 if better is Better.HIGHER else 1.0
    sessions = sorted({one.session for one in found})
    later: list[float] = []
    for session in sessions:
        mine = [one for one in found if one.session == session]
        start = min(one.trial for one in mine)
        first = [one.log for one in mine if one.trial == start]
        rest = [one.log for one in mine if one.trial > start]
        if not rest:
            return ()
        later.append(sign * (math.fsum(first) / len(first) - float(np.median(rest))))
    slowdown = float(np.median(later))
    if len(sessions) < 2 or min(later) <= 0 or slowdown <= math.log(SLOW_FIRST):
        return ()
    words = f"the first trial is slower in all {len(sessions)} sessions, {plain(math.exp(slowdown))}× at the median"
    return (Flag(FlagKind.SLOW_FIRST, f"{words}: more warm-up is needed"),)


def _drift(found: tuple[Relative, ...]) -> tuple[Flag, ...]:
    sessions: dict[int, list[Relative]] = {}
    for one in found:
        sessions.setdefault(one.session, []).append(one)
    if len(sessions) < DRIFT_MIN_SESSIONS:
        return ()
    x = np.asarray([np.mean([one.order for one in group]) for group in sessions.values()])
    y = np.asarray([np.mean([one.log for one in group]) for group in sessions.values()])
    result = two_sided_p_of_slope(x, y)
    if result is None:
        return ()
    slope, p = result
    change = slope * float(np.ptp(x))
    if abs(change) <= math.log1p(DRIFT_CHANGE) or p >= DRIFT_P:
        return ()
    return (Flag(FlagKind.DRIFT, f"{plain(math.exp(change))}× from the first session to the last (p {p:.3f})"),)
