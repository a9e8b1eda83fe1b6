"""What `show` prints of the answers of a cell."""

from __future__ import annotations

import dataclasses
import io

from rich.console import Console

from orchestrator.cli.grades import print_grades
from orchestrator.schema.record import Phase, Place, TrialGrade, TrialRecord
from orchestrator.schema.status import Status


def trial(prompt, set_index, grade, degenerate="", phase=Phase.MEASURED):
    place = Place("a/b/none/greedy/w", "f", "block", 1, set_index, 0, 0)
    return TrialRecord(
        place, 3, phase, prompt, "sums", "en", 1, Status.OK, "", (), (), "", "eos", (), (), "now",
        grade=grade, degenerate=degenerate,
    )  # fmt: skip


def printed(*trials):
    out = io.StringIO()
    print_grades(Console(file=out, width=200, color_system=None), trials)
    return [line.split() for line in out.getvalue().splitlines()]


WRONG = TrialGrade("d", "numeric", True, False, "8 where 7 is right")


def test_grade_and_reason_of_each_prompt_with_its_trials():
    form = dataclasses.replace(WRONG, task="json", correct=None, reason="the task asks for a form")
    lines = printed(trial("s1", 0, WRONG), trial("s1", 1, WRONG), trial("j1", 0, form))
    assert lines[0] == ["Answers"]
    assert lines[1] == ["prompt", "set.trial", "task", "well", "formed", "right", "why"]
    assert lines[2] == ["j1", "0.3", "json", "yes", "–", "the", "task", "asks", "for", "a", "form"]
    assert lines[3] == ["s1", "0.3,", "1.3", "numeric", "yes", "no", "8", "where", "7", "is", "right"]


def test_broken_answers_are_told_with_and_without_a_task():
    lines = printed(trial("s1", 0, WRONG, "empty: 0 characters"), trial("p1", 0, None, "loop: [bold]x\x1b[31m"))
    assert " ".join(lines[2]).startswith("p1 0.3 none – – no answer: loop: [bold]x")
    assert "\x1b" not in " ".join(lines[2])
    assert " ".join(lines[3]).endswith("no answer: empty: 0 characters; 8 where 7 is right")


def test_nothing_is_printed_where_nothing_was_graded():
    assert printed(trial("p1", 0, None), trial("s1", 0, WRONG, phase=Phase.WARMUP)) == []


def test_an_answer_cut_while_it_was_right_is_no_task_without_an_answer():
    cut = TrialGrade("d", "exact", True, None, "cut at the output limit, right up to there", so_far=True)
    lines = [" ".join(line) for line in printed(trial("e1", 0, cut), trial("s1", 0, WRONG))]
    assert lines[2].startswith("e1 0.3 exact yes so far cut at the output limit")
    assert [line.partition(":")[0] for line in lines if line.startswith(("–:", "so far:"))] == ["so far"]
    unknown = dataclasses.replace(cut, correct=None, so_far=False, reason="not judged: too long")
    lines = [" ".join(line) for line in printed(trial("e1", 0, unknown))]
    assert [line.partition(":")[0] for line in lines if line.startswith(("–:", "so far:"))] == ["–"]
