"""The statistics against simulated truth: coverage of the interval, and false alarms of the order designs.

Seeds are fixed, so each figure is one number; the bounds are what 1 000 or more draws allow around the nominal one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from orchestrator.stats.estimate import bootstrap_of, estimate_of
from orchestrator.stats.pairing import Paired
from orchestrator.stats.student import half_width, ratio_bounds, spread, two_sided_p

Generator = np.random.Generator


def simulated_pair(rng: Generator, sessions: int, prompts: int = 5, trials: int = 2) -> Paired:
    """Pairs as :func:`pair` makes them: true ratio 0.9, processes 2 % apart, trials of one process 1 % apart."""
    arms = rng.normal(0, 0.02, (2, sessions, 1)) + rng.normal(0, 0.01, (2, sessions, prompts, trials)).mean(axis=3)
    logs = np.log(0.9) + arms[0] - arms[1]
    return Paired({s: {f"p{p}": float(logs[s, p]) for p in range(prompts)} for s in range(sessions)})


def coverage(estimator: Callable[[Paired], tuple[float | None, float | None]], sessions: int, runs: int) -> float:
    rng = np.random.default_rng(sessions)
    hits = 0
    for _ in range(runs):
        low, high = estimator(simulated_pair(rng, sessions))
        hits += low is not None and high is not None and low <= 0.9 <= high
    return hits / runs


@pytest.mark.parametrize("sessions", [3, 4, 8])
def test_the_t_interval_covers_as_often_as_it_says(sessions: int) -> None:
    def t_interval(paired: Paired) -> tuple[float | None, float | None]:
        found = estimate_of(paired.sessions)
        return found.low, found.high

    assert 0.93 <= coverage(t_interval, sessions, 1000) <= 0.97


@pytest.mark.parametrize(("sessions", "low", "high"), [(3, 0.69, 0.80), (4, 0.76, 0.86), (6, 0.81, 0.90)])
def test_the_bootstrap_covers_less_which_is_why_it_does_not_decide(sessions: int, low: float, high: float) -> None:
    def bootstrap(paired: Paired) -> tuple[float | None, float | None]:
        found = bootstrap_of(paired, draws=999)
        return found.low, found.high

    assert low <= coverage(bootstrap, sessions, 600) <= high


Order = Callable[[Generator, int], list[str]]


def blocked(_: Generator, n: int) -> list[str]:
    return ["A"] * n + ["B"] * n


def abab(_: Generator, n: int) -> list[str]:
    return ["A", "B"] * n


def abba(_: Generator, n: int) -> list[str]:
    return ["A", "B", "B", "A"] * (n // 2)


def shuffled(rng: Generator, n: int) -> list[str]:
    return [arm for _ in range(n) for arm in (["A", "B"] if rng.random() < 0.5 else ["B", "A"])]


def false_alarms(order: Order, seed: int, runs: int = 4000, n: int = 8) -> float:
    """Share of "differs" at 5 % when nothing does, over a linear drift of 5 % and 1 % of noise per process."""
    rng = np.random.default_rng(seed)
    alarms = 0
    for _ in range(runs):
        logs: dict[str, list[float]] = {"A": [], "B": []}
        for place, arm in enumerate(order(rng, n)):
            logs[arm].append(0.05 * place / (2 * n - 1) + rng.normal(0, 0.01))
        p = two_sided_p(spread([b - a for a, b in zip(logs["A"], logs["B"], strict=True)]))
        alarms += p is not None and p < 0.05
    return alarms / runs


def test_order_designs_under_drift_rank_as_the_method_says() -> None:
    rates = {order.__name__: false_alarms(order, seed) for seed, order in enumerate((blocked, abab, abba, shuffled))}
    assert rates["blocked"] > 0.98
    assert 0.06 < rates["abab"] < 0.13
    assert 0.03 < rates["abba"] < 0.06
    assert 0.035 < rates["shuffled"] < 0.065
    assert rates["abba"] < rates["abab"] < rates["blocked"]


def sequential_coverage(sd: float, runs: int = 4000, most: int = 20, wanted: float = 0.02) -> float:
    """Coverage of 95 % intervals that stop at whole pairs of sets once their half-width is small enough."""
    rng = np.random.default_rng(round(1000 * sd))
    hits = 0
    for logs in rng.normal(0, sd, (runs, most)):
        done = next(
            n for n in range(4, most + 1, 2)
            if n == most or half_width(spread(logs[:n].tolist()).sd, n, 0.95) <= np.log1p(wanted)
        )  # fmt: skip
        low, high = ratio_bounds(spread(logs[:done].tolist()), 0.95) or (1.0, 1.0)
        hits += low <= 1 <= high
    return hits / runs


def test_an_interval_that_stopped_when_it_looked_narrow_covers_less_and_the_method_says_how_much() -> None:
    assert [sequential_coverage(sd) for sd in (0.01, 0.02, 0.03)] == pytest.approx([0.947, 0.933, 0.916], abs=0.012)
