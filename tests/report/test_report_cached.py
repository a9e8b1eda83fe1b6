"""A cell whose prompts were in the engine's cache: its first answer stands under its own name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from test_report_quality import DRAFT, run_with

from orchestrator.schema.observation import Absence, Observation, absent, observed
from orchestrator.schema.record import TrialRecord


def cached(trial: TrialRecord) -> TrialRecord:
    """The trial as a warm workload records it."""
    why = "the prompt is warm: see ttft_cached"

    def renamed(one: Observation) -> tuple[Observation, ...]:
        if one.metric != "ttft" or not isinstance(one.value, float):
            return (one,)
        return (observed("ttft_cached", one.value, one.source), absent("ttft", Absence.NOT_APPLICABLE, why))

    return dataclasses.replace(trial, observations=tuple(new for one in trial.observations for new in renamed(one)))


def test_a_cached_first_answer_is_compared_under_its_own_name_alone(tmp_path: Path) -> None:
    plain, warm = run_with(tmp_path / "cold", lambda one: one), run_with(tmp_path / "warm", cached)
    cold, cell = plain.analysis.by_id(DRAFT), warm.analysis.by_id(DRAFT)
    assert "ttft_cached" not in cold.comparisons
    assert "ttft" not in cell.comparisons
    assert cell.comparisons["ttft_cached"].ratio == cold.comparisons["ttft"].ratio
    assert "ttft" not in cell.summaries


def test_the_page_says_that_the_prompt_was_cached(tmp_path: Path) -> None:
    for change, expected in ((cached, True), (lambda one: one, False)):
        assert (", prompt cached" in run_with(tmp_path / str(expected), change).html) is expected
