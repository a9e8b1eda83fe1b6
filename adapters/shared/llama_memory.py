"""What memory llama.cpp needs for a model: caches by the rules of the source, compute buffers by a guess.

Caches were compared with what b11434 logs while it loads (``docs/memory.md``); other architectures follow the same
rules from source only.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters.shared.gguf_layout import Layout
from orchestrator.schema.fit import MemoryPart

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

CELLS = 256
"""The context is rounded up to this many cells."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a context is asked for: tokens (0: the model's own), types of K and V, physical batch in tokens."""

    context: int
    types: tuple[str, str]
    ubatch: int
    flash: bool

    def cells(self, target: Layout) -> int:
        """Tokens that its cache holds."""
        return round_cells(self.context or target.number("context_length", 0) or 0)


def of_target(target: Layout, asked: Asked, copies: int, unknown: list[str]) -> list[MemoryPart]:
    """The parts of a model without a drafter; an MTP module in its file is left out.

    Args:
        target: the model's file.
        asked: its context.
        copies: snapshots of a recurrent state that are kept beside it.
        unknown: is added to, in words, what the header does not tell.
    """
    heads, inside = module_blocks(target)
    layers = (target.number("block_count", 0) or 0) - heads
    context = asked.cells(target)
    parts = [MemoryPart("weights", sum(target.tensors.values()) - inside, "tensors of the target's file")]
    parts += cache(target, layers, context, asked.types, unknown, asked.ubatch)
    parts += state(target, layers, copies, unknown)
    parts.append(compute(target, asked.ubatch, context, unknown, flash=asked.flash))
    return parts


def module_blocks(target: Layout) -> tuple[int, int]:
    """How many of a file's last blocks are an MTP module, and the bytes of their tensors."""
    blocks = target.number("block_count", 0) or 0
    heads = target.number("nextn_predict_layers", 0) or 0
    return heads, target.block_bytes(blocks - heads, blocks) if heads else 0


def round_cells(context: int) -> int:
    """The cells of a cache for so many tokens."""
    return -(-context // CELLS) * CELLS


def cache(
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
    small = min(context, round_cells((window or 0) + ubatch))
    full = cache_bytes(model, [layer for layer in attention if layer not in windowed], context, types)
    slid = cache_bytes(model, windowed, small, types)
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


def cache_bytes(model: Layout, layers: range | list[int], context: int, types: tuple[str, str]) -> int | None:
    """Bytes of the keys and values of these layers; ``None`` where the header does not tell their heads."""
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


def state(model: Layout, layers: int, copies: int, unknown: list[str]) -> list[MemoryPart]:
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


def compute(model: Layout, ubatch: int, context: int, unknown: list[str], *, flash: bool) -> MemoryPart:
    """A guess by rule: the logits and the activations of one physical batch; scores too without flash attention."""
    vocabulary = model.vocabulary
    if vocabulary is None:
        unknown.append("logits among the compute buffers: the header tells no vocabulary")
        vocabulary = 0
    width = model.number("embedding_length", 0) or 0
    wide = max(model.per_layer("feed_forward_length", 1) or (0,))
    floats = ubatch * (vocabulary + 2 * wide + 4 * width)
    if not flash:
        floats += ubatch * context * max(model.per_layer("attention.head_count", 1) or (0,))
    basis = f"one batch of {ubatch}: logits, 4 × width, 2 × feed-forward, f32"
    return MemoryPart("compute buffers", 4 * floats, basis, estimate=True)
