"""Options of the llama.cpp adapters: strict schemas, every default stated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.schema.cell import Cell, Method, MethodKind

SPEC_TYPES: Mapping[MethodKind, str] = {
    MethodKind.NONE: "none",
    MethodKind.DRAFT: "draft-simple",
    MethodKind.MTP: "draft-mtp",
    MethodKind.NGRAM: "ngram-simple",
}
"""llama.cpp's own name of each method's drafter (``--spec-type``)."""

DEFAULT_DRAFT_LENGTH = 3
DEFAULT_NGRAM_LENGTH = 48

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LlamaOptions(_Strict):
    """``engines.*.options`` of both llama.cpp paths. Every arm of a block runs with the same ones."""

    threads: int | None = Field(
        default=None, ge=1, le=1024, description="CPU threads for generation and prefill; engine's own choice if unset."
    )
    context: int = Field(
        default=4096, ge=0, description="Context size in tokens (0: the model's own, which can need much memory)."
    )
    gpu_layers: int | None = Field(
        default=None, ge=0, description="Layers on the GPU, target and draft; engine's own choice if unset."
    )
    flash_attention: Literal["auto", "on", "off"] = Field(default="auto", description="Flash attention.")
    batch: int = Field(default=2048, ge=1, description="Logical batch size in tokens (prefill).")
    ubatch: int = Field(default=512, ge=1, description="Physical batch size in tokens (prefill).")
    cache_type_k: CacheType = Field(default="f16", description="Number format of the target's K cache.")
    cache_type_v: CacheType = Field(default="f16", description="Number format of the target's V cache.")
    mmap: bool = Field(default=True, description="Map the model file; false reads it into memory of the process.")


class NoOptions(_Strict):
    """Method ``none`` has no options."""


class DraftOptions(_Strict):
    """Options of the methods ``draft`` and ``mtp``."""

    acceptance: Literal["greedy", "probabilistic"] = Field(
        default="greedy",
        description="Judging above temperature 0: 'greedy' keeps a draft token when the target samples the same one; "
        "'probabilistic' is rejection sampling.",
    )
    p_min: float = Field(
        default=0.0, ge=0.0, le=1.0,
        description="Drafting stops when the drafter's best token is less likely than this.",
    )
    n_min: int = Field(default=0, ge=0, description="Shorter drafts are dropped unjudged, and appear in no counter.")


class NgramOptions(_Strict):
    """Options of the method ``ngram`` (llama.cpp's ``ngram-simple``)."""

    size_n: int = Field(default=12, ge=1, le=1024, description="Length of the n-gram looked up in the text so far.")
    size_m: int | None = Field(
        default=None, ge=1, le=1024, description="Draft length in tokens; n_max of the method unless given here."
    )
    min_hits: int = Field(default=1, ge=1, description="How often the n-gram must have occurred before.")


METHOD_OPTIONS: Mapping[MethodKind, type[BaseModel]] = {
    MethodKind.NONE: NoOptions,
    MethodKind.DRAFT: DraftOptions,
    MethodKind.MTP: DraftOptions,
    MethodKind.NGRAM: NgramOptions,
}


def engine_options(cell: Cell) -> LlamaOptions:
    """The cell's engine options with defaults filled in.

    Raises:
        pydantic.ValidationError: an option is unknown or out of range.
    """
    return LlamaOptions.model_validate(dict(cell.engine.options))


def draft_options(method: Method) -> DraftOptions:
    """Options of a ``draft`` or ``mtp`` method; raises ``pydantic.ValidationError`` like :func:`engine_options`."""
    return DraftOptions.model_validate(dict(method.options))


def ngram_options(method: Method) -> NgramOptions:
    """Options of an ``ngram`` method; raises ``pydantic.ValidationError`` like :func:`engine_options`."""
    return NgramOptions.model_validate(dict(method.options))


def draft_length(method: Method) -> int:
    """The longest draft in tokens that the method asks for; 0 for ``none``."""
    if method.kind is MethodKind.NONE:
        return 0
    if method.kind is MethodKind.NGRAM:
        return ngram_options(method).size_m or method.n_max or DEFAULT_NGRAM_LENGTH
    return method.n_max if method.n_max is not None else DEFAULT_DRAFT_LENGTH
