"""Counts that some answers tell and others do not, short answers, and totals of a whole process: called what they are."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import run_builder
from report_runs import Report, report_of

from orchestrator.report.data.summary import summary_data
from orchestrator.report.model.parts import CellView, RowView, TableView
from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.observation import Absence

NBSP = "\u00a0"
MLX = "mlx-lm/tiny/draft-k4/greedy/short"
BASE = "mlx-lm/tiny/none/greedy/short"
NOTE = "the text ended in a round: whether the end was the draft's own or a correction is not told"
TOTAL = "over all requests of the process, warm-up included; a lower bound"
PARTS = ("rejected_tokens", "discarded_tokens")
SHORT = "Some answers of the cell or its baseline are shorter than 16 tokens."


def edited(path: Path, change: Callable[[dict[str, Any]], None], block: run_builder.BlockSpec | None = None) -> Report:
    block = block or dataclasses.replace(run_builder.full_blocks()[2], attempts=1)
    run_builder.write_run(path, (block,), run_builder.IDENTITIES)
    lines = []
    for line in (path / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        change(row)
        lines.append(json.dumps(row) + "\n")
    (path / "journal.jsonl").write_text("".join(lines), encoding="utf-8")
    return report_of(path)


def absent(one: dict[str, Any], note: str, kind: Absence = Absence.NOT_REPORTED) -> None:
    one.update(value=None, absent=kind.value, note=note)


def tables(report: Report) -> tuple[TableView, TableView]:
    (panel,) = next(one for one in report.view.groups if one.key == "exact").panels
    return panel.table, panel.blocks[0].table


def row_of(report: Report) -> RowView:
    return next(row for row in tables(report)[0].rows if row.anchor == f"cell/{MLX}")


def cell_at(report: Report, row: RowView, label: str) -> CellView:
    heads = [column.label for column in tables(report)[0].columns]
    return row.cells[heads.index(label)]


def hidden(prompts: tuple[str, ...]) -> Callable[[dict[str, Any]], None]:
    """Refused and discarded tokens are not told for these prompts."""

    def change(row: dict[str, Any]) -> None:
        if row["kind"] == "trial" and row["place"]["cell"] == MLX and row["prompt_id"] in prompts:
            for one in row["observations"]:
                if one["metric"] in PARTS:
                    absent(one, NOTE)

    return change


def test_parts_that_some_answers_tell_are_summed_and_say_how_many_those_are(tmp_path: Path) -> None:
    report = edited(tmp_path / "some", hidden(("p1", "p3")))
    cell = report.analysis.by_id(MLX)
    assert cell.totals is not None
    assert (cell.totals.refused, cell.totals.discarded) == (None, None)
    told = [
        (one.metric, one.value) for trial in cell.state.trials if trial.phase.value == "measured"
        for one in trial.observations if one.metric in PARTS and one.value is not None
    ]  # fmt: skip
    sums = {metric: sum(value for name, value in told if name == metric) for metric in PARTS}
    view = cell_at(report, row_of(report), "draft thrown away")
    assert view.main == str(cell.totals.drafted - cell.totals.accepted)
    assert view.lines == (
        f"{sums['rejected_tokens']} refused in 4 of 12 answers", f"{sums['discarded_tokens']} discarded in 4 of 12 answers",
    )  # fmt: skip
    assert view.why == NOTE
    assert view.note is not None
    assert tables(report)[0].notes[view.note - 1] == NOTE
    assert "does not tell refused from discarded" not in report.html


def test_parts_that_no_answer_tells_have_the_recorded_reason(tmp_path: Path) -> None:
    report = edited(tmp_path / "none", hidden(("p1", "p2", "p3")))
    view = cell_at(report, row_of(report), "draft thrown away")
    assert view.lines == ("parts not reported",)
    assert view.why == NOTE


@pytest.mark.parametrize(
    ("kind", "note", "word", "why"),
    [
        (Absence.NOT_APPLICABLE, "the answer has 8 tokens", "not applicable", SHORT),
        (Absence.SUPPRESSED, "the stamps go backwards", "suppressed", "the stamps go backwards"),
    ],
)
@pytest.mark.parametrize("prompts", [("p1", "p2", "p3"), ("p2",)], ids=["all", "some"])
def test_a_baseline_of_short_answers_says_why_it_has_no_time_to_n(
    tmp_path: Path, prompts: tuple[str, ...], kind: Absence, note: str, word: str, why: str
) -> None:
    def cut(row: dict[str, Any]) -> None:
        if row["kind"] == "trial" and row["prompt_id"] in prompts:
            for one in row["observations"]:
                if one["metric"].startswith("time_to_"):
                    absent(one, note, kind)

    report = edited(tmp_path / "short", cut)
    base = next(row for row in tables(report)[0].rows if row.base)
    for row in (base, row_of(report)):
        view = cell_at(report, row, "time to N")
        assert (view.main, view.why) == (word, why)
    assert report.analysis.by_id(BASE).state.trials


def test_a_total_of_a_process_is_no_cost_of_an_answer(tmp_path: Path) -> None:
    def total(row: dict[str, Any]) -> None:
        known = VOCABULARY["draft_time"]
        if row["kind"] == "session" and row["place"]["cell"] == MLX:
            row["observations"].append({
                "metric": "draft_time", "value": 0.04, "unit": known.unit.value, "clock": known.clock.value,
                "source": "log", "definition": known.id, "absent": None, "note": TOTAL,
            })  # fmt: skip

    report = edited(tmp_path / "total", total)
    cell = report.analysis.by_id(MLX)
    assert "draft_time" not in cell.summaries
    whole = cell.per_process["draft_time"]
    # Three answers and the warm-up in each of four processes.
    assert (whole.total.values, whole.requests, whole.note) == ((0.04,) * 4, (4, 4), TOTAL)
    (draft,) = [row for row in tables(report)[1].rows if row.names == "Draft cost"]
    view = draft.cells[1]
    assert view.main.replace(NBSP, " ") == "40.0 ms"
    assert [line.replace(NBSP, " ") for line in view.lines] == [
        "per process of 4 answers, warm-up included", "MAD 0 s · n = 4 processes",
    ]  # fmt: skip
    assert view.why == TOTAL
    told = next(one for one in summary_data(report.analysis, report.header)["cells"] if one["id"] == MLX)
    assert "draft_time" not in told["values"]
    assert told["per_process"]["draft_time"]["requests"] == [4, 4]
    assert told["absent"]["draft_time"]["why"] == "not_reported"


def test_a_cost_that_each_answer_tells_stays_one_of_answers(tmp_path: Path) -> None:
    def each(row: dict[str, Any]) -> None:
        for one in row.get("observations", ()):
            if one["metric"] == "draft_time" and row["place"]["cell"] == MLX:
                one.update(value=0.01, absent=None, note=None)

    report = edited(tmp_path / "each", each)
    assert report.analysis.by_id(MLX).per_process == {}
    (draft,) = [row for row in tables(report)[1].rows if row.names == "Draft cost"]
    assert draft.cells[1].main.replace(NBSP, " ") == "10.0 ms"
    assert "per process" not in " ".join(draft.cells[1].lines)
