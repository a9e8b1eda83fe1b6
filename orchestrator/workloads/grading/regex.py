"""Kind ``regex``: the answer matches an expression, by an engine whose time is linear in the text.

Python's own engine backtracks: some expressions take it longer than the universe has existed on 40 characters. RE2
never does, so neither a task nor an answer can stop the run; the price is that it knows no back-references and no
look-around, which a task with them is told when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.verdict import Grade, cut, malformed

KEYS = ("pattern", "match", "form", "ignore_case", "dot_all")
MATCHES = ("search", "full")
"""Somewhere in the text, or the text without the white space at its ends as a whole."""
MEMORY = 8 << 20
"""Bytes that a compiled expression and its search may use."""
LONGEST = 4_000
"""Characters up to which an expression is read."""


class ExpressionError(ValueError):
    """An expression that RE2 does not take."""


def read(fields: Fields) -> dict[str, Any]:
    """``pattern`` decides what is right, ``form`` (another pattern) what is valid; without it any text is."""
    rules: dict[str, Any] = {
        "pattern": fields.text("pattern"),
        "match": fields.choice("match", MATCHES),
        "form": fields.maybe_text("form"),
        "ignore_case": fields.truth("ignore_case"),
        "dot_all": fields.truth("dot_all"),
    }
    for key in ("pattern", "form"):
        if rules[key] is not None:
            try:
                matcher(rules[key], full=False)
            except ExpressionError as err:
                raise fields.refuse(f"{key!r}: {err}") from err
    return rules


def build(rules: Mapping[str, Any]) -> Callable[[str, str], Grade]:
    """The grading function of the rules that :func:`read` gave."""
    options = {key: rules[key] for key in ("ignore_case", "dot_all")}
    full = rules["match"] == "full"
    right = matcher(rules["pattern"], full=full, **options)
    form = matcher(rules["form"], full=full, **options) if rules["form"] is not None else None

    def grade(text: str, finish: str) -> Grade:
        text = text.strip()
        if not text:
            return malformed("there is no answer" + cut(finish))
        if form is not None and not form(text):
            return malformed(f"{text[:60]!r} does not have the form {rules['form']!r}" + cut(finish))
        if right(text):
            return Grade(valid=True, correct=True, covers=full)
        return Grade(
            valid=True, correct=False, reason=f"{text[:60]!r} does not match {rules['pattern']!r}" + cut(finish)
        )

    return grade


def matcher(pattern: str, *, full: bool, ignore_case: bool = False, dot_all: bool = False) -> Callable[[str], bool]:
    """A function that says whether a text matches.

    Raises:
        ExpressionError: the expression is too long, or RE2 does not take it.
    """
    import re2  # noqa: PLC0415  (only runs with such tasks need it)

    if len(pattern) > LONGEST:
        raise ExpressionError(f"longer than {LONGEST:,} characters")
    options = re2.Options()
    options.max_mem, options.log_errors = MEMORY, False
    options.case_sensitive, options.dot_nl = not ignore_case, dot_all
    try:
        compiled = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as err:
        detail = str(err.args[0].decode("utf-8", "replace") if isinstance(err.args[0], bytes) else err)
        raise ExpressionError(f"RE2 does not take it ({detail}); it has no look-around and no back-references") from err
    if full:
        return lambda text: compiled.fullmatch(text) is not None
    return lambda text: compiled.search(text) is not None
