"""Table cells: a comparison, a count or an absence as people read it, with footnotes for every reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.report.analysis.findings import CellFinding, Missing, ProcessTotal
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words, mark
from orchestrator.report.model.parts import Bar, CellView
from orchestrator.report.page.naming import evidence_anchor
from orchestrator.schema import units
from orchestrator.schema.metrics import VOCABULARY, Better
from orchestrator.schema.observation import Absence
from orchestrator.schema.result import Comparison, Outcome, Summary, Verdict

MEMORY = "peak_unified"


@dataclass
class Notes:
    """The footnotes of one table, each reason once."""

    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int | None:
        """The number of that reason, from 1; ``None`` for no reason."""
        if not text:
            return None
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


def absence_word(absence: Absence, words: Words) -> str:
    """The five absences, spelled out."""
    return {
        Absence.NOT_APPLICABLE: words.say("not applicable"),
        Absence.NOT_REPORTED: words.say("not reported"),
        Absence.NOT_RUN: words.say("to be measured"),
        Absence.FAILED: words.say("failed"),
        Absence.SUPPRESSED: words.say("suppressed"),
    }[absence]


def absence_reason(missing: Missing, words: Words) -> str:
    """The reason that was recorded, or what the word means where none was."""
    if missing.why:
        return words.said(clean(missing.why))
    return {
        Absence.NOT_APPLICABLE: words.say("A run without speculation has no such figure."),
        Absence.NOT_REPORTED: words.say("The engine does not say."),
        Absence.NOT_RUN: words.say("No measurement of this cell exists yet."),
        Absence.FAILED: words.say("The measurement failed."),
        Absence.SUPPRESSED: words.say("Reported, and known to be wrong."),
    }[missing.absence]


def absent(missing: Missing, notes: Notes, words: Words) -> CellView:
    """An absence with its reason as title and footnote; never blank, 0 or NaN."""
    why = absence_reason(missing, words)
    return CellView(absence_word(missing.absence, words), absent=True, why=why, note=notes.number(why))


def missing_in(cell: CellFinding, metric: str) -> Missing:
    """Why the cell has no value of the metric."""
    return cell.missing.get(metric, Missing(Absence.NOT_REPORTED, ""))


def raw(found: Summary, metric: str, words: Words, *, sessions: int | None = None) -> CellView:
    """A median with its spread and count."""
    lines = [words.say("MAD {mad}", mad=numerals.quantity(metric, found.mad)), words.say("n = {n}", n=found.n)]
    if sessions is not None:
        lines[-1] = words.say("n = {n} in {sessions} sessions", n=found.n, sessions=sessions)
    return CellView(numerals.quantity(metric, found.median), lines=tuple(lines))


def tone_of(row: Comparison) -> str:
    """Whether people want this outcome."""
    better = VOCABULARY[row.metric].better
    if row.outcome not in (Outcome.LOWER, Outcome.HIGHER) or better is Better.NEITHER:
        return "flat"
    return "good" if (row.outcome is Outcome.LOWER) == (better is Better.LOWER) else "bad"


def compared(
    cell: CellFinding, metric: str, notes: Notes, words: Words, *, unit_line: str = "", count: bool = False
) -> CellView:
    """Ratio to the baseline, its interval, and the median under it; without a ratio the median and why."""
    found = cell.summaries.get(metric)
    if found is None:
        return absent(missing_in(cell, metric), notes, words)
    value = unit_line or numerals.quantity(metric, found.median)
    tail = counted(cell, metric, notes, words, always=count)
    row = cell.comparisons.get(metric)
    if row is None:
        return CellView(value, lines=tuple(tail))
    if row.ratio is None:
        number = notes.number(words.said(clean(row.reason)))
        return CellView(
            value, "flat", (words.say("not comparable"), *tail), why=words.said(clean(row.reason)), note=number
        )
    interval = numerals.interval(row.ratio) or _no_interval(row, words)
    why = words.said(clean(row.reason))
    shown, lines = numerals.ratio(row.ratio), (interval, value, *tail)
    return CellView(shown, tone_of(row), lines, why=why or words.say(row.outcome.value), sort=sort_key(row.ratio.point))


def sort_key(value: float) -> str:
    """What a column is ordered by: the number itself, whatever it is shown as."""
    return f"{value:.9g}"


def counted(cell: CellFinding, metric: str, notes: Notes, words: Words, *, always: bool) -> list[str]:
    """How many values a median stands on, with a footnote where some answers have none."""
    found, lost = cell.summaries[metric], cell.partial.get(metric)
    if lost is None:
        return [words.say("n = {n}", n=found.n)] if always else []
    number = notes.number(
        words.say(
            "{lost} answers without a value ({word}). The first: {why}",
            lost=lost.count,
            word=absence_word(lost.absence, words),
            why=absence_reason(lost, words),
        )
    )
    return [words.say("n = {n}", n=found.n) + f" [{number}]"]


def _no_interval(row: Comparison, words: Words) -> str:
    if row.ratio is not None and row.ratio.n == 1:
        return words.say("one session, no range")
    if row.ratio is not None and row.ratio.n < 3:
        return words.say("range {spread}", spread=numerals.spread(row.session_ratios))
    return words.say("no spread")


def accepted(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """The pooled acceptance rate with its interval over prompts, and the counts."""
    if cell.totals is None or cell.acceptance is None:
        if cell.totals is not None:
            why = words.say("Nothing was drafted, so there is no rate.")
            return CellView(words.say("nothing drafted"), absent=True, why=why, note=notes.number(why))
        return absent(missing_in(cell, "acceptance_rate"), notes, words)
    rate = cell.acceptance
    lines = [words.say("{accepted} of {drafted}", accepted=cell.totals.accepted, drafted=cell.totals.drafted)]
    if rate.low is not None and rate.high is not None:
        lines.insert(0, f"[{100 * rate.low:.0f}, {words.percent(rate.high)}]")
    return CellView(
        words.percent(rate.point), lines=tuple(lines), why=words.said(rate.method), sort=sort_key(rate.point)
    )


def thrown_away(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """Draft tokens that did not become text: refused ones were judged, discarded ones never were."""
    totals = cell.totals
    if totals is None:
        return absent(missing_in(cell, "drafted_tokens"), notes, words)
    lost = totals.drafted - totals.accepted
    if totals.refused is None or totals.discarded is None:
        lines, why = _parts_told(cell, words)
        return CellView(f"{lost}", lines=lines, why=why, note=notes.number(why), sort=f"{lost}")
    parts = words.say("{refused} refused", refused=totals.refused), words.say("{n} discarded", n=totals.discarded)
    return CellView(f"{lost}", lines=parts, bar=_bar(cell, words), sort=f"{lost}")


def _parts_told(cell: CellFinding, words: Words) -> tuple[tuple[str, ...], str]:
    """Refused and discarded tokens of the answers that tell them, with the reason that was recorded at the others."""
    drafting = cell.summaries.get("drafted_tokens")
    lines = []
    for metric, message in (
        ("rejected_tokens", mark("{n} refused in {some} of {all} answers")),
        ("discarded_tokens", mark("{n} discarded in {some} of {all} answers")),
    ):
        found = cell.summaries.get(metric)
        if found is not None and drafting is not None:
            lines.append(words.say(message, n=f"{sum(found.values):.0f}", some=found.n, all=drafting.n))
    for metric in ("rejected_tokens", "discarded_tokens"):
        lost = cell.partial.get(metric) or cell.missing.get(metric)
        if lost is not None and lost.why:
            return tuple(lines) or (words.say("parts not reported"),), absence_reason(lost, words)
    why = words.say("The engine does not tell refused from discarded tokens.")
    return tuple(lines) or (words.say("parts not reported"),), why


def per_process(found: ProcessTotal, words: Words) -> str:
    """``per process of 4 answers``: what a running total spans."""
    low, high = found.requests
    if low != high:
        return words.say("per process of {low} to {high} answers, warm-up included", low=low, high=high)
    return words.count(
        "per process of {number} answer, warm-up included", "per process of {number} answers, warm-up included", low
    )


def _bar(cell: CellFinding, words: Words) -> Bar | None:
    totals = cell.totals
    if totals is None or not totals.drafted or totals.refused is None or totals.discarded is None:
        return None
    message = "{drafted} drafted: {accepted} accepted, {refused} refused, {discarded} discarded"
    title = words.say(
        message, drafted=totals.drafted, accepted=totals.accepted, refused=totals.refused, discarded=totals.discarded
    )
    accepted, refused, discarded = (
        f"{100 * part / totals.drafted:.2f}%" for part in (totals.accepted, totals.refused, totals.discarded)
    )
    return Bar(accepted, refused, discarded, title)


def accepted_length(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """Accepted ÷ verify rounds, pooled over the cell."""
    totals = cell.totals
    if totals is None or not totals.verify_rounds:
        return absent(missing_in(cell, "mean_accepted_length"), notes, words)
    mean = totals.accepted / totals.verify_rounds
    return CellView(units.plain(mean), lines=(words.say("tok per round"),), sort=sort_key(mean))


def rounds(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """Verify rounds per answer, with their sum."""
    found, totals = cell.summaries.get("verify_rounds"), cell.totals
    if found is None or totals is None or totals.verify_rounds is None:
        return absent(missing_in(cell, "verify_rounds"), notes, words)
    sums = words.say("{total} in all", total=totals.verify_rounds)
    lines = (words.say("per answer"), sums)
    return CellView(numerals.quantity("verify_rounds", found.median), lines=lines, sort=sort_key(found.median))


def tokens(cell: CellFinding, notes: Notes, words: Words, *, against: bool) -> CellView:
    """Real token counts of the answers, beside the baseline's."""
    found = cell.summaries.get("output_tokens")
    if found is None:
        return absent(missing_in(cell, "output_tokens"), notes, words)
    low, high = min(found.values), max(found.values)
    lines = [f"{low:.0f}–{high:.0f}" if low != high else words.say("all equal")]
    base = cell.baseline_summaries.get("output_tokens")
    tone = ""
    if against and cell.lengths is not None and base is not None:
        same = sorted(found.values) == sorted(base.values)
        lines.append(words.say("as the baseline") if same else words.say("baseline {n}", n=f"{base.median:.0f}"))
        tone = "" if cell.lengths[0] else "bad"
    shown = numerals.quantity("output_tokens", found.median)
    return CellView(shown, tone, tuple(lines), sort=sort_key(found.median))


def memory(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """What the cell takes beyond its baseline, and its own peak."""
    found, base = cell.summaries.get(MEMORY), cell.baseline_summaries.get(MEMORY)
    if found is None:
        return absent(missing_in(cell, MEMORY), notes, words)
    if base is None:
        return CellView(units.size(found.median))
    lines = [units.size(found.median)]
    row = cell.comparisons.get(MEMORY)
    if row is not None and row.ratio is not None:
        lines += [part for part in (numerals.ratio(row.ratio), numerals.interval(row.ratio)) if part]
    more = found.median - base.median
    return CellView(numerals.change(MEMORY, more), lines=tuple(lines), sort=sort_key(more))


def same_output(cell: CellFinding, notes: Notes, words: Words) -> CellView:
    """Greedy identity: answers with the baseline's tokens, of those compared; with its control."""
    href = "#" + evidence_anchor(cell.id)
    identity = cell.identity
    if identity is None or identity.verdict is Verdict.NOT_TESTED:
        checks = cell.placement.checks if cell.placement is not None else ()
        why = words.said(clean(next((check.evidence for check in checks if check.verdict is Verdict.NOT_TESTED), "")))
        return CellView(words.say("not tested"), absent=True, why=why, note=notes.number(why), href=href)
    tone = {Verdict.PASS: "good", Verdict.FAIL: "bad"}.get(identity.verdict, "ask")
    control = words.say("control {same}/{compared}", same=identity.control_same, compared=identity.control_compared)
    return CellView(
        f"{identity.same}/{identity.compared}",
        tone,
        (control,),
        why=words.said(clean(identity.evidence)),
        href=href,
        sort=sort_key(identity.same / identity.compared if identity.compared else 0.0),
    )
