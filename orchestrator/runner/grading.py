"""Grades a trial's answer: once, when it was measured, by the task of its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.schema.observation import Absence, Observation, absent, observed
from orchestrator.schema.record import TrialGrade
from orchestrator.workloads.grading import Grader, answer_grader, degenerate, grade

if TYPE_CHECKING:
    from orchestrator.workloads.load import Prompt

SOURCE = "grader:"
_NO_TASK = "the prompt states no task"


@dataclass(frozen=True, slots=True)
class Graded:
    """What the answer amounts to; ``grade`` is ``None`` where the prompt states no task."""

    grade: TrialGrade | None
    degenerate: str
    observations: tuple[Observation, ...]


def task_of(prompt: Prompt) -> Grader | None:
    """The prompt's task; where it names its one right continuation and no task, that it starts with it."""
    if prompt.task is not None:
        return prompt.task
    return answer_grader(prompt.answer) if prompt.answer else None


def task_mark(prompt: Prompt) -> str:
    """What the task adds to the fingerprint of the prompt's cells: another task is another cell."""
    task = task_of(prompt)
    return f"\x02{task.digest}" if task is not None else ""


def storable(text: str) -> str:
    """The text with lone surrogates, which an engine's JSON can spell and UTF-8 cannot, as unreadable characters."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def grade_answer(prompt: Prompt, text: str, finish: str, token_ids: Sequence[int] = ()) -> Graded:
    """Grades one answer.

    Args:
        prompt: what was asked.
        text: what came.
        finish: why it ended.
        token_ids: its tokens, where the engine tells them.
    """
    task = task_of(prompt)
    found = grade(task, text, finish=finish, prompt=prompt.text) if task is not None else None
    right = found is not None and found.covers and (found.correct is True or found.so_far)
    broken = degenerate(text, prompt=prompt.text, finish=finish, token_ids=token_ids, right=right)
    seen = observed("output_degenerate", bool(broken), f"{SOURCE}degenerate", note=broken or None)
    if task is None or found is None:
        none = (absent(name, Absence.NOT_APPLICABLE, _NO_TASK) for name in ("task_valid", "task_correct"))
        return Graded(None, broken, (seen, *none))
    source, said = f"{SOURCE}{task.kind}/{task.digest}", found.reason or None
    verdicts = tuple(
        observed(name, value, source, note=said if not value else None)
        if value is not None
        else absent(name, Absence.NOT_APPLICABLE, found.reason)
        for name, value in (("task_valid", found.valid), ("task_correct", found.correct))
    )
    record = TrialGrade(task.digest, task.kind, found.valid, found.correct, found.reason, found.so_far)
    return Graded(record, broken, (seen, *verdicts))
