"""Options of the ds4 adapter: strict schemas, every default stated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.schema.cell import Cell, Method, MethodKind

MAY, SEPTEMBER = "2026-05", "2026-09"
"""The two generations of flags, by the month in which they appeared."""

THINKING_TEMPERATURE = 1.0
"""What ``ds4-server`` samples with in thinking mode, whatever is asked for.

Source: ``ds4-server --help`` of May 2026, "Thinking and sampling", and ds4_server.c at 8d57664 (temperature 1, top-p 1,
min-p 0.05, no top-k).
"""


INSTEAD_OF_SEED_0 = 2**31
"""Given for a trial's seed of 0, and above every other one: ds4's command ends at seed 0, its server takes the time.

Source: ds4_cli.c at 8d57664 and 001f92b, ds4_server.c at 8d57664.
"""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Ds4Options(_Strict):
    """``engines.*.options`` of ds4. Every arm of a block runs with the same ones."""

    mode: Literal["command", "server"] = Field(
        default="command",
        description="'command' runs ds4 once per answer and reads its acceptance; 'server' keeps ds4-server for a "
        "whole session, for the wait for a first token, and reports no acceptance.",
    )
    generation: Literal["2026-05", "2026-09"] = Field(
        default="2026-09",
        description="Which flags this build has: 2026-05 takes --mtp FILE, 2026-09 a bare --mtp beside --mtp-model. "
        "Compared with the build's own --help before anything runs.",
    )
    context: int = Field(default=8192, ge=256, description="Context size in tokens (--ctx).")
    backend: Literal["metal", "cuda", "rocm", "cpu"] | None = Field(
        default=None, description="Backend (--backend); the build's own choice if unset. 'cpu' is for tests alone."
    )
    threads: int | None = Field(default=None, ge=1, le=1024, description="Helper threads (--threads).")
    quality: bool = Field(
        default=False,
        description="Exact kernels (--quality). The drafter 'support' then verifies two drafts exactly; 'dspark' is "
        "not used at all.",
    )
    thinking: bool = Field(
        default=False, description="Let the model think first. Only with mode 'server', which then ignores the sampler."
    )
    warm_weights: bool = Field(default=False, description="Touch all weights while loading (--warm-weights).")


class NoOptions(_Strict):
    """Method ``none`` has no options."""


class Ds4Mtp(_Strict):
    """Options of the method ``mtp``; ``n_max`` is the most tokens that one cycle drafts."""

    drafter: Literal["support", "dspark", "embedded"] = Field(
        default="support",
        description="'support': the one-stage MTP module in the file that the model's mtp names; 'dspark': a DSpark "
        "file named there; 'embedded': the module inside the target (mtp: inside).",
    )
    exact_sampling: bool = Field(
        default=False,
        description="--mtp-exact-sampling: keep the target's distribution above temperature 0 instead of keeping every "
        "greedy draft that fits.",
    )
    margin: float | None = Field(
        default=None,
        ge=0.0,
        le=1000.0,
        description="For 'support': confidence from which a second draft is verified (--mtp-margin); the engine's own "
        "if unset.",
    )
    confidence: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="For 'dspark': confidence below which a draft is cut (--dspark-confidence); engine's own if unset.",
    )
    strict: bool = Field(
        default=False, description="For 'support': verify two drafts with the exact decoder (DS4_MTP_STRICT)."
    )


METHOD_OPTIONS: Mapping[MethodKind, type[BaseModel]] = {MethodKind.NONE: NoOptions, MethodKind.MTP: Ds4Mtp}


def engine_options(cell: Cell) -> Ds4Options:
    """The cell's engine options with defaults filled in; raises ``pydantic.ValidationError``."""
    return Ds4Options.model_validate(dict(cell.engine.options))


def mtp_options(method: Method) -> Ds4Mtp:
    """Options of an ``mtp`` method; raises ``pydantic.ValidationError``."""
    return Ds4Mtp.model_validate(dict(method.options))


def by_server(cell: Cell) -> bool:
    """Whether the cell is measured through ``ds4-server``."""
    return engine_options(cell).mode == "server"


def ignores_sampler(cell: Cell) -> bool:
    """Whether the engine samples with settings of its own: the server does in thinking mode."""
    options = engine_options(cell)
    return options.mode == "server" and options.thinking


def effective_temperature(cell: Cell) -> float:
    """The temperature that the engine samples with."""
    return THINKING_TEMPERATURE if ignores_sampler(cell) else cell.sampling.temperature


def verifies_exactly(cell: Cell) -> bool:
    """Whether a cell with the drafter ``support`` verifies with the exact decoder: it exists for two drafts alone.

    Source: ds4.c at 8d57664 and 000401c, ``ds4_session_eval_speculative_argmax``.
    """
    options, method = engine_options(cell), mtp_options(cell.method)
    return method.drafter == "support" and (options.quality or method.strict) and cell.method.n_max == 2
