"""How many answers a cell has, where a workload has its own number of trials."""

from __future__ import annotations

import dataclasses

import pytest
import run_builder
from report_runs import Report, report_of

from orchestrator.report.language.words import Words
from orchestrator.report.page.first_screen.context import answers_per_cell
from orchestrator.report.page.view import build_view


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A block with the run's three answers a session, and one whose workload has four."""
    first = run_builder.full_blocks()[0]
    tasks = dataclasses.replace(first.workload, name="tasks", trials=4)
    path = tmp_path_factory.mktemp("amount") / "run"
    blocks = (first, dataclasses.replace(first, workload=tasks, prompts=4))
    return report_of(run_builder.write_run(path, blocks, run_builder.IDENTITIES))


@pytest.mark.parametrize(
    ("language", "label", "told"),
    [
        ("en", "Amount", "4 sessions × 3 answers per cell, 4 in tasks (preset demo), order abba"),
        ("ko", "측정량", "셀마다 세션 4개 × 답변 3개, tasks에서는 4개 (프리셋 demo), 순서 abba"),
    ],
)
def test_the_first_screen_tells_a_workloads_own_number(mixed: Report, language: str, label: str, told: str) -> None:
    view = build_view(mixed.analysis, mixed.header, mixed.index, language)
    assert {fact.label: fact.value for fact in view.measured}[label].replace("\u00a0", " ") == told


def test_the_runs_number_is_not_told_where_no_workload_has_it(mixed: Report) -> None:
    assert answers_per_cell(mixed.index, 3, Words()).replace("\u00a0", " ") == "3 answers per cell, 4 in tasks"
    tasks = {key: state for key, state in mixed.index.cells.items() if key.endswith("/tasks")}
    alone = dataclasses.replace(mixed.index, cells=tasks)
    assert answers_per_cell(alone, 3, Words()).replace("\u00a0", " ") == "4 answers per cell"
    assert (
        answers_per_cell(dataclasses.replace(alone, cells={}), 1, Words()).replace("\u00a0", " ") == "1 answer per cell"
    )
