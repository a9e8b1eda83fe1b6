"""Records to lines and back: refuses what a newer version wrote, migrates what an older one did."""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import SCHEMA_VERSION, Record, RunHeader


@cache
def _records() -> TypeAdapter[Record]:
    return TypeAdapter(Annotated[Record, Field(discriminator="kind")])


@cache
def _headers() -> TypeAdapter[RunHeader]:
    return TypeAdapter(RunHeader)


def dump_record(record: Record) -> str:
    """One line of JSON without a newline inside, with the newline at its end."""
    return _records().dump_json(record).decode() + "\n"


def load_record(line: str, where: str) -> Record:
    """The record of one line.

    Raises:
        StoreError: naming ``where``, when the line is not a record of this schema version.
    """
    try:
        return _records().validate_json(line)
    except ValidationError as err:
        raise StoreError(f"{where}: not a journal line of schema {SCHEMA_VERSION}: {_first(err)}") from err


def dump_header(header: RunHeader) -> str:
    """``run.json`` as indented text."""
    return _headers().dump_json(header, indent=1).decode() + "\n"


def load_header(text: str, where: str) -> RunHeader:
    """The header of a run.

    Raises:
        StoreError: the text is not JSON, is damaged, or was written by a newer version.
    """
    try:
        raw: Any = json.loads(text)
    except ValueError as err:
        raise StoreError(f"{where}: not JSON ({err}); the run directory is damaged") from err
    version = raw.get("schema") if isinstance(raw, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise StoreError(
            f"{where}: written with schema {version}, this version reads up to {SCHEMA_VERSION}; "
            "use the newer specmatrix"
        )
    try:
        return _headers().validate_python(raw)
    except ValidationError as err:
        raise StoreError(f"{where}: {_first(err)}") from err


def _first(err: ValidationError) -> str:
    problem = err.errors()[0]
    return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
