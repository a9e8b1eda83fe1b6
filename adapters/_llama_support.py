"""What the llama.cpp paths can do, decided before any process starts, and the acceptance rule they claim."""

from __future__ import annotations

from pydantic import ValidationError

from adapters._gguf import GgufError, GgufHeader, read_header
from adapters._llama_options import (
    METHOD_OPTIONS,
    SPEC_TYPES,
    draft_length,
    draft_options,
    engine_options,
    ngram_options,
)
from orchestrator.schema.adapter import Claim, EngineIdentity, Refusal, Rule
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind
from orchestrator.schema.status import Status

CLAIMED_BY = "llama.cpp, read in b11434's common/sampling.cpp and seen in real runs on f32 models"
SPEC_CAPABILITY = "spec-type:"
SYSTEM_CONFIG = "system-config"
"""Capability-like mark: the machine has a configuration file that this engine would read."""


def supports(cell: Cell, identity: EngineIdentity, required: frozenset[str]) -> Refusal | None:
    """Why the cell cannot work, in words.

    Args:
        cell: the resolved cell.
        identity: what the probes found.
        required: capabilities without which a number would not be protected.
    """
    if identity.unavailable is not None:
        return Refusal(Status.UNAVAILABLE, identity.unavailable)
    try:
        return (
            _bad_options(cell)
            or _bad_length_policy(cell)
            or _missing_capability(cell, identity, required)
            or _bad_files(cell)
        )
    except GgufError as err:
        remedy = "llama.cpp loads GGUF files; convert the model, or correct the path"
        return Refusal(Status.UNSUPPORTED, str(err), remedy)


def exactness(cell: Cell, identity: EngineIdentity) -> Claim:
    """The acceptance rule of llama.cpp for the cell; ``by`` names the build that is claimed to follow it."""
    kind, greedy = cell.method.kind, cell.sampling.greedy
    by = f"{CLAIMED_BY}; here: {_version(identity)}"
    if kind is MethodKind.NONE:
        return Claim(Rule.NONE, exact=True, by=by, note="the target alone")
    near_ties = "verify batches can run other kernels than single tokens: quantised or GPU targets may flip near-ties"
    if greedy:
        return Claim(Rule.GREEDY_MATCH, exact=True, by=by, note=near_ties)
    try:
        rejection = kind is not MethodKind.NGRAM and draft_options(cell.method).acceptance == "probabilistic"
    except ValidationError:
        return Claim(Rule.UNKNOWN, exact=None, by=by, note="the method's options cannot be read")
    if rejection:
        note = "exact in distribution; a seed does not give the baseline's tokens"
        return Claim(Rule.REJECTION, exact=True, by=by, note=note)
    note = f"with equal logits a seed gives the baseline's tokens; {near_ties}"
    return Claim(Rule.SAMPLE_MATCH, exact=True, by=by, note=note)


def _version(identity: EngineIdentity) -> str:
    if identity.build is not None:
        return f"build {identity.build}"
    return f"version {identity.version}" if identity.version is not None else "an unknown version"


def _bad_options(cell: Cell) -> Refusal | None:
    method = cell.method
    try:
        engine_options(cell)
        METHOD_OPTIONS[method.kind].model_validate(dict(method.options))
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Refusal(Status.UNSUPPORTED, f"option {where}: {first['msg']}", "correct the option in the matrix")
    if method.kind is MethodKind.NGRAM:
        asked = ngram_options(method).size_m
        if asked is not None and method.n_max is not None and asked != method.n_max:
            reason = f"n_max {method.n_max} and size_m {asked} are both the draft length of ngram-simple, and differ"
            return Refusal(Status.UNSUPPORTED, reason, "give one of them")
    elif method.kind is not MethodKind.NONE and draft_options(method).n_min > draft_length(method):
        low, high = draft_options(method).n_min, draft_length(method)
        reason = f"n_min {low} is above n_max {high}: every draft would be dropped"
        return Refusal(Status.UNSUPPORTED, reason, "lower n_min")
    return None


def _bad_length_policy(cell: Cell) -> Refusal | None:
    if cell.workload.eos is not EosPolicy.CONTINUE:
        return None
    reason = "llama.cpp can stop at end of text or forbid it; it cannot emit it and go on (eos: continue)"
    return Refusal(Status.UNSUPPORTED, reason, "use eos: stop or eos: mask")


def _missing_capability(cell: Cell, identity: EngineIdentity, required: frozenset[str]) -> Refusal | None:
    if SYSTEM_CONFIG in identity.capabilities:
        reason = "llama-server would read /etc/llama.cpp/config.ini first, and no option turns that off"
        return Refusal(Status.UNSUPPORTED, reason, "move the file away while measuring")
    missing = sorted(required - identity.capabilities)
    if missing:
        reason = f"this build does not know {', '.join(missing)}"
        return Refusal(Status.UNSUPPORTED, reason, "use a build of b11434 or later")
    wanted = SPEC_TYPES[cell.method.kind]
    if cell.method.kind is not MethodKind.NONE and SPEC_CAPABILITY + wanted not in identity.capabilities:
        reason = f"this build has no drafter {wanted}"
        return Refusal(Status.UNSUPPORTED, reason, "use a build of b11434 or later")
    return None


def _bad_files(cell: Cell) -> Refusal | None:
    target, method = read_header(cell.model.target), cell.method
    if method.kind is MethodKind.DRAFT:
        if cell.draft_path is None:
            reason = f"model {cell.model.name} names no draft {method.draft!r} for this engine"
            return Refusal(Status.UNSUPPORTED, reason, f"add it under models.{cell.model.name}")
        read_header(cell.draft_path)
    if method.kind is MethodKind.MTP:
        return _no_mtp(cell, target)
    return None


def _no_mtp(cell: Cell, target: GgufHeader) -> Refusal | None:
    remedy = "take a GGUF converted with its MTP layers, or name a head file as the model's mtp"
    if cell.model.mtp is not None:
        if read_header(cell.model.mtp).mtp_layers:
            return None
        return Refusal(Status.UNSUPPORTED, f"MTP weights in {cell.model.mtp}: no", remedy)
    if target.mtp_layers:
        return None
    key = f"{target.architecture}.nextn_predict_layers"
    return Refusal(Status.UNSUPPORTED, f"MTP weights in this file: no ({cell.model.target} has no {key})", remedy)
