"""A cell of one session has one ratio: neither a range nor several sessions."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import run_builder
from report_runs import report_of

from orchestrator.report.language import numerals
from orchestrator.report.language.words import Words, plain
from orchestrator.report.page import cells
from orchestrator.report.page.first_screen.sentences import sentence

MLX = "mlx-lm/tiny/draft-k4/greedy/short"


@pytest.mark.parametrize(
    ("language", "wait", "others", "line"),
    [
        (
            "en",
            "the wait was {ratio} as long in the only session: no range, no verdict",
            "one session",
            "one session, no range",
        ),
        (
            "ko",
            "단 하나의 세션에서 기다린 시간이 끈 경우의 {ratio}: 범위도 판정도 없다",
            "세션 하나",
            "세션 하나, 범위 없음",
        ),
    ],
)
def test_the_one_ratio_is_said_alone(tmp_path: Path, language: str, wait: str, others: str, line: str) -> None:
    block = dataclasses.replace(run_builder.full_blocks()[2], sets=1, attempts=1)
    path = run_builder.write_run(tmp_path / "one", (block,), run_builder.IDENTITIES)
    cell = report_of(path).analysis.by_id(MLX)
    assert cell.wait is not None
    assert cell.wait.ratio is not None
    words = Words(language)
    told = [plain(clause.rich) for clause in sentence(cell, words).clauses]
    assert told[0] == wait.format(ratio=numerals.ratio(cell.wait.ratio))
    assert [one.rpartition(", ")[2] for one in told[1:3]] == [others, others]
    assert not any("…" in one for one in told)
    assert cells._no_interval(cell.wait, words) == line


def test_a_range_whose_ends_read_the_same_is_one_number() -> None:
    assert numerals.spread((1.45,)) == numerals.spread((1.451, 1.449)) == "1.45"
    assert numerals.spread((1.45, 1.46)) == "1.45…1.46"
