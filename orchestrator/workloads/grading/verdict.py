"""What a grader says of one answer, and the words that graders share."""

from __future__ import annotations

from dataclasses import dataclass

TEXT_LIMIT = 400_000
"""Characters up to which an answer is looked at; the output limits of real matrices stay below it."""

LENGTH = "length"
"""The finish reason of an answer that was cut at the output limit."""


@dataclass(frozen=True, slots=True)
class Grade:
    """One answer, graded.

    Args:
        valid: whether it has the form that the task asks for; ``None`` where the task asks for none, or the answer
            was cut before that could be told.
        correct: whether it is the right answer; ``None`` where the task does not say what is right.
        reason: in one sentence why, for whatever is not true; empty for a valid and correct answer.
        so_far: right as far as it goes, and cut at the output limit; then ``correct`` is ``None``.
        covers: the verdict is about all of the text and not about a place in it.
    """

    valid: bool | None
    correct: bool | None
    reason: str = ""
    so_far: bool = False
    covers: bool = False


class UnjudgedError(Exception):
    """The rule cannot be applied to this answer, which says nothing on the answer; the message says why."""


def malformed(reason: str) -> Grade:
    """An answer without the form that was asked for; such an answer is never the right one."""
    return Grade(valid=False, correct=False, reason=reason)


def right_so_far(*, covers: bool) -> Grade:
    """An answer that may still become the right one, or stop being it, behind the output limit."""
    reason = "right as far as it goes, and cut at the output limit before the answer ended"
    return Grade(valid=True, correct=None, reason=reason, so_far=True, covers=covers)


def cut(finish: str) -> str:
    """A clause for reasons: says that the answer was cut, where it was."""
    return "; the answer was cut at the output limit" if finish == LENGTH else ""
