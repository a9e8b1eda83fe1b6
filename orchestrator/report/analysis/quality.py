"""Judges the answers of a cell against its baseline's: graded tasks by prompt, and answers that are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.report.analysis.measures import Arm
from orchestrator.report.analysis.quality_findings import CategoryQuality, Quality
from orchestrator.schema.result import Outcome
from orchestrator.stats.broken import Broken, broken_pairs
from orchestrator.stats.estimate import ratio_estimate
from orchestrator.stats.length import length_comparable
from orchestrator.stats.tasks import PairedTruth, State, paired_truth

if TYPE_CHECKING:
    from orchestrator.schema.record import TrialGrade, TrialRecord
    from orchestrator.schema.result import Comparison

WHOLE = "e2e_latency"


def broken_answers(cell: Arm, base: Arm, *, greedy: bool) -> Broken:
    """The answers of both arms that are none, and whether their times may be compared."""
    return broken_pairs(_kinds(cell.trials), _kinds(base.trials), greedy=greedy)


def quality_of(cell: Arm, base: Arm, broken: Broken, headline: str, comparisons: Mapping[str, Comparison]) -> Quality:
    """The quality of a cell's answers beside its baseline's in the same attempt.

    Args:
        cell: the measured trials of the cell; of a baseline its own stand on both sides.
        base: those of its baseline.
        broken: of the same two arms.
        headline: the metric that tells the wait of the cell.
        comparisons: of the cell; what is refused there is refused by category too.
    """
    names = tuple(dict.fromkeys(trial.category for trial in cell.trials))
    whole = comparisons.get(headline)
    refused = whole.reason if whole is not None and whole.outcome is Outcome.NOT_COMPARABLE else ""
    return Quality(
        len(cell.trials),
        sum(trial.grade is not None for trial in cell.trials),
        _paired(cell.trials, base.trials, "valid", greedy=broken.greedy),
        _paired(cell.trials, base.trials, "correct", greedy=broken.greedy),
        broken,
        next((trial.degenerate for arm in (cell, base) for trial in arm.trials if trial.degenerate), ""),
        tuple(_category(name, cell, base, headline, refused, greedy=broken.greedy) for name in names)
        if whole is not None
        else (),
    )


def _category(name: str, cell: Arm, base: Arm, metric: str, refused: str, *, greedy: bool) -> CategoryQuality:
    mine, theirs = (
        Arm(arm.sessions, tuple(trial for trial in arm.trials if trial.category == name)) for arm in (cell, base)
    )
    why = refused
    if not why and metric == WHOLE:
        same, sentence = length_comparable(mine.frame("output_tokens"), theirs.frame("output_tokens"))
        why = "" if same else sentence
    wait = None if why else ratio_estimate(mine.frame(metric), theirs.frame(metric))
    return CategoryQuality(
        name,
        len(mine.trials),
        metric,
        wait,
        why,
        _paired(mine.trials, theirs.trials, "valid", greedy=greedy),
        _paired(mine.trials, theirs.trials, "correct", greedy=greedy),
        sum(bool(trial.degenerate) for trial in mine.trials),
    )


def _paired(on: Sequence[TrialRecord], off: Sequence[TrialRecord], which: str, *, greedy: bool) -> PairedTruth | None:
    silent = {_task(trial) for trial in (*on, *off) if _says_nothing(trial)} if which == "correct" else set()
    return paired_truth(_states(on, which, silent), _states(off, which, silent), greedy=greedy)


def _states(trials: Sequence[TrialRecord], which: str, silent: set[str]) -> list[tuple[str, State]]:
    """(prompt and task, state) of the graded trials whose task asks for it: ``silent`` are those that do not."""
    return [
        (_task(trial), _state(trial.grade, which))
        for trial in trials
        if trial.grade is not None and _task(trial) not in silent
    ]


def _task(trial: TrialRecord) -> str:
    """Prompt and task: a grade is never held against another task's."""
    return f"{trial.prompt_id}\x00{trial.grade.grader if trial.grade is not None else ''}"


def _says_nothing(trial: TrialRecord) -> bool:
    """Whether the trial was judged and its task says nothing on what is right."""
    grade = trial.grade
    return grade is not None and grade.valid is not None and grade.correct is None and not grade.so_far


def _state(grade: TrialGrade, which: str) -> State:
    value = grade.valid if which == "valid" else grade.correct
    if value is not None:
        return State.RIGHT if value else State.WRONG
    return State.SO_FAR if grade.so_far else State.UNTOLD


def _kinds(trials: Iterable[TrialRecord]) -> dict[tuple[int, str], str]:
    """By set and prompt what is wrong with the answer, in one word; empty where nothing is."""
    return {(trial.place.set_index, trial.prompt_id): trial.degenerate.partition(":")[0] for trial in trials}
