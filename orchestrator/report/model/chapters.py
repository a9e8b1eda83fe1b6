"""What the chapters below the groups show: evidence, troubles, answers, targets, the glossary."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.report.model.parts import TableView


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
class QualitySection:
    """The answers of one group's cells: what is broken, the graded tasks, and each category of prompts."""

    key: str
    title: str
    said: tuple[str, ...]
    tables: tuple[TableView, ...]
    categories: tuple[TableView, ...]
