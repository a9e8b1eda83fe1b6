"""The advice of the first screen: one line per engine, model and workload, with what must be read beside it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.analysis.findings import Advice, Analysis, CellFinding, Recommendation, SamplingAdvice, Why
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Rich, Words, mark
from orchestrator.report.model.first_screen import Decision
from orchestrator.report.page.first_screen.sentences import wait_clause
from orchestrator.report.page.first_screen.waiting import fold, only_waits
from orchestrator.report.page.naming import names, slug
from orchestrator.schema.result import Group

TONES = {Advice.ON: "good", Advice.OFF: "bad", Advice.SAME: "flat", Advice.UNKNOWN: "ask"}

ICONS = {"good": "▲", "bad": "▼", "flat": "＝", "ask": "?"}


def decisions(analysis: Analysis, words: Words) -> tuple[Decision, ...]:
    """The advice, one line per engine, model and workload; what could not be measured comes last."""
    waiting = [one for one in analysis.recommendations if only_waits(one)]
    made = [_decision(one, words) for one in analysis.recommendations if one not in waiting]
    made += [fold(waiting, words)] if waiting else []
    return tuple(sorted(made, key=lambda one: not one.major))


def _decision(one: Recommendation, words: Words) -> Decision:
    where = " · ".join(clean(name, 60) for name in (one.engine, one.model, one.workload))
    tone = TONES[one.advice] if one.advice is not None else "good"
    word = _advice_word(one.advice, words) if one.advice is not None else _on_for(one, words)
    anchor = f"advice/{slug(f'{one.engine}/{one.model}/{one.workload}')}"
    lines = tuple(_advice_line(part, words) for part in one.by_sampling)
    major = any(part.why is not Why.NOTHING_MEASURED for part in one.by_sampling)
    if not major:
        lines = lines[:1]
    notes = tuple(note for part in one.by_sampling for note in _beside(part, words)) if major else ()
    tones = tuple(TONES[part.advice] for part in one.by_sampling)[: len(lines)]
    return Decision(anchor, where, word, tone, ICONS[tone], lines, notes, major, tones)


def _on_for(one: Recommendation, words: Words) -> str:
    """The samplings for which it pays, where it does not pay for all."""
    wins = ", ".join(clean(part.sampling, 60) for part in one.by_sampling if part.advice is Advice.ON)
    return words.say("On for {samplings}", samplings=wins)


def _advice_word(advice: Advice, words: Words) -> str:
    return {
        Advice.ON: words.say("Turn it on"),
        Advice.OFF: words.say("Leave it off"),
        Advice.SAME: words.say("No difference"),
        Advice.UNKNOWN: words.say("Cannot say"),
    }[advice]


def _advice_line(part: SamplingAdvice, words: Words) -> Rich:
    sampling = clean(part.sampling, 60)
    if part.why is Why.NOTHING_MEASURED:
        return words.rich("nothing measured: {why}", why=_fates(part.considered, words))
    if part.why is Why.NOT_EXACT:
        return words.rich(
            "{sampling}: **no exact cell was measured**, and others are not recommended", sampling=sampling
        )
    if part.why is Why.A_A:
        return words.rich("{sampling}: **the baseline differs from itself**, so nothing can be told", sampling=sampling)
    if part.why is Why.TOO_FEW:
        return words.rich("{sampling}: **too few sessions** for a verdict", sampling=sampling)
    if part.best is None:
        return words.rich("{sampling}: **not comparable**, see the reason at each cell", sampling=sampling)
    return _verdict_line(part, part.best, sampling, words)


def _verdict_line(part: SamplingAdvice, best: CellFinding, sampling: str, words: Words) -> Rich:
    method = clean(best.name("method"), 60)
    told = wait_clause(best, words).rich
    if part.advice is Advice.ON:
        head = words.rich("{sampling}: with {method} ", sampling=sampling, method=method)
        return (*head, *told)
    tried = [cell for cell in part.considered if cell.wait is not None]
    if part.advice is Advice.OFF and len(tried) > 1:
        message = "{sampling}: nothing that was tried made you wait less; with {method} "
        return (*words.rich(message, sampling=sampling, method=method), *told)
    return (*words.rich("{sampling}: with {method} ", sampling=sampling, method=method), *told)


def _fates(cells: Sequence[CellFinding], words: Words) -> str:
    reasons = dict.fromkeys(words.said(clean(cell.state.reason, 160)) for cell in cells if cell.state.reason)
    return "; ".join(reasons) or words.say("not run yet")


def _beside(part: SamplingAdvice, words: Words) -> list[str]:
    """What must be read together with the advice."""
    shaky = part.best is not None and any(not flag.ranked for flag in part.best.flags)
    name = names(part.best, "method", "sampling") if part.best is not None else ""
    warning = [words.say("{cell}: its waits are unstable, see below", cell=name)] if shaky else []
    return [*_sureness(part, name, words), *warning, *_elsewhere(part, words)]


def _sureness(part: SamplingAdvice, name: str, words: Words) -> list[str]:
    """Whether the best of several was measured anew: chosen and measured by the same sessions, it is partly luck."""
    if part.confirmed is None:
        return []
    if part.confirmed:
        return [words.say("{cell}: the best of several, confirmed in fresh sessions", cell=name)]
    return [words.say("{cell}: best so far, not confirmed in fresh sessions (run.confirm_winner)", cell=name)]


def _elsewhere(part: SamplingAdvice, words: Words) -> list[str]:
    """Cells that are compared and cannot be recommended, said so beside the advice."""
    notes = []
    for group in (Group.CONTRADICTED, Group.OPPORTUNISTIC, Group.UNPROVEN):
        found = [
            names(cell, "method", "sampling") for cell in part.considered if cell.group is group and cell.comparisons
        ]
        if not found:
            continue
        message = {
            Group.CONTRADICTED: mark("{cells}: claimed exact, and a check says otherwise"),
            Group.OPPORTUNISTIC: mark("{cells}: opportunistic, judged apart below"),
            Group.UNPROVEN: mark("{cells}: nobody claims that it is exact, judged apart below"),
        }[group]
        notes.append(words.say(message, cells=", ".join(found)))
    broken = [names(cell, "method", "sampling") for cell in part.considered if cell.wait is None and cell.state.reason]
    if broken and part.why is not Why.NOTHING_MEASURED:
        notes.append(words.say("{cells}: not measured", cells=", ".join(broken)))
    return notes
