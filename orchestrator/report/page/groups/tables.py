"""The tables of a group: one row per cell with the columns people decide by, and the table per engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.report.analysis.findings import CACHED_FIRST, WAIT, CellFinding
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.report.page import cells as cell_views
from orchestrator.report.page.cells import Notes
from orchestrator.report.page.naming import cell_anchor, mark_word, metric_anchor, names, slug, trouble_anchor
from orchestrator.schema import units
from orchestrator.schema.cell import Role
from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.observation import Absence
from orchestrator.schema.result import Group
from orchestrator.schema.status import STATUS_RULES


def main_table(identifier: str, caption: str, members: Sequence[CellFinding], words: Words) -> TableView:
    """Baselines and cells of one group and workload, each cell under its own baseline."""
    notes = Notes()
    rows = tuple(_row(cell, notes, words) for cell in members)
    return TableView(identifier, caption, words.say("cell"), _columns(words), rows, tuple(notes.texts), sortable=True)


def _columns(words: Words) -> tuple[Column, ...]:
    return (
        _column(words, words.say("total wait"), words.say("on ÷ off"), WAIT),
        _column(words, words.say("time to N"), words.say("same length"), "time_to_32"),
        _column(words, words.say("first answer"), words.say("TTFT, on ÷ off"), "ttft"),
        _column(words, words.say("decode"), words.say("tok/s, on ÷ off"), "decode_rate"),
        _column(words, words.say("accepted"), words.say("Σ ÷ Σ"), "acceptance_rate"),
        _column(words, words.say("draft thrown away"), words.say("tok"), "discarded_tokens"),
        _column(words, words.say("accepted length"), words.say("mean"), "mean_accepted_length"),
        _column(words, words.say("verify rounds"), words.say("median"), "verify_rounds"),
        _column(words, words.say("output"), words.say("real tok"), "output_tokens"),
        _column(words, words.say("peak memory"), words.say("on − off"), cell_views.MEMORY),
        _column(words, words.say("same output"), words.say("greedy ids"), ""),
    )


def _column(words: Words, label: str, unit: str, metric: str) -> Column:
    title = words.say(VOCABULARY[metric].definition) if metric else ""
    return Column(label, unit, title, "#" + metric_anchor(metric) if metric else "")


def _row(cell: CellFinding, notes: Notes, words: Words) -> RowView:
    base = cell.state.role is not Role.SPECULATIVE
    head = names(cell, "engine") if base else names(cell, "method")
    sub = names(cell, "method", "model", "sampling") if base else names(cell, "engine", "model", "sampling")
    if not cell.measured:
        return RowView("" if base else cell_anchor(cell.id), head, sub, (), (), base, _span(cell, words))
    views = _base_cells(cell, notes, words) if base else _cells(cell, notes, words)
    tags = () if base or cell.group not in (Group.EXACT, Group.CONTRADICTED) else (mark_word(words, cell),)
    return RowView("" if base else cell_anchor(cell.id), head, sub, tags, views, base)


def _span(cell: CellFinding, words: Words) -> CellView:
    """A cell without figures: its status in words across the row, with the reason."""
    missing = cell_views.missing_in(cell, WAIT)
    word = words.say(STATUS_RULES[cell.state.status].word)
    main = cell_views.absence_word(missing.absence, words) if missing.absence is Absence.NOT_RUN else word
    reason = words.said(clean(cell.state.reason, 160)) or cell_views.absence_reason(missing, words)
    text = reason if main == word else f"{word}: {reason}"
    return CellView(main, lines=(text,), absent=True, why=reason, href="#" + trouble_anchor(cell.id))


def _cells(cell: CellFinding, notes: Notes, words: Words) -> tuple[CellView, ...]:
    return (
        cell_views.compared(cell, WAIT, notes, words, count=True),
        _time_to_n(cell, notes, words),
        _first_answer(cell, notes, words),
        cell_views.compared(cell, "decode_rate", notes, words),
        cell_views.accepted(cell, notes, words),
        cell_views.thrown_away(cell, notes, words),
        cell_views.accepted_length(cell, notes, words),
        cell_views.rounds(cell, notes, words),
        cell_views.tokens(cell, notes, words, against=True),
        cell_views.memory(cell, notes, words),
        cell_views.same_output(cell, notes, words),
    )


def _first_answer(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """Of a cold prompt; of one that was in the engine's cache that time, which says so under it."""
    found = cell.summaries.get(CACHED_FIRST)
    if found is None:
        return cell_views.compared(cell, "ttft", notes, words)
    line = words.say("{time}, prompt cached", time=units.seconds(found.median))
    return cell_views.compared(cell, CACHED_FIRST, notes, words, unit_line=line)


def _time_to_n(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """The largest N that every answer of both arms reached; without one, why."""
    if cell.longest_n is None:
        return _no_common_n(cell, notes, words)
    metric = f"time_to_{cell.longest_n}"
    found = cell.summaries[metric]
    line = words.say("N = {n}: {time}", n=cell.longest_n, time=units.seconds(found.median))
    return cell_views.compared(cell, metric, notes, words, unit_line=line)


def _no_common_n(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """Why there is no N that all answers reached: they are too short, or what was recorded where that is not it."""
    lost = cell.missing.get("time_to_16") or cell.partial.get("time_to_16")
    if lost is not None and lost.absence is not Absence.NOT_APPLICABLE:
        return cell_views.absent(lost, notes, words)
    why = words.say("Some answers of the cell or its baseline are shorter than 16 tokens.")
    return CellView(words.say("not applicable"), absent=True, why=why, note=notes.number(why))


def _base_cells(cell: CellFinding, notes: Notes, words: Words) -> tuple[CellView, ...]:
    def value(metric: str) -> CellView:
        found = cell.summaries.get(metric)
        if found is None:
            return cell_views.absent(cell_views.missing_in(cell, metric), notes, words)
        lines = cell_views.counted(cell, metric, notes, words, always=False)
        return CellView(numerals.quantity(metric, found.median), lines=tuple(lines))

    def never(metric: str) -> CellView:
        return cell_views.absent(cell_views.missing_in(cell, metric), notes, words)

    wait = cell.summaries.get(WAIT)
    first = value(WAIT)
    if wait is not None:
        first = CellView(first.main, lines=(words.say("n = {n}", n=wait.n),))
    reached = [name for name in cell.summaries if name.startswith("time_to_")]
    longest = max((int(name.rsplit("_", 1)[-1]) for name in reached if name not in cell.partial), default=None)
    return (
        first,
        CellView(units.seconds(cell.summaries[f"time_to_{longest}"].median), lines=(f"{longest} tok",))
        if longest is not None
        else _no_common_n(cell, notes, words),
        value(CACHED_FIRST if CACHED_FIRST in cell.summaries else "ttft"),
        value("decode_rate"),
        never("acceptance_rate"),
        never("drafted_tokens"),
        never("mean_accepted_length"),
        never("verify_rounds"),
        cell_views.tokens(cell, notes, words, against=False),
        value(cell_views.MEMORY),
        CellView(words.say("baseline"), absent=True, why=words.say("Others are compared with it.")),
    )


def engine_table(
    identifier: str, caption: str, base: CellFinding | None, members: Sequence[CellFinding], words: Words
) -> TableView:
    """The table of one engine: without speculation beside each cell with it."""
    notes = Notes()
    columns = [Column(words.say("baseline decode"), words.say("off"), "")]
    columns += [Column(names(cell, "method"), words.say("on"), "", "#" + cell_anchor(cell.id)) for cell in members]
    told: tuple[tuple[str, str, Callable[[CellFinding], CellView]], ...] = (
        ("ttft", words.say("First answer (TTFT)"), lambda cell: _absolute(cell, "ttft", notes, words)),
        ("decode_rate", words.say("Decode"), lambda cell: _absolute(cell, "decode_rate", notes, words)),
        (WAIT, words.say("Total response time"), lambda cell: _absolute(cell, WAIT, notes, words)),
        (cell_views.MEMORY, words.say("Peak memory"), lambda cell: _absolute(cell, cell_views.MEMORY, notes, words)),
        (
            "mean_accepted_length",
            words.say("Mean accepted length"),
            lambda cell: cell_views.accepted_length(cell, notes, words),
        ),
        ("verify_rounds", words.say("Verify rounds"), lambda cell: cell_views.rounds(cell, notes, words)),
        ("draft_time", words.say("Draft cost"), lambda cell: _draft_cost(cell, notes, words)),
    )
    rows = []
    for metric, label, tell in told:
        first = tell(base) if base is not None else CellView(words.say("to be measured"), absent=True)
        unit = "" if metric == "mean_accepted_length" else _unit_hint(metric, words)
        rows.append(RowView("", label, unit, (), (first, *(tell(cell) for cell in members))))
    return TableView(identifier, caption, words.say("median"), tuple(columns), tuple(rows), tuple(notes.texts))


def _unit_hint(metric: str, words: Words) -> str:
    return {
        "ttft": words.say("request sent → first token"),
        "decode_rate": words.say("after the first burst; prefill excluded"),
        WAIT: words.say("request sent → last event"),
        cell_views.MEMORY: words.say("process tree"),
        "verify_rounds": words.say("target passes that judged a draft"),
        "draft_time": words.say("time in the drafter, where the engine measures it"),
    }[metric]


def _absolute(cell: CellFinding, metric: str, notes: Notes, words: Words) -> CellView:
    """The median in its unit; for a speculative cell with the ratio to its baseline under it."""
    found = cell.summaries.get(metric)
    if found is None:
        return cell_views.absent(cell_views.missing_in(cell, metric), notes, words)
    spread = words.say("MAD {mad}", mad=numerals.quantity(metric, found.mad))
    lines = [" · ".join((spread, *cell_views.counted(cell, metric, notes, words, always=True)))]
    value = numerals.quantity(metric, found.median)
    row = cell.comparisons.get(metric)
    if row is None:
        return CellView(value, lines=tuple(lines))
    why = words.said(clean(row.reason))
    if row.ratio is None:
        return CellView(value, "flat", (words.say("not comparable"), *lines), why=why, note=notes.number(why))
    ratio = f"{numerals.ratio(row.ratio)} {numerals.interval(row.ratio)}".strip()
    return CellView(value, cell_views.tone_of(row), (ratio, *lines), why=why)


def _draft_cost(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """Of one answer; of a whole process, and called so, where the engine gives only its running total."""
    found = cell.per_process.get("draft_time")
    if found is None or "draft_time" in cell.summaries:
        return _absolute(cell, "draft_time", notes, words)
    why = words.said(clean(found.note))
    spread = words.say("MAD {mad}", mad=numerals.quantity("draft_time", found.total.mad))
    counted = words.count("n = {number} process", "n = {number} processes", found.total.n)
    lines = (cell_views.per_process(found, words), f"{spread} · {counted}")
    return CellView(numerals.quantity("draft_time", found.total.median), lines=lines, why=why, note=notes.number(why))


def table_id(*parts: str) -> str:
    """An id for a table from names."""
    return slug("table/" + "/".join(parts))
