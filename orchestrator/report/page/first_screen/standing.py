"""Validity and coverage in words: what the run is worth, and which cells are missing from it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.analysis.findings import Analysis, Reason, ReasonKind
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.first_screen import CoverageItem, ReasonView, ValidityView
from orchestrator.report.model.parts import Link
from orchestrator.report.page.naming import full_name, link_of, names, rerun
from orchestrator.schema.status import STATUS_RULES, Status, Validity

_TONES = {Validity.VALID: "good", Validity.INCONCLUSIVE: "ask", Validity.INVALID: "bad"}
_ICONS = {Validity.VALID: "●", Validity.INCONCLUSIVE: "▲", Validity.INVALID: "■"}
_NOTED = 6
"""Notes that do not change the word are listed up to this number."""


def validity_view(analysis: Analysis, words: Words) -> ValidityView:
    """The word with every reason that made it so, each with a remedy; notes that did not come after."""
    word = analysis.validity
    meaning = {
        Validity.VALID: words.say("Every cell that ran was measured as asked, and each baseline agrees with itself."),
        Validity.INCONCLUSIVE: words.say("Part of the run says nothing yet; what is said below still holds."),
        Validity.INVALID: words.say("Something else than what was asked was measured: do not use these figures."),
    }[word]
    reasons = _grouped(analysis, words)
    heavy = [one for one in reasons if one.weighs]
    light = [one for one in reasons if not one.weighs]
    if len(light) > _NOTED:
        rest = len(light) - _NOTED
        light = [*light[:_NOTED], ReasonView(words.say("and {n} more notes of this kind", n=rest), "", (), "", False)]
    return ValidityView(words.say(word.value), _TONES[word], _ICONS[word], meaning, (*heavy, *light))


def _grouped(analysis: Analysis, words: Words) -> list[ReasonView]:
    """One view per kind of reason: what repeats itself from block to block is told once, the rest folded under it."""
    kinds: dict[tuple[ReasonKind, Status | None, Validity], list[Reason]] = {}
    for one in analysis.reasons:
        kinds.setdefault((one.kind, one.status, one.effect), []).append(one)
    found = []
    for members in kinds.values():
        views = [_reason(one, analysis, words) for one in members]
        found.append(views[0] if len(views) == 1 else _together(members, views, analysis, words))
    return found


def _together(members: Sequence[Reason], views: Sequence[ReasonView], analysis: Analysis, words: Words) -> ReasonView:
    kind, count = members[0].kind, len(members)
    text = {
        ReasonKind.A_A: words.say("{n} baselines differ from themselves.", n=count),
        ReasonKind.PROBLEMS: words.say(
            "{n} answers break an invariant, in {kinds} ways.", n=sum(one.answers for one in members), kinds=count
        ),
        ReasonKind.UNFINISHED: words.say("The run was interrupted {n} times.", n=count),
    }.get(kind, words.say("{n} reasons of one kind.", n=count))
    links = tuple(dict.fromkeys(link for view in views for link in view.links))
    command = views[0].command
    if kind is ReasonKind.A_A:
        blocks = {name for one in members for name in one.about}
        first = {cell.state.block: cell.id for cell in reversed(analysis.cells) if cell.state.block in blocks}
        command = rerun(*(cell.id for cell in analysis.cells if first.get(cell.state.block) == cell.id))
    return ReasonView(text, views[0].remedy, links, command, views[0].weighs, tuple(view.text for view in views))


def _reason(one: Reason, analysis: Analysis, words: Words) -> ReasonView:
    known = {cell.id: cell for cell in analysis.cells}
    links = tuple(Link(full_name(known[name]), link_of(known[name])) for name in one.about if name in known)
    weighs = one.effect is not Validity.VALID
    detail, count = words.said(clean(one.detail)), len(one.about)
    block = next(
        (names(c, "engine", "model", "sampling", "workload") for c in analysis.cells if c.state.block in one.about), ""
    )
    if one.kind is ReasonKind.NOTHING_MEASURED:
        text, remedy = (
            words.say("Nothing was measured."),
            words.say("Run the matrix; the cells below say what is missing."),
        )
        return ReasonView(text, remedy, (), "specmatrix run", weighs)
    if one.kind is ReasonKind.BAD_CELLS:
        rule = STATUS_RULES[one.status or Status.FAILED]
        text = words.count(
            "{number} cell {word}. {meaning}",
            "{number} cells {word}. {meaning}",
            count,
            word=words.say(rule.word),
            meaning=words.say(rule.meaning),
        )
        if one.status is Status.ABORTED:
            return ReasonView(text, words.say("Run again: complete sets are kept."), links, "", weighs)
        remedy = words.say("The reason and the log stand at the cell. Measure again with")
        return ReasonView(text, remedy, links, "specmatrix rerun --failed" if count > 1 else rerun(*one.about), weighs)
    if one.kind is ReasonKind.A_A:
        text = words.say("{block}: the baseline differs from itself. {detail}", block=block, detail=detail)
        remedy = words.say("Close other programs, let the machine cool, measure more sessions.")
        first = next((cell.id for cell in analysis.cells if cell.state.block in one.about), "")
        return ReasonView(text, remedy, (), rerun(first), weighs)
    if one.kind is ReasonKind.NO_FLOOR:
        text = words.count(
            "{number} block has no noise floor: its baseline has no twin measured in 3 sessions or more.",
            "{number} blocks have no noise floor: their baselines have no twin measured in 3 sessions or more.",
            count,
        )
        return ReasonView(text, words.say("Set run.twin: true and at least 3 sessions."), (), "", weighs)
    if one.kind is ReasonKind.TOO_FEW:
        text = words.count(
            "{number} cell has too few sessions for an interval.",
            "{number} cells have too few sessions for an interval.",
            count,
        )
        return ReasonView(text, words.say("Use run.preset: standard, or at least 3 sessions."), links, "", weighs)
    if one.kind is ReasonKind.PROBLEMS:
        text = words.count(
            "{number} answer breaks an invariant. {detail}",
            "{number} answers break an invariant. The first: {detail}",
            one.answers,
            detail=detail,
        )
        remedy = words.say("Measure on a quieter machine. What depends on it is not compared where it is frequent.")
        return ReasonView(text, remedy, links, "", weighs)
    if one.kind is ReasonKind.BROKEN_ANSWERS:
        text = words.count(
            "{number} cell wrote no answers: {detail}",
            "{number} cells wrote no answers. The first: {detail}",
            count,
            detail=detail,
        )
        remedy = words.say("Read the answers with specmatrix show; the engine or the drafter is at fault.")
        return ReasonView(text, remedy, links, "", weighs)
    if one.kind is ReasonKind.UNSTABLE:
        text = words.count(
            "{number} cell waits unstably ({detail}). The interval holds that spread, so its verdict stands; it is not "
            "recommended before a stable cell that gains too, unless fresh sessions confirmed it.",
            "{number} cells wait unstably (the first: {detail}). Their intervals hold that spread, so their verdicts "
            "stand; none is recommended before a stable cell that gains too, unless fresh sessions confirmed it.",
            count,
            detail=detail,
        )
        return ReasonView(text, words.say("Measure more sessions on a quieter machine."), links, "", weighs)
    return ReasonView(detail, "", (), "", weighs)


def coverage_line(analysis: Analysis, words: Words) -> str:
    """``14 of 18 cells measured``."""
    total = sum(len(ids) for _, ids in analysis.coverage)
    done = sum(len(ids) for status, ids in analysis.coverage if status is Status.OK)
    return words.count("{done} of {number} cell measured", "{done} of {number} cells measured", total, done=done)


def coverage_view(analysis: Analysis, words: Words) -> tuple[CoverageItem, ...]:
    """A count and the cells for every status that occurs."""
    known = {cell.id: cell for cell in analysis.cells}
    total = sum(len(ids) for _, ids in analysis.coverage)
    found = []
    for status, ids in analysis.coverage:
        rule = STATUS_RULES[status]
        tone = "good" if status is Status.OK else ("bad" if rule.fails_run else "ask")
        links = tuple(Link(full_name(known[name]), link_of(known[name])) for name in ids)
        icon = {"good": "●", "bad": "■", "ask": "○"}[tone]
        width = f"{100 * len(ids) / total:.3f}%"
        found.append(CoverageItem(words.say(rule.word), len(ids), tone, icon, words.say(rule.meaning), width, links))
    return tuple(found)
