"""What memory an MLX-LM cell will need: weights by safetensors headers, caches by configuration, buffers guessed."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.fit import MemoryNeed, MemoryPart, Unmapped
from orchestrator.workloads.load import load_prompts

STEP = 256
"""mlx-lm's ``KVCache`` grows by so many tokens."""
PROGRAM = 90_000_000
"""Resident bytes of Python with mlx, transformers and the tokenizer, measured once on Linux (``docs/memory.md``)."""
CHARACTERS_PER_TOKEN = 3
_SIZES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "I32": 4,
    "U32": 4,
    "I16": 2,
    "U16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
_FLOATS = {"float32": 4, "float16": 2, "bfloat16": 2}
_LONGEST_HEADER = 100_000_000


class MlxMemory:
    """The part of the MLX-LM adapter that foresees memory (:class:`orchestrator.schema.fit.ForeseesMemory`)."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """By the headers of the cell's files and its options."""
        options = cell.engine.options
        return need(cell, options.get("dtype"), options.get("kv_bits"), int(options.get("kv_group_size") or 64))

    def unmapped(self, cell: Cell) -> Unmapped:
        """The cell itself: mlx reads weights into buffers of its own and maps no file."""
        return Unmapped(cell, "weights read into mlx's own buffers, as always")


def need(cell: Cell, dtype: str | None, kv_bits: int | None, kv_group_size: int) -> MemoryNeed:
    """The memory of the cell in one worker process.

    Args:
        cell: the resolved cell.
        dtype: the type that weights are cast to; ``None`` as stored.
        kv_bits: bits of a quantised cache; ``None`` for one in the weights' own type.
        kv_group_size: numbers that share a scale and an offset in a quantised cache.
    """
    parts: list[MemoryPart] = []
    unknown: list[str] = []
    models = [("", cell.model.target)]
    if cell.method.kind is MethodKind.DRAFT and cell.draft_path is not None:
        models.append(("draft ", cell.draft_path))
    for prefix, folder in models:
        try:
            parts += _model(prefix, Path(folder), _tokens(cell), dtype, kv_bits, kv_group_size)
        except (OSError, ValueError, KeyError, TypeError, struct.error) as err:
            unknown.append(f"{prefix}model {folder}: {type(err).__name__}: {err}")
    parts.append(MemoryPart("program", PROGRAM, "measured once with a tiny model on Linux", estimate=True))
    return MemoryNeed(tuple(parts), tuple(unknown))


def _tokens(cell: Cell) -> int:
    """Cells of the cache that the longest prompt with its answer fills; the prompt's tokens are guessed."""
    try:
        longest = max(len(prompt.text) for prompt in load_prompts(*cell.workload.source))
    except ValueError:
        longest = 0
    wanted = -(-longest // CHARACTERS_PER_TOKEN) + cell.workload.max_tokens + (cell.method.n_max or 0) + 1
    return -(-wanted // STEP) * STEP


def _model(
    prefix: str, folder: Path, tokens: int, dtype: str | None, kv_bits: int | None, group: int
) -> list[MemoryPart]:
    config = _config(folder)
    stored, size, widest = _weights(folder, dtype)
    drafter = bool(prefix)
    cast = f", cast to {dtype}" if dtype is not None else ""
    found = [MemoryPart(f"{prefix}weights", size, f"safetensors headers{cast}", speculation=drafter)]
    layers, heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
    kv = int(config.get("num_key_value_heads") or heads)
    head = int(config.get("head_dim") or int(config["hidden_size"]) // heads)
    interval = config.get("full_attention_interval")
    attention = layers // int(interval) if interval else layers
    per_number = float(widest)
    words = f"{8 * widest}-bit floats, {stored}"
    if kv_bits is not None:
        per_number = kv_bits / 8 + 2 * widest / group
        words = f"{kv_bits} bits in groups of {group}"
    cache = round(2 * tokens * attention * kv * head * per_number)
    basis = f"{tokens} tokens (prompt guessed) × {attention} layers, {words}"
    found.append(MemoryPart(f"{prefix}KV cache", cache, basis, estimate=True, speculation=drafter))
    if interval:
        found.append(_state(prefix, config, layers - attention, drafter=drafter))
    rows = min(tokens, 2048)
    wide = int(config.get("intermediate_size") or 0)
    floats = rows * (4 * int(config["hidden_size"]) + 2 * wide) + int(config["vocab_size"])
    basis = f"one prefill pass of {rows} tokens"
    found.append(MemoryPart(f"{prefix}compute buffers", widest * floats, basis, estimate=True, speculation=drafter))
    return found


def _state(prefix: str, config: dict[str, Any], layers: int, *, drafter: bool) -> MemoryPart:
    """Gated delta-net layers: one matrix a value head and a short convolution, in f32 and the weights' type."""
    keys, values = int(config["linear_num_key_heads"]), int(config["linear_num_value_heads"])
    k, v = int(config["linear_key_head_dim"]), int(config["linear_value_head_dim"])
    conv = (int(config["linear_conv_kernel_dim"]) - 1) * (2 * keys * k + values * v)
    size = layers * 4 * (values * k * v + conv)
    return MemoryPart(f"{prefix}recurrent state", size, f"{layers} layers in f32", estimate=True, speculation=drafter)


def _weights(folder: Path, dtype: str | None) -> tuple[str, int, int]:
    """Stored types in words, bytes once loaded, and bytes of the widest float."""
    total, kinds, widest = 0, set(), 2
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise ValueError("no model*.safetensors")
    for file in files:
        for name, entry in _header(file).items():
            if name == "__metadata__":
                continue
            kind, (begin, end) = str(entry["dtype"]), entry["data_offsets"]
            size = int(end) - int(begin)
            kinds.add(kind)
            if dtype is not None and kind in ("F64", "F32", "F16", "BF16"):
                size = size // _SIZES[kind] * _FLOATS[dtype]
            elif kind == "F32":
                widest = 4
            total += size
    return ", ".join(sorted(kinds)), total, _FLOATS[dtype] if dtype is not None else widest


def _header(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        if length > _LONGEST_HEADER:
            raise ValueError(f"{file.name}: a header of {length} bytes")
        found = json.loads(opened.read(length))
    if not isinstance(found, dict):
        raise ValueError(f"{file.name}: the header is no object")  # noqa: TRY004  (one error for all that is no model)
    return found


def _config(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    inner = found.get("text_config") if isinstance(found, dict) else None
    return {**found, **inner} if isinstance(inner, dict) else dict(found)
