"""The sentences of the first screen: generated from comparisons, never typed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orchestrator.report.analysis.findings import CACHED_FIRST, WAIT, Analysis, CellFinding
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Rich, Segment, Words, mark
from orchestrator.report.model.first_screen import SentenceGroup
from orchestrator.report.model.parts import CellSentence, Clause
from orchestrator.report.page.cells import absence_word
from orchestrator.report.page.first_screen.quality_words import quality_clause
from orchestrator.report.page.naming import SECTION_ORDER, cell_anchor, full_name, group_title, mark_word
from orchestrator.schema.cell import Role
from orchestrator.schema.observation import Absence
from orchestrator.schema.result import Comparison, Group, Outcome, Verdict
from orchestrator.schema.units import percent
from orchestrator.stats.stability import Flag, FlagKind


def sentences(analysis: Analysis, words: Words) -> tuple[SentenceGroup, ...]:
    """One sentence per compared cell, group by group; contradicted ones are among the alarms already."""
    found = []
    for group in SECTION_ORDER:
        if group is Group.CONTRADICTED:
            continue
        members = [cell for cell in analysis.cells if cell.group is group and cell.comparisons]
        if members:
            made = tuple(sentence(cell, words) for cell in members)
            found.append(SentenceGroup(group.value, group_title(words, group), made))
    return tuple(found)


def sentence(cell: CellFinding, words: Words) -> CellSentence:
    """What a cell amounts to: the wait, the first answer, decoding, the answers, the memory."""
    clauses = [wait_clause(cell, words)]
    for metric, tell in (("ttft", _first_answer), (CACHED_FIRST, _first_answer), ("decode_rate", _decode)):
        comparison = cell.comparisons.get(metric)
        if comparison is not None and comparison.outcome is not Outcome.NOT_COMPARABLE:
            clauses.append(tell(comparison, words))
    more = (_same_tokens(cell, words), quality_clause(cell, words), _memory(cell, words))
    clauses += [clause for clause in more if clause is not None]
    tags = (mark_word(words, cell),) if cell.group in (Group.EXACT, Group.CONTRADICTED) else ()
    return CellSentence(
        cell.id, "#" + cell_anchor(cell.id), full_name(cell), tags, tuple(clauses), _caution(cell, words)
    )


def wait_clause(cell: CellFinding, words: Words) -> Clause:
    """The wait by the headline metric: all of it, or up to token N where the answers differ in length."""
    comparison = cell.wait
    if comparison is None:
        return Clause((Segment(words.say("not compared")),), "ask")
    rich, tone = _wait_words(comparison, words)
    if cell.headline != WAIT:
        first = Segment(words.say("for the first {n} tokens, ", n=cell.headline.rsplit("_", 1)[-1]))
        return Clause((first, *rich), tone)
    return Clause(rich, tone)


def _wait_words(row: Comparison, words: Words) -> tuple[Rich, str]:
    if row.ratio is None:
        return words.rich("the wait is **not comparable**: {reason}", reason=words.said(clean(row.reason))), "ask"
    ratio, interval = numerals.ratio(row.ratio), numerals.interval(row.ratio)
    if row.outcome in (Outcome.LOWER, Outcome.HIGHER):
        tone = "good" if row.outcome is Outcome.LOWER else "bad"
        return words.rich("you wait **{ratio}** {interval} as long", ratio=ratio, interval=interval), tone
    if row.outcome is Outcome.EQUIVALENT:
        return words.rich(
            "you wait **as long as without it**: {ratio} {interval}", ratio=ratio, interval=interval
        ), "flat"
    if row.outcome is Outcome.NO_DIFFERENCE:
        message = "**no detectable difference** in the wait ({within}): {ratio} {interval}"
        return words.rich(message, ratio=ratio, interval=interval, within=numerals.within(row.ratio)), "flat"
    if row.ratio.n == 1:
        message = "the wait was {ratio} as long in the only session: **no range, no verdict**"
        return words.rich(message, ratio=ratio), "ask"
    message = "the wait was {spread}× as long in {n} sessions: **a range, no verdict**"
    return words.rich(message, spread=numerals.spread(row.session_ratios), n=row.ratio.n), "ask"


def _first_answer(row: Comparison, words: Words) -> Clause:
    alone = row.ratio is not None and row.ratio.n == 1
    return _against(
        row,
        words,
        {
            Outcome.LOWER: (mark("first answer **sooner**: {ratio} {interval}"), "good"),
            Outcome.HIGHER: (mark("first answer **later**: {ratio} {interval}"), "bad"),
            Outcome.EQUIVALENT: (mark("first answer as soon: {ratio} {interval}"), "flat"),
            Outcome.NO_DIFFERENCE: (mark("first answer: no detectable difference ({within})"), "flat"),
            Outcome.RANGE_ONLY: (
                mark("first answer {ratio}, one session") if alone else mark("first answer {spread}×, a range"),
                "ask",
            ),
        },
    )


def _decode(row: Comparison, words: Words) -> Clause:
    alone = row.ratio is not None and row.ratio.n == 1
    return _against(
        row,
        words,
        {
            Outcome.LOWER: (mark("decode **slower**: {ratio} {interval}"), "bad"),
            Outcome.HIGHER: (mark("decode **faster**: {ratio} {interval}"), "good"),
            Outcome.EQUIVALENT: (mark("decode as fast: {ratio} {interval}"), "flat"),
            Outcome.NO_DIFFERENCE: (mark("decode: no detectable difference ({within})"), "flat"),
            Outcome.RANGE_ONLY: (
                mark("decode {ratio}, one session") if alone else mark("decode {spread}×, a range"),
                "ask",
            ),
        },
    )


def _against(row: Comparison, words: Words, table: dict[Outcome, tuple[str, str]]) -> Clause:
    message, tone = table[row.outcome]
    if row.ratio is None:
        raise ValueError(f"{row.cell}: a comparison of {row.metric} without a ratio has no sentence")
    rich = words.rich(
        message,
        ratio=numerals.ratio(row.ratio),
        interval=numerals.interval(row.ratio),
        within=numerals.within(row.ratio),
        spread=numerals.spread(row.session_ratios),
    )
    return Clause(rich, tone)


def _same_tokens(cell: CellFinding, words: Words) -> Clause | None:
    identity = cell.identity
    if identity is None or identity.verdict is Verdict.NOT_TESTED:
        return None
    same, compared = identity.same, identity.compared
    if identity.verdict is Verdict.PASS:
        return Clause(words.rich("same tokens in {same}/{compared} answers", same=same, compared=compared), "good")
    tone = "bad" if identity.verdict is Verdict.FAIL else "ask"
    return Clause(words.rich("**same tokens in only {same}/{compared}** answers", same=same, compared=compared), tone)


def kept_clauses(cell: CellFinding, words: Words) -> tuple[Clause, ...]:
    """Whether the answers are the same, whether they are right, and what it takes in memory: never left out unsaid."""
    same, memory = _same_tokens(cell, words), _memory(cell, words)
    if same is None:
        same = Clause(words.rich("same output: {checked}", checked=mark_word(words, cell)), "ask")
    if memory is None:
        missing = cell.missing.get("peak_unified")
        word = absence_word(missing.absence if missing is not None else Absence.NOT_REPORTED, words)
        memory = Clause(words.rich("peak memory {absent}", absent=word), "ask")
    return tuple(clause for clause in (same, quality_clause(cell, words), memory) if clause is not None)


def _memory(cell: CellFinding, words: Words) -> Clause | None:
    mine, base = cell.summaries.get("peak_unified"), cell.baseline_summaries.get("peak_unified")
    if mine is None or base is None:
        return None
    change = numerals.change("peak_unified", mine.median - base.median)
    return Clause(words.rich("peak memory {change}", change=change), "flat")


def _caution(cell: CellFinding, words: Words) -> str:
    """What weakens the sentence: a correction, a noise floor, unequal lengths."""
    parts = []
    wait = cell.comparisons.get(WAIT)
    if cell.headline != WAIT and cell.lengths is not None:
        parts.append(words.say("Total wait {reason}", reason=words.said(clean(cell.lengths[1]))))
    elif wait is not None and wait.ratio is not None and wait.reason and wait.reason != _resolution(wait):
        parts.append(words.say("Wait: {reason}", reason=words.said(clean(wait.reason))))
    if cell.wait is not None and cell.wait.prompts_worse and cell.wait.outcome is not Outcome.HIGHER:
        message = "{worse} of {prompts} prompts got slower"
        parts.append(words.say(message, worse=cell.wait.prompts_worse, prompts=cell.wait.prompts))
    parts += [
        words.say("{kind}: {why}", kind=words.say(flag.kind.value), why=words.said(clean(flag.sentence)))
        for flag in _told(cell.flags)
    ]
    more = cell.wait.sessions_more if cell.wait is not None else None
    if more and cell.wait is not None and cell.wait.outcome is Outcome.NO_DIFFERENCE:
        parts.append(words.count("{number} more session for ±2 %", "{number} more sessions for ±2 %", more))
    return " · ".join(parts)


def _told(flags: Sequence[Flag]) -> list[Flag]:
    """The first warning of each kind; a spread that is merely noisy is in the interval already."""
    found: dict[FlagKind, Flag] = {}
    for flag in flags:
        if flag.kind is not FlagKind.NOISY:
            found.setdefault(flag.kind, flag)
    return list(found.values())


def _resolution(row: Comparison) -> str:
    """The half-width as the comparison's own reason states it; the sentence has said it already."""
    if row.ratio is None or row.ratio.low is None or row.ratio.high is None:
        return ""
    return f"±{percent(math.sqrt(row.ratio.high / row.ratio.low) - 1, 1)}"


def alarms(analysis: Analysis, words: Words) -> tuple[CellSentence, ...]:
    """Contradicted cells: they stand on the first screen whatever their speed."""
    return tuple(
        sentence(cell, words)
        for cell in analysis.cells
        if cell.group is Group.CONTRADICTED and cell.state.role is Role.SPECULATIVE
    )
