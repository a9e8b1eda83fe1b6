"""From a run directory to its page, keeping every stage for the tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchestrator.report.analysis.analyse import analyse
from orchestrator.report.analysis.findings import Analysis
from orchestrator.report.output.render import render_html
from orchestrator.report.page.view import ReportView, build_view
from orchestrator.schema.record import Record, RunHeader
from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import Index


@dataclass(frozen=True)
class Report:
    """Everything between a run directory and its page."""

    path: Path
    header: RunHeader
    records: tuple[Record, ...]
    index: Index
    analysis: Analysis
    view: ReportView
    html: str


def report_of(path: Path) -> Report:
    directory = RunDirectory.open(path)
    records = tuple(directory.records())
    index = Index.build(records)
    found = analyse(index, directory.header)
    view = build_view(found, directory.header, index)
    return Report(path, directory.header, records, index, found, view, render_html(view))
