"""Finds and reads one JSON value in an answer, in time linear in the text and with bounded depth."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from orchestrator.workloads.grading.fields import DEEPEST

MOST_VALUES = 10_000
"""Commas and brackets, and so about values, up to which JSON is read."""
MOST_DIGITS = 400
MOST_UNENDED = 8
"""Brackets that are never closed, each of which costs a look at all of the text, up to which the search goes on."""
_BRACKET = re.compile(r"[\[{]")
_BEGUN = re.compile(r"[\[{]\s*\"|\[\s*\{\s*\"")
"""The beginning of a JSON object or array that is more than a bracket in prose."""
_MARK = re.compile(r'["\\{}\[\],]')
_OPEN = {"{": "}", "[": "]"}


_NAMES = {"{": "an object", "[": "an array"}


class JsonError(ValueError):
    """There is no JSON to read; the message says why."""


class _UnendedError(JsonError):
    """A bracket that is not closed; ``resume`` is where another may be looked for, ``None`` behind the bracket."""

    def __init__(self, message: str, resume: int | None = None) -> None:
        super().__init__(message)
        self.resume = resume


def whole(text: str) -> Any:  # noqa: ANN401  (any JSON)
    """The text as one JSON value, with white space around it at most.

    Raises:
        JsonError: it is none, or deeper or larger than is read.
    """
    text = text.strip()
    if not text:
        raise JsonError("there is no JSON")
    if text[0] in _OPEN:
        end = _end(text, 0)
        if end != len(text):
            raise JsonError(f"{text[end : end + 30]!r} follows the JSON")
    return _read(text)


def sole(text: str, brackets: str = "{[") -> Any:  # noqa: ANN401  (any JSON)
    """The one object or array in the text, which must begin with one of ``brackets``; prose may stand around it.

    Of what begins with such a bracket the first must be JSON. A pair of the other brackets that holds no JSON is prose.

    Raises:
        JsonError: there is none, one of the other kind comes first, a second one follows, or it cannot be read.
    """
    found = _next(text, 0, brackets)
    if found is None:
        raise JsonError("there is no JSON")
    value, start, end = found
    if text[start] not in brackets:
        raise JsonError(f"{_NAMES[text[start]]} comes first where {_NAMES[brackets[0]]} is asked for")
    second = _next(text, end, "")
    if second is not None:
        raise JsonError(f"a second JSON value follows at character {second[1]}")
    return value


def _next(text: str, at: int, strict: str) -> tuple[Any, int, int] | None:
    """The next JSON object or array at or behind ``at``, with where it begins and ends; ``None`` where there is none.

    Raises:
        JsonError: what begins with one of the brackets in ``strict`` is none.
    """
    unended = 0
    while unended <= MOST_UNENDED and (opened := _BRACKET.search(text, at)) is not None:
        start = opened.start()
        try:
            end = _end(text, start)
            at = end
            return _read(text[start:end]), start, end
        except _UnendedError as err:
            if text[start] in strict:
                raise
            if err.resume is None and _BEGUN.match(text, start):
                return None  # a value that the text ends in is none, and what stands inside it is its own
            unended += err.resume is None
            at = start + 1 if err.resume is None else err.resume
        except JsonError:
            if text[start] in strict:
                raise
    if unended > MOST_UNENDED:
        raise JsonError(f"more than {MOST_UNENDED} brackets are not closed")
    return None


def _end(text: str, start: int) -> int:
    """Where the bracket at ``start`` is closed."""
    expected: list[str] = []
    for count, (at, mark) in enumerate(_outside_strings(text, start)):
        if count > MOST_VALUES:
            raise _UnendedError(f"the JSON has more than about {MOST_VALUES:,} values", at + 1)
        if mark in _OPEN:
            expected.append(_OPEN[mark])
            if len(expected) > DEEPEST:
                raise _UnendedError(f"the JSON is nested deeper than {DEEPEST} levels", at + 1)
        elif mark in "}]":
            if expected.pop() != mark:
                raise _UnendedError(f"not JSON: {mark!r} at character {at} closes nothing", at + 1)
            if not expected:
                return at + 1
    raise _UnendedError("the JSON does not end")


def _outside_strings(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Brackets, commas and opening quotes with where they stand; nothing of what is inside strings."""
    quoted, skipped = False, -1
    for match in _MARK.finditer(text, start):
        at, mark = match.start(), match[0]
        if not quoted:
            quoted = mark == '"'
            yield at, mark
        elif mark == "\\" and at != skipped:
            skipped = at + 1
        elif mark == '"' and at != skipped:
            quoted = False


def _read(text: str) -> Any:  # noqa: ANN401  (any JSON)
    try:
        return json.loads(
            text, parse_int=_integer, parse_float=_real, parse_constant=_constant, object_pairs_hook=_object
        )
    except JsonError:
        raise
    except (ValueError, RecursionError) as err:
        raise JsonError(f"not JSON: {err}") from err


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise JsonError(f"a number of more than {MOST_DIGITS} digits")
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise JsonError(f"{digits[:20]} is beyond what a number can hold")
    return value


def _constant(word: str) -> float:
    raise JsonError(f"{word} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise JsonError(f"the key {twice[:40]!r} is there twice")
    return found
