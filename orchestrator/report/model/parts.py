"""What the page is built of: links, facts, sentences of a cell, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.report.language.words import Rich


@dataclass(frozen=True, slots=True)
class Link:
    """A name with the anchor that it leads to."""

    text: str
    href: str


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
