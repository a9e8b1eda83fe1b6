"""What the first screen says of a cell's answers."""

from __future__ import annotations

from orchestrator.report.analysis.findings import CellFinding
from orchestrator.report.language.words import Words, mark
from orchestrator.report.model.parts import Clause
from orchestrator.stats.tasks import ALPHA, PairedTruth


def quality_clause(cell: CellFinding, words: Words) -> Clause | None:
    """For the cell's sentence: how many answers are right with it and without it, or well formed where none may be."""
    quality = cell.quality
    if quality is None:
        return None
    for found, whole, rates in (
        (
            quality.correct,
            mark("right answers {on}/{n}, without it {off}/{n}"),
            mark("right answers {on}, without it {off} (mean of {n} prompts)"),
        ),
        (
            quality.valid,
            mark("well-formed answers {on}/{n}, without it {off}/{n}"),
            mark("well-formed answers {on}, without it {off} (mean of {n} prompts)"),
        ),
    ):
        if found is None or not found.n:
            continue
        message, on, off = (whole, f"{found.on:.0f}", f"{found.off:.0f}") if found.greedy else (
            rates, words.percent(found.on / found.n), words.percent(found.off / found.n)
        )  # fmt: skip
        said = words.rich(message, on=on, off=off, n=found.n)
        if found.undetermined:
            said += words.rich(mark(", {k} undetermined"), k=found.undetermined)
        return Clause(said, tone_of_truth(found))
    return None


def share_of(yes: float, found: PairedTruth, words: Words) -> str:
    """How many prompts of how many; drawn, the mean of their rates."""
    return f"{yes:.0f}/{found.n}" if found.greedy else words.percent(yes / found.n)


def range_of(yes: float, still: float, found: PairedTruth, words: Words) -> str:
    """The share that is right: a range where answers were cut while they were."""
    low, high = words.percent(yes / found.n), words.percent((yes + still) / found.n)
    return low if not still else words.say("{low} to {high}", low=low, high=high)


def tone_of_truth(found: PairedTruth) -> str:
    """Whether people want the difference; without a significant one neither."""
    if found.p_value >= ALPHA:
        return "flat"
    return "bad" if found.lost > found.gained else "good"
