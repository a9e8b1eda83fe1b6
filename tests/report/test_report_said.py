"""What the page says beside its figures: the model's prediction, the best draft length, a forced fit, what it leaves out."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import run_builder
from report_runs import Report, report_of

from orchestrator.report.analysis.findings import Sweep
from orchestrator.report.data import summary
from orchestrator.report.data.summary import LEFT_OUT, summary_json
from orchestrator.report.language.words import Words
from orchestrator.report.page.groups.drafting_words import decomposition_words, model_words, sweep_words
from orchestrator.report.page.groups.speculation import _luck
from orchestrator.report.page.view import build_view
from orchestrator.schema.cell import Method, MethodKind
from orchestrator.stats.speedup import decompose

MLX = "mlx-lm/tiny/draft-k4/greedy/short"
WORDS = Words()


def model(**changes: Any) -> str:
    known: dict[str, Any] = {
        "speedup": 1.2, "tokens_per_pass": 3.0, "mean_draft_length": 4.0, "acceptance": 0.5, "judged_alpha": 0.8,
    }  # fmt: skip
    return model_words(decompose(**(known | changes)), WORDS).replace("\u00a0", " ")


def test_the_model_stands_beside_the_measurement() -> None:
    assert model() == (
        "The model (every judged token accepted with one chance, 80 %; a verify pass as cheap as a plain one) gives 3.36 "
        "tokens per pass and at most 3.36× the decode rate; measured 3.00 and 1.20×"
    )
    priced = model(plain_pass_s=0.01, draft_s_per_pass=0.004)
    assert "and 2.40× the decode rate" in priced
    assert "at most" not in priced
    assert model(judged_alpha=None) == ""


SWEEP = Sweep("block", "draft tiny", (2, 4, 8), 4, "cell", True, False)


@pytest.mark.parametrize(
    ("change", "end"),
    [
        ({}, "K = 4 of 2, 4, 8, not confirmed in fresh sessions; its interval stands clear of the others'"),
        ({"clear": False}, "K = 4 of 2, 4, 8, not confirmed in fresh sessions; its interval overlaps another's"),
        ({"confirmed": True}, "K = 4 of 2, 4, 8, confirmed in fresh sessions"),
    ],
)
def test_a_best_draft_length_says_how_sure_it_is(change: dict[str, bool], end: str) -> None:
    told = sweep_words(dataclasses.replace(SWEEP, **change), WORDS)
    assert told == f"Best draft length of draft tiny by decode rate: {end}"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Report:
    block = run_builder.full_blocks()[2]
    k8 = Method("draft-k8", MethodKind.DRAFT, 8, "tiny")
    cells = (block.cells[0], dataclasses.replace(block.cells[0], method=k8, drafts=8, pass_s=0.09))
    block = dataclasses.replace(block, cells=cells, attempts=1)
    return report_of(run_builder.write_run(tmp_path_factory.mktemp("runs") / "swept", (block,), run_builder.IDENTITIES))


def test_the_block_names_the_best_length_of_its_sweep(swept: Report) -> None:
    block = swept.view.groups[0].panels[0].blocks[0]
    assert block.said[-1] == sweep_words(swept.analysis.sweeps[0], WORDS)
    assert block.said[-1] in swept.html.replace("&#39;", "'")


def test_a_confirmed_winner_is_not_asked_to_be_measured_again(swept: Report) -> None:
    best, other = (swept.analysis.by_id(name) for name in (MLX, MLX.replace("k4", "k8")))
    assert "measure it again" in _luck(best, (best, other), WORDS)
    sure = dataclasses.replace(best, confirmed=True)
    assert _luck(sure, (sure, other), WORDS) == "It was confirmed in fresh sessions."
    elsewhere = dataclasses.replace(other, confirmed=True)
    told = _luck(best, (best, elsewhere), WORDS)
    assert told.startswith("K = 8 waits least and was confirmed in fresh sessions: ")
    assert "again" not in told


def test_the_decomposition_is_said_for_every_cell_that_has_one(full: Report) -> None:
    for group in full.view.groups:
        for panel in group.panels:
            for block in panel.blocks:
                assert all(line.strip() for line in block.said)
    for cell in full.analysis.cells:
        if cell.decomposition is not None:
            assert decomposition_words(cell.decomposition, WORDS) in full.html


def forced(path: Path, *, verdict: str, allowed: bool) -> Report:
    block = dataclasses.replace(run_builder.full_blocks()[2], attempts=1)
    run_builder.write_run(path, (block,), run_builder.IDENTITIES, run_settings={"force_fit": allowed})
    journal = path / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    for row in lines:
        for cell in row.get("cells", ()) if row["kind"] == "matrix" else ():
            if cell["id"] == MLX:
                cell["fit"] = {"verdict": verdict, "why": "needs 64.0 GB (weights 64.0 GB); at most 8.00 GB of 16.0 GB"}
    journal.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    return report_of(path)


def test_a_forced_fit_stands_on_the_first_screen(tmp_path: Path) -> None:
    report = forced(tmp_path / "forced", verdict="does not fit", allowed=True)
    assert report.view.forced.startswith(
        "1 cell was measured although its memory does not fit by the prediction (run.force_fit): mlx-lm · tiny · draft-k4"
    )
    assert "at most" in report.view.forced
    first = report.html[: report.html.index('id="exact"')]
    assert 'id="forced"' in first
    assert forced(tmp_path / "fits", verdict="fits", allowed=True).view.forced == ""
    assert forced(tmp_path / "refused", verdict="does not fit", allowed=False).view.forced == ""


def test_a_large_run_says_what_its_page_leaves_out(swept: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(summary_json(swept.analysis, swept.header))
    assert "left_out" not in whole
    assert " data-whole>" in swept.html
    monkeypatch.setattr(summary, "WHOLE_CELLS", 3)
    told = json.loads(summary_json(swept.analysis, swept.header))
    assert len(swept.analysis.cells) == 4
    assert set(LEFT_OUT) < set(told["left_out"])
    cell, full_cell = (next(one for one in data["cells"] if one["id"] == MLX) for data in (told, whole))
    for name in LEFT_OUT:
        assert name not in cell
        assert name in full_cell
    for metric, one in full_cell["values"].items():
        assert cell["values"][metric] == {key: value for key, value in one.items() if key != "values"}
    view = build_view(swept.analysis, swept.header, swept.index)
    assert not view.whole
    # The CSV inside the page is for what the JSON leaves out; a whole page makes it of its JSON.
    assert view.csv_address.startswith("data:text/csv;charset=utf-8,cell,status,")
    assert swept.view.csv_address == ""
    assert "leave out single values" in view.data_note
