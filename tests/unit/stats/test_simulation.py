"""Coverage of an interval that stopped when it looked narrow; tests/docs has the other simulations of the designs."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.stats.student import half_width, ratio_bounds, spread


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
