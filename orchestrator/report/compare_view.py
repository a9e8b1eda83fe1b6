"""Two compared runs as finished sentences and tables; the page, the Markdown and the terminal only place them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.report import numerals
from orchestrator.report.comparability import Difference, Run, in_words
from orchestrator.report.compare import NOT_INTERLEAVED, Absolute, CellChange, Change, RunsCompared
from orchestrator.report.context import machine
from orchestrator.report.findings import WAIT
from orchestrator.report.model import CellSentence, CellView, Clause, Column, Fact, RowView, TableView
from orchestrator.report.naming import SECTION_ORDER, full_name, names, slug
from orchestrator.report.sentences import group_title
from orchestrator.report.untrusted import clean
from orchestrator.report.words import Rich, Words
from orchestrator.schema.metrics import VOCABULARY, Better
from orchestrator.schema.result import Comparison, Group, Outcome

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
        _changed(found, words),
        _refused(found, words),
    )


def _listed(cells: Sequence[str]) -> str:
    return ", ".join(clean(cell, _VALUE) for cell in cells)


def _lead(found: RunsCompared, words: Words) -> Rich:
    if not found.cells:
        return words.rich("**The two runs have no speculative cell in common.**")
    if not found.comparable:
        return words.rich("**Nothing can be compared**: conditions that must agree do not.")
    tones = [_tone(change) for cell in found.comparable if (change := _headline(cell)) is not None]
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
    ratios = tuple(row for cell in cells for row in _ratio_rows(cell, words))
    caption = words.say("On against off in each run, measured interleaved there, and the change of that ratio")
    seen: dict[tuple[str, str], RowView] = {}
    for cell in cells:
        for one in cell.absolutes:
            seen.setdefault((one.cell, one.metric), _absolute_row(cell, one, words))
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


def _headline(cell: CellChange) -> Change | None:
    """The change in the total wait, or in the time to a common token where lengths forbid the total."""
    usable = [one for one in cell.changes if one.ratio is not None]
    waits = [one for one in usable if one.metric == WAIT or one.metric.startswith("time_to_")]
    return waits[0] if waits else cell.change(WAIT)


def _tone(change: Change) -> str:
    better = VOCABULARY[change.metric].better
    if change.outcome in (Outcome.LOWER, Outcome.HIGHER) and better is not Better.NEITHER:
        return "good" if (change.outcome is Outcome.LOWER) == (better is Better.LOWER) else "bad"
    return "flat" if change.outcome is Outcome.NO_DIFFERENCE else "ask"


def _verdict(change: Change, words: Words) -> str:
    tone = _tone(change)
    if tone == "good":
        return words.say("better than before")
    if tone == "bad":
        return words.say("worse than before")
    if change.outcome is Outcome.NO_DIFFERENCE and change.ratio is not None:
        return words.say("no detectable change ({within})", within=numerals.within(change.ratio))
    return words.say("a range, no verdict") if change.ratio is not None else words.say("not comparable")


def _sentence(cell: CellChange, words: Words) -> CellSentence:
    change = _headline(cell)
    if change is None or change.ratio is None or change.before is None or change.after is None:
        why = words.said(clean(change.reason)) if change is not None else ""
        clause = Clause(words.rich("the wait is **not comparable**: {reason}", reason=why), "ask")
    else:
        rich = words.rich(
            "{metric} {after} of that without speculation, before {before}: **{verdict}**, {ratio} {interval}",
            metric=metric_word(change.metric, words),
            after=_told(change.after),
            before=_told(change.before),
            verdict=_verdict(change, words),
            ratio=numerals.ratio(change.ratio),
            interval=numerals.interval(change.ratio),
        )
        clause = Clause(rich, _tone(change))
    return CellSentence(cell.id, "#" + _anchor(cell, change), full_name(cell.after), (), (clause,), "")


def _anchor(cell: CellChange, change: Change | None) -> str:
    return slug(f"change/{cell.id}/{change.metric if change is not None else WAIT}")


def _told(row: Comparison) -> str:
    return f"{numerals.ratio(row.ratio)} {numerals.interval(row.ratio)}".strip() if row.ratio is not None else "?"


def metric_word(metric: str, words: Words) -> str:
    """What people call a compared metric."""
    if metric.startswith("time_to_"):
        return words.say("time to token {n}", n=metric.rsplit("_", 1)[-1])
    return {
        WAIT: words.say("total wait"),
        "ttft": words.say("first answer"),
        "decode_rate": words.say("decode"),
        "peak_unified": words.say("peak memory"),
    }[metric]


def _ratio_rows(cell: CellChange, words: Words) -> list[RowView]:
    """A row per metric; one row in all where nothing of the cell has a ratio for the same reason."""
    reasons = {change.reason for change in cell.changes}
    if any(change.ratio is not None for change in cell.changes) or len(reasons) > 1:
        return [_ratio_row(cell, change, words) for change in cell.changes]
    why = words.said(clean(reasons.pop())) if reasons else ""
    span = CellView(words.say("not comparable"), absent=True, lines=(why,))
    return [RowView(_anchor(cell, _headline(cell)), full_name(cell.after), "", (), (), span=span)]


def _ratio_row(cell: CellChange, change: Change, words: Words) -> RowView:
    sides = tuple(_side(row, words) for row in (change.before, change.after))
    if change.ratio is None:
        moved = CellView("–", absent=True, why=words.say("Either run has no ratio."))
    else:
        moved = CellView(numerals.ratio(change.ratio), _tone(change), (numerals.interval(change.ratio),))
    reason = words.said(clean(change.reason))
    verdict = CellView(_verdict(change, words), _tone(change), (reason,) if reason else ())
    label = metric_word(change.metric, words)
    return RowView(_anchor(cell, change), full_name(cell.after), label, (), (*sides, moved, verdict))


def _side(row: Comparison | None, words: Words) -> CellView:
    if row is None or row.ratio is None:
        why = words.said(clean(row.reason)) if row is not None else ""
        return CellView(words.say("not comparable"), absent=True, why=why)
    interval = numerals.interval(row.ratio) or words.say("range {spread}", spread=numerals.spread(row.session_ratios))
    return CellView(numerals.ratio(row.ratio), lines=(interval, words.say("{n} sessions", n=row.ratio.n)))


def _absolute_row(cell: CellChange, one: Absolute, words: Words) -> RowView:
    sides = tuple(
        CellView(
            numerals.quantity(one.metric, side.median),
            lines=(words.say("MAD {mad}", mad=numerals.quantity(one.metric, side.mad)), words.say("n = {n}", n=side.n)),
        )
        for side in (one.before, one.after)
    )
    if one.ratio is None:
        moved = CellView(words.say("not comparable"), absent=True, lines=(words.said(clean(one.reason)),))
    else:
        moved = CellView(numerals.ratio(one.ratio), "flat", (numerals.interval(one.ratio),))
    on = one.cell == cell.id
    name = full_name(cell.after) if on else names(cell.after, "engine", "model", "sampling", "workload")
    sub = f"{metric_word(one.metric, words)}, {words.say('on') if on else words.say('off')}"
    return RowView("", name, sub, (), (*sides, moved), base=not on)


def _changed(found: RunsCompared, words: Words) -> TableView | None:
    """What differs without forbidding the comparison: that is what is compared."""
    where: dict[Difference, int] = dict.fromkeys(found.conditions.changed, 0)
    for cell in found.cells:
        for item in cell.conditions.changed:
            where[item] = where.get(item, 0) + 1
    if not where:
        return None
    rows = tuple(
        RowView(
            "",
            _name(item),
            words.count("{number} cell", "{number} cells", count) if count else "",
            (),
            _pair(item, words),
        )
        for item, count in where.items()
    )
    caption = words.say("What changed between the runs")
    return TableView("changed", caption, words.say("condition"), _sides(words), rows)


def _refused(found: RunsCompared, words: Words) -> TableView | None:
    """What must agree and does not: for every cell once, then cell by cell."""
    rows = [
        RowView("", _name(item), words.say("every cell"), (), _pair(item, words)) for item in found.conditions.refused
    ]
    for cell in found.cells:
        own = [item for item in cell.conditions.refused if item not in found.conditions.refused]
        rows += [RowView("", _name(item), full_name(cell.after), (), _pair(item, words)) for item in own]
    if not rows:
        return None
    caption = words.say("Refused: conditions that must agree and do not")
    return TableView("refused", caption, words.say("condition"), _sides(words), tuple(rows))


def _name(item: Difference) -> str:
    return clean(item.name, 80)


def _sides(words: Words) -> tuple[Column, ...]:
    return (Column(words.say("first run"), "", ""), Column(words.say("second run"), "", ""))


def _pair(item: Difference, words: Words) -> tuple[CellView, ...]:
    return tuple(CellView(words.said(clean(value, _VALUE))) for value in in_words(item, words))
