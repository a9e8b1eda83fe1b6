"""The typed view-model: all that the page shows, computed and worded; templates only place it."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.report.words import Rich


@dataclass(frozen=True, slots=True)
class Link:
    """A name with the anchor that it leads to."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One piece of advice on the first screen; ``tone`` is ``good``, ``bad``, ``flat`` or ``ask``.

    ``tones`` are those of the lines: where it pays for one sampling and not for another, they differ.
    """

    anchor: str
    where: str
    word: str
    tone: str
    icon: str
    lines: tuple[Rich, ...]
    notes: tuple[str, ...]
    major: bool
    tones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of a cell's sentence with its own tone."""

    rich: Rich
    tone: str


@dataclass(frozen=True, slots=True)
class CellSentence:
    """One compared cell in one sentence."""

    cell: str
    href: str
    names: str
    tags: tuple[str, ...]
    clauses: tuple[Clause, ...]
    note: str


@dataclass(frozen=True, slots=True)
class SentenceGroup:
    """The sentences of one group of cells, never mixed with another's."""

    key: str
    title: str
    sentences: tuple[CellSentence, ...]


@dataclass(frozen=True, slots=True)
class ReasonView:
    """A reason of the validity line, its remedy, the cells it is about and a command that helps."""

    text: str
    remedy: str
    links: tuple[Link, ...]
    command: str
    weighs: bool
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidityView:
    """The validity line."""

    word: str
    tone: str
    icon: str
    meaning: str
    reasons: tuple[ReasonView, ...]


@dataclass(frozen=True, slots=True)
class CoverageItem:
    """How many cells have one status, and which. ``width`` is a CSS percentage."""

    word: str
    count: int
    tone: str
    icon: str
    meaning: str
    width: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of a definition list."""

    label: str
    value: str
    note: str = ""
    code: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column head: its label, what stands under it, and the glossary entry that defines it."""

    label: str
    unit: str
    title: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """Draft tokens as a bar: CSS percentages of accepted, refused and discarded."""

    accepted: str
    refused: str
    discarded: str
    title: str


@dataclass(frozen=True, slots=True)
class CellView:
    """One table cell: a main line, lines under it, and for an absence the reason with its footnote's number.

    ``sort`` is what the column is ordered by; without it the cell comes last.
    """

    main: str
    tone: str = ""
    lines: tuple[str, ...] = ()
    absent: bool = False
    why: str = ""
    note: int | None = None
    href: str = ""
    bar: Bar | None = None
    sort: str = ""


@dataclass(frozen=True, slots=True)
class RowView:
    """A table row: ``names`` is the head's main line, ``sub`` stands under it, ``span`` takes the place of cells."""

    anchor: str
    names: str
    sub: str
    tags: tuple[str, ...]
    cells: tuple[CellView, ...]
    base: bool = False
    span: CellView | None = None


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with its footnotes, numbered from 1."""

    id: str
    caption: str
    head: str
    columns: tuple[Column, ...]
    rows: tuple[RowView, ...]
    notes: tuple[str, ...] = ()
    sortable: bool = False


@dataclass(frozen=True, slots=True)
class LegendItem:
    """What a mark stands for; ``mark`` names a CSS class, ``series`` a colour."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class FigureView:
    """A figure: inline SVG made by us, a caption that says what it shows, and its numbers as a table."""

    id: str
    title: str
    svg: str
    caption: Rich
    legend: tuple[LegendItem, ...]
    data: TableView


@dataclass(frozen=True, slots=True)
class BlockCard:
    """One engine, model, sampling and workload within a group: the per-engine table and its figures.

    ``said`` is what drafting cost and brought, a sentence each: measured, by the model, and by draft length.
    """

    anchor: str
    title: str
    about: str
    table: TableView
    figures: tuple[FigureView, ...]
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """The cells of one group and one workload."""

    anchor: str
    title: str
    about: str
    table: TableView
    figures: tuple[FigureView, ...]
    blocks: tuple[BlockCard, ...]
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupSection:
    """Exact, Opportunistic, Unproven, Contradicted or Synthetic, with tables and figures of its own."""

    key: str
    title: str
    lead: str
    explain: str
    panels: tuple[Panel, ...]
    unmeasured: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class TargetView:
    """One target on several engines: absolute figures by group, and what differs between the engines."""

    anchor: str
    title: str
    about: str
    tables: tuple[TableView, ...]
    conditions: TableView | None


@dataclass(frozen=True, slots=True)
class TokenView:
    """One place of two answers: its index and both tokens; ``parts`` where they differ, ``first`` where they begin to.

    Texts are empty where they are not known; then ids alone are shown.
    """

    index: str
    off: str
    on: str
    parts: bool
    first: bool = False
    off_text: str = ""
    on_text: str = ""


@dataclass(frozen=True, slots=True)
class DivergenceView:
    """Where two answers part: what they share, how each goes on, the tokens around it, and how close a call it was."""

    prompt: str
    where: str
    common: str
    off: str
    on: str
    tokens: tuple[TokenView, ...]
    margin: str
    ranked: tuple[str, ...] = ()
    """The baseline's own best tokens at that place, each with its probability."""


@dataclass(frozen=True, slots=True)
class CheckView:
    """One check with its verdict in a word."""

    name: str
    word: str
    tone: str
    icon: str
    evidence: str


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """The exactness evidence of one cell."""

    anchor: str
    cell: str
    group: str
    group_key: str
    sentence: str
    claim: str
    checks: tuple[CheckView, ...]
    divergences: tuple[DivergenceView, ...]
    more: str
    caught: str = ""
    uncaught: str = ""
    """Faults between engine and figures that this cell's checks would have caught, and those they would not."""


@dataclass(frozen=True, slots=True)
class TroubleView:
    """A cell that was not measured as asked."""

    anchor: str
    cell: str
    word: str
    tone: str
    icon: str
    meaning: str
    reason: str
    remedy: str
    log: tuple[str, ...]
    folder: str
    command: str
    history: str


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """A metric or a word of this report."""

    anchor: str
    term: str
    name: str
    definition: str
    facts: str


@dataclass(frozen=True, slots=True)
class EngineView:
    """An engine as it was found, against its pin."""

    name: str
    found: str
    pin: str
    word: str
    tone: str
    details: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class QualitySection:
    """The answers of one group's cells: what is broken, the graded tasks, and each category of prompts."""

    key: str
    title: str
    said: tuple[str, ...]
    tables: tuple[TableView, ...]
    categories: tuple[TableView, ...]


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
