"""Options of the llama.cpp adapters: strict schemas, every default stated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from orchestrator.schema.cell import Cell, Method, MethodKind

DEFAULT_DRAFT_LENGTH = 3
DEFAULT_NGRAM_LENGTH = 48
DEFAULT_NGRAM_SIZE = 12
CACHE_LENGTH = 8
"""llama.cpp's ngram-cache drafts up to 8 tokens, and no option changes that."""

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


class _Grown(_Strict):
    """Options that grew: one of ``LATER`` is left out of what is recorded while it has its default.

    A cell without it is the cell that older runs measured, so its fingerprint stays what it was.
    """

    LATER: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        said: dict[str, Any] = dump(self)
        return {key: value for key, value in said.items() if key not in self.LATER or value != fields[key].default}


class NgramDrafter(_Grown):
    """One of llama.cpp's drafters that look up the last tokens in the text so far."""

    LATER = frozenset({"drafter", "n_min"})

    drafter: Literal["simple", "map-k", "map-k4v", "mod", "cache"] = Field(
        default="simple",
        description="llama.cpp's ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod or ngram-cache. 'mod' and "
        "'cache' remember earlier requests of their process.",
    )
    size_n: int = Field(
        default=DEFAULT_NGRAM_SIZE, ge=1, le=1024, description="Length of the n-gram looked up (not for 'cache')."
    )
    size_m: int | None = Field(
        default=None, ge=1, le=1024, description="Draft length in tokens; n_max of the method unless given here."
    )
    min_hits: int = Field(
        default=1, ge=1, description="How often the n-gram must have occurred before (not for 'mod' and 'cache')."
    )
    n_min: int = Field(default=0, ge=0, description="For 'mod': shorter drafts are dropped, and appear in no counter.")


class _Speculative(_Grown):
    """What every method that speculates can be told."""

    LATER = frozenset({"drafter", "n_min", "chain", "synthetic", "synth_len", "synth_rates"})

    chain: NgramDrafter | None = Field(
        default=None,
        description="An n-gram drafter beside the method's own. llama.cpp asks them in its own order, n-gram ones "
        "first (simple, map-k, map-k4v, mod, cache); the first that proposes anything has the round.",
    )
    synthetic: bool = Field(
        default=False, description="Owns up to synthetic acceptance: the output is not valid text of the model."
    )
    synth_len: float | None = Field(
        default=None, ge=1, description="Synthetic acceptance: mean tokens per round, the target's own included."
    )
    synth_rates: list[Annotated[float, Field(ge=0, le=1)]] | None = Field(
        default=None, min_length=1, description="Synthetic acceptance: unconditional rate by draft position, falling."
    )


class HeadOptions(_Speculative):
    """Options of the method ``mtp``, and of ``draft`` with its drafter."""

    LATER = frozenset({"drafter", "chain", "synthetic", "synth_len", "synth_rates"})

    acceptance: Literal["greedy", "probabilistic"] = Field(
        default="greedy",
        description="Judging above temperature 0: 'greedy' keeps a draft token when the target samples the same one; "
        "'probabilistic' is rejection sampling.",
    )
    p_min: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="Drafting stops when the drafter's best token is less likely than this.",
    )
    n_min: int = Field(default=0, ge=0, description="Shorter drafts are dropped unjudged, and appear in no counter.")


class DraftOptions(HeadOptions):
    """Options of the method ``draft``."""

    drafter: Literal["simple", "eagle3", "dflash", "dspark"] = Field(
        default="simple",
        description="What the draft's file is: a model of its own (simple), or a head trained for this target.",
    )


class NgramOptions(NgramDrafter, _Speculative):
    """Options of the method ``ngram``."""

    LATER = frozenset({"drafter", "n_min", "chain", "synthetic", "synth_len", "synth_rates"})


METHOD_OPTIONS: Mapping[MethodKind, type[BaseModel]] = {
    MethodKind.NONE: NoOptions,
    MethodKind.DRAFT: DraftOptions,
    MethodKind.MTP: HeadOptions,
    MethodKind.NGRAM: NgramOptions,
}


def engine_options(cell: Cell) -> LlamaOptions:
    """The cell's engine options with defaults filled in.

    Raises:
        pydantic.ValidationError: an option is unknown or out of range.
    """
    return LlamaOptions.model_validate(dict(cell.engine.options))


def draft_options(method: Method) -> HeadOptions:
    """Options of a ``draft`` or ``mtp`` method; raises ``pydantic.ValidationError`` like :func:`engine_options`."""
    schema = DraftOptions if method.kind is MethodKind.DRAFT else HeadOptions
    return schema.model_validate(dict(method.options))


def ngram_options(method: Method) -> NgramOptions:
    """Options of an ``ngram`` method; raises ``pydantic.ValidationError`` like :func:`engine_options`."""
    return NgramOptions.model_validate(dict(method.options))


def speculative_options(method: Method) -> HeadOptions | NgramOptions | None:
    """Options of any method that speculates; ``None`` for ``none``."""
    if method.kind is MethodKind.NONE:
        return None
    return ngram_options(method) if method.kind is MethodKind.NGRAM else draft_options(method)


def draft_length(method: Method) -> int:
    """The longest draft in tokens of the method's own drafter; 0 for ``none``. A chained one can have another."""
    if method.kind is MethodKind.NONE:
        return 0
    if method.kind is MethodKind.NGRAM:
        return ngram_options(method).size_m or method.n_max or DEFAULT_NGRAM_LENGTH
    return method.n_max if method.n_max is not None else DEFAULT_DRAFT_LENGTH
