"""Below the figures: exactness evidence, cells that were not measured, conditions that differ, the A/A table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.report import numerals
from orchestrator.report.divergences import divergence, known_of
from orchestrator.report.findings import COMPARED, Analysis, CellFinding
from orchestrator.report.model import (
    CellView,
    CheckView,
    Column,
    EvidenceView,
    RowView,
    TableView,
    TroubleView,
)
from orchestrator.report.naming import (
    cell_anchor,
    evidence_anchor,
    full_name,
    metric_anchor,
    names,
    rerun,
    trouble_anchor,
)
from orchestrator.report.sentences import group_title
from orchestrator.report.untrusted import clean, tail
from orchestrator.report.waiting import is_waiting
from orchestrator.report.words import Words, mark
from orchestrator.schema.adapter import Condition
from orchestrator.schema.cell import Role
from orchestrator.schema.record import SessionRecord
from orchestrator.schema.result import Group, Verdict
from orchestrator.schema.status import STATUS_RULES, Status

if TYPE_CHECKING:
    from orchestrator.store.index import Index

SHOWN_DIVERGENCES = 3
_TONES = {Verdict.PASS: "good", Verdict.FAIL: "bad", Verdict.NOT_TESTED: "ask", Verdict.NOT_APPLICABLE: "flat"}
_ICONS = {"good": "●", "bad": "■", "ask": "○", "flat": "–"}


def evidence(analysis: Analysis, index: Index, words: Words) -> tuple[EvidenceView, ...]:
    """What every measured cell's claim is, and what the checks say."""
    found = []
    for cell in analysis.cells:
        if cell.placement is None or not cell.measured:
            continue
        claim = cell.state.claim
        who = words.say("nobody claims anything")
        if claim is not None and claim.exact is not None:
            message = mark("claimed exact") if claim.exact else mark("claimed not exact")
            who = f"{words.say(message)}: {words.said(claim.rule.value)}, {words.said(clean(claim.by))}"
        divergences = cell.identity.divergences if cell.identity is not None else ()
        known = known_of(index, cell.state.block, cell.state.attempt)
        more = len(divergences) - SHOWN_DIVERGENCES
        found.append(
            EvidenceView(
                evidence_anchor(cell.id),
                full_name(cell),
                group_title(words, cell.group),
                cell.group.value,
                words.said(clean(cell.placement.sentence, 900)),
                who,
                tuple(_check(check.check, check.verdict, check.evidence, words) for check in cell.placement.checks),
                tuple(divergence(one, known, words) for one in divergences[:SHOWN_DIVERGENCES]),
                words.count("{number} more place where answers part", "{number} more places where answers part", more)
                if more > 0
                else "",
                _faults(cell, words, caught=True),
                _faults(cell, words, caught=False),
            )
        )
    return tuple(found)


def _faults(cell: CellFinding, words: Words, *, caught: bool) -> str:
    """Which faults of the self-test this cell's checks would have caught, or would have let through."""
    named = [words.said(one.fault.value) for one in cell.faults if one.caught is caught]
    if not named:
        return ""
    listed = "; ".join(named)
    if caught:
        return words.say("Faults that would have been caught here: {faults}", faults=listed)
    return words.say("Faults that nothing here would have caught: {faults}", faults=listed)


def _check(name: str, verdict: Verdict, said: str, words: Words) -> CheckView:
    tone = _TONES.get(verdict, "ask")
    word = {
        Verdict.PASS: words.say("pass"),
        Verdict.FAIL: words.say("fail"),
        Verdict.NOT_TESTED: words.say("not tested"),
        Verdict.UNDERPOWERED: words.say("underpowered"),
        Verdict.NOT_APPLICABLE: words.say("not applicable"),
        Verdict.UNINFORMATIVE: words.say("uninformative"),
    }[verdict]
    return CheckView(words.say(name), word, tone, _ICONS[tone], words.said(clean(said, 900)))


def troubles(analysis: Analysis, words: Words) -> tuple[tuple[TroubleView, ...], tuple[TroubleView, ...]]:
    """Cells that failed, and cells that cannot be or wait for their turn, in order of the matrix.

    Those that wait for an engine or a file are in a table of their own (:mod:`orchestrator.report.waiting`).
    """
    failed, waiting = [], []
    for cell in analysis.cells:
        rule = STATUS_RULES[cell.state.status]
        if cell.state.status is Status.OK:
            continue
        if rule.selected_by_failed:
            failed.append(_trouble(cell, words))
        elif cell.state.role is not Role.TWIN and not is_waiting(cell):
            waiting.append(_trouble(cell, words))
    return tuple(failed), tuple(waiting)


def _trouble(cell: CellFinding, words: Words) -> TroubleView:
    state = cell.state
    rule = STATUS_RULES[state.status]
    last = state.failed_sessions[-1] if state.failed_sessions else (state.sessions[-1] if state.sessions else None)
    tone = "bad" if rule.fails_run else "ask"
    target = state.baseline if state.role is Role.TWIN and state.baseline else state.id
    history = " · ".join(
        words.say("attempt {n}: {word}", n=n, word=words.say(STATUS_RULES[status].word)) for n, status in state.history
    )
    return TroubleView(
        trouble_anchor(state.id),
        full_name(cell),
        words.say(rule.word),
        tone,
        "■" if tone == "bad" else "○",
        words.say(rule.meaning),
        words.said(clean(state.reason, 600)),
        words.said(clean(state.remedy, 600)),
        tail(last.log_tail) if last is not None and state.failed_sessions else (),
        clean(last.folder, 300) if last is not None else "",
        rerun(target),
        history if len(state.history) > 1 else "",
    )


def conditions(analysis: Analysis, index: Index, words: Words) -> tuple[tuple[TableView, ...], str]:
    """Settings in which a cell was not as asked, or not as its baseline, and a sentence where there are none.

    One table per group: cells of different groups never share one.
    """
    found: dict[Group, list[RowView]] = {}
    compared = 0
    for cell in analysis.cells:
        if cell.state.role is not Role.SPECULATIVE or not cell.state.sessions:
            continue
        compared += 1
        base = index.cells.get(cell.state.baseline or "")
        theirs = {one.name: one for one in _last_conditions(base.sessions)} if base is not None else {}
        for mine in _last_conditions(cell.state.sessions):
            other = theirs.get(mine.name)
            differs = other is not None and (other.effective, other.requested) != (mine.effective, mine.requested)
            if differs or mine.verdict.value in ("changed", "unsupported"):
                found.setdefault(cell.group, []).append(_condition(cell, mine, other, words))
    if not found:
        return (), words.count(
            "No condition differs between the {number} compared cell and its baseline, as far as the engine tells.",
            "No condition differs between the {number} compared cells and their baselines, as far as the engines tell.",
            compared,
        )
    columns = tuple(
        Column(label, "", "")
        for label in (
            words.say("setting"),
            words.say("asked"),
            words.say("in effect"),
            words.say("baseline in effect"),
            words.say("verdict"),
            words.say("by whose word"),
        )
    )
    message = "{group}: what was not as asked, or not as in the baseline"
    return tuple(
        TableView(
            f"table/conditions/{group.value}",
            words.say(message, group=group_title(words, group)),
            words.say("cell"),
            columns,
            tuple(rows),
        )
        for group, rows in found.items()
    ), ""


def _last_conditions(sessions: Sequence[SessionRecord]) -> tuple[Condition, ...]:
    found: tuple[Condition, ...] = ()
    for session in sessions:
        found = session.conditions or found
    return found


def _condition(cell: CellFinding, mine: Condition, other: Condition | None, words: Words) -> RowView:
    unknown = words.say("not told")
    values = (
        clean(mine.name, 80),
        _value(mine.requested, words),
        _value(mine.effective, words) if mine.effective is not None else unknown,
        _value(other.effective, words) if other is not None and other.effective is not None else unknown,
        words.say(mine.verdict.value),
        words.said(clean(mine.source, 120)),
    )
    return RowView(
        "", names(cell, "engine", "method"), names(cell, "sampling", "workload"), (), tuple(map(CellView, values))
    )


def _value(text: str, words: Words) -> str:
    """A setting as it was told: values of one word are names and numbers, others may be sentences of ours."""
    shown = clean(text, 120)
    return words.said(shown) if " " in shown else shown


def noise(analysis: Analysis, words: Words) -> TableView | None:
    """Every baseline with its own figures, and what it looks like against itself."""
    columns = [
        Column(words.say("total wait"), words.say("median"), "", "#" + metric_anchor("e2e_latency")),
        Column(words.say("first answer"), words.say("median"), "", "#" + metric_anchor("ttft")),
        Column(words.say("decode"), words.say("median"), "", "#" + metric_anchor("decode_rate")),
    ]
    columns += [
        Column(words.say("A/A {label}", label=label), words.say("twin ÷ baseline"), "")
        for label in (words.say("wait"), words.say("first answer"), words.say("decode"))
    ]
    rows = []
    for cell in analysis.cells:
        if cell.state.role is not Role.BASELINE or is_waiting(cell):
            continue
        views = [_median(cell, metric, words) for metric in COMPARED[:3]]
        views += [_floor(analysis, cell, metric, words) for metric in COMPARED[:3]]
        head, sub = names(cell, "engine", "model"), names(cell, "sampling", "workload")
        rows.append(RowView(cell_anchor(cell.id), head, sub, (), tuple(views)))
    if not rows:
        return None
    caption = words.say("Each baseline, and what it looks like against its own twin")
    return TableView("table/noise", caption, words.say("baseline"), tuple(columns), tuple(rows))


def _median(cell: CellFinding, metric: str, words: Words) -> CellView:
    found = cell.summaries.get(metric)
    if found is None:
        return CellView(
            words.say(STATUS_RULES[cell.state.status].word), absent=True, why=words.said(clean(cell.state.reason))
        )
    spread = words.say("MAD {mad} · n = {n}", mad=numerals.quantity(metric, found.mad), n=found.n)
    return CellView(numerals.quantity(metric, found.median), lines=(spread,))


def _floor(analysis: Analysis, cell: CellFinding, metric: str, words: Words) -> CellView:
    floor = analysis.floors.get((cell.state.block, cell.state.attempt or 0, metric))
    if floor is None or floor.ratio is None:
        why = floor.reason if floor is not None else words.say("No twin was measured.")
        return CellView(words.say("unknown"), absent=True, why=words.said(clean(why)))
    lines = [numerals.interval(floor.ratio) or words.say("no interval")]
    if floor.half_width is not None:
        lines.append(words.say("floor ±{half}", half=words.percent(floor.half_width, 1)))
    return CellView(
        numerals.ratio(floor.ratio),
        "bad" if floor.inconclusive else "",
        tuple(lines),
        why=words.said(clean(floor.reason)),
    )
