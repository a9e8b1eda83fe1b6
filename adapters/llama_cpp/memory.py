"""What memory a llama.cpp cell will need: weights by the file, the rest by the rules of ``shared.llama_memory``."""

from __future__ import annotations

from dataclasses import replace

from adapters.llama_cpp.drafters import drafters
from adapters.llama_cpp.options import draft_length, engine_options
from adapters.shared.gguf_layout import Layout, LayoutError, read_layout
from adapters.shared.llama_memory import Asked, cache, cache_bytes, compute, module_blocks, of_target, state
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.fit import MemoryNeed, MemoryPart, Unmapped

DRAFT_CACHE_TYPE = "f16"
"""``--cache-type-k-draft`` and its V are left at the engine's default."""
HYBRID_BOUNDED = ("qwen35", "qwen35moe", "nemotron_h", "nemotron_h_moe", "lfm2", "lfm2moe")
"""Hybrids for which a drafter with its own weights keeps n_max snapshots of the recurrent state beside the state."""
WITH_SNAPSHOTS = frozenset({"draft-mtp", "draft-eagle3", "draft-dflash", "draft-dspark"})
"""Drafters for which b11434 keeps them; the others roll such a target back by a checkpoint.

Source: llama.cpp b11434, common/common.h (``need_n_rs_seq``).
"""
MOD_TABLE = 16 * 1024 * 1024
"""Bytes of ngram-mod's table, as b11434 logs them while loading."""
PROGRAM = {"llama_cpp": 14_000_000, "llama_cpp_embedded": 32_000_000}
"""Resident bytes beside weights, caches and buffers, measured once with a tiny Llama on Linux (``docs/memory.md``)."""


class LlamaMemory:
    """The part of the llama.cpp adapters that foresees memory (:class:`orchestrator.schema.fit.ForeseesMemory`)."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """By the headers of the cell's files and its options."""
        return need(cell)

    def unmapped(self, cell: Cell) -> Unmapped:
        """The same cell with the files read instead of mapped, drafter included."""
        options = {**cell.engine.options, "mmap": False}
        return Unmapped(
            replace(cell, engine=replace(cell.engine, options=options)), "weights read, not mapped (load mode none)"
        )


def need(cell: Cell) -> MemoryNeed:
    """The memory of the cell in one server process with one slot."""
    try:
        target = read_layout(cell.model.target)
        return _need(cell, target)
    except LayoutError as err:
        return MemoryNeed((), (str(err),))


def _need(cell: Cell, target: Layout) -> MemoryNeed:
    options = engine_options(cell)
    kind = cell.method.kind
    unknown: list[str] = []
    names = {drafter.name for drafter in drafters(cell.method)}
    bounded = target.architecture in HYBRID_BOUNDED and names & WITH_SNAPSHOTS
    copies = draft_length(cell.method) if bounded else 0
    types = (options.cache_type_k, options.cache_type_v)
    asked = Asked(options.context, types, options.ubatch, flash=options.flash_attention != "off")
    context = asked.cells(target)
    parts = of_target(target, asked, copies, unknown)
    if kind is MethodKind.DRAFT and cell.draft_path is not None:
        parts += _drafter(read_layout(cell.draft_path), context, unknown, options.ubatch)
    if kind is MethodKind.MTP:
        parts += _mtp(cell, target, context, unknown, options.ubatch)
    if "ngram-mod" in names:
        parts.append(MemoryPart("n-gram table", MOD_TABLE, "ngram-mod's, of a fixed size", speculation=True))
    program = PROGRAM.get(cell.engine.adapter, 0)
    parts.append(MemoryPart("program", program, "measured once with a tiny model on Linux", estimate=True))
    return MemoryNeed(tuple(part for part in parts if part.size), tuple(unknown))


def _drafter(draft: Layout, context: int, unknown: list[str], ubatch: int) -> list[MemoryPart]:
    layers = draft.number("block_count", 0) or 0
    types = (DRAFT_CACHE_TYPE, DRAFT_CACHE_TYPE)
    found = [MemoryPart("weights", sum(draft.tensors.values()), "tensors of the draft's file")]
    found += cache(draft, layers, context, types, unknown, ubatch)
    found += state(draft, layers, 0, unknown)
    found.append(compute(draft, ubatch, context, unknown, flash=True))
    return [_of_drafter("draft", part) for part in found]


def _mtp(cell: Cell, target: Layout, context: int, unknown: list[str], ubatch: int) -> list[MemoryPart]:
    """The module's weights (in the target's file or its own), a cache for its layers, and buffers of its own."""
    source = target
    heads, inside = module_blocks(target)
    size, basis = inside, f"tensors of the last {heads} block(s) of the target's file"
    if cell.model.mtp is not None:
        source = read_layout(cell.model.mtp)
        size, basis = sum(source.tensors.values()), "tensors of the MTP file"
        heads = source.number("nextn_predict_layers", 1) or 1
    blocks = source.number("block_count", 0) or 0
    types = (DRAFT_CACHE_TYPE, DRAFT_CACHE_TYPE)
    full = cache_bytes(source, range(max(0, blocks - heads), blocks), context, types)
    found = [MemoryPart("weights", size, basis)]
    if full is None:
        unknown.append("cache of the MTP module: the header does not tell its heads")
    else:
        found.append(MemoryPart("KV cache", full, f"{context} cells × {heads} layer(s), K and V {DRAFT_CACHE_TYPE}"))
    found.append(compute(source, ubatch, context, unknown, flash=True))
    return [_of_drafter("MTP", part) for part in found]


def _of_drafter(whose: str, part: MemoryPart) -> MemoryPart:
    return MemoryPart(f"{whose} {part.what}", part.size, part.basis, part.estimate, speculation=True)
