"""Writes pins into the text of a matrix file, and leaves every other byte of it as it was.

Only the spans of the values are replaced: a round trip through any YAML emitter moves comments that are aligned, and
re-wraps flow mappings (``docs/decisions/0010-pins-by-span.md``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from orchestrator.matrix.document import plain
from orchestrator.matrix.yaml_tree import Mapping as TreeMapping
from orchestrator.matrix.yaml_tree import Node as TreeNode
from orchestrator.matrix.yaml_tree import Scalar as TreeScalar
from orchestrator.matrix.yaml_tree import compose
from orchestrator.schema.errors import SpecmatrixError

Pins = Mapping[str, Mapping[str, str]]

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]*")
_RESERVED = re.compile(r"true|false|yes|no|on|off|null|y|n", re.IGNORECASE)


class PinError(SpecmatrixError):
    """A pin that cannot be written without touching something else."""


@dataclass(slots=True)
class _Node:
    """A piece of the text by its first character and the one after its last."""

    kind: str
    start: int
    end: int
    anchor: str | None = None
    flow: bool = False
    text: str = ""
    entries: list[tuple[_Node, _Node]] = field(default_factory=list)

    def get(self, key: str) -> tuple[_Node, _Node] | None:
        return next((pair for pair in self.entries if pair[0].text == key), None)


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def with_pins(text: str, pins: Pins) -> str:
    """The text with ``engines.*.pin`` of the named engines as given, in the style in which each was written.

    Keys that a pin has already keep their place and comments; further ones are added behind them.

    Args:
        text: a matrix file that the loader accepts.
        pins: by engine, every key and value that its pin shall have.

    Raises:
        PinError: a pin is shared through an anchor, names a key for which there is no value, or cannot be edited in
            place; the text would have to be changed elsewhere.
    """
    events = list(yaml.parse(text, Loader=yaml.SafeLoader))
    shared = {str(event.anchor) for event in events if isinstance(event, yaml.AliasEvent)}
    root = _read(iter(events[2:]))
    section = root.get("engines")
    edits: list[_Edit] = []
    for name, pin in pins.items():
        entry = section[1].get(name) if section is not None else None
        if section is None or entry is None:
            raise PinError(f"engines.{name}: not in the file")
        for node in (section[1], entry[1]):
            _refuse_shared(name, node, shared)
        edits += _edits(text, name, entry[1], pin, shared)
    changed = text
    for edit in sorted(edits, key=lambda one: one.start, reverse=True):
        changed = changed[: edit.start] + edit.text + changed[edit.end :]
    _check(text, changed, pins)
    return changed


def _edits(text: str, name: str, engine: _Node, pin: Mapping[str, str], shared: set[str]) -> Iterator[_Edit]:
    found = engine.get("pin")
    if found is None:
        yield _new_key(text, engine, pin)
        return
    node = found[1]
    if node.kind == "alias" or not node.entries:
        if node.kind != "alias":
            _refuse_shared(name, node, shared)
        yield _Edit(node.start, node.end, _flow(pin))
        return
    _refuse_shared(name, node, shared)
    for key, value in node.entries:
        wanted = pin.get(key.text)
        if wanted is None:
            raise PinError(f"engines.{name}.pin.{key.text}: this engine does not tell it; take the key out first")
        if value.kind == "alias" or value.text != wanted:
            if value.kind != "alias":
                _refuse_shared(name, value, shared)
            yield _Edit(value.start, value.end, _scalar(wanted))
    more = [(key, value) for key, value in pin.items() if node.get(key) is None]
    if not more:
        return
    last = _last(node)
    if node.flow:
        yield _Edit(last, last, "".join(f", {key}: {_scalar(value)}" for key, value in more))
    else:
        at, before, after = _line_end(text, last)
        indent = _indent(text, node.entries[0][0].start)
        lines = [f"{indent}{key}: {_scalar(value)}" for key, value in more]
        yield _Edit(at, at, before + (after or before or "\n").join(lines) + after)


def _new_key(text: str, engine: _Node, pin: Mapping[str, str]) -> _Edit:
    """A pin where there was none: behind the adapter, which every engine has."""
    if engine.flow:
        last = _last(engine)
        return _Edit(last, last, f", pin: {_flow(pin)}")
    key, value = engine.get("adapter") or engine.entries[0]
    at, before, after = _line_end(text, value.end)
    return _Edit(at, at, f"{before}{_indent(text, key.start)}pin: {_flow(pin)}{after}")


def _line_end(text: str, index: int) -> tuple[int, str, str]:
    """Where the next line begins, and what must stand before and after a line that is put there."""
    newline = text.find("\n", index)
    if newline < 0:
        return len(text), "\r\n" if "\r\n" in text else "\n", ""
    return newline + 1, "", "\r\n" if text[:newline].endswith("\r") else "\n"


def _indent(text: str, index: int) -> str:
    begin = text.rfind("\n", 0, index) + 1
    before = text[begin:index]
    return before if not before.strip() else " " * len(before)


def _last(node: _Node) -> int:
    """Behind the last character of a mapping's last value; a block mapping's own end lies beyond its comments."""
    value = node.entries[-1][1]
    if value.kind == "map" and not value.flow and value.entries:
        return _last(value)
    return value.end


def _refuse_shared(name: str, node: _Node, shared: set[str]) -> None:
    if node.kind == "alias" or (node.anchor is not None and node.anchor in shared):
        raise PinError(
            f"engines.{name}: its text is shared with another place by the anchor {node.anchor!r}, and a pin written "
            "there would change both; write it out for this engine, then pin again"
        )


def _flow(pin: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in pin.items()) + "}"


def _scalar(value: str) -> str:
    if _PLAIN.fullmatch(value) and not _RESERVED.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _read(events: Iterator[Any]) -> _Node:
    return _node(next(events), events)


def _node(event: Any, events: Iterator[Any]) -> _Node:  # noqa: ANN401  (PyYAML's events have no common typed base)
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return _Node("alias", start, end, event.anchor)
    if isinstance(event, yaml.ScalarEvent):
        return _Node("scalar", start, end, event.anchor, text=event.value)
    closing = yaml.MappingEndEvent if isinstance(event, yaml.MappingStartEvent) else yaml.SequenceEndEvent
    kind = "map" if closing is yaml.MappingEndEvent else "list"
    found = _Node(kind, start, end, event.anchor, flow=bool(event.flow_style))
    inner: Any = next(events)
    while not isinstance(inner, closing):
        key = _node(inner, events)
        if kind == "map":
            found.entries.append((key, _node(next(events), events)))
        inner = next(events)
    found.end = inner.end_mark.index if inner.end_mark is not None else start
    return found


def _check(before: str, after: str, pins: Pins) -> None:
    """The new text says what the old one said, but for the pins, which are as wanted: else nothing is written."""
    old, new = compose(before)[0], compose(after)[0]
    for name, pin in pins.items():
        if _pin_of(new, name) != dict(pin):
            raise PinError(f"engines.{name}.pin: cannot be edited where it stands; write it by hand: {_flow(pin)}")
    if _without_pins(old, pins) != _without_pins(new, pins):
        raise PinError("the pins cannot be written without changing something else; write them by hand")


def _pin_of(root: TreeNode, engine: str) -> dict[str, str | None]:
    node: TreeNode | None = root
    for key in ("engines", engine, "pin"):
        node = node.entries[key][1] if isinstance(node, TreeMapping) and key in node.entries else None
    if not isinstance(node, TreeMapping):
        return {}
    return {key: value.text if isinstance(value, TreeScalar) else None for key, (_, value) in node.entries.items()}


def _without_pins(root: TreeNode, pins: Pins) -> Any:  # noqa: ANN401  (plain data)
    found = plain(root)
    for name in pins:
        found["engines"][name].pop("pin", None)
    return found
