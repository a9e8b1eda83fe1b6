"""Prints how the answers of a cell were graded, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.tables import plain, table
from orchestrator.schema.record import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from orchestrator.schema.record import TrialRecord

_WORDS = {True: "yes", False: "no", None: "–"}
_SO_FAR = "so far"


def print_grades(console: Console, trials: Iterable[TrialRecord]) -> None:
    """One line per prompt and outcome of the measured trials; nothing where none was graded and none is broken."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for trial in trials:
        if trial.phase is not Phase.MEASURED or (trial.grade is None and not trial.degenerate):
            continue
        rows.setdefault(_row(trial), []).append(f"{trial.place.set_index}.{trial.trial}")
    if not rows:
        return
    lines = [(row[0], ", ".join(where), *row[1:]) for row, where in sorted(rows.items())]
    console.print(table("Answers", ("prompt", "set.trial", "task", "well formed", "right", "why"), lines))
    if any(line[3] == _WORDS[None] or line[4] == _WORDS[None] for line in lines):
        console.print(plain("–: the task does not say, none was stated, or the answer could not be judged"))
    if any(line[4] == _SO_FAR for line in lines):
        console.print(plain("so far: right as far as it goes, and cut at the output limit; no more of it will come"))


def _row(trial: TrialRecord) -> tuple[str, ...]:
    broken = f"no answer: {trial.degenerate}" if trial.degenerate else ""
    if trial.grade is None:
        return (trial.prompt_id, "none", _WORDS[None], _WORDS[None], broken)
    grade = trial.grade
    why = "; ".join(part for part in (broken, grade.reason) if part)
    right = _SO_FAR if grade.so_far else _WORDS[grade.correct]
    return (trial.prompt_id, grade.task, _WORDS[grade.valid], right, why)
