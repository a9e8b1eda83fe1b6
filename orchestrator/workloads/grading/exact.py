"""Kind ``exact``: the answer is one of the texts that the task names, after stated normalisation."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.verdict import LENGTH, Grade, cut, malformed, right_so_far

KEYS = ("answer", "take", "normalise")
TAKES = ("whole", "start", "first_line", "last_line")
"""What of the text is the answer: all, its beginning, or its first or last line that is not blank."""
RULES = ("nfc", "nfkc", "case", "lead", "space", "punctuation")
"""Applied in this order, to the answer and to the text alike."""
_EDGES = ".,;:!?…\"'`*_()[]{}<>“”‘’«»「」『』。、，！？：；"
_JOINTS = ".,:"


def read(fields: Fields) -> dict[str, Any]:
    """``answer`` (a text or several), ``take`` (of :data:`TAKES`), ``normalise`` (of :data:`RULES`)."""
    rules = fields.choices("normalise", RULES, ("nfc", "space"))
    answers = fields.texts("answer")
    for answer in answers:
        if not normalised(answer, rules):
            raise fields.refuse(f"'answer' {answer!r} is empty after {', '.join(rules)}")
    return {"answer": answers, "take": fields.choice("take", TAKES), "normalise": rules}


def build(rules: Mapping[str, Any]) -> Callable[[str, str], Grade]:
    """The grading function of the rules that :func:`read` gave."""
    names, take = rules["normalise"], rules["take"]
    answers = [normalised(answer, names) for answer in rules["answer"]]

    def grade(text: str, finish: str) -> Grade:
        found = normalised(_taken(text, take), names)
        if not found.strip():
            return malformed("there is no answer" + cut(finish))
        if take == "start":
            return _start(found, answers, text, finish)
        unfinished = _unfinished(text, take, finish)
        if found in answers:
            covers = take == "whole"
            return right_so_far(covers=covers) if unfinished else Grade(valid=True, correct=True, covers=covers)
        if unfinished and take != "last_line" and any(answer.startswith(found) for answer in answers):
            return right_so_far(covers=True)
        return Grade(valid=True, correct=False, reason=_differs(found, answers) + cut(finish))

    return grade


def normalised(text: str, rules: list[str]) -> str:
    """The text after the named rules.

    ``nfc`` and ``nfkc`` are Unicode's; ``case`` folds case; ``lead`` takes white space off the beginning, which some
    engines strip from a text that begins with a word and others do not; ``space`` makes one space of every run of
    white space and takes it off the ends; ``punctuation`` takes brackets, quotes and closing marks off the ends.
    """
    if "nfc" in rules:
        text = unicodedata.normalize("NFC", text)
    if "nfkc" in rules:
        text = unicodedata.normalize("NFKC", text)
    if "case" in rules:
        text = text.casefold()
    if "lead" in rules:
        text = text.lstrip()
    if "space" in rules:
        text = " ".join(text.split())
    if "punctuation" in rules:
        text = text.strip(_EDGES + (" " if "space" in rules else ""))
    return text


def _taken(text: str, take: str) -> str:
    if take in ("whole", "start"):
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[0] if take == "first_line" else lines[-1]


def _unfinished(text: str, take: str, finish: str) -> bool:
    """Whether what was taken may go on behind the cut."""
    in_line = text[-1:] not in ("\n", "\r")
    one_line = len(text.lstrip().splitlines(keepends=True)) == 1
    return finish == LENGTH and (take == "whole" or (in_line and (take == "last_line" or one_line)))


def _start(found: str, answers: list[str], text: str, finish: str) -> Grade:
    """Whether the text begins with an answer, and does not go on within its last word or number.

    Cut right behind the answer, within a word or number, nobody knows whether it would have gone on.
    """
    open_end = False
    for answer in answers:
        rest = found[len(answer) : len(answer) + 2]
        if found.startswith(answer) and not _goes_on(answer, rest):
            if finish != LENGTH or not _may_go_on(answer, rest, text):
                return Grade(valid=True, correct=True, covers=2 * len(answer) > len(found))
            open_end = True
        if finish != LENGTH and found == answer.rstrip():
            return Grade(valid=True, correct=True)  # it ended by itself, where the answer has a last line end
    if open_end or (finish == LENGTH and any(answer.startswith(found) for answer in answers)):
        return right_so_far(covers=True)
    return Grade(valid=True, correct=False, reason=_differs(found, answers) + cut(finish))


def _goes_on(answer: str, rest: str) -> bool:
    if not answer[-1].isalnum() or not rest:
        return False
    if answer[-1].isdigit() and rest[0] in _JOINTS and rest[1:].isdigit():
        return True
    return rest[0].isalnum()


def _may_go_on(answer: str, rest: str, text: str) -> bool:
    """Whether the text, as it came, ends within the answer's last word or number, so that more of it may follow."""
    if len(rest) > 1 or not answer[-1].isalnum():
        return False
    if answer[-1].isdigit() and text[-1:] in _JOINTS:
        return True
    return not rest and text[-1:].isalnum()


def _differs(found: str, answers: list[str]) -> str:
    """Where the text leaves the answer that it follows furthest."""
    wanted = max(answers, key=lambda answer: _common(answer, found))
    at = _common(wanted, found)
    return f"at character {at}: {found[at : at + 40]!r} where {wanted[at : at + 40]!r} is right"


def _common(one: str, other: str) -> int:
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
