"""What of a JSON value must be right: all of it, or the places that the task names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.schema import same

_NOTHING = object()


def read(fields: Fields) -> dict[str, Any]:
    """``equals`` (the whole value) or ``expect`` (values by JSON pointer); at most one of them.

    The result has neither key where the task has neither: it then says nothing on what is right.
    """
    if fields.has("equals") and fields.has("expect"):
        raise fields.refuse("'equals' and 'expect' exclude each other")
    if fields.has("equals"):
        return {"equals": fields.value("equals")}
    if not fields.has("expect"):
        return {}
    places = fields.mapping("expect")
    if not places or not all(place.startswith("/") for place in places):
        raise fields.refuse('\'expect\' must be an object of values by JSON pointer, such as {"/name": "Ada"}')
    return {"expect": dict(places)}


def failure(rules: Mapping[str, Any], value: object) -> str | None:
    """Why the value is not the right one, or ``None`` when it is."""
    if "equals" in rules:
        return None if same(rules["equals"], value) else f"{_shown(value)} where {_shown(rules['equals'])} is right"
    for place, wanted in rules["expect"].items():
        found = _at(value, place)
        if found is _NOTHING:
            return f"{place} is missing"
        if not same(wanted, found):
            return f"{place} is {_shown(found)} where {_shown(wanted)} is right"
    return None


def stated(rules: Mapping[str, Any]) -> bool:
    """Whether the task says what is right."""
    return "equals" in rules or "expect" in rules


def _at(value: Any, pointer: str) -> object:  # noqa: ANN401  (any JSON)
    for part in pointer[1:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 9 and int(name) < len(value):
            value = value[int(name)]
        else:
            return _NOTHING
    found: object = value
    return found


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"
