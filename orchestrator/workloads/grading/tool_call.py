"""Kind ``tool_call``: the answer is one call of a tool that the task knows, and the right one where it says which."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.workloads.grading import expectation, json_text, schema
from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.verdict import Grade, cut, malformed

KEYS = ("tools", "name", "formats", "equals", "expect")
FORMATS = ("tagged", "listed", "json")
"""``tagged``: ``<tool_call>{…}</tool_call>``; ``listed``: ``[TOOL_CALLS][{…}]``; ``json``: the text's one object,
itself a call or with ``tool_calls``, a list of one, or such a list itself. A call is an object with ``name`` and
``arguments`` (or ``parameters``), or with a ``function`` that has them; arguments are an object, or a text with one."""
_OPEN, _CLOSE, _LISTED = "<tool_call>", "</tool_call>", "[TOOL_CALLS]"


def read(fields: Fields) -> dict[str, Any]:
    """``tools`` (schema of the arguments by name), ``formats``, ``name`` (the right tool), ``equals`` or ``expect``."""
    tools = fields.mapping("tools")
    if not tools:
        raise fields.refuse("'tools' must name at least one tool, with the schema of its arguments")
    for name, wanted in tools.items():
        if not isinstance(wanted, Mapping):
            raise fields.refuse(f"'tools': {name}: expected the schema of its arguments")
        try:
            schema.check(wanted)
        except schema.SchemaError as err:
            raise fields.refuse(f"'tools': {name}: {err}") from err
    right_tool = fields.maybe_text("name")
    if right_tool is not None and right_tool not in tools:
        raise fields.refuse(f"'name' {right_tool!r} is none of the tools: {', '.join(tools)}")
    right = expectation.read(fields)
    if right and right_tool is None:
        raise fields.refuse("'name' must say which tool's arguments 'equals' or 'expect' are about")
    formats = fields.choices("formats", FORMATS, FORMATS)
    if not formats:
        raise fields.refuse(f"'formats' must name at least one of {', '.join(FORMATS)}")
    return {"tools": dict(tools), "name": right_tool, "formats": formats, **right}


def build(rules: Mapping[str, Any]) -> Callable[[str, str], Grade]:
    """The grading function of the rules that :func:`read` gave."""
    tools = {name: json.dumps(wanted) for name, wanted in rules["tools"].items()}

    def grade(text: str, finish: str) -> Grade:
        try:
            name, arguments = _call(text, rules["formats"])
        except json_text.JsonError as err:
            return malformed(f"{err}{cut(finish)}")
        if name not in tools:
            return malformed(f"there is no tool {name[:40]!r}")
        wrong = schema.failure(tools[name], arguments)
        if wrong is not None:
            return malformed(f"arguments of {name}: {wrong}")
        if rules["name"] is None:
            return Grade(True, None, "the task asks for a form and does not say what is right")
        if name != rules["name"]:
            return Grade(True, False, f"calls {name} where {rules['name']} is right")
        wrong = expectation.failure(rules, arguments) if expectation.stated(rules) else None
        return Grade(True, wrong is None, wrong or "")

    return grade


def _call(text: str, formats: list[str]) -> tuple[str, Mapping[str, Any]]:
    """Name and arguments of the one call in the text.

    Raises:
        JsonError: there is none, more than one, or one that cannot be read.
    """
    if "tagged" in formats and _OPEN in text:
        _once(text.count(_OPEN))
        inner, close, _ = text.partition(_OPEN)[2].partition(_CLOSE)
        if not close:
            raise json_text.JsonError(f"{_OPEN} is not closed")
        return _parts(json_text.whole(inner))
    if "listed" in formats and _LISTED in text:
        _once(text.count(_LISTED))
        calls = json_text.sole(text.partition(_LISTED)[2], "[")
        _once(len(calls))
        return _parts(calls[0])
    if "json" not in formats:
        raise json_text.JsonError(f"there is no call in the format {' or '.join(formats)}")
    value = json_text.sole(text)
    listed = value if isinstance(value, list) else value.get("tool_calls")
    if isinstance(listed, list):
        _once(len(listed))
        value = listed[0]
    return _parts(value)


def _once(count: int) -> None:
    if count != 1:
        raise json_text.JsonError(f"there are {count} calls where one is asked for")


def _parts(call: object) -> tuple[str, Mapping[str, Any]]:
    if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
        call = call["function"]
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise json_text.JsonError("the call has no name")
    given = [key for key in ("arguments", "parameters") if key in call]
    if len(given) != 1:
        raise json_text.JsonError("a call has either arguments or parameters")
    arguments = call[given[0]]
    if isinstance(arguments, str):
        arguments = json_text.whole(arguments)
    if not isinstance(arguments, Mapping):
        raise json_text.JsonError(f"the {given[0]} are not an object")
    return call["name"], arguments
