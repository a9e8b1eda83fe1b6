"""What MTPLX can do, decided before it starts; what it is; and the acceptance rule that it claims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.schema.adapter import Claim, EngineIdentity, Probe, ProbeOutput, Refusal, Rule
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, MethodKind, Sampling
from orchestrator.schema.status import Status

READ = "2.12.2"
"""The version whose source the counters and boundaries were read from, and which wrote the golden captures."""

DEFAULT_DEPTH, MOST_DEPTH = 3, 8
"""``--depth`` unless given, and the deepest for any model: 8 with Gemma 4, mostly 3 (commands/public.py)."""

CLAIMED_BY = f"MTPLX's own README at {READ}: exact rejection sampling with residual correction"
SEEN_TO_DIFFER = (
    "on a CPU, for which it is not made, the greedy answers of a tiny random model differed with MTP and without, and "
    "from depth to depth"
)

_VERSION = re.compile(r"^mtplx (\S+)(?: \((\S+)\))?$", re.MULTILINE)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MtplxOptions(_Strict):
    """``engines.*.options``. Every arm of a block runs with the same ones."""

    profile: Literal["stable", "performance-cold", "sustained", "turbo", "exact"] | None = Field(
        default=None, description="Runtime profile (--profile); the engine's own choice for the model if unset."
    )
    context_window: int | None = Field(
        default=None, ge=1, le=1048576, description="Context limit in tokens (--context-window); the model's if unset."
    )
    allow_unverified: bool = Field(
        default=False, description="Serve a model that MTPLX has not verified (--unsafe-force-unverified)."
    )


class NoOptions(_Strict):
    """Neither method has options."""


METHOD_OPTIONS: Mapping[MethodKind, type[BaseModel]] = {MethodKind.NONE: NoOptions, MethodKind.MTP: NoOptions}


def engine_options(cell: Cell) -> MtplxOptions:
    """The engine's options; raises pydantic's ``ValidationError``."""
    return MtplxOptions.model_validate(dict(cell.engine.options))


def depth(cell: Cell) -> int:
    """Draft tokens a round, at most."""
    return cell.method.n_max if cell.method.n_max is not None else DEFAULT_DEPTH


def probe_commands(config: EngineConfig) -> tuple[Probe, ...]:
    """The version."""
    return (Probe("version", (config.binary or "mtplx", "--version")),)


def identify(config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
    """The packaged version, which stands in brackets where the displayed one is another."""
    binary, said = config.binary or "mtplx", outputs.get("version")
    if said is None or said.error is not None:
        why = said.error if said is not None and said.error else "it was not probed"
        return EngineIdentity(unavailable=why if why.startswith(binary) else f"{binary}: {why}")
    match = _VERSION.search(said.stdout)
    if said.exit_code != 0 or match is None:
        return EngineIdentity(unavailable=f"{binary} --version does not answer as MTPLX does")
    version = match.group(2) or match.group(1)
    return EngineIdentity({"version": version}, version, backend="Metal")


def supports(cell: Cell, identity: EngineIdentity) -> Refusal | None:
    """Why the cell cannot work, in words."""
    if identity.unavailable is not None:
        return Refusal(Status.UNAVAILABLE, identity.unavailable)
    return _bad_method(cell) or _bad_workload(cell) or _bad_sampling(cell.sampling)


def exactness(cell: Cell) -> Claim:
    """The acceptance rule claimed for the cell."""
    if cell.method.kind is MethodKind.NONE:
        return Claim(Rule.NONE, exact=True, by=CLAIMED_BY, note="the target alone")
    if cell.sampling.greedy:
        return Claim(Rule.GREEDY_MATCH, exact=True, by=CLAIMED_BY, note=SEEN_TO_DIFFER)
    note = "exact in distribution: a seed does not give the baseline's tokens"
    return Claim(Rule.REJECTION, exact=True, by=CLAIMED_BY, note=note)


def _bad_method(cell: Cell) -> Refusal | None:
    schema = METHOD_OPTIONS.get(cell.method.kind)
    if schema is None:
        return _unsupported("MTPLX drafts with the model's own MTP head alone", "use method mtp")
    try:
        engine_options(cell)
        schema.model_validate(dict(cell.method.options))
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _unsupported(f"option {where}: {first['msg']}", "correct the option in the matrix")
    if cell.method.kind is MethodKind.MTP and not 1 <= depth(cell) <= MOST_DEPTH:
        reason = f"MTPLX drafts 1 to {MOST_DEPTH} tokens a round, the cell asks for {depth(cell)}"
        return _unsupported(reason, f"set n_max of method {cell.method.name} to {MOST_DEPTH} or less")
    return None


def _bad_workload(cell: Cell) -> Refusal | None:
    if cell.workload.eos is not EosPolicy.STOP:
        reason = f"MTPLX cannot keep a text from ending; workload {cell.workload.name} says eos: {cell.workload.eos}"
        return _unsupported(reason, "use a workload with eos: stop")
    if cell.workload.template != "raw":
        reason = "MTPLX puts the tokenizer's special tokens before a plain prompt: a chat template's would stand twice"
        return _unsupported(reason, "use a workload with template: raw")
    return None


def _bad_sampling(sampling: Sampling) -> Refusal | None:
    off = {
        "min_p": (sampling.min_p, 0),
        "repeat_penalty": (sampling.repeat_penalty, 1),
        "xtc_probability": (sampling.xtc_probability, 0),
    }
    found = [name for name, (value, none) in off.items() if value != none]
    if found:
        return _unsupported(f"MTPLX has no {', '.join(found)}", f"switch it off in sampling.{sampling.name}")
    return None


def _unsupported(reason: str, remedy: str) -> Refusal:
    return Refusal(Status.UNSUPPORTED, reason, remedy)
