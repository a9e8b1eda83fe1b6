"""Spread classes and flags: each raised by what it names, and by nothing else."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from orchestrator.schema.metrics import Better
from orchestrator.stats.stability import FlagKind, flags, spread_cv


def frame(logs: list[list[float]], scale: tuple[float, ...] = (1.0, 5.0, 30.0)) -> pd.DataFrame:
    """One row per session of log deviations; trial t uses prompt (t + session), so that each moves about."""
    rows = []
    for session, row in enumerate(logs):
        for trial, log in enumerate(row):
            prompt = (trial + session) % len(scale)
            rows.append((session, f"p{prompt}", scale[prompt] * math.exp(log), trial, len(rows)))
    return pd.DataFrame(rows, columns=["set_index", "prompt_id", "value", "trial", "order"])


def kinds(table: pd.DataFrame, better: Better = Better.LOWER) -> list[FlagKind]:
    return [flag.kind for flag in flags(table, better)]


def noise(sd: float, sessions: int = 4, trials: int = 6, seed: int = 1) -> list[list[float]]:
    return [list(map(float, row)) for row in np.random.default_rng(seed).normal(0, sd, (sessions, trials))]


def test_cv_known_answer_within_prompts() -> None:
    # Each prompt: logs ±0.1 about its mean: Σ² = 4 × 0.01, df = 4 − 2: variance 0.02, CV = √(e^0.02 − 1).
    table = pd.DataFrame(
        {
            "set_index": [0, 1, 0, 1],
            "prompt_id": ["a", "a", "b", "b"],
            "value": [math.exp(0.1), math.exp(-0.1), 50 * math.exp(0.1), 50 * math.exp(-0.1)],
        }
    )
    assert spread_cv(table) == pytest.approx(math.sqrt(math.expm1(0.02)))


def test_cv_is_unknown_without_repeats() -> None:
    assert spread_cv(pd.DataFrame({"set_index": [0, 0], "prompt_id": ["a", "b"], "value": [1.0, 2.0]})) is None
    assert spread_cv(pd.DataFrame()) is None
    assert spread_cv(pd.DataFrame({"set_index": [0, 1], "prompt_id": ["a", "a"], "value": [0.0, 2.0]})) is None


@pytest.mark.parametrize(("sd", "expected"), [(0.01, []), (0.05, [FlagKind.NOISY]), (0.2, [FlagKind.UNSTABLE])])
def test_spread_classes(sd: float, expected: list[FlagKind]) -> None:
    assert kinds(frame(noise(sd))) == expected


def test_only_unstable_cells_lose_their_rank() -> None:
    assert [flag.ranked for flag in flags(frame(noise(0.2)))] == [False]
    assert [flag.ranked for flag in flags(frame(noise(0.05)))] == [True]


def test_an_outlier_is_named_and_kept() -> None:
    logs = noise(0.005)
    logs[2][3] = math.log(1.5)
    found = [flag for flag in flags(frame(logs)) if flag.kind is FlagKind.OUTLIER]
    assert len(found) == 1
    assert "session 2" in found[0].sentence
    assert found[0].sentence.endswith("kept")


def test_prompts_of_different_size_are_no_outliers() -> None:
    assert kinds(frame(noise(0.005), scale=(1.0, 1000.0, 1e-3))) == []


def test_two_modes() -> None:
    logs = [
        [value + (0.2 if (s + t) % 2 else 0.0) for t, value in enumerate(row)] for s, row in enumerate(noise(0.005))
    ]
    found = [flag for flag in flags(frame(logs, scale=(1.0,))) if flag.kind is FlagKind.BIMODAL]
    assert len(found) == 1
    assert found[0].sentence == "12 and 12 values in two groups 1.22× apart"


def test_one_mode_is_rarely_called_two() -> None:
    rng = np.random.default_rng(5)
    calls = 0
    for _ in range(400):
        table = pd.DataFrame(
            {"set_index": range(16), "prompt_id": ["a"] * 16, "value": np.exp(rng.normal(0, 0.05, 16))}
        )
        calls += FlagKind.BIMODAL in kinds(table)
    assert calls <= 8


def test_slow_first_trial_by_direction() -> None:
    logs = noise(0.005)
    for row in logs:
        row[0] += 0.10
    assert FlagKind.SLOW_FIRST in kinds(frame(logs))
    assert FlagKind.SLOW_FIRST not in kinds(frame(logs), Better.HIGHER)
    slower_rate = [[-value for value in row] for row in logs]
    assert FlagKind.SLOW_FIRST in kinds(frame(slower_rate), Better.HIGHER)


def test_a_first_trial_that_is_not_slow_in_every_session_is_not_flagged() -> None:
    logs = noise(0.005)
    for row in logs[:3]:
        row[0] += 0.10
    logs[3][0] -= 0.05
    assert FlagKind.SLOW_FIRST not in kinds(frame(logs))


def test_drift_over_the_run() -> None:
    logs = [[value + 0.02 * s for value in row] for s, row in enumerate(noise(0.003, sessions=5))]
    found = [flag for flag in flags(frame(logs)) if flag.kind is FlagKind.DRIFT]
    assert len(found) == 1
    assert found[0].sentence.startswith("1.08× from the first session to the last")


def test_drift_alarms_are_rare_without_drift() -> None:
    calls = sum(FlagKind.DRIFT in kinds(frame(noise(0.03, seed=seed))) for seed in range(300))
    assert calls <= 9


def test_degenerate_frames_raise_no_flag() -> None:
    assert flags(pd.DataFrame()) == ()
    assert flags(frame([[0.0] * 6] * 4)) == ()
    assert flags(frame([[0.0]])) == ()
    assert flags(pd.DataFrame({"set_index": [0], "prompt_id": ["a"], "value": [0.0]})) == ()
