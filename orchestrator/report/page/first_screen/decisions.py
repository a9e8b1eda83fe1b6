"""The advice of the first screen: one line per engine, model and workload, with what must be read beside it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.analysis.findings import Advice, Analysis, CellFinding, Recommendation, SamplingAdvice, Why
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Rich, Words, mark
from orchestrator.report.model.first_screen import Decision
from orchestrator.report.page.first_screen.sentences import kept_clauses, wait_clause
from orchestrator.report.page.first_screen.waiting import fold, only_waits
from orchestrator.report.page.naming import names, slug
from orchestrator.schema.result import Group, Outcome

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
    word, tone = _each_word(one, words) if one.advice is None else (_advice_word(one.advice, words), TONES[one.advice])
    anchor = f"advice/{slug(f'{one.engine}/{one.model}/{one.workload}')}"
    lines = tuple(_advice_line(part, words) for part in one.by_sampling)
    major = any(part.why is not Why.NOTHING_MEASURED for part in one.by_sampling)
    if not major:
        lines = lines[:1]
    notes = [note for part in one.by_sampling for note in _beside(part, words)] if major else []
    notes += _unstable(one, words)
    shown = one.by_sampling[: len(lines)]
    kept = tuple(kept_clauses(part.best, words) if part.best is not None else () for part in shown)
    tones = tuple(TONES[part.advice] for part in shown)
    return Decision(anchor, where, word, tone, ICONS[tone], lines, tuple(notes), major, tones, kept)


def _each_word(one: Recommendation, words: Words) -> tuple[str, str]:
    """The samplings for which it pays, or else does not, and those of which nothing can be said, with the tone."""

    def having(advice: Advice) -> str:
        return ", ".join(clean(part.sampling, 60) for part in one.by_sampling if part.advice is advice)

    wins, unknown = having(Advice.ON), having(Advice.UNKNOWN)
    if wins:
        word, tone = words.say("On for {samplings}", samplings=wins), TONES[Advice.ON]
    else:
        word = words.say("Leave it off for {samplings}", samplings=having(Advice.OFF))
        tone = TONES[Advice.OFF]
    return (words.say("{word}; {samplings}: cannot say", word=word, samplings=unknown) if unknown else word), tone


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
        return words.rich(
            "{sampling}: **not comparable**: {methods}; the reason stands at the cell",
            sampling=sampling,
            methods=_refused(part.considered),
        )
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


def _refused(cells: Sequence[CellFinding]) -> str:
    found = [cell for cell in cells if cell.wait is not None and cell.wait.outcome is Outcome.NOT_COMPARABLE]
    return ", ".join(names(cell, "method") for cell in found if cell.group is Group.EXACT)


def _fates(cells: Sequence[CellFinding], words: Words) -> str:
    reasons = dict.fromkeys(words.said(clean(cell.state.reason, 160)) for cell in cells if cell.state.reason)
    return "; ".join(reasons) or words.say("not run yet")


def _beside(part: SamplingAdvice, words: Words) -> list[str]:
    """What must be read together with the advice."""
    name = names(part.best, "method", "sampling") if part.best is not None else ""
    return [*_sureness(part, name, words), *_slower(part, words), *_elsewhere(part, words)]


def _unstable(one: Recommendation, words: Words) -> list[str]:
    """The cells that the advice rests on although their waits vary much, and what that does and does not take away."""
    found = [names(part.best, "method", "sampling") for part in one.by_sampling if part.unstable and part.best]
    if not found:
        return []
    message = "{cells}: unstable waits, with it or without; the interval holds that spread, and the advice rests on it"
    return [words.say(message, cells=", ".join(found))]


def _slower(part: SamplingAdvice, words: Words) -> list[str]:
    """Where nothing can be said because one cell is not settled: those that are."""
    lost = [cell for cell in part.considered if cell.wait is not None and cell.wait.outcome is Outcome.HIGHER]
    if part.advice is not Advice.UNKNOWN or not lost:
        return []
    cells = ", ".join(names(cell, "method", "sampling") for cell in lost if cell.group is Group.EXACT)
    return [words.say("{cells}: you wait longer with it", cells=cells)] if cells else []


def _sureness(part: SamplingAdvice, name: str, words: Words) -> list[str]:
    """Whether the best of several was measured anew: chosen and measured by the same sessions, it is partly luck."""
    if part.confirmed is None:
        return []
    if part.confirmed:
        return [words.say("{cell}: the best of several, confirmed in fresh sessions", cell=name)]
    if part.unstable and part.gaining > 1:
        message = "{cell}: one of {n} that gain; their waits are unstable, so that which is best is not known"
        return [words.say(message, cell=name, n=part.gaining)]
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
