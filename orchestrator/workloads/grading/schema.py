"""The part of JSON Schema (draft 2020-12) that tasks may use, checked in bounded time and without any look-up.

What `jsonschema` would do in unbounded time is not left to it: expressions go to RE2, ``uniqueItems`` compares
canonical texts, references stay inside the schema and never lead back to themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from orchestrator.workloads.grading.fields import MOST_NODES
from orchestrator.workloads.grading.regex import ExpressionError, matcher
from orchestrator.workloads.grading.verdict import UnjudgedError

_PLAIN = frozenset({
    "title", "description", "default", "examples", "$comment", "$schema", "type", "enum", "const", "required",
    "minProperties", "maxProperties", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minLength",
    "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "dependentRequired", "$ref",
})  # fmt: skip
_ONE = frozenset({"additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else"})
_LIST = frozenset({"prefixItems", "allOf", "anyOf", "oneOf"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SchemaError(ValueError):
    """A schema that a task may not use; the message says why."""


def check(schema: Mapping[str, Any]) -> None:
    """Refuses a schema that is wrong, uses other keywords, or could take unbounded time.

    Raises:
        SchemaError: saying where in the schema and why.
    """
    import jsonschema  # noqa: PLC0415  (slow to load, and few commands grade)

    dialect = schema.get("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.rstrip("#") != DIALECT:
        raise SchemaError(f"$schema must be {DIALECT}, or absent")
    _Cost(schema).of(schema, "#", ())
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as err:
        place = "/".join(("#", *(str(part) for part in err.absolute_path)))
        raise SchemaError(f"{place}: {err.message[:200]}") from err


def failure(schema_text: str, value: object) -> str | None:
    """Why the value does not conform to the schema (given as its JSON), or ``None`` when it does.

    Raises:
        UnjudgedError: the schema cannot be applied to the value, for a reason that is not the value's.
    """
    import referencing.exceptions  # noqa: PLC0415

    try:
        found = next(_validator(schema_text).iter_errors(value), None)
    except OverflowError as err:
        return f"cannot be checked: {err}"
    except RecursionError as err:
        raise UnjudgedError("schema and value together are nested too deeply to be checked") from err
    except referencing.exceptions.Unresolvable as err:
        raise UnjudgedError(f"a reference of the schema leads nowhere: {err}") from err
    if found is None:
        return None
    place = "/".join(("", *(str(part)[:40] for part in found.absolute_path))) or "the value"
    rule = json.dumps(found.validator_value)[:60]
    return f"{place}: {found.validator} says {rule}, found {repr(found.instance)[:60]}"


def same(one: object, other: object) -> bool:
    """Whether two JSON values are equal: 1 and 1.0 are, 1 and true are not, the order of keys does not count."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(left, right) for left, right in zip(one, other, strict=True))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


class _Cost:
    """Counts the subschemas that checking one value may visit, references followed."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._known: dict[str, int] = {}

    def of(self, schema: object, place: str, inside: tuple[str, ...]) -> int:
        if isinstance(schema, bool):
            return 1
        if not isinstance(schema, Mapping):
            raise SchemaError(f"{place}: a schema is an object, true or false")
        total = 1
        for key, value in schema.items():
            here = f"{place}/{key}"
            total += sum(self.of(child, where, inside) for child, where in _subschemas(key, value, here))
            if key == "$ref":
                total += self._referred(value, here, inside)
            if key in {"pattern", "patternProperties"}:
                _check_patterns(value, here)
            if total > MOST_NODES:
                raise SchemaError(f"{here}: more than {MOST_NODES:,} subschemas, references followed")
        return total

    def _referred(self, pointer: object, place: str, inside: tuple[str, ...]) -> int:
        if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
            raise SchemaError(f"{place}: a reference must stay inside the schema: #/…")
        if "%" in pointer:
            raise SchemaError(f"{place}: the reference {pointer} has a %, which readers do not agree on; rename it")
        if pointer == "#" or pointer in inside:
            raise SchemaError(f"{place}: the reference {pointer} leads back to itself")
        if pointer not in self._known:
            self._known[pointer] = self.of(self._at(pointer, place), pointer, (*inside, pointer))
        return self._known[pointer]

    def _at(self, pointer: str, place: str) -> object:
        found: Any = self._root
        for part in pointer[2:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                raise SchemaError(f"{place}: there is no {pointer}")
            found = found[name]
        return found


def _subschemas(key: str, value: object, place: str) -> Iterator[tuple[object, str]]:
    if key in _ONE:
        yield value, place
    elif key in _LIST and isinstance(value, list):
        yield from ((child, f"{place}/{number}") for number, child in enumerate(value))
    elif key in _NAMED and isinstance(value, Mapping):
        yield from ((child, f"{place}/{name}") for name, child in value.items())
    elif key not in _PLAIN:
        hint = "; say it with 'pattern'" if key == "format" else ""
        raise SchemaError(f"{place}: the keyword {key!r} is not one that tasks may use{hint}")


def _check_patterns(value: object, place: str) -> None:
    for pattern in [value] if isinstance(value, str) else list(value) if isinstance(value, Mapping) else []:
        try:
            matcher(pattern, full=False)
        except ExpressionError as err:
            raise SchemaError(f"{place}: {err}") from err


@lru_cache(maxsize=1024)
def _validator(schema_text: str) -> Any:  # noqa: ANN401  (the library's class is made at run time)
    import jsonschema  # noqa: PLC0415
    import referencing  # noqa: PLC0415

    own: dict[str, Callable[..., Iterator[Any]]] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional,
        "uniqueItems": _unique,
    }
    kind = jsonschema.validators.extend(jsonschema.Draft202012Validator, own)
    # With a registry of its own, and an empty one, the validator fetches nothing from anywhere.
    return kind(json.loads(schema_text), registry=referencing.Registry())


@lru_cache(maxsize=1024)
def _found(pattern: str) -> Callable[[str], bool]:
    return matcher(pattern, full=False)


def _error(message: str) -> Any:  # noqa: ANN401
    import jsonschema  # noqa: PLC0415

    return jsonschema.ValidationError(message)


def _pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[Any]:
    if isinstance(instance, str) and not _found(pattern)(_encodable(instance)):
        yield _error("the pattern does not match")


def _pattern_properties(
    validator: Any,  # noqa: ANN401
    patterns: Mapping[str, Any],
    instance: object,
    _schema: object,
) -> Iterator[Any]:
    if not isinstance(instance, Mapping):
        return
    for pattern, subschema in patterns.items():
        for key, value in instance.items():
            if _found(pattern)(_encodable(key)):
                yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def _additional(validator: Any, rule: object, instance: object, schema: Mapping[str, Any]) -> Iterator[Any]:  # noqa: ANN401
    if not isinstance(instance, Mapping):
        return
    patterns = [_found(pattern) for pattern in schema.get("patternProperties", {})]
    for key, value in instance.items():
        if key in schema.get("properties", {}) or any(found(_encodable(key)) for found in patterns):
            continue
        if rule is False:
            yield _error("an unexpected key")
        else:
            yield from validator.descend(value, rule, path=key)


def _unique(_validator: object, wanted: bool, instance: object, _schema: object) -> Iterator[Any]:
    if wanted and isinstance(instance, list) and len({_canonical(item) for item in instance}) < len(instance):
        yield _error("two items are equal")


def _canonical(value: object) -> str:
    """Equal texts for equal values: 1.0 is written as 1."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_canonical(item) for item in value) + "]"
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


def _encodable(text: str) -> str:
    """The text without lone surrogates, which JSON can hold and RE2 cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
