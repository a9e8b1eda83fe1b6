"""The exactness evidence of every measured cell: its claim, the checks, and where answers part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import Analysis, CellFinding
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words, mark
from orchestrator.report.model.chapters import CheckView, EvidenceView
from orchestrator.report.page.chapters.divergences import divergence, known_of
from orchestrator.report.page.naming import evidence_anchor, full_name, group_title
from orchestrator.schema.result import Verdict

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
