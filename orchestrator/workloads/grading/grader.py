"""A task as plain data that can be hashed and written down, and the one function that grades by it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from orchestrator.workloads.grading import exact, json_schema, numeric, python_code, regex, tool_call
from orchestrator.workloads.grading.answer import CLOSE, without_echo, without_thinking
from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.verdict import LENGTH, TEXT_LIMIT, Grade, UnjudgedError, cut, malformed

__all__ = ["Grade", "Grader", "answer_grader", "grade", "parse_grader"]

VERSION = 3
"""Raised when any kind grades differently, so that a cell graded by other rules is another cell."""

_KINDS = {
    "exact": exact,
    "numeric": numeric,
    "regex": regex,
    "json": json_schema,
    "tool_call": tool_call,
    "python": python_code,
}
JUDGES = ("answer", "form")
"""What a task's rule is about: whether the answer is right, or whether it has a form and no more."""
LONGEST_REASON = 240
ONLY_FORM = "the task judges the form alone"
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Grader:
    """How one prompt's answers are graded.

    Args:
        kind: exact, numeric, regex, json, tool_call or python.
        canonical: kind, version and every rule with its default written out, as JSON with sorted keys.
    """

    kind: str
    canonical: str

    @property
    def digest(self) -> str:
        """16 digits that stand for all of it."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:16]


def parse_grader(fields: Mapping[str, object], where: str) -> Grader:
    """The grader of a task as a prompt file has it: ``kind``, the fields of the kind, and for any kind ``after``.

    ``after`` is a text; only what follows its last occurrence is the answer, such as the final line of a derivation.
    ``judges`` is one of :data:`JUDGES`: with ``form`` an answer that meets the whole rule is valid, one that does not
    is not, and nothing is said on whether it is right, as where a rule looks for a word that a right answer would have.

    Args:
        fields: the task's JSON object.
        where: file and line, for the message.

    Raises:
        WorkloadError: an unknown kind or field, a field of the wrong type, or a rule that cannot be kept.
    """
    reader = Fields(fields, where)
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise reader.refuse(f"'kind' must be one of {', '.join(_KINDS)}")
    reader.only(("kind", "after", "judges", *_KINDS[kind].KEYS))
    shared = {"after": reader.maybe_text("after"), "judges": reader.choice("judges", JUDGES), "version": VERSION}
    rules = {**_KINDS[kind].read(reader), "kind": kind, **shared}
    return Grader(kind, json.dumps(rules, sort_keys=True, separators=(",", ":")))


def answer_grader(answer: str, where: str = "answer") -> Grader:
    """The grader of a prompt that only names its one right continuation: the text must start with it.

    White space at the beginning does not count: whether a text begins with the space of its first word is up to the
    engine that put it together.

    Raises:
        WorkloadError: there is nothing but white space to start with; ``where`` says whose answer it is.
    """
    return parse_grader({"kind": "exact", "answer": answer, "take": "start", "normalise": ["lead"]}, where)


def grade(grader: Grader, text: str, *, finish: str, prompt: str = "") -> Grade:
    """Grades one answer; any text gets a grade, in time linear in its length or bounded.

    A block of thinking at the beginning is not looked at, nor is the prompt's own text where the answer repeats it
    whole; only ``exact`` looks at that, which an echo cannot meet and a copy may.

    Args:
        grader: the task.
        text: the answer as it came; lone surrogates count as unreadable characters.
        finish: why it ended: ``length``, ``stop``, ``eos`` or ``error``.
        prompt: what was asked.
    """
    if len(text) > TEXT_LIMIT:
        return malformed(f"the answer has {len(text):,} characters; more than {TEXT_LIMIT:,} are not looked at")
    after, judges, by = _built(grader)
    if after is None or CLOSE not in after:
        rest = without_thinking(text)
        if rest is None:
            return _unthought(finish)
        text = rest
    text = without_echo(text, prompt) if prompt and grader.kind != "exact" else text
    if after is not None:
        _, marker, text = text.rpartition(after)
        if not marker:
            return _about(judges, malformed(f"there is no {after!r} in the answer" + cut(finish)))
    try:
        found = _about(judges, by(_SURROGATE.sub("\ufffd", text), finish))
    except UnjudgedError as err:
        found = Grade(None, None, f"not judged: {err}")
    return replace(found, reason=_printable(found.reason))


def _unthought(finish: str) -> Grade:
    if finish == LENGTH:
        return Grade(None, None, "cut at the output limit within its thinking")
    return malformed("there is no answer behind its thinking")


def _printable(reason: str) -> str:
    """The reason, short, and with escapes for what could not be written down or would not be seen."""
    short = reason if len(reason) <= LONGEST_REASON else reason[:LONGEST_REASON] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in short)[: LONGEST_REASON + 1]


def _about(judges: str, found: Grade) -> Grade:
    """The grade; of a task that judges the form alone, its whole rule as the form and nothing on what is right."""
    if judges != "form":
        return found
    if found.so_far:
        return replace(found, valid=None)
    if found.valid is False or found.correct is False:
        return Grade(False, None, found.reason)
    return Grade(found.valid, None, ONLY_FORM if found.valid else found.reason)


@lru_cache(maxsize=4096)
def _built(grader: Grader) -> tuple[str | None, str, Callable[[str, str], Grade]]:
    rules: dict[str, Any] = json.loads(grader.canonical)
    return rules["after"], rules["judges"], _KINDS[grader.kind].build(rules)
