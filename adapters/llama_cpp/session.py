"""What only a whole process tells of its settings: the model's header, the roll-back mode, who drafted how much."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapters.llama_cpp.drafters import STATEFUL, drafters
from adapters.llama_cpp.echo import startup_echo
from adapters.shared.gguf import GgufError, GgufHeader, read_header
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.capture import SessionCapture
from orchestrator.schema.cell import Cell, MethodKind

LOG = "stderr.log"
_ADDED = re.compile(r"adding speculative implementation '")
_LOADED = re.compile(r"new slot, n_ctx|srv\s+load_model: .*context checkpoints")
_SNAPSHOTS = re.compile(r"n_rs_seq\s+=\s+(\d+)")
_MTP_CONTEXT = re.compile(r"creating MTP draft context against the target model")
_SHARE = re.compile(r"statistics\s+(\S+): .*#gen tokens =\s*(\d+), #acc tokens =\s*(\d+)")


def session_conditions(cell: Cell, capture: SessionCapture) -> tuple[Condition, ...]:
    """The conditions of one process; what its log or its files do not tell is ``unknown``."""
    return (
        *_model(cell),
        *startup_echo(cell, capture.stderr),
        *_mtp(cell, capture.stderr),
        *_rollback(cell, capture.stderr),
        *_memory_of_requests(cell),
        *_shares(cell, capture.stderr),
    )


def _model(cell: Cell) -> Iterable[Condition]:
    header, source = _header(cell.model.target), "header of the target's file"
    said = {
        "target_architecture": header.architecture if header else None,
        "target_quantisation": header.quantisation if header else None,
        "target_vocabulary": _vocabulary(header) if header else None,
    }
    for name, value in said.items():
        yield Condition(name, "as in the file", value, Honoured.HONOURED if value else Honoured.UNKNOWN, source)


def _vocabulary(header: GgufHeader) -> str | None:
    size = header.vocabulary_size
    return None if size is None else f"{header.tokenizer or 'unknown type'}, {size} tokens"


def _mtp(cell: Cell, stderr: str) -> Iterable[Condition]:
    """Two facts: a file can carry MTP weights that the runtime never loads, and a head can come from another file."""
    header = _header(cell.model.target)
    wanted = cell.method.kind is MethodKind.MTP
    if not wanted and (header is None or not header.mtp_layers):
        return
    inside = None if header is None else (f"yes ({header.mtp_layers} block(s))" if header.mtp_layers else "no")
    verdict = Honoured.UNKNOWN if inside is None else Honoured.HONOURED
    yield Condition("mtp_weights_in_file", "as in the file", inside, verdict, "header of the target's file")
    used = _mtp_used(cell, stderr)
    asked = "yes" if wanted else "no"
    verdict = Honoured.UNKNOWN
    if used is not None:
        verdict = Honoured.HONOURED if used.startswith(asked) else Honoured.CHANGED
    yield Condition("mtp_used_by_runtime", asked, used, verdict, f"{LOG}: drafters set up while loading")


def _mtp_used(cell: Cell, stderr: str) -> str | None:
    if _LOADED.search(stderr) is None:
        return None
    if "adding speculative implementation 'draft-mtp'" not in stderr:
        return "no"
    if _MTP_CONTEXT.search(stderr):
        return "yes, the target's own"
    return "yes, a head file" if cell.model.mtp is not None else "yes"


def _rollback(cell: Cell, stderr: str) -> Iterable[Condition]:
    """How refused tokens leave the target's cache; the lines about it come before the first drafter is set up.

    Source: llama.cpp b11434, common/common.cpp (``common_context_can_seq_rm``) and real runs. A context that can be
    cut anywhere says nothing.
    """
    if cell.method.kind is MethodKind.NONE:
        return
    added = _ADDED.search(stderr)
    mode: str | None = None
    if added is not None:
        start = stderr[: added.start()]
        if "supports bounded partial sequence removal" in start:
            depth = _SNAPSHOTS.search(start)
            mode = f"bounded snapshots ({depth[1] if depth else 'unknown'} tokens; longer drafts by checkpoint)"
        elif "does not support partial sequence removal" in start:
            mode = "full checkpoint (accepted tokens are decoded again)"
        else:
            mode = "partial (the cache is cut back)"
    verdict = Honoured.UNKNOWN if mode is None else Honoured.HONOURED
    yield Condition("rollback", "the engine's own", mode, verdict, f"{LOG}: lines while loading")


def _memory_of_requests(cell: Cell) -> Iterable[Condition]:
    names = " and ".join(drafter.name for drafter in drafters(cell.method) if drafter.name in STATEFUL)
    if names:
        asked = "a fresh process per session, the same prompts in the same order"
        kept = f"{names} keeps what it saw from request to request of a session, warm-up included"
        yield Condition("drafter_state", asked, kept, Honoured.HONOURED, "specmatrix")


def _shares(cell: Cell, stderr: str) -> Iterable[Condition]:
    """Of a chain: what each drafter contributed. Every other count is the sum over both."""
    names = [drafter.name for drafter in drafters(cell.method)]
    if len(names) < 2:
        return
    last = {name: (drafted, accepted) for name, drafted, accepted in _SHARE.findall(stderr)}
    told = [f"{name} {last[name][0]} drafted, {last[name][1]} accepted" for name in names if name in last]
    effective = "; ".join(told) if len(told) == len(names) else None
    verdict = Honoured.UNKNOWN if effective is None else Honoured.HONOURED
    source = f"{LOG}: last statistics lines, whole process; after a checkpoint they count the correction as accepted"
    yield Condition("drafted_by_each", "the engine's own order", effective, verdict, source)


def _header(path: str) -> GgufHeader | None:
    try:
        return read_header(path)
    except GgufError:
        return None
