"""Two compared runs as finished sentences and tables; the page, the Markdown and the terminal only place them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.report.compare.comparability import Run
from orchestrator.report.compare.runs import NOT_INTERLEAVED, CellChange, RunsCompared
from orchestrator.report.compare.tables import (
    absolute_row,
    anchor_of,
    changed_conditions,
    headline,
    metric_word,
    ratio_rows,
    refused_conditions,
    tone_of_change,
    verdict_word,
)
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Rich, Words
from orchestrator.report.model.parts import CellSentence, Clause, Column, Fact, RowView, TableView
from orchestrator.report.page.first_screen.context import machine
from orchestrator.report.page.naming import SECTION_ORDER, full_name, group_title, slug
from orchestrator.schema.result import Comparison, Group

_VALUE = 160
"""Characters kept of a condition's value."""


@dataclass(frozen=True, slots=True)
class RunCard:
    """What tells one of the two runs from the other."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class CompareSection:
    """The cells that were in one group in the first run and in one in the second; groups never share a table."""

    key: str
    title: str
    sentences: tuple[CellSentence, ...]
    ratios: TableView
    absolutes: TableView


@dataclass(frozen=True, slots=True)
class CompareView:
    """The page of two runs."""

    language: str
    title: str
    lead: Rich
    notes: tuple[str, ...]
    runs: tuple[RunCard, RunCard]
    sections: tuple[CompareSection, ...]
    changed: TableView | None
    refused: TableView | None


def compare_view(found: RunsCompared, words: Words) -> CompareView:
    """The comparison in a language."""
    notes = [words.say("Both are the same run: its sessions are compared with themselves.")] if found.same else []
    if found.only_before:
        notes.append(words.say("Only in the first run: {cells}", cells=_listed(found.only_before)))
    if found.only_after:
        notes.append(words.say("Only in the second run: {cells}", cells=_listed(found.only_after)))
    one, two = clean(found.before.header.run, 120), clean(found.after.header.run, 120)
    return CompareView(
        words.language,
        f"{one} → {two}",
        _lead(found, words),
        tuple(notes),
        (_card(found.before, words.say("first run"), words), _card(found.after, words.say("second run"), words)),
        tuple(_sections(found, words)),
        changed_conditions(found, words),
        refused_conditions(found, words),
    )


def _listed(cells: Sequence[str]) -> str:
    return ", ".join(clean(cell, _VALUE) for cell in cells)


def _lead(found: RunsCompared, words: Words) -> Rich:
    if not found.cells:
        return words.rich("**The two runs have no speculative cell in common.**")
    if not found.comparable:
        return words.rich("**Nothing can be compared**: conditions that must agree do not.")
    tones = [tone_of_change(change) for cell in found.comparable if (change := headline(cell)) is not None]
    return words.rich(
        "{n} of {all} cells can be compared: the gain in waiting got **better in {better}** and **worse in {worse}**.",
        n=len(found.comparable),
        all=len(found.cells),
        better=tones.count("good"),
        worse=tones.count("bad"),
    )


def _card(run: Run, title: str, words: Words) -> RunCard:
    settings = run.index.matrix.run_settings if run.index.matrix is not None else {}
    engines = run.index.matrix.engines if run.index.matrix is not None else {}
    facts = [
        Fact(words.say("run"), clean(run.header.run, 120), code=True),
        Fact(words.say("When"), f"{run.header.created_utc[:10]} {run.header.created_utc[11:16]} UTC"),
        Fact(words.say("Machine"), machine(run.header.host) or words.say("not recorded")),
        Fact(words.say("Environment"), clean(str(settings.get("environment") or words.say("not recorded")), 80)),
    ]
    for name, identity in engines.items():
        found = identity.version or identity.build or words.say("version not told")
        facts.append(Fact(clean(name, 60), clean(str(found), 80)))
    return RunCard(title, tuple(facts))


def _sections(found: RunsCompared, words: Words) -> list[CompareSection]:
    order = {group: number for number, group in enumerate(SECTION_ORDER)}
    members: dict[tuple[Group, Group], list[CellChange]] = {}
    for cell in found.comparable:
        members.setdefault((cell.before.group, cell.after.group), []).append(cell)
    ranked = sorted(members.items(), key=lambda item: (order.get(item[0][1], 9), order.get(item[0][0], 9)))
    return [_section(before, after, cells, words) for (before, after), cells in ranked]


def _section(before: Group, after: Group, cells: Sequence[CellChange], words: Words) -> CompareSection:
    title = group_title(words, after)
    if before is not after:
        title = words.say("{before} before, {after} now", before=group_title(words, before), after=title)
    key = f"{before.value}-{after.value}"
    head = words.say("cell")
    columns = (
        Column(words.say("first run"), words.say("on ÷ off"), ""),
        Column(words.say("second run"), words.say("on ÷ off"), ""),
        Column(words.say("change"), words.say("second ÷ first"), ""),
        Column(words.say("verdict"), "", ""),
    )
    ratios = tuple(row for cell in cells for row in ratio_rows(cell, words))
    caption = words.say("On against off in each run, measured interleaved there, and the change of that ratio")
    seen: dict[tuple[str, str], RowView] = {}
    for cell in cells:
        for one in cell.absolutes:
            seen.setdefault((one.cell, one.metric), absolute_row(cell, one, words))
    waits = (
        Column(words.say("first run"), words.say("median"), ""),
        Column(words.say("second run"), words.say("median"), ""),
        Column(words.say("second ÷ first"), words.say("no verdict"), ""),
    )
    about = words.say("Absolute figures of both runs ({caveat})", caveat=words.said(NOT_INTERLEAVED))
    return CompareSection(
        after.value,
        title,
        tuple(_sentence(cell, words) for cell in cells),
        TableView(slug(f"ratios/{key}"), caption, head, columns, ratios),
        TableView(slug(f"waits/{key}"), about, head, waits, tuple(seen.values())),
    )


def _sentence(cell: CellChange, words: Words) -> CellSentence:
    change = headline(cell)
    if change is None or change.ratio is None or change.before is None or change.after is None:
        why = words.said(clean(change.reason)) if change is not None else ""
        clause = Clause(words.rich("the wait is **not comparable**: {reason}", reason=why), "ask")
    else:
        rich = words.rich(
            "{metric} {after} of that without speculation, before {before}: **{verdict}**, {ratio} {interval}",
            metric=metric_word(change.metric, words),
            after=_told(change.after),
            before=_told(change.before),
            verdict=verdict_word(change, words),
            ratio=numerals.ratio(change.ratio),
            interval=numerals.interval(change.ratio),
        )
        clause = Clause(rich, tone_of_change(change))
    return CellSentence(cell.id, "#" + anchor_of(cell, change), full_name(cell.after), (), (clause,), "")


def _told(row: Comparison) -> str:
    return f"{numerals.ratio(row.ratio)} {numerals.interval(row.ratio)}".strip() if row.ratio is not None else "?"
