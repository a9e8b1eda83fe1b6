"""What a group's section shows: panels by workload, and cards by engine and sampling."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.report.model.parts import FigureView, Link, TableView


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
