"""The page as one typed value: all that it shows, computed and worded."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.report.model.chapters import EvidenceView, GlossaryEntry, QualitySection, TargetView, TroubleView
from orchestrator.report.model.first_screen import CoverageItem, Decision, EngineView, SentenceGroup, ValidityView
from orchestrator.report.model.groups import GroupSection
from orchestrator.report.model.parts import CellSentence, Fact, Link, TableView


@dataclass(frozen=True, slots=True)
class ReportView:
    """The page."""

    language: str
    title: str
    subtitle: str
    demo: str
    unpinned: str
    forced: str
    """Cells that were measured although they do not fit into memory by the prediction."""
    alarms: tuple[CellSentence, ...]
    decisions: tuple[Decision, ...]
    nothing: str
    sentences: tuple[SentenceGroup, ...]
    validity: ValidityView
    coverage_line: str
    coverage: tuple[CoverageItem, ...]
    measured: tuple[Fact, ...]
    engines: tuple[EngineView, ...]
    groups: tuple[GroupSection, ...]
    evidence: tuple[EvidenceView, ...]
    conditions: tuple[TableView, ...]
    same_conditions: str
    targets: tuple[TargetView, ...]
    budget: tuple[TableView, ...]
    no_budget: str
    room: str
    troubles: tuple[TroubleView, ...]
    waiting: tuple[TroubleView, ...]
    noise: TableView | None
    glossary: tuple[GlossaryEntry, ...]
    statuses: tuple[GlossaryEntry, ...]
    reading: tuple[GlossaryEntry, ...]
    environment: tuple[Fact, ...]
    matrix_text: str
    files: tuple[Link, ...]
    data_json: str
    data_note: str
    """What the data inside the page are, and what a large run's leave out."""
    whole: bool
    csv_name: str
    csv_address: str
    to_measure: TableView | None = None
    """Rows of engines and models that are not on this machine."""
    engines_table: TableView | None = None
    """What each engine of the run reports and claims, and how its adapter was verified."""
    quality: tuple[QualitySection, ...] = ()
    no_task: str = ""
    """Said where no prompt states a task."""
