"""Two runs against each other: sessions of different runs are independent, so nothing is paired across them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import stdtr, stdtrit

from orchestrator.schema.result import Estimate
from orchestrator.stats.estimate import NO_SPREAD, RANGE_ONLY
from orchestrator.stats.pairing import rows
from orchestrator.stats.student import MIN_SESSIONS, NO_SPREAD_LOG, Spread, spread

if TYPE_CHECKING:
    import pandas as pd

WELCH = "Welch's t over sessions, unpaired log values"
_WIDEST_LOG = 200.0


@dataclass(frozen=True, slots=True)
class Shift:
    """After ÷ before with its interval, and the two-sided p of "no change"; ``None`` where there is no interval."""

    ratio: Estimate
    p_value: float | None


@dataclass(frozen=True, slots=True)
class SessionLogs:
    """Mean log value of each session over the prompts that every session has; ``refusal`` says why there is none."""

    logs: tuple[float, ...]
    prompts: tuple[str, ...]
    refusal: str = ""


def shift(before: Sequence[float], after: Sequence[float], level: float = 0.95) -> Shift:
    """After ÷ before of session-level log values (at least one each), with Welch's interval.

    Equal variances are not assumed: the two runs may have met different noise. A single run's spread can be nil (a
    counted value); the interval then rests on the other's.

    Args:
        before: one log value (or log ratio) per session of the first run.
        after: likewise of the second; the numbers of sessions may differ.
        level: of the two-sided interval.

    Source: Welch (1947); degrees of freedom by Satterthwaite (1946).
    """
    one, two = spread(before), spread(after)
    n = min(one.n, two.n)
    log = two.mean - one.mean
    if not math.isfinite(log) or abs(log) > _WIDEST_LOG:
        raise ValueError(f"a change by exp({log}) is no measurement")
    point = math.exp(log)
    if n < MIN_SESSIONS:
        return Shift(Estimate(point, None, None, level, n, RANGE_ONLY), None)
    error = math.sqrt(_variance(one) + _variance(two))
    if error <= NO_SPREAD_LOG:
        return Shift(Estimate(point, None, None, level, n, NO_SPREAD), None)
    freedom = _freedom(one, two)
    half = float(stdtrit(freedom, 0.5 + level / 2)) * error
    if abs(log) + half > _WIDEST_LOG:
        return Shift(Estimate(point, None, None, level, n, "no interval: wider than any useful number"), None)
    p = min(1.0, 2 * float(stdtr(freedom, -abs(log) / error)))
    return Shift(Estimate(point, math.exp(log - half), math.exp(log + half), level, n, WELCH), p)


def session_logs(before: pd.DataFrame, after: pd.DataFrame) -> tuple[SessionLogs, SessionLogs]:
    """Both runs on one footing: each session's mean log value over the prompts that every session of both has.

    A session that lacks a prompt would otherwise be faster or slower by what it did not do.

    Args:
        before: columns ``set_index``, ``prompt_id`` and ``value`` (> 0) of one cell in the first run.
        after: likewise in the second.
    """
    found = [_by_session(frame) for frame in (before, after)]
    for number, table in enumerate(found):
        if not table:
            refusal = f"the {'second' if number else 'first'} run has no positive value"
            return SessionLogs((), (), refusal), SessionLogs((), (), refusal)
    common = sorted(set.intersection(*(set(row) for table in found for row in table.values())))
    if not common:
        refusal = "no prompt was measured in every session of both runs"
        return SessionLogs((), (), refusal), SessionLogs((), (), refusal)
    logs = [
        tuple(math.fsum(row[prompt] for prompt in common) / len(common) for row in table.values()) for table in found
    ]
    return SessionLogs(logs[0], tuple(common)), SessionLogs(logs[1], tuple(common))


def _by_session(frame: pd.DataFrame) -> dict[int, dict[str, float]]:
    values: dict[int, dict[str, list[float]]] = {}
    for session, prompt, value in rows(frame):
        if not value > 0:
            return {}
        values.setdefault(session, {}).setdefault(prompt, []).append(math.log(value))
    return {
        session: {prompt: math.fsum(logs) / len(logs) for prompt, logs in row.items()}
        for session, row in values.items()
    }


def _variance(found: Spread) -> float:
    return found.sd**2 / found.n


def _freedom(one: Spread, two: Spread) -> float:
    """Never below that of the smaller run alone, and never above both together."""
    a, b = _variance(one), _variance(two)
    return (a + b) ** 2 / (a**2 / (one.n - 1) + b**2 / (two.n - 1))


def holm(p_values: Mapping[str, float], alpha: float = 0.05) -> frozenset[str]:
    """The names whose null hypothesis falls after Holm's step-down over the whole family."""
    fallen = set()
    for rank, (p, name) in enumerate(sorted((p, name) for name, p in p_values.items())):
        if p * (len(p_values) - rank) >= alpha:
            break
        fallen.add(name)
    return frozenset(fallen)
