"""Options of the oMLX adapter, and which of its three speculative paths a cell takes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.schema.cell import Cell, Method, MethodKind


class Path(StrEnum):
    """How oMLX drafts: each path has its own settings, its own log line and its own acceptance rule."""

    NONE = "none"
    NATIVE = "native MTP"
    VLM = "VLM MTP"
    DFLASH = "DFlash"
    UNKNOWN = "unknown"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OmlxOptions(_Strict):
    """``engines.*.options``. Every arm of a block runs with the same ones."""

    context: int = Field(32768, ge=1, description="Longest prompt in tokens (max_context_window).")
    memory_guard_tier: Literal["safe", "balanced", "aggressive"] = Field(
        "balanced", description="How much memory oMLX leaves to others (OMLX_MEMORY_GUARD_TIER; not in every version)."
    )
    runtime_tuning: bool = Field(
        True, description="Let oMLX set its own MLX_* variables; false: OMLX_MLX_RUNTIME_TUNING=0."
    )


class NoOptions(_Strict):
    """Method ``none`` has no options."""


class MtpOptions(_Strict):
    """``methods.*.options`` of method ``mtp``."""

    adaptive: bool = Field(
        False, description="Native MTP: n_max is the longest draft, and oMLX chooses; false: always n_max."
    )


class DflashOptions(_Strict):
    """``methods.*.options`` of method ``draft``, which in oMLX is DFlash."""

    verify_mode: Literal["dflash", "adaptive", "ddtree"] | None = Field(
        None, description="Verifier (dflash_verify_mode); unset: oMLX's own."
    )


METHOD_OPTIONS: Mapping[MethodKind, type[BaseModel]] = {
    MethodKind.NONE: NoOptions,
    MethodKind.MTP: MtpOptions,
    MethodKind.DRAFT: DflashOptions,
}


def engine_options(cell: Cell) -> OmlxOptions:
    """The engine's options; raises ``ValidationError``."""
    return OmlxOptions.model_validate(dict(cell.engine.options))


def mtp_options(method: Method) -> MtpOptions:
    """The options of a method ``mtp``; raises ``ValidationError``."""
    return MtpOptions.model_validate(dict(method.options))


def dflash_options(method: Method) -> DflashOptions:
    """The options of a method ``draft``; raises ``ValidationError``."""
    return DflashOptions.model_validate(dict(method.options))


def option_fault(cell: Cell) -> str | None:
    """What is wrong with the cell's options, if anything is."""
    schema = METHOD_OPTIONS.get(cell.method.kind)
    try:
        engine_options(cell)
        if schema is not None:
            schema.model_validate(dict(cell.method.options))
    except ValidationError as err:
        first = err.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return f"option {place}: {first['msg']}"
    return None


def path_of(cell: Cell) -> Path:
    """MTP inside the target is oMLX's native MTP; an MTP module in a folder of its own goes to mlx-vlm's rounds."""
    kind = cell.method.kind
    if kind is MethodKind.NONE:
        return Path.NONE
    if kind is MethodKind.MTP:
        return Path.NATIVE if cell.model.mtp is None else Path.VLM
    return Path.DFLASH if kind is MethodKind.DRAFT else Path.UNKNOWN
