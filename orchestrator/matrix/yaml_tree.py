"""YAML text to a tree whose every value knows its place, with one meaning under YAML 1.1 and 1.2.

PyYAML's event stream is used instead of its constructor, so that nothing is ever built from a tag, every fault carries
a position, and a scalar keeps its spelling (a version such as ``2026.10`` must not become a number).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

MAX_NODES = 20_000
"""Values after aliases are followed: a file of a few lines can otherwise describe billions."""
MAX_DEPTH = 32

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


def _spellings(words: dict[str, bool]) -> dict[str, bool]:
    return {form: value for word, value in words.items() for form in (word, word.capitalize(), word.upper())}


_BOOLS = _spellings({"true": True, "false": False})
_OLD_BOOLS = _spellings({"yes": True, "on": True, "no": False, "off": False})
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in the text; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value with its spelling. ``plain``: written without quotes."""

    value: str | float | bool | None
    text: str
    plain: bool
    at: Mark
    size: int = 1
    depth: int = 1

    @property
    def old_boolean(self) -> bool:
        """Whether this is ``on``, ``off``, ``yes`` or ``no``: a boolean for YAML 1.1, a word for YAML 1.2."""
        return self.plain and self.text in _OLD_BOOLS


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    at: Mark
    size: int
    depth: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys with their places, and values."""

    entries: dict[str, tuple[Mark, Node]]
    at: Mark
    size: int
    depth: int


Node = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong at a place of the text. ``beside``: a place in the tree that it belongs to."""

    at: Mark
    what: str
    beside: Mark | None = None


class Unreadable(Exception):  # noqa: N818  (it carries a fault, it is not one)
    """The text cannot be read on from here."""

    def __init__(self, at: Mark, what: str) -> None:
        """Keep the place."""
        self.fault = Fault(at, what)
        super().__init__(what)


def compose(text: str) -> tuple[Node, list[Fault]]:
    """The tree of the only document in ``text``, and faults that did not stop the reading.

    Raises:
        Unreadable: no document, more than one, broken syntax, or more than this reader takes.
    """
    try:
        return _Composer(yaml.parse(text, Loader=yaml.SafeLoader)).document()
    except yaml.reader.ReaderError as err:
        before = text[: err.position]
        mark = Mark(before.count("\n") + 1, err.position - (before.rfind("\n") + 1) + 1)
        raise Unreadable(mark, f"character U+{int(err.character):04X} may not stand in a YAML file") from err
    except yaml.MarkedYAMLError as err:
        raise _syntax_fault(err, text) from err


def _syntax_fault(err: yaml.MarkedYAMLError, text: str) -> Unreadable:
    mark = err.problem_mark or err.context_mark
    at = Mark(mark.line + 1, mark.column + 1) if mark is not None else Mark(1, 1)
    lines = text.split("\n")
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or line[at.column - 1 : at.column] == "\t":
        return Unreadable(at, "a tab is used as indentation; YAML allows only spaces there")
    what = ", ".join(part for part in (err.context, err.problem) if part)
    if err.context_mark is not None and err.context_mark.line + 1 != at.line:
        what += f" (begun on line {err.context_mark.line + 1})"
    return Unreadable(at, f"not YAML: {what}")


class _Composer:
    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._anchors: dict[str, Node] = {}
        self._faults: list[Fault] = []

    def document(self) -> tuple[Node, list[Fault]]:
        next(self._events)  # the stream's start
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            raise Unreadable(_mark(event), "the file is empty or holds only comments; `specmatrix init` writes a start")
        node = self._node(next(self._events), 1)
        next(self._events)  # the document's end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise Unreadable(_mark(event), "a second document begins here; a matrix file holds one: remove the ---")
        return node, self._faults

    def _node(self, event: Any, depth: int) -> Node:  # noqa: ANN401  (PyYAML's events have no common typed base)
        at = _mark(event)
        if depth > MAX_DEPTH:
            raise Unreadable(at, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), at, depth)
        if event.tag is not None:
            self._fault(at, f"tags such as {event.tag} are not used here; for a text, write it in quotes")
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, at)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(at, depth)
        else:
            node = self._mapping(at, depth)
        if node.size > MAX_NODES:
            raise Unreadable(at, f"more than {MAX_NODES} values once aliases are followed")
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, anchor: str, at: Mark, depth: int) -> Node:
        # An anchor is known only once its value is complete, so a value can never contain itself.
        if anchor not in self._anchors:
            raise Unreadable(at, f"alias *{anchor} has no complete anchor &{anchor} before it")
        node = self._anchors[anchor]
        if depth + node.depth > MAX_DEPTH:
            raise Unreadable(at, f"alias *{anchor} nests deeper than {MAX_DEPTH} levels")
        return node

    def _sequence(self, at: Mark, depth: int) -> Sequence:
        items: list[Node] = []
        size = 1
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
            size = self._grown(size, items[-1])
        return Sequence(tuple(items), at, size, 1 + max((item.depth for item in items), default=0))

    def _mapping(self, at: Mark, depth: int) -> Mapping:
        entries: dict[str, tuple[Mark, Node]] = {}
        size = 1
        deepest = 0
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key_at = _mark(event)
            key = self._key(self._node(event, depth + 1))
            value = self._node(next(self._events), depth + 1)
            size = self._grown(size, value)
            deepest = max(deepest, value.depth)
            if key is None:
                continue
            if key in entries:
                first = entries[key][0]
                what = f'key "{key}" stands here a second time; the first is at {first.line}:{first.column}: keep one'
                self._faults.append(Fault(key_at, what, first))
                continue
            entries[key] = (key_at, value)
        return Mapping(entries, at, size, 1 + deepest)

    def _grown(self, size: int, child: Node) -> int:
        if size + child.size > MAX_NODES:
            raise Unreadable(child.at, f"more than {MAX_NODES} values once aliases are followed")
        return size + child.size

    def _key(self, node: Node) -> str | None:
        if not isinstance(node, Scalar):
            self._fault(node.at, "a key must be a single word, not a list or a mapping")
            return None
        if node.plain and node.text == "<<":
            self._fault(node.at, "merge keys (<<) are not read here; write the keys out, or use an alias for a value")
            return None
        if not isinstance(node.value, str):
            kind = _kind(node)
            self._fault(node.at, f'as a key, {node.text or "nothing"} is read as {kind}; write "{node.text}" in quotes')
        return node.text

    def _scalar(self, event: Any, at: Mark) -> Scalar:  # noqa: ANN401  (as above)
        text: str = event.value
        if _UNPRINTABLE.search(text) is not None:
            self._fault(at, "holds a control character, written as an escape; take it out")
            text = _UNPRINTABLE.sub("", text)
        if event.style not in (None, "") or event.tag is not None:
            return Scalar(text, text, False, at)
        return Scalar(self._plain(text, at), text, True, at)

    def _plain(self, text: str, at: Mark) -> str | float | bool | None:
        if text in _NULLS:
            return None
        if text in _BOOLS or text in _OLD_BOOLS:
            return (_BOOLS | _OLD_BOOLS)[text]
        if _NOT_FINITE.fullmatch(text):
            self._fault(at, f"{text} is not a finite number")
            return 0
        if _LEADING_ZERO.fullmatch(text):
            # Octal for YAML 1.1, decimal for 1.2: kept as text, so that a number field refuses it by name.
            return text
        if _INTEGER.fullmatch(text):
            if len(text) > 19:
                self._fault(at, "a whole number of more than 18 digits")
                return 0
            return int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if not math.isfinite(number):
                self._fault(at, f"{text} is not a finite number")
                return 0
            return number
        return text

    def _fault(self, at: Mark, what: str) -> None:
        self._faults.append(Fault(at, what))


def _kind(node: Scalar) -> str:
    if node.value is None:
        return "null"
    return "a boolean" if isinstance(node.value, bool) else "a number"


def _mark(event: Any) -> Mark:  # noqa: ANN401  (as above)
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)
