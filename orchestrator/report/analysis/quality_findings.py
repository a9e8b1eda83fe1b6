"""What is concluded about the answers themselves, as plain data: are they answers, well formed, and right?"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.schema.result import Estimate
from orchestrator.stats.broken import Broken
from orchestrator.stats.tasks import PairedTruth


@dataclass(frozen=True, slots=True)
class CategoryQuality:
    """The answers to prompts of one category, on against off.

    Args:
        answers: measured answers of the cell.
        wait: the cell's headline metric, on ÷ off; ``None`` with ``why`` where it is not comparable. There is no
            verdict by category: with so many questions some would look like findings.
        broken: answers of the cell that are no answers.
    """

    category: str
    answers: int
    metric: str
    wait: Estimate | None
    why: str
    valid: PairedTruth | None
    correct: PairedTruth | None
    broken: int


@dataclass(frozen=True, slots=True)
class Quality:
    """The answers of a cell, on against off; of a baseline, both are its own.

    Args:
        graded: measured answers that were graded, of ``answers``.
        valid: over the prompts whose task asks for a form; ``None`` where none does.
        correct: over the prompts whose task says what is right; ``None`` where none does.
        example: what was recorded of the first broken answer of the cell, else of the baseline.
        by_category: in the order of the prompts.
    """

    answers: int
    graded: int
    valid: PairedTruth | None
    correct: PairedTruth | None
    broken: Broken
    example: str = ""
    by_category: tuple[CategoryQuality, ...] = ()
