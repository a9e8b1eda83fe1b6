"""What the matrix tests share: two made-up adapters' schemas, and a small valid document."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.matrix.load import load_matrix
from orchestrator.schema.cell import MethodKind
from orchestrator.schema.errors import MatrixError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.matrix.types import Matrix


class Placement(StrEnum):
    GPU = "gpu"
    CPU = "cpu"


class ServerOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    threads: int = Field(default=4, ge=1)
    flash: Literal["on", "off"] = "off"
    place: Placement = Placement.CPU
    limits: int | str | None = None


class LibraryOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    step: int


class DraftOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    p_min: float = 0.25


class OtherDraftOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    eager: bool = False


@dataclass(frozen=True)
class Schemas:
    engine_options: type[BaseModel]
    method_options: Mapping[MethodKind, type[BaseModel]]


SCHEMAS = {
    "server": Schemas(
        ServerOptions, {MethodKind.DRAFT: DraftOptions, MethodKind.MTP: DraftOptions, MethodKind.NGRAM: DraftOptions}
    ),
    "library": Schemas(LibraryOptions, {MethodKind.DRAFT: OtherDraftOptions}),
}

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "name": "sample",
    "engines": {
        "srv": {"adapter": "server", "binary": "srv-bin", "options": {"threads": 2}},
        "lib": {"adapter": "library", "python": "~/venv/bin/python", "options": {"step": 8}},
    },
    "models": {
        "m": {
            "same_target": "m",
            "srv": {"target": "files/m.gguf", "drafts": {"small": "files/d.gguf"}},
            "lib": {"target": "demo:m", "drafts": {"small": "/abs/d"}},
        },
        "mtp-m": {"srv": {"target": "files/x.gguf", "mtp": "inside"}},
    },
    "methods": {
        "d4": {"method": "draft", "draft": "small", "n_max": 4},
        "mtp2": {"method": "mtp", "n_max": 2},
        "ng": {"method": "ngram", "n_max": 8},
    },
    "sampling": {"greedy": {"temperature": 0}, "warm": {"temperature": 0.8, "top_p": 0.95, "seed": 11}},
    "workloads": {"short": {"prompts": "demo-short", "max_tokens": 64}},
    "matrix": {
        "axes": {
            "engine": ["srv", "lib"],
            "model": ["m"],
            "method": ["d4"],
            "sampling": ["greedy", "warm"],
            "workload": ["short"],
        },
        "include": [{"engine": "srv", "model": "mtp-m", "method": "mtp2", "sampling": "greedy", "workload": "short"}],
    },
}


def changed(path: str, value: object = ...) -> dict[str, Any]:
    """The sample with one value set, or taken out. Keys are split at slashes, since names may hold dots."""
    document = copy.deepcopy(DOCUMENT)
    *parents, last = path.split("/")
    node: Any = document
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
    if value is ...:
        del node[last]
    elif isinstance(node, list):
        node[int(last)] = value
    else:
        node[last] = value
    return document


def text_of(document: object) -> str:
    return yaml.safe_dump(document, sort_keys=False)


def load_text(folder: Path, text: str | bytes, **more: Any) -> Matrix:
    path = folder / "matrix.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_matrix(path, SCHEMAS, **more)


def load(folder: Path, document: object, **more: Any) -> Matrix:
    return load_text(folder, text_of(document), **more)


def problems(folder: Path, text: str | bytes, **more: Any) -> list[str]:
    """The faults of a text, with the folder's own path taken away."""
    try:
        load_text(folder, text, **more)
    except MatrixError as err:
        return [problem.replace(f"{folder}/", "") for problem in err.problems]
    return []
