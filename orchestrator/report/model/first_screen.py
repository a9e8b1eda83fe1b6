"""What the first screen shows: advice, sentences by group, validity, coverage, engines."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.report.language.words import Rich
from orchestrator.report.model.parts import CellSentence, Clause, Fact, Link


@dataclass(frozen=True, slots=True)
class Decision:
    """One piece of advice on the first screen; ``tone`` is ``good``, ``bad``, ``flat`` or ``ask``.

    ``tones`` are those of the lines: where it pays for one sampling and not for another, they differ. ``kept`` says for
    each line what else changed: the answers, and the memory.
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
    kept: tuple[tuple[Clause, ...], ...] = ()


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
class EngineView:
    """An engine as it was found, against its pin."""

    name: str
    found: str
    pin: str
    word: str
    tone: str
    details: tuple[Fact, ...]
