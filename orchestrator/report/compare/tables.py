"""The tables of two compared runs: ratios and absolute figures side by side, and the conditions that differ."""

from __future__ import annotations

from orchestrator.report.analysis.findings import WAIT
from orchestrator.report.compare.comparability import Difference, in_words
from orchestrator.report.compare.runs import Absolute, CellChange, Change, RunsCompared
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.report.page.naming import full_name, names, slug
from orchestrator.schema.metrics import VOCABULARY, Better
from orchestrator.schema.result import Comparison, Outcome

_VALUE = 160
"""Characters kept of a condition's value."""


def tone_of_change(change: Change) -> str:
    """Whether people want that change."""
    better = VOCABULARY[change.metric].better
    if change.outcome in (Outcome.LOWER, Outcome.HIGHER) and better is not Better.NEITHER:
        return "good" if (change.outcome is Outcome.LOWER) == (better is Better.LOWER) else "bad"
    return "flat" if change.outcome is Outcome.NO_DIFFERENCE else "ask"


def verdict_word(change: Change, words: Words) -> str:
    """The change of one ratio in a word or two."""
    tone = tone_of_change(change)
    if tone == "good":
        return words.say("better than before")
    if tone == "bad":
        return words.say("worse than before")
    if change.outcome is Outcome.NO_DIFFERENCE and change.ratio is not None:
        return words.say("no detectable change ({within})", within=numerals.within(change.ratio))
    return words.say("a range, no verdict") if change.ratio is not None else words.say("not comparable")


def anchor_of(cell: CellChange, change: Change | None) -> str:
    """Where a change stands in the table; without one, where the wait does."""
    return slug(f"change/{cell.id}/{change.metric if change is not None else WAIT}")


def headline(cell: CellChange) -> Change | None:
    """The change in the total wait, or in the time to a common token where lengths forbid the total."""
    usable = [one for one in cell.changes if one.ratio is not None]
    waits = [one for one in usable if one.metric == WAIT or one.metric.startswith("time_to_")]
    return waits[0] if waits else cell.change(WAIT)


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


def ratio_rows(cell: CellChange, words: Words) -> list[RowView]:
    """A row per metric; one row in all where nothing of the cell has a ratio for the same reason."""
    reasons = {change.reason for change in cell.changes}
    if any(change.ratio is not None for change in cell.changes) or len(reasons) > 1:
        return [_ratio_row(cell, change, words) for change in cell.changes]
    why = words.said(clean(reasons.pop())) if reasons else ""
    span = CellView(words.say("not comparable"), absent=True, lines=(why,))
    return [RowView(anchor_of(cell, headline(cell)), full_name(cell.after), "", (), (), span=span)]


def _ratio_row(cell: CellChange, change: Change, words: Words) -> RowView:
    sides = tuple(_side(row, words) for row in (change.before, change.after))
    if change.ratio is None:
        moved = CellView("–", absent=True, why=words.say("Either run has no ratio."))
    else:
        moved = CellView(numerals.ratio(change.ratio), tone_of_change(change), (numerals.interval(change.ratio),))
    reason = words.said(clean(change.reason))
    verdict = CellView(verdict_word(change, words), tone_of_change(change), (reason,) if reason else ())
    label = metric_word(change.metric, words)
    return RowView(anchor_of(cell, change), full_name(cell.after), label, (), (*sides, moved, verdict))


def _side(row: Comparison | None, words: Words) -> CellView:
    if row is None or row.ratio is None:
        why = words.said(clean(row.reason)) if row is not None else ""
        return CellView(words.say("not comparable"), absent=True, why=why)
    if row.ratio.n == 1:
        return CellView(numerals.ratio(row.ratio), lines=(words.say("one session, no range"),))
    interval = numerals.interval(row.ratio) or words.say("range {spread}", spread=numerals.spread(row.session_ratios))
    return CellView(numerals.ratio(row.ratio), lines=(interval, words.say("{n} sessions", n=row.ratio.n)))


def absolute_row(cell: CellChange, one: Absolute, words: Words) -> RowView:
    """A metric of one arm in both runs side by side, without a verdict."""
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


def changed_conditions(found: RunsCompared, words: Words) -> TableView | None:
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


def refused_conditions(found: RunsCompared, words: Words) -> TableView | None:
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
