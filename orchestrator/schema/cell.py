"""The cell: one point of the matrix with every default resolved."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from orchestrator.schema.shards import shards

TWIN_SUFFIX = "~twin"
CHECK_SUFFIX = "~check"
"""Ends the id of a distribution check; the rest is the id of the cell whose answers it judges."""


class MethodKind(StrEnum):
    """How draft tokens are made."""

    NONE = "none"
    DRAFT = "draft"
    MTP = "mtp"
    NGRAM = "ngram"


class EosPolicy(StrEnum):
    """What happens at end of text: stop there, emit it and go on, or forbid the token (three different texts)."""

    STOP = "stop"
    CONTINUE = "continue"
    MASK = "mask"


class Role(StrEnum):
    """A cell's part in its block."""

    BASELINE = "baseline"
    SPECULATIVE = "speculative"
    TWIN = "twin"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """An engine as the matrix names it. ``binary``/``python`` are absolute paths, bare command names or ``None``."""

    name: str
    adapter: str
    binary: str | None = None
    python: str | None = None
    pin: Mapping[str, str] = field(default_factory=dict)
    allow_unpinned: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A target as one engine sees it: absolute paths of the files that engine needs."""

    name: str
    target: str
    same_target: str | None = None
    weights_equivalent: bool = False
    drafts: Mapping[str, str] = field(default_factory=dict)
    mtp: str | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A way to speculate. ``n_max`` is the draft length K in tokens; ``None`` for kind ``none``."""

    name: str
    kind: MethodKind
    n_max: int | None = None
    draft: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Every sampler setting, stated.

    ``top_k`` 0, ``top_p`` 1, ``min_p`` 0, penalties 1/0/0 and ``xtc_probability`` 0 mean off.
    """

    name: str
    temperature: float
    seed: int
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1

    @property
    def greedy(self) -> bool:
        """Whether the highest-scoring token is always taken."""
        return self.temperature == 0


@dataclass(frozen=True, slots=True)
class Workload:
    """A prompt set with its output limit (tokens) and length policy."""

    name: str
    prompts: str
    max_tokens: int
    eos: EosPolicy
    format: str | None = None
    """The shape of the user's file, where the matrix says it; ``None`` lets the file tell."""
    template: Literal["raw", "chat"] = "raw"
    """Whether a prompt goes to the model as it stands, or as a conversation in the model's own chat template."""
    system: str | None = None
    """A system prompt in place of the prompts' own; of chat only."""
    thinking: bool | None = None
    """Whether the template asks the model to think; ``None`` leaves it to the template. Of chat only."""

    cache: Literal["cold", "warm", "shared-prefix"] = "cold"
    """What of a prompt the engine may have in its cache: nothing; the same prompt asked just before; a common start."""
    prefix: str | None = None
    """Text that stands before every raw prompt."""
    trials: int | None = None
    """Measured requests per session in place of the run's own number."""

    @property
    def source(self) -> tuple[str, str | None]:
        """What the reader of prompts is asked for: the set's name or path, and its format."""
        return self.prompts, self.format


@dataclass(frozen=True, slots=True)
class Cell:
    """Engine × model × method × sampling × workload.

    ``id`` is what the user types; ``fingerprint(...)`` is what its numbers depend on.
    """

    engine: EngineConfig
    model: ModelConfig
    method: Method
    sampling: Sampling
    workload: Workload
    twin: bool = False

    @property
    def id(self) -> str:
        """The readable path, e.g. ``llama.cpp/tiny/draft-k4/greedy/short``."""
        parts = (self.engine.name, self.model.name, self.method.name, self.sampling.name, self.workload.name)
        return "/".join(parts) + (TWIN_SUFFIX if self.twin else "")

    @property
    def block_id(self) -> str:
        """The block: all cells that share a baseline."""
        return f"{self.engine.name}/{self.model.name}/{self.sampling.name}/{self.workload.name}"

    @property
    def role(self) -> Role:
        """Baseline, its A/A twin, or a speculative cell."""
        if self.twin:
            return Role.TWIN
        return Role.BASELINE if self.method.kind is MethodKind.NONE else Role.SPECULATIVE

    @property
    def draft_path(self) -> str | None:
        """The draft model's path, where the method has one."""
        return self.model.drafts.get(self.method.draft) if self.method.draft is not None else None

    @property
    def files(self) -> tuple[str, ...]:
        """Every model file or folder that this cell opens; of a split GGUF all of its files."""
        extra = (self.draft_path, self.model.mtp if self.method.kind is MethodKind.MTP else None)
        named = (self.model.target, *(path for path in extra if path is not None))
        return tuple(file for path in named for file in shards(path))

    def settings(self) -> dict[str, Any]:
        """The whole cell as plain data, for records and hashing."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class CheckCell:
    """A distribution check of a speculative cell: a cell of kind ``check``, selected, run and rerun by its own id.

    Args:
        cell: whose answers are judged.
        baseline: what they are judged against.
        preset: ``screen`` or ``certify``.
    """

    cell: Cell
    baseline: Cell
    preset: str

    @property
    def id(self) -> str:
        """The judged cell's id with ``~check`` behind it."""
        return self.cell.id + CHECK_SUFFIX

    @property
    def block_id(self) -> str:
        """The block of the judged cell: its checks share the arms without speculation."""
        return self.cell.block_id


def fingerprint(cell: Cell, facts: Mapping[str, str]) -> str:
    """A 16-digit hash of everything that could move the cell's numbers.

    Paths do not count, since the same file elsewhere gives the same numbers: the caller passes the hashes of
    the files in ``cell.files`` (and of the binary) among the facts instead.

    Args:
        cell: the resolved cell. Its names count: they are its id.
        facts: further facts by name: hashes of model files and prompts, the engine's identity, run settings.
    """
    settings = cell.settings()
    for path_key in ("binary", "python", "pin", "allow_unpinned"):
        settings["engine"].pop(path_key)
    for path_key in ("target", "drafts", "mtp"):
        settings["model"].pop(path_key)
    settings["workload"].pop("trials")  # the caller says how many there are with the run's settings
    for path_key in ("prompts", "format"):  # what was read counts, by its hash, not where and how it was written
        settings["workload"].pop(path_key)
    if cell.workload.template == "raw":  # older runs have no word of it
        for chat_key in ("template", "system", "thinking"):
            settings["workload"].pop(chat_key)
    if cell.workload.cache == "cold":
        settings["workload"].pop("cache")
    if cell.workload.prefix is None:
        settings["workload"].pop("prefix")
    if cell.sampling.xtc_probability == 0:  # without it the threshold moves nothing, and older runs have neither
        for off in ("xtc_probability", "xtc_threshold"):
            settings["sampling"].pop(off)
    body = {"cell": settings, "facts": dict(facts)}
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
