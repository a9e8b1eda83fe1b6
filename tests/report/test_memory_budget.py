"""The budget table: foreseen beside measured, and what a drafter adds only where both arms stand on one basis."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import run_builder
from report_runs import report_of

from orchestrator.report.language.words import Words
from orchestrator.schema.codec import dump_record
from orchestrator.schema.observation import observed
from orchestrator.schema.record import MatrixRecord, MemoryRecord, SessionRecord
from orchestrator.schema.status import Status
from orchestrator.schema.units import size
from orchestrator.store.directory import JOURNAL, RunDirectory

NEED = {
    "total_bytes": 30_000_000,
    "increase_bytes": 4_000_000,
    "parts": [
        {"what": "weights", "bytes": 20_000_000, "basis": "header", "estimate": False, "speculation": False},
        {"what": "draft buffers", "bytes": 10_000_000, "basis": "rule", "estimate": True, "speculation": True},
    ],
    "unknown": [],
}
HOST = {
    "budget": {"total_bytes": 128 * 10**9, "used_bytes": 36 * 10**9, "reserved_bytes": 20 * 10**9,
               "gpu_limit_bytes": 96 * 10**9, "gpu_limit_note": "set"},
    "largest_others": [{"name": "<b>browser</b>", "rss_bytes": 2 * 10**9, "processes": 9}],
}  # fmt: skip


def run(path: Path, bases: tuple[str, str] | None, *, settings: dict | None = None, need: dict = NEED):
    """One block with needs in its matrix revision, and a memory trial of baseline and first cell."""
    block = run_builder.full_blocks()[0]
    run_builder.write_run(path, (block,), run_builder.IDENTITIES, run_settings=settings)
    records = list(RunDirectory.open(path).records())
    found, rows = [], {}
    for record in records:
        if isinstance(record, MatrixRecord):
            rows = {row["role"]: row for row in reversed(record.cells)}
            cells = tuple({**row, "memory": need} for row in record.cells)
            found.append(dataclasses.replace(record, cells=cells, host=HOST))
        elif isinstance(record, SessionRecord):
            hot = {"thermal_pressure": "heavy"}
            found.append(dataclasses.replace(record, host={"start": hot, "end": hot}))
        else:
            found.append(record)
    for (role, peak), basis in zip({"baseline": 50e6, "speculative": 54e6}.items(), bases or (), strict=False):
        row = rows[role]
        seen = (observed("peak_unified", round(peak), "os:basis"),)
        utc = "2026-11-29T12:00:00Z"
        found.append(MemoryRecord(row["id"], row["fingerprint"], basis, Status.OK, "", seen, "cells/x/memory-0", utc))
    (path / JOURNAL).write_text("".join(map(dump_record, found)), encoding="utf-8")
    return report_of(path), rows


def added(report, row) -> str:
    name = row["settings"]["method"]["name"]
    (found,) = [r for table in report.view.budget for r in table.rows if r.names.endswith(name)]
    return found.cells[4]


@pytest.fixture(scope="module")
def same(tmp_path_factory):
    return run(tmp_path_factory.mktemp("r") / "same", ("not mapped", "not mapped"))


def test_foreseen_stands_beside_measured_and_groups_have_tables_of_their_own(same):
    report, rows = same
    assert len(report.view.budget) == len({table.id for table in report.view.budget}) > 1
    base = next(row for table in report.view.budget for row in table.rows if row.base)
    assert [base.cells[0].main, base.cells[1].main] == ["30.0 MB", "weights 20.0 MB"]
    assert base.cells[1].lines == ("draft buffers ≈ 10.0 MB",)
    measured = report.analysis.by_id(rows["baseline"]["id"]).summaries["peak_unified"].median
    assert base.cells[2].main == size(measured)
    assert 73e6 < measured < 75e6
    assert base.cells[3].absent
    assert "memory foreseen and measured" in report.html


def test_the_increase_is_cell_less_baseline_on_one_basis(same):
    report, rows = same
    view = added(report, rows["speculative"])
    assert view.main.replace("\u00a0", " ") == "+4.00 MB"
    assert view.lines[-1] == "not mapped"


def test_two_bases_are_not_compared_and_no_trial_is_not_zero(tmp_path):
    report, rows = run(tmp_path / "two", ("not mapped", "mapped"))
    assert added(report, rows["speculative"]).main == "not comparable"
    report, rows = run(tmp_path / "none", None)
    view = added(report, rows["speculative"])
    assert (view.main, view.absent) == ("not run", True)


def test_every_part_of_the_forecast_is_listed_so_that_they_add_up(tmp_path):
    kinds = ("weights", "compute buffers", "program", "recurrent state", "draft weights", "draft compute buffers",
             "KV cache", "draft KV cache")  # fmt: skip
    parts = [
        {"what": what, "bytes": (9 - n) * 10**6, "basis": "rule", "estimate": False, "speculation": "draft" in what}
        for n, what in enumerate(kinds)
    ]
    need = {**NEED, "parts": parts, "total_bytes": sum(part["bytes"] for part in parts)}
    report, _ = run(tmp_path / "parts", None, need=need)
    base = next(row for table in report.view.budget for row in table.rows if row.base)
    told = [base.cells[1].main, *base.cells[1].lines]
    assert told == [f"{what} {9 - n}.00 MB" for n, what in enumerate(kinds)]


def test_every_part_that_the_engines_name_has_a_korean_name():
    names = ("weights", "KV cache", "KV cache, windows", "compute buffers", "recurrent state")
    drafts = [f"draft {name}" for name in names] + ["MTP weights", "MTP KV cache", "MTP compute buffers"]
    words = Words("ko")
    for name in (*names, *drafts, "recurrent snapshots", "n-gram table", "scores of every token", "program"):
        assert words.said(name) != name


def rows_of(report) -> dict[str, tuple]:
    found = {}
    for table in report.view.budget:
        for row in table.rows:
            found[row.names.rsplit(" · ", 1)[-1]] = (row.cells, table.notes)
    return found


@pytest.mark.parametrize(
    ("total", "increase", "marks", "added_marks"),
    [
        (74_000_000, 4_000_000, (None, None), None),
        (30_000_000, 1_000_000, ("2.6", "4.7"), "4.00× the forecast"),
        (200_000_000, 40_000_000, ("0.4", "0.1"), "0.10× the forecast"),
    ],
)
def test_a_forecast_that_is_far_off_is_marked_and_explained(tmp_path, total, increase, marks, added_marks):
    need = {**NEED, "total_bytes": total, "increase_bytes": increase}
    report, rows = run(tmp_path / "off", ("not mapped", "not mapped"), need=need)
    cells, notes = rows_of(report)[rows["speculative"]["settings"]["method"]["name"]]
    peak, trial = cells[2], cells[4]
    told = [line.replace("\u00a0", " ") for line in peak.lines if "forecast" in line]
    if added_marks is None:
        assert (told, peak.note, trial.note) == ([], None, None)
        return
    assert [told[0][:3], told[1].split(": ")[1][:3]] == list(marks)
    assert told[1].startswith("+4.73 MB by drafting: ")
    assert trial.lines[0] == added_marks
    assert (peak.tone, trial.tone, peak.note, trial.note) == ("ask", "ask", 1, 1)
    note = notes[0]
    assert ("above the forecast" in note) == (marks[0] > "1")
    assert ("mapped weights" in note) == (marks[0] < "1")


def test_a_lower_bound_is_not_off_when_more_was_measured(tmp_path):
    for total, note in ((30_000_000, None), (10**9, 1)):
        need = {**NEED, "total_bytes": total, "unknown": ["the cache of this engine"]}
        report, rows = run(tmp_path / str(total), None, need=need)
        cells, _ = rows_of(report)[rows["speculative"]["settings"]["method"]["name"]]
        assert cells[2].note == note


def test_the_machine_its_largest_programs_and_its_heat_are_told_and_escaped(same):
    report, _ = same
    assert "128 GB in all" in report.view.room.replace("\u00a0", " ")
    assert "&lt;b&gt;browser&lt;/b&gt;" in report.html
    facts = {fact.label: fact.value for fact in report.view.measured}
    assert facts["Heat and power"].startswith("thermal pressure was heavy at its ")


def test_an_engine_that_ran_past_its_pin_is_named_on_the_first_screen(tmp_path):
    settings = {"unpinned": ["llama.cpp"], "mismatches": {"llama.cpp": "build is 2, pinned 1"}}
    report, _ = run(tmp_path / "pin", None, settings=settings)
    words = "llama.cpp is not the pinned version and ran all the same, by allow_unpinned: build is 2, pinned 1."
    assert report.view.unpinned == words
    assert words in report.html.split('id="exact"')[0]
