"""What memory a llama.cpp cell will need: weights by the file, caches by the rules of the source, buffers by a guess.

Caches were compared with what b11434 logs while it loads (``docs/memory.md``); other architectures follow the same
rules from source only.
"""

from __future__ import annotations

from dataclasses import replace

from adapters._gguf_layout import Layout, LayoutError, read_layout
from adapters._llama_drafters import drafters
from adapters._llama_options import draft_length, engine_options
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.fit import MemoryNeed, MemoryPart, Unmapped

BYTES_PER_ELEMENT: dict[str, float] = {
    "f32": 4,
    "f16": 2,
    "bf16": 2,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
}
"""ggml's block sizes: bytes of a block of 32 ÷ 32."""

DRAFT_CACHE_TYPE = "f16"
"""``--cache-type-k-draft`` and its V are left at the engine's default."""
CELLS = 256
"""The context is rounded up to this many cells."""
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
    blocks = target.number("block_count", 0) or 0
    heads = target.number("nextn_predict_layers", 0) or 0
    layers = blocks - heads
    context = _cells(options.context or target.number("context_length", 0) or 0)
    mtp = target.block_bytes(layers, blocks) if heads else 0
    parts = [MemoryPart("weights", sum(target.tensors.values()) - mtp, "tensors of the target's file")]
    unknown: list[str] = []
    names = {drafter.name for drafter in drafters(cell.method)}
    bounded = target.architecture in HYBRID_BOUNDED and names & WITH_SNAPSHOTS
    copies = draft_length(cell.method) if bounded else 0
    parts += _cache(target, layers, context, (options.cache_type_k, options.cache_type_v), unknown, options.ubatch)
    parts += _state(target, layers, copies, unknown)
    parts.append(_compute(target, options.ubatch, context, flash=options.flash_attention != "off"))
    if kind is MethodKind.DRAFT and cell.draft_path is not None:
        parts += _drafter(read_layout(cell.draft_path), context, unknown, options.ubatch)
    if kind is MethodKind.MTP:
        parts += _mtp(cell, target, mtp, heads, context, unknown, options.ubatch)
    if "ngram-mod" in names:
        parts.append(MemoryPart("n-gram table", MOD_TABLE, "ngram-mod's, of a fixed size", speculation=True))
    program = PROGRAM.get(cell.engine.adapter, 0)
    parts.append(MemoryPart("program", program, "measured once with a tiny model on Linux", estimate=True))
    return MemoryNeed(tuple(part for part in parts if part.size), tuple(unknown))


def _drafter(draft: Layout, context: int, unknown: list[str], ubatch: int) -> list[MemoryPart]:
    layers = draft.number("block_count", 0) or 0
    types = (DRAFT_CACHE_TYPE, DRAFT_CACHE_TYPE)
    found = [MemoryPart("weights", sum(draft.tensors.values()), "tensors of the draft's file")]
    found += _cache(draft, layers, context, types, unknown, ubatch)
    found += _state(draft, layers, 0, unknown)
    found.append(_compute(draft, ubatch, context, flash=True))
    return [_of_drafter("draft", part) for part in found]


def _mtp(
    cell: Cell, target: Layout, inside: int, heads: int, context: int, unknown: list[str], ubatch: int
) -> list[MemoryPart]:
    """The module's weights (in the target's file or its own), a cache for its layers, and buffers of its own."""
    source = target
    size, basis = inside, f"tensors of the last {heads} block(s) of the target's file"
    if cell.model.mtp is not None:
        source = read_layout(cell.model.mtp)
        size, basis = sum(source.tensors.values()), "tensors of the MTP file"
        heads = source.number("nextn_predict_layers", 1) or 1
    blocks = source.number("block_count", 0) or 0
    types = (DRAFT_CACHE_TYPE, DRAFT_CACHE_TYPE)
    full = _attention(source, range(max(0, blocks - heads), blocks), context, types)
    found = [MemoryPart("weights", size, basis)]
    if full is None:
        unknown.append("cache of the MTP module: the header does not tell its heads")
    else:
        found.append(MemoryPart("KV cache", full, f"{context} cells × {heads} layer(s), K and V {DRAFT_CACHE_TYPE}"))
    found.append(_compute(source, ubatch, context, flash=True))
    return [_of_drafter("MTP", part) for part in found]


def _of_drafter(whose: str, part: MemoryPart) -> MemoryPart:
    return MemoryPart(f"{whose} {part.what}", part.size, part.basis, part.estimate, speculation=True)


def _cells(context: int) -> int:
    return -(-context // CELLS) * CELLS


def _cache(
    model: Layout, layers: int, context: int, types: tuple[str, str], unknown: list[str], ubatch: int
) -> list[MemoryPart]:
    """Keys and values of the attention layers; a layer with a sliding window keeps its window and one batch."""
    interval = model.number("full_attention_interval")
    recurrent = model.number("ssm.state_size") is not None
    attention = list(range(layers))
    if recurrent and interval:
        attention = [layer for layer in attention if (layer + 1) % interval == 0]
    elif recurrent:
        counts = model.per_layer("attention.head_count_kv", layers)
        attention = [layer for layer in attention if counts is not None and counts[layer]]
    window = model.number("attention.sliding_window")
    windowed = _windowed(model, attention) if window else []
    small = min(context, _cells((window or 0) + ubatch))
    full = _attention(model, [layer for layer in attention if layer not in windowed], context, types)
    slid = _attention(model, windowed, small, types)
    if full is None or slid is None:
        unknown.append("KV cache: the header does not tell the heads of its attention")
        return []
    words = f"K {types[0]}, V {types[1]}"
    count = len(attention) - len(windowed)
    found = [MemoryPart("KV cache", full, f"{context} cells × {count} layers, {words}")]
    if windowed:
        found.append(MemoryPart("KV cache, windows", slid, f"{small} cells × {len(windowed)} layers, {words}"))
    elif window:
        unknown.append("which layers have a sliding window is not in the header: counted as if none had")
    return found


def _windowed(model: Layout, attention: list[int]) -> list[int]:
    pattern = model.arrays.get(f"{model.architecture}.attention.sliding_window_pattern")
    if pattern is not None:
        return [layer for layer in attention if layer < len(pattern) and pattern[layer]]
    every = model.number("attention.sliding_window_pattern")
    if every is not None and every > 1:
        return [layer for layer in attention if (layer + 1) % every]
    return []


def _attention(model: Layout, layers: range | list[int], context: int, types: tuple[str, str]) -> int | None:
    if not layers:
        return 0
    last = max(layers) + 1
    heads = model.per_layer("attention.head_count", last)
    kv = model.per_layer("attention.head_count_kv", last) or heads
    width = model.number("embedding_length")
    if kv is None or heads is None or width is None or not all(heads[layer] for layer in layers):
        return None
    total = 0.0
    for layer in layers:
        head = width // heads[layer]
        key = model.number("attention.key_length", head) or head
        value = model.number("attention.value_length", head) or head
        total += context * kv[layer] * (key * BYTES_PER_ELEMENT[types[0]] + value * BYTES_PER_ELEMENT[types[1]])
    return round(total)


def _state(model: Layout, layers: int, copies: int, unknown: list[str]) -> list[MemoryPart]:
    """What the recurrent layers of a hybrid keep, in f32, with a copy for every token that may be taken back."""
    size = model.number("ssm.state_size")
    inner, conv, groups = (model.number(f"ssm.{name}") for name in ("inner_size", "conv_kernel", "group_count"))
    if size is None:
        return []
    if inner is None or conv is None:
        unknown.append("recurrent state: the header does not tell its sizes")
        return []
    interval = model.number("full_attention_interval")
    if interval:
        count = sum((layer + 1) % interval != 0 for layer in range(layers))
    else:
        kv = model.per_layer("attention.head_count_kv", layers)
        count = layers if kv is None else sum(not one for one in kv)
    row = (conv - 1) * (inner + 2 * (groups or 0) * size) + size * inner
    one = 4 * count * row
    basis = f"{count} layers in f32"
    found = [MemoryPart("recurrent state", one, basis)]
    if copies:
        what = "recurrent snapshots"
        found.append(MemoryPart(what, one * copies, f"{basis} × {copies} draft tokens", speculation=True))
    return found


def _compute(model: Layout, ubatch: int, context: int, *, flash: bool) -> MemoryPart:
    """A guess by rule: the logits and the activations of one physical batch; scores too without flash attention."""
    vocabulary = model.number("vocab_size", 0) or 0
    width = model.number("embedding_length", 0) or 0
    wide = max(model.per_layer("feed_forward_length", 1) or (0,))
    floats = ubatch * (vocabulary + 2 * wide + 4 * width)
    if not flash:
        floats += ubatch * context * max(model.per_layer("attention.head_count", 1) or (0,))
    basis = f"one batch of {ubatch}: logits, 4 × width, 2 × feed-forward, f32"
    return MemoryPart("compute buffers", 4 * floats, basis, estimate=True)
