"""The JSON Schema (draft 2020-12) of a matrix file, for editors.

Usage: python -m orchestrator.matrix.json_schema [--check]

It knows the shape of the file and every adapter's options; names that one section defines and another uses it cannot
know, so a file that it accepts may still be refused by the loader.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from orchestrator.matrix.shape import MatrixShape
from orchestrator.matrix.template import SCHEMA
from orchestrator.matrix.types import OptionSchemas
from orchestrator.schema.cell import MethodKind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODE: JsonSchemaMode = "validation"


def build_schema(schemas: Mapping[str, OptionSchemas]) -> dict[str, Any]:
    """The schema with the options of these adapters.

    Args:
        schemas: what each adapter lets a user set, by the adapter's name; without any, options are free.
    """
    # Models of two adapters may have one name; generated together, each gets a reference of its own.
    models: list[type[BaseModel]] = [MatrixShape, *_option_models(schemas)]
    references, generated = models_json_schema([(model, _MODE) for model in models])
    definitions = generated["$defs"]
    matrix = definitions.pop("MatrixShape")
    _add_engine_options(definitions["EngineShape"], schemas, references)
    _add_method_options(definitions["MethodShape"], definitions, schemas, references)
    schema = {**matrix, "$defs": definitions}
    for name, definition in definitions.items():
        if name.endswith("Shape"):
            _refuse_null(definition)
        if "enum" in definition:
            definition.pop("description", None)  # written for programmers; the key that uses it has one for users
    return {"$schema": DIALECT, "title": "specmatrix matrix", **_without_titles(schema)}


def schema_text(schemas: Mapping[str, OptionSchemas]) -> str:
    """The schema as the file holds it."""
    return json.dumps(build_schema(schemas), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _option_models(schemas: Mapping[str, OptionSchemas]) -> list[type[BaseModel]]:
    found = [model for one in schemas.values() for model in (one.engine_options, *one.method_options.values())]
    return list(dict.fromkeys(found))


def _add_engine_options(engine: dict[str, Any], schemas: Mapping[str, OptionSchemas], references: Any) -> None:  # noqa: ANN401  (pydantic's mapping, keyed by model and mode)
    if not schemas:
        return
    # Other packages may bring adapters, so a name that is not listed is not wrong here.
    adapter = engine["properties"]["adapter"]
    engine["properties"]["adapter"] = {
        "description": adapter["description"],
        "anyOf": [{"enum": sorted(schemas)}, {"type": "string"}],
    }
    engine["allOf"] = [
        {
            "if": {"properties": {"adapter": {"const": name}}, "required": ["adapter"]},
            "then": {
                "properties": {"options": references[one.engine_options, _MODE]},
                "required": ["options"] if _needs_values(one.engine_options) else [],
            },
        }
        for name, one in sorted(schemas.items())
    ]


def _add_method_options(
    method: dict[str, Any],
    definitions: dict[str, Any],
    schemas: Mapping[str, OptionSchemas],
    references: Any,  # noqa: ANN401  (as above)
) -> None:
    branches = []
    for kind in (kind for kind in MethodKind if kind is not MethodKind.NONE):
        models = [one.method_options[kind] for one in schemas.values() if kind in one.method_options]
        if not models:
            continue
        # Which adapter a method meets is decided elsewhere in the file: any option that one of them knows may stand.
        options: dict[str, list[Any]] = {}
        for model in dict.fromkeys(models):
            for key, value in _definition(references[model, _MODE], definitions).get("properties", {}).items():
                if value not in options.setdefault(key, []):
                    options[key].append(value)
        properties = {key: values[0] if len(values) == 1 else {"anyOf": values} for key, values in options.items()}
        branches.append(
            {
                "if": {"properties": {"method": {"const": kind.value}}, "required": ["method"]},
                "then": {"properties": {"options": {"properties": properties, "additionalProperties": False}}},
            }
        )
    if branches:
        method["allOf"] = branches


def _definition(reference: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in reference:
        return reference
    found: dict[str, Any] = definitions[reference["$ref"].rsplit("/", 1)[1]]
    return found


def _refuse_null(definition: dict[str, Any]) -> None:
    """Absent is written by leaving the key out: the loader refuses a key without a value."""
    for value in definition.get("properties", {}).values():
        kinds = [kind for kind in value.get("anyOf", []) if kind != {"type": "null"}]
        if kinds and len(kinds) < len(value["anyOf"]):
            del value["anyOf"]
            value.update(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})
            if value.get("default", ...) is None:
                del value["default"]


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the titles made from names of classes and fields: editors show them, and they say nothing."""

    def stripped(value: Any) -> Any:  # noqa: ANN401  (any part of a schema)
        if isinstance(value, dict):
            kept = {key: item for key, item in value.items() if key != "title" or not isinstance(item, str)}
            return {key: stripped(item) for key, item in kept.items()}
        return [stripped(item) for item in value] if isinstance(value, list) else value

    found: dict[str, Any] = stripped(schema)
    return found


def _needs_values(model: type[BaseModel]) -> bool:
    return any(field.is_required() for field in model.model_fields.values())


def _main(arguments: list[str]) -> int:
    try:
        # By name: the registry is on a floor above this one, and only this command, run by hand, looks up there.
        registry = importlib.import_module("orchestrator.registry")
        # Only the built-in ones: the shipped file must not depend on what else is installed where it is made.
        adapters: Mapping[str, OptionSchemas] = {name: registry.adapter(name) for name in registry.BUILT_IN}
    except ImportError as err:
        sys.stderr.write(f"adapters cannot be loaded ({err}): the schema leaves their options free\n")
        adapters = {}
    text = schema_text(adapters)
    if arguments == ["--check"]:
        current = SCHEMA.exists() and SCHEMA.read_text(encoding="utf-8") == text
        if not current:
            sys.stderr.write(f"{SCHEMA} is out of date; run python -m orchestrator.matrix.json_schema\n")
        return 0 if current else 1
    SCHEMA.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
