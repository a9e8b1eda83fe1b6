"""What a cell's GGUF files allow, by their headers alone: decided in ``check``, not after a load."""

from __future__ import annotations

from adapters.llama_cpp.drafters import drafters
from adapters.llama_cpp.options import draft_options
from adapters.llama_cpp.vocabulary import incompatible
from adapters.shared.gguf import GgufHeader, read_header
from adapters.shared.gguf_layout import LayoutError, read_layout
from orchestrator.schema.adapter import EngineIdentity, Refusal
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.status import Status

HEADS = ("eagle3", "dflash")
"""Architectures that are no model of their own, but a head for one target."""
MARKOV = "markov_w1.weight"
"""The tensor that makes a ``dflash`` file one for ``draft-dspark``."""
EAGLE_LAYERS = 3
WITHOUT_MTP_GRAPH = frozenset({"exaone-moe", "glm4", "bailingmoe2", "graniteswitch"})
"""Architectures whose files can carry MTP layers that b11434 reads over: it has no graph for them."""
READ_BUILD = 11434


def bad_files(cell: Cell, identity: EngineIdentity) -> Refusal | None:
    """Why the files do not allow the cell.

    Raises:
        GgufError: a file cannot be read.
    """
    target, method = read_header(cell.model.target), cell.method
    if method.kind is MethodKind.DRAFT:
        if cell.draft_path is None:
            reason = f"model {cell.model.name} names no draft {method.draft!r} for this engine"
            return Refusal(Status.UNSUPPORTED, reason, f"add it under models.{cell.model.name}")
        return _bad_draft(cell, cell.draft_path)
    if method.kind is MethodKind.MTP:
        return _bad_mtp(cell, target, identity)
    return None


def _bad_draft(cell: Cell, path: str) -> Refusal | None:
    wanted = next(drafter.name for drafter in drafters(cell.method) if drafter.ngram is None)
    found = kind_of(path)
    if found != wanted:
        header = read_header(path)
        reason = f"{path} is of architecture {header.architecture}, which {found} reads; the method asks for {wanted}"
        short = found.removeprefix("draft-")
        remedy = f"set options.drafter of method {cell.method.name} to {short}, or name another draft"
        return Refusal(Status.UNSUPPORTED, reason, remedy)
    if wanted == "draft-simple":
        why = incompatible(cell.model.target, path)
        if why is None:
            return None
        reason = f"llama.cpp would not speculate: the draft's vocabulary is not the target's ({why})"
        return Refusal(Status.UNSUPPORTED, reason, "take a draft with the target's own vocabulary")
    return _bad_head(cell, path, wanted)


def kind_of(path: str) -> str:
    """The drafter that can read the file.

    Source: llama.cpp b11434, common/speculative.cpp (``common_speculative_types_from_gguf``) and src/models/eagle3.cpp.

    Raises:
        GgufError: the file cannot be read.
    """
    architecture = read_header(path).architecture
    if architecture not in HEADS:
        return "draft-simple"
    if architecture == "eagle3":
        return "draft-eagle3"
    try:
        return "draft-dspark" if MARKOV in read_layout(path).tensors else "draft-dflash"
    except LayoutError:
        return "draft-dflash"


def _bad_head(cell: Cell, path: str, wanted: str) -> Refusal | None:
    header, method = read_header(path), cell.method
    layers = header.array_lengths.get(f"{header.architecture}.target_layers", 0)
    if layers == 0 or (wanted == "draft-eagle3" and layers != EAGLE_LAYERS):
        reason = f"{path} names {layers} layers of the target to read from; {wanted} needs "
        return Refusal(Status.UNSUPPORTED, reason + (f"{EAGLE_LAYERS}" if wanted == "draft-eagle3" else "some"))
    block = header.scalars.get("dflash.block_size")
    if isinstance(block, int) and wanted != "draft-eagle3":
        whole = wanted == "draft-dspark" and header.scalars.get("dflash.sample_from_anchor") is True
        most = block if whole else block - 1
        asked = next(drafter.length for drafter in drafters(method) if drafter.name == wanted)
        if asked > most:
            reason = f"{path} drafts at most {most} tokens (its block size is {block}), the cell asks for {asked}"
            return Refusal(Status.UNSUPPORTED, reason, f"set n_max of method {method.name} to {most}")
    confidence = header.scalars.get("dflash.has_confidence_head") is True
    if wanted == "draft-dspark" and draft_options(method).p_min > 0 and not confidence:
        return Refusal(Status.UNSUPPORTED, f"{path} has no confidence head, which p_min needs", "set p_min to 0")
    return None


def _bad_mtp(cell: Cell, target: GgufHeader, identity: EngineIdentity) -> Refusal | None:
    remedy = "take a GGUF converted with its MTP layers, or name a head file as the model's mtp"
    source, path = target, cell.model.target
    if cell.model.mtp is not None:
        source, path = read_header(cell.model.mtp), cell.model.mtp
        if not source.mtp_layers:
            return Refusal(Status.UNSUPPORTED, f"MTP weights in {path}: no", remedy)
        if source.architecture != target.architecture:
            reason = f"{path} is a head for {source.architecture}, the target is {target.architecture}"
            return Refusal(Status.UNSUPPORTED, reason, "name a head that was made for this target")
    if not source.mtp_layers:
        key = f"{target.architecture}.nextn_predict_layers"
        return Refusal(Status.UNSUPPORTED, f"MTP weights in this file: no ({path} has no {key})", remedy)
    if source.architecture in WITHOUT_MTP_GRAPH and not _later(identity):
        reason = (
            f"MTP weights in this file: yes ({path}); used by this runtime: no "
            f"(llama.cpp b{READ_BUILD} has no MTP graph for {source.architecture})"
        )
        return Refusal(Status.UNSUPPORTED, reason, "use a later build if it has one")
    return None


def _later(identity: EngineIdentity) -> bool:
    return identity.build is not None and identity.build.isdigit() and int(identity.build) > READ_BUILD
