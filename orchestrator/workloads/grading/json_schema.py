"""Kind ``json``: the answer holds JSON that conforms to a schema, and is right where the task says what is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.workloads.grading import expectation, json_text, schema
from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.verdict import Grade, cut, malformed

KEYS = ("schema", "take", "equals", "expect")
TAKES = ("first", "whole")
"""``first``: the one object or array in the text, with prose around it at most, such as a code fence; ``whole``: the
text is the JSON and nothing else but white space."""
_BRACKETS = {"object": "{", "array": "["}


def read(fields: Fields) -> dict[str, Any]:
    """``schema``; ``take`` (of :data:`TAKES`); ``equals`` or ``expect`` (:mod:`.expectation`)."""
    wanted = dict(fields.mapping("schema"))
    try:
        schema.check(wanted)
    except schema.SchemaError as err:
        raise fields.refuse(f"'schema': {err}") from err
    take = fields.choice("take", TAKES)
    if take == "first" and not _brackets(wanted):
        raise fields.refuse('\'take\' first needs a schema of type object or array; or say "take": "whole"')
    return {"schema": wanted, "take": take, **expectation.read(fields)}


def build(rules: Mapping[str, Any]) -> Callable[[str, str], Grade]:
    """The grading function of the rules that :func:`read` gave."""
    wanted, brackets = json.dumps(rules["schema"]), _brackets(rules["schema"])

    def grade(text: str, finish: str) -> Grade:
        try:
            value = json_text.whole(text) if rules["take"] == "whole" else json_text.sole(text, brackets)
        except json_text.JsonError as err:
            return malformed(f"{err}{cut(finish)}")
        wrong = schema.failure(wanted, value)
        if wrong is not None:
            return malformed(wrong)
        if not expectation.stated(rules):
            return Grade(True, None, "the task asks for a form and does not say what is right")
        wrong = expectation.failure(rules, value)
        return Grade(True, wrong is None, wrong or "", covers=rules["take"] == "whole")

    return grade


def _brackets(wanted: Mapping[str, Any]) -> str:
    """What a value of the schema's type, or of one of its types, may begin with."""
    types = wanted.get("type")
    return "".join(_BRACKETS.get(str(one), "") for one in (types if isinstance(types, list) else [types]))
