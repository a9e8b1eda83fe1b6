"""Validates a part of the document by a model, and turns each complaint into a sentence at its place in the text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from orchestrator.matrix.document import described, listed, plain, suggestion
from orchestrator.matrix.yaml_tree import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

    from orchestrator.matrix.document import Document, TreePath

NO_VALUE = "has no value; write one, or take the key out"

Model = TypeVar("Model", bound=BaseModel)

_WORDS = {"string_too_short": "must not be empty", "too_short": "must hold at least one"}
_TEXT_ERRORS = frozenset({"string_type", "list_type", "enum", "literal_error"})


def validated(
    document: Document, path: TreePath, model: type[Model], data: object = None, opening: str = ""
) -> Model | None:
    """The part at ``path`` as ``model``, or ``None`` when it has faults other than unknown keys.

    Args:
        document: the file; it gets to know every fault.
        path: which part.
        model: a strict model.
        data: the part as plain data where it differs from the tree's own, or does not stand in the tree.
        opening: what each sentence begins with.
    """
    node = document.node(path)
    if data is None:
        data = plain(node) if node is not None else {}
    try:
        # JSON mode means: what a text file can say. Strict Python mode would refuse a list for a tuple, a word for
        # an enum.
        return model.model_validate_json(json.dumps(data))
    except ValidationError as err:
        errors = err.errors(include_url=False)
        for error in errors:
            _explain(document, path, model, error, opening)
        unknown = {error["loc"][0] for error in errors if error["type"] == "extra_forbidden" and len(error["loc"]) == 1}
        if len(unknown) < len(errors) or not isinstance(data, dict):
            return None
        # Nothing but keys that are not known: the rest can still be checked against other parts of the file.
        return model.model_validate_json(json.dumps({key: data[key] for key in data if key not in unknown}))


def allowed_keys(model: type[BaseModel], path: TreePath) -> tuple[str, ...]:
    """The keys that ``model`` allows at ``path`` inside itself, in the order of its fields."""
    schema = model.model_json_schema()
    found = [schema]
    for part in path:
        found = [child for one in found for child in _children(schema, one, part)]
    flat = [one for each in found for one in _flat(schema, each)]
    return tuple(dict.fromkeys(key for one in flat for key in one.get("properties", {})))


def _explain(document: Document, base: TreePath, model: type[BaseModel], error: ErrorDetails, opening: str) -> None:
    path = _tree_path(document, base, error)
    kind, node, at = error["type"], document.node(path), None
    if kind == "missing":
        what = f'missing key "{error["loc"][-1]}"'
    elif kind == "extra_forbidden":
        keys = allowed_keys(model, path[len(base) : -1])
        key = str(path[-1])
        what = f'unknown key "{key}"{suggestion(key, keys)}; allowed: {listed(keys)}'
        at = document.key_mark(path)
    elif kind in {"literal_error", "enum"}:
        choices = re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
        word = node.text if isinstance(node, Scalar) else ""
        what = f"found {described(node)}{suggestion(word, choices)}; allowed: {listed(choices)}"
    elif isinstance(node, Scalar) and node.plain and node.value is None:
        what = NO_VALUE
    else:
        what = _sentence(error, node)
    document.fault(path, opening + what, at=at)


def _sentence(error: ErrorDetails, node: Any) -> str:  # noqa: ANN401  (a node, or None)
    message = _WORDS.get(error["type"], str(error["msg"]))
    for opening in ("Value error, ", "Assertion failed, "):
        message = message.removeprefix(opening)
    message = message.replace("Input should be", "must be").replace("Input should", "must")
    message = message.replace("a valid string", "a text").replace("a valid integer", "a whole number")
    message = message.replace("a valid number", "a number").replace("a valid boolean", "true or false")
    message = message.replace("a valid array", "a list").replace("a valid list", "a list")
    message = message.replace("an object", "a mapping").replace("a valid dictionary", "a mapping")
    sentence = f"{message}; found {described(node)}"
    needs_quotes = isinstance(node, Scalar) and not isinstance(node.value, str) and not node.old_boolean
    if needs_quotes and node.text and error["type"] in _TEXT_ERRORS:
        sentence += f' (for a text, write "{node.text}" in quotes)'
    return sentence


def _tree_path(document: Document, base: TreePath, error: ErrorDetails) -> TreePath:
    """Pydantic's location without what is not in the file: labels of unions, and the key that is missing."""
    path = base
    for part in error["loc"]:
        node = document.node(path)
        known = (isinstance(node, Mapping) and part in node.entries) or (
            isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items)
        )
        if known:
            path = (*path, part)
    return path


def _children(root: dict[str, Any], schema: dict[str, Any], part: str | int) -> Iterator[dict[str, Any]]:
    for one in _flat(root, schema):
        if isinstance(part, int):
            if isinstance(one.get("items"), dict):
                yield one["items"]
        elif part in one.get("properties", {}):
            yield one["properties"][part]
        elif isinstance(one.get("additionalProperties"), dict):
            yield one["additionalProperties"]


def _flat(root: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema with its references and alternatives resolved."""
    if "$ref" in schema:
        yield from _flat(root, root["$defs"][schema["$ref"].rsplit("/", 1)[1]])
        return
    yield schema
    for key in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(key, []):
            if isinstance(one, dict):
                yield from _flat(root, one)
