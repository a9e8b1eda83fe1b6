"""Writes what the design of a measurement does to its verdicts into docs/methodology.md, between its two markers.

Usage: ``python -m scripts.simulate_designs`` (some seconds). Two tables: how often a 5 % test calls a
difference where there is none while the machine drifts, by the order of the sessions; and how often a 95 % interval
covers the truth, by the number of sessions. The product's own code orders, pairs, estimates and judges; seeds are
fixed, and a test makes both tables anew.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from orchestrator.runner.plan import ordered
from orchestrator.stats.estimate import bootstrap_of, estimate_of
from orchestrator.stats.pairing import Paired
from orchestrator.stats.student import spread, two_sided_p

PAGE = Path(__file__).resolve().parent.parent / "docs" / "methodology.md"
BEGIN, END = (
    "<!-- simulated designs: begin, written by scripts/simulate_designs.py -->",
    "<!-- simulated designs: end -->",
)
SETS = (4, 8, 16)
SESSIONS = (3, 4, 5, 6, 8)
RUNS = 2_000
DRIFT, NOISE = 0.05, 0.01
"""Log change from the first session to the last, and standard deviation of one session's log mean."""
TRUTH = math.log(0.9)
PROMPTS, TRIALS, WITHIN, BETWEEN = 5, 2, 0.01, 0.02
DRAWS = 999
Sequence = tuple[int, ...]


def by_product(order: str) -> Callable[[int, int], Sequence]:
    """Arms (0 baseline, 1 cell) in the order in which the program would run them."""

    def arms(sets: int, run: int) -> Sequence:
        settings: Any = SimpleNamespace(order=order, order_seed=run)
        cells: Any = (0, 1)
        return tuple(int(str(cell)) for one in range(sets) for cell in ordered(cells, one, settings))

    return arms


ORDERS: dict[str, Callable[[int, int], Sequence]] = {
    "blocked: all sessions of one arm, then the other": lambda sets, _: (0,) * sets + (1,) * sets,
    "ABAB: the baseline always first": lambda sets, _: (0, 1) * sets,
    "`abba`, the default": by_product("abba"),
    "`random`": by_product("random"),
}


def false_alarms(arms: Callable[[int, int], Sequence], sets: int) -> float:
    """Share of runs in which a paired t test at 5 % finds a difference where there is none but drift."""
    rng = np.random.default_rng(sets)
    alarms = 0
    for run in range(RUNS):
        order = arms(sets, run)
        logs = DRIFT * np.arange(2 * sets) / (2 * sets - 1) + rng.normal(0, NOISE, 2 * sets)
        mine: tuple[list[float], list[float]] = ([], [])
        for arm, log in zip(order, logs, strict=True):
            mine[arm].append(float(log))
        p = two_sided_p(spread([cell - base for base, cell in zip(*mine, strict=True)]))
        alarms += p is not None and p < 0.05
    return alarms / RUNS


def coverage(sessions: int) -> tuple[float, float]:
    """Share of runs in which Student's t, and the bootstrap shown beside it, cover the true ratio."""
    rng = np.random.default_rng(sessions)
    by_t = by_bootstrap = 0
    for _ in range(RUNS // 2):
        arms = rng.normal(0, BETWEEN, (2, sessions, 1))
        arms = arms + rng.normal(0, WITHIN, (2, sessions, PROMPTS, TRIALS)).mean(axis=3)
        logs = TRUTH + arms[0] - arms[1]
        pairs = Paired({s: {f"p{p}": float(logs[s, p]) for p in range(PROMPTS)} for s in range(sessions)})
        plain, resampled = estimate_of(pairs.sessions), bootstrap_of(pairs, draws=DRAWS)
        by_t += _covers(plain.low, plain.high)
        by_bootstrap += _covers(resampled.low, resampled.high)
    return by_t / (RUNS // 2), by_bootstrap / (RUNS // 2)


def _covers(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low <= math.exp(TRUTH) <= high


def tables() -> str:
    """Both tables with what they were made from."""
    lines = [
        "False alarms of a paired 5 % test where nothing differs, while the machine slows down by",
        f"{DRIFT:.0%} from the first session to the last and sessions differ by {NOISE:.0%} ({RUNS} runs each):",
        "",
        f"| order of the sessions | {' | '.join(f'{sets} sets' for sets in SETS)} |",
        f"|---|{'---|' * len(SETS)}",
    ]
    for name, arms in ORDERS.items():
        lines.append(f"| {name} | {' | '.join(f'{false_alarms(arms, sets):.1%}' for sets in SETS)} |")
    covered = [coverage(sessions) for sessions in SESSIONS]
    lines += [
        "",
        f"Coverage of 95 % intervals of a ratio, where sessions of either arm differ by {BETWEEN:.0%} and answers",
        f"within one by {WITHIN:.0%} ({PROMPTS} prompts, {TRIALS} answers each, {RUNS // 2} runs):",
        "",
        f"| interval | {' | '.join(f'{sessions} sessions' for sessions in SESSIONS)} |",
        f"|---|{'---|' * len(SESSIONS)}",
        f"| Student's t over sessions, which decides | {' | '.join(f'{one[0]:.1%}' for one in covered)} |",
        f"| hierarchical bootstrap, shown beside it | {' | '.join(f'{one[1]:.1%}' for one in covered)} |",
    ]
    return "\n".join(lines)


def main() -> int:
    """Writes the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
