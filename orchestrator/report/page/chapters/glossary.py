"""What every word of the report means: metrics, statuses, and how to read it."""

from __future__ import annotations

from orchestrator.report.language.words import Words
from orchestrator.report.model.chapters import GlossaryEntry
from orchestrator.report.page.naming import metric_anchor
from orchestrator.schema.metrics import VOCABULARY, Better, Clock, Metric, Scope, Unit
from orchestrator.schema.status import STATUS_RULES


def glossary(words: Words) -> tuple[GlossaryEntry, ...]:
    """Every metric of the vocabulary."""
    return tuple(_entry(metric, words) for metric in VOCABULARY.values())


def _entry(metric: Metric, words: Words) -> GlossaryEntry:
    better = {
        Better.LOWER: words.say("lower is better"),
        Better.HIGHER: words.say("higher is better"),
        Better.NEITHER: words.say("neither direction is better"),
    }[metric.better]
    clock = {
        Clock.OURS: words.say("our clock"),
        Clock.ENGINE: words.say("the engine's word"),
        Clock.OS: words.say("the operating system's word"),
        Clock.DERIVED: words.say("computed by us from the engine's counts"),
        Clock.GRADER: words.say("our grader"),
    }[metric.clock]
    unit = {
        Unit.ONE: words.say("a share"),
        Unit.COUNT: words.say("a count"),
        Unit.WORD: words.say("a word"),
        Unit.TRUTH: words.say("yes or no"),
    }.get(metric.unit, metric.unit.value)
    facts = " · ".join((unit, better, clock, scope_word(metric.scope, words)))
    return GlossaryEntry(metric_anchor(metric.name), metric.name, metric.id, words.say(metric.definition), facts)


def statuses(words: Words) -> tuple[GlossaryEntry, ...]:
    """Every status a cell can have."""
    return tuple(
        GlossaryEntry(
            f"status/{status.value}",
            words.say(rule.word),
            status.value,
            words.say(rule.meaning),
            words.say("`rerun --failed` measures it again") if rule.selected_by_failed else "",
        )
        for status, rule in STATUS_RULES.items()
    )


def reading(words: Words) -> tuple[GlossaryEntry, ...]:
    """How to read the figures and the statistics."""
    rows = (
        (
            "ratio",
            words.say("0.74× [0.71, 0.78]"),
            words.say(
                "On ÷ off, with the 95 % interval: Student's t over sessions, of log ratios paired by session and "
                "prompt. A session is a fresh engine process; answers inside one are not independent, so they do not "
                "count as n."
            ),
        ),
        (
            "verdict",
            words.say("less, more, no detectable difference"),
            words.say(
                "A difference is called one only if the interval excludes 1 and the ratio lies outside the A/A band. "
                "“As long as without it” means that the 90 % interval lies within ±2 %. Several cells on one baseline "
                "are corrected by Holm's method."
            ),
        ),
        (
            "aa",
            words.say("A/A band"),
            words.say(
                "Each baseline is measured twice, interleaved like any two cells. How far the two seem to differ is "
                "what this machine cannot tell from nothing."
            ),
        ),
        (
            "order",
            words.say("interleaved"),
            words.say(
                "Sessions of a baseline and its cells alternate, in an order that turns around or is drawn by a stored "
                "seed, so that a machine that warms up or slows down does not favour either."
            ),
        ),
        (
            "length",
            words.say("same length"),
            words.say(
                "An answer that got shorter must not look faster. Total waits are compared only where token counts "
                "agree within 2 %; time to N compares the moment of the N-th token instead."
            ),
        ),
        (
            "acceptance",
            words.say("accepted, refused, discarded"),
            words.say(
                "Accepted drafts became text. A refused draft was judged by the target and found wrong; those after it "
                "in the same round are discarded without being judged. Acceptance is not speed: both stand in columns "
                "of their own."
            ),
        ),
        (
            "absent",
            words.say("not applicable, not reported, to be measured, failed, suppressed"),
            words.say("Five reasons why a figure is not there. None of them is zero, and each carries its reason."),
        ),
        (
            "same",
            words.say("same output"),
            words.say(
                "Three different things: the same tokens at temperature 0, the same distribution above it, the same "
                "text for the same seed. The last is shown and decides nothing; a few alike answers never count as a "
                "distribution check."
            ),
        ),
    )
    return tuple(GlossaryEntry(f"reading/{key}", term, "", text, "") for key, term, text in rows)


def scope_word(scope: Scope, words: Words) -> str:
    """What one value describes."""
    return {
        Scope.TRIAL: words.say("per answer"),
        Scope.SESSION: words.say("per engine process"),
        Scope.CELL: words.say("per cell"),
    }[scope]
