"""With several models in one panel every row and every label says whose figures they are."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from pathlib import Path

import pytest
import run_builder
from report_runs import Report, report_of

from orchestrator.report.language.words import plain
from orchestrator.report.model.groups import Panel
from orchestrator.report.model.parts import RowView
from orchestrator.schema.cell import ModelConfig
from orchestrator.schema.codec import dump_record, load_record
from orchestrator.schema.record import TrialGrade, TrialRecord

LARGE = ModelConfig("large", "/models/large.gguf", "large", drafts={"tiny": "/models/tiny-draft-f16.gguf"})
MODELS = ("tiny", "large")
TEXT = re.compile(r"<text[^>]*>([^<]*)</text>")


def two_models(path: Path) -> Report:
    """The same cells of one engine with two models, their answers graded, beside another engine's."""
    gain = dataclasses.replace(run_builder.full_blocks()[2], attempts=1)
    other = dataclasses.replace(gain, model=LARGE)
    run_builder.write_run(path, (gain, other, run_builder.full_blocks()[0]), run_builder.IDENTITIES)
    journal = path / "journal.jsonl"
    records = [load_record(line, "test") for line in journal.read_text(encoding="utf-8").splitlines()]
    grade = TrialGrade("d0", "numeric", True, True, "")
    graded = [dataclasses.replace(one, grade=grade) if isinstance(one, TrialRecord) else one for one in records]
    journal.write_text("".join(map(dump_record, graded)), encoding="utf-8")
    return report_of(path)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return two_models(tmp_path_factory.mktemp("runs") / "both")


def panel_of(report: Report) -> Panel:
    (group,) = [one for one in report.view.groups if one.key == "exact"]
    (panel,) = group.panels
    return panel


def text_of(row: RowView) -> str:
    """What the filter of the page looks through, as far as the row's head goes."""
    return f"{row.names} {row.sub}"


def test_every_row_of_the_main_table_names_its_model(both: Report) -> None:
    rows = panel_of(both).table.rows
    named = {row.anchor: [model for model in MODELS if model in text_of(row)] for row in rows if not row.base}
    assert len(named) == 7
    for anchor, models in named.items():
        assert models == [anchor.removeprefix("cell/").split("/")[1]]
    assert all(sum(model in text_of(row) for model in MODELS) == 1 for row in rows if row.base)


@pytest.mark.parametrize("model", MODELS)
def test_the_name_of_a_model_keeps_exactly_its_rows(both: Report, model: str) -> None:
    rows = panel_of(both).table.rows
    kept = {row.anchor for row in rows if row.anchor and model in text_of(row)}
    assert kept == {row.anchor for row in rows if row.anchor.split("/")[2:3] == [model]}
    assert kept


def test_labels_of_figures_name_the_model_where_a_panel_has_several(both: Report, full: Report) -> None:
    figures = panel_of(both).figures
    assert [one.id.split("-")[1] for one in figures] == ["forest", "scatter"]
    for figure in figures:
        rows = [row.names for row in figure.data.rows]
        assert len(rows) == len(set(rows)) > 2
        assert all(sum(f"· {model} ·" in name for model in MODELS) == 1 for name in rows)
    forest, scatter = figures
    assert {row.names for row in forest.data.rows} <= {unescape(text) for text in TEXT.findall(forest.svg)}
    # Among the points the mark tells the engine, and the name the model.
    assert [(one.mark, one.text) for one in scatter.legend[1:]] == [("m0 s0", "mlx-lm"), ("m1 s1", "llama.cpp")]
    short = {row.names.partition(" · ")[2] for row in scatter.data.rows}
    assert len({unescape(text) for text in TEXT.findall(scatter.svg)} & short) >= 2
    assert "· large ·" in plain(scatter.caption)
    (one,) = [group for group in full.view.groups if group.key == "exact"]
    alone = next(figure for figure in one.panels[0].figures if "scatter" in figure.id)
    assert not any("· tiny ·" in row.names for row in alone.data.rows)


def test_tables_of_answers_and_conditions_name_the_model(both: Report) -> None:
    answers = [row for one in both.view.quality for table in one.tables for row in table.rows]
    conditions = [row for table in both.view.conditions for row in table.rows]
    for rows in (answers, conditions):
        assert rows
        assert all(sum(model in row.sub for model in MODELS) == 1 for row in rows)
