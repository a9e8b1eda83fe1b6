"""Kind ``python``: the answer holds Python that parses. It is never executed, so nothing is said on what it does."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.verdict import Grade, cut, malformed

KEYS = ("defines", "prefix")
LONGEST = 65_536
"""Characters of code that are parsed."""
DEEPEST = 50
"""Open brackets up to which code is parsed, those in strings and comments counted too."""
MOST_SIGNS = 200
"""Operators without an operand between them: the parser goes one level down for each."""
GRAMMAR = (3, 11)
"""The oldest Python that grades, so that as little as can be depends on which one does."""
_FENCE = re.compile(r" {0,3}```")
_WORD = re.compile(r"[A-Za-z0-9_+-]*")
_LANGUAGES = ("python", "py", "python3", "")
_SIGNS = re.compile(rf"(?:[-+~*][ \t]*|not[ \t]+|await[ \t]+|lambda[ \t]*:[ \t]*){{{MOST_SIGNS}}}")
_NOT_RUN = "the code parses; it is never executed, so what it does is not known"


def read(fields: Fields) -> dict[str, Any]:
    """``defines``: functions (with a body) or classes that must be at the top level; ``prefix``: code before it."""
    return {"defines": fields.texts("defines", ()), "prefix": fields.maybe_text("prefix")}


def build(rules: Mapping[str, Any]) -> Callable[[str, str], Grade]:
    """The grading function of the rules that :func:`read` gave."""
    prefix, wanted = rules["prefix"], rules["defines"]

    def grade(text: str, finish: str) -> Grade:
        wrong = _failure(text, prefix, wanted)
        return Grade(True, None, _NOT_RUN) if wrong is None else malformed(wrong + cut(finish))

    return grade


def _failure(text: str, prefix: str | None, wanted: list[str]) -> str | None:
    """What is wrong with the code in the text, or ``None``.

    With a prefix the text may be its continuation, or a fence with one, or the whole once more, in a fence or not.
    """
    code = fenced(text)
    if not code.strip():
        return "there is no code"
    if prefix is None:
        return _wrong(code, parse, wanted)
    if code == text:
        wrong = _wrong(_continuation(text), lambda rest: _continued(prefix, rest), wanted)
    else:
        wrong = _wrong(code, lambda rest: _continued(prefix, rest), wanted)
    # Whole it can only be where something is defined: a lone statement would parse by itself too.
    return None if wrong is None or (wanted and _wrong(code, parse, wanted) is None) else wrong


def _wrong(code: str, read_by: Callable[[str], ast.Module], wanted: list[str]) -> str | None:
    try:
        tree = read_by(code)
    except ValueError as err:
        return str(err)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name: node for node in tree.body if isinstance(node, kinds)}
    missing = [name for name in wanted if name not in defined]
    if missing:
        return f"the code does not define {', '.join(missing)}"
    hollow = [name for name in wanted if not _has_body(defined[name])]
    return f"{', '.join(hollow)} has no body" if hollow else None


def _has_body(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a function does anything beside its description or ``...``; a class needs no more than that."""
    if isinstance(node, ast.ClassDef):
        return True
    return any(not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)) for one in node.body)


def fenced(text: str) -> str:
    """The code in the first fence that is marked as Python or not marked; the whole text where there is no fence.

    A fence that is not closed ends with the text. Read line by line: each is looked at once.
    """
    kept: list[str] | None = None
    inside = False
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if inside and fence is not None:
            if kept is not None:
                return "".join(kept)
            inside = False
        elif inside:
            if kept is not None:
                kept.append(line + "\n")
        elif fence is not None and "`" not in line[fence.end() :]:
            inside, rest = True, line[fence.end() :].lstrip(" ")
            mark = _WORD.match(rest)
            kept = [] if mark is not None and mark[0].lower() in _LANGUAGES else None
    return text if kept is None else "".join(kept).removesuffix("\n")


def parse(code: str) -> ast.Module:
    """The tree of the code.

    Raises:
        ValueError: it is not Python, or so long or so deep that the parser is not given it.
    """
    if len(code) > LONGEST:
        raise ValueError(f"the code is longer than {LONGEST:,} characters")
    depth = 0
    for mark in re.findall(r"[][(){}]", code):
        depth += 1 if mark in "([{" else -1
        if depth > DEEPEST:
            raise ValueError(f"the code has more than {DEEPEST} brackets open")
        depth = max(depth, 0)
    if _SIGNS.search(code):
        raise ValueError(f"the code has {MOST_SIGNS} operators in a row")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code, feature_version=GRAMMAR)
    except SyntaxError as err:
        raise ValueError(f"line {err.lineno or '?'}: {err.msg}") from err
    except (MemoryError, RecursionError) as err:
        raise ValueError("the code is too deeply nested to be parsed") from err


def _continued(prefix: str, code: str) -> ast.Module:
    """The tree of both together; with a space between them where they do not parse as they are.

    Some engines strip the first space of an answer, which is part of the first line's indent.
    """
    try:
        return parse(prefix + code)
    except ValueError:
        try:
            return parse(f"{prefix} {code}")
        except ValueError:
            pass
        raise


def _continuation(text: str) -> str:
    """Up to the first line after the first that begins in the first column: there the function has ended."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() and not line[0].isspace() and line[0] not in "#)]}":
            return "".join(lines[:number])
    return text
