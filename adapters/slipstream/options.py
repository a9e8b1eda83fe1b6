"""Options of the Slipstream adapter, and the variables by which its engine is told them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.schema.cell import Cell, MethodKind

MOST_DRAFTS = 7
"""The engine clamps SPLASH_MTP_DRAFTS to 1..7 (models/qwen4exp/Qwen4ExpTarget.cpp, 5604182)."""

DEFAULT_DRAFTS, DEFAULT_TREE_DRAFTS = 5, 7

NO_MTP, NO_LOOKUP = "SPLASH_NO_MTP", "SPLASH_NO_PLD"
"""Each switches its drafter off by being set at all, whatever its value: so they are set or left out, never 0."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SlipstreamOptions(_Strict):
    """``engines.*.options``. Every arm of a block runs with the same ones."""

    max_context: int | None = Field(
        default=None, ge=1, le=262144, description="Context limit in tokens (--max-context); the engine's own if unset."
    )
    max_memory_gib: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Metal memory ceiling in GiB (--max-memory); the engine's own if unset.",
    )
    expert_cache_gib: int | None = Field(
        default=None, ge=1, le=4096, description="Experts kept in memory, in GiB (SPLASH_EXPERT_CACHE_GIB)."
    )
    lookahead_experts: int | None = Field(
        default=None, ge=0, le=512, description="Experts a row reads ahead (SPLASH_LOOKAHEAD_EXPERTS)."
    )


class NoOptions(_Strict):
    """Method ``none`` has no options."""


class MtpOptions(_Strict):
    """``methods.*.options`` of method ``mtp``; what is unset is the engine's own."""

    chain_min: float | None = Field(
        default=None, ge=0, le=1, description="Stop drafting below this confidence of the chain (SPLASH_MTP_CHAIN_MIN)."
    )
    early_exit_p: float | None = Field(
        default=None, ge=0, le=1, description="Expected confidence of a further draft (SPLASH_MTP_EARLY_EXIT_P)."
    )
    tree: bool = Field(default=False, description="Draft a tree instead of a chain (SPLASH_TREE_DRAFT).")
    prompt_lookup: bool = Field(
        default=True,
        description="Leave the engine's prompt lookup on, whose drafts it counts together with those of MTP.",
    )


class LookupOptions(_Strict):
    """``methods.*.options`` of method ``ngram``: the engine's prompt lookup alone."""

    min_match: int | None = Field(
        default=None, ge=1, le=64, description="Shortest match that drafts (SPLASH_PLD_MIN_MATCH)."
    )


METHOD_OPTIONS: Mapping[MethodKind, type[BaseModel]] = {
    MethodKind.NONE: NoOptions,
    MethodKind.MTP: MtpOptions,
    MethodKind.NGRAM: LookupOptions,
}


def engine_options(cell: Cell) -> SlipstreamOptions:
    """The engine's options; raises pydantic's ``ValidationError``."""
    return SlipstreamOptions.model_validate(dict(cell.engine.options))


def draft_length(cell: Cell) -> int:
    """The longest draft that the cell asks for."""
    if cell.method.n_max is not None:
        return cell.method.n_max
    return DEFAULT_TREE_DRAFTS if cell.method.options.get("tree") is True else DEFAULT_DRAFTS


def environment(cell: Cell) -> dict[str, str]:
    """The variables of the cell's arm. A baseline switches off both drafters: one alone would leave the other on."""
    options, method = engine_options(cell), cell.method
    env: dict[str, str | int | float | None] = {
        "SPLASH_EXPERT_CACHE_GIB": options.expert_cache_gib,
        "SPLASH_LOOKAHEAD_EXPERTS": options.lookahead_experts,
    }
    if method.kind is MethodKind.MTP:
        mtp = MtpOptions.model_validate(dict(method.options))
        env |= {
            "SPLASH_MTP_DRAFTS": draft_length(cell),
            "SPLASH_MTP_CHAIN_MIN": mtp.chain_min,
            "SPLASH_MTP_EARLY_EXIT_P": mtp.early_exit_p,
            "SPLASH_TREE_DRAFT": 1 if mtp.tree else None,
            NO_LOOKUP: None if mtp.prompt_lookup else 1,
        }
    elif method.kind is MethodKind.NGRAM:
        lookup = LookupOptions.model_validate(dict(method.options))
        env |= {"SPLASH_MTP_DRAFTS": draft_length(cell), "SPLASH_PLD_MIN_MATCH": lookup.min_match, NO_MTP: 1}
    else:
        env |= {NO_MTP: 1, NO_LOOKUP: 1}
    return {name: str(value) for name, value in env.items() if value is not None}
