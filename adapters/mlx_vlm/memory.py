"""What memory an mlx-vlm cell will need: the target as in MLX-LM, and the MTP drafter by its own headers."""

from __future__ import annotations

import dataclasses
import struct

from adapters.mlx_vlm import files
from adapters.shared import mlx_memory
from orchestrator.schema.cell import Cell, Method, MethodKind
from orchestrator.schema.fit import MemoryNeed, MemoryPart, Unmapped

STEP = mlx_memory.STEP
GROUP = 64
PROGRAM = 106_000_000
"""Resident bytes of Python with mlx, mlx-vlm and transformers, measured once on Linux (``docs/memory.md``)."""


class VlmMemory:
    """The part of the mlx-vlm adapter that foresees memory (:class:`orchestrator.schema.fit.ForeseesMemory`)."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """By the headers of the cell's files."""
        return need(cell)

    def unmapped(self, cell: Cell) -> Unmapped:
        """The cell itself: mlx reads weights into buffers of its own and maps no file."""
        return Unmapped(cell, "weights read into mlx's own buffers, as always")


def need(cell: Cell) -> MemoryNeed:
    """The memory of the cell in one worker process; embedding and head of the drafter are the target's."""
    alone = dataclasses.replace(cell, method=Method("none", MethodKind.NONE))
    found = mlx_memory.need(alone, None, None, GROUP)
    *model, program = found.parts
    program = dataclasses.replace(program, size=PROGRAM)
    if model:  # a module inside the target's folder is no part of the target once loaded
        model[0] = dataclasses.replace(model[0], size=model[0].size - _module_inside(cell.model.target))
    folder = files.drafter_folder(cell)
    if folder is None:
        return MemoryNeed((*model, program), found.unknown)
    try:
        parts = _drafter(folder, cell)
    except (OSError, ValueError, KeyError, TypeError, struct.error) as err:
        return MemoryNeed((*model, program), (*found.unknown, f"drafter {folder}: {type(err).__name__}: {err}"))
    return MemoryNeed((*model, *parts, program), found.unknown)


def _module_inside(folder: str) -> int:
    """Bytes of the MTP module's tensors in a target's own folder; 0 where none can be seen."""
    try:
        return sum(count for name, count in files.tensor_names(folder).items() if name.startswith("mtp."))
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return 0


def _drafter(folder: str, cell: Cell) -> list[MemoryPart]:
    """Weights and the cache that the drafter keeps of the answer."""
    inside = folder == cell.model.target
    names = files.tensor_names(folder)
    size = sum(count for name, count in names.items() if name.startswith("mtp.") or not inside)
    told = files.text_config(folder)
    layers = int(told.get("mtp_num_hidden_layers") or 1)
    heads = int(told["num_attention_heads"])
    kv = int(told.get("num_key_value_heads") or heads)
    head = int(told.get("head_dim") or int(told["hidden_size"]) // heads)
    tokens = -(-(cell.workload.max_tokens + (cell.method.n_max or 0) + 1) // STEP) * STEP
    basis = f"{tokens} tokens × {layers} layer(s), 32-bit floats at most"
    return [
        MemoryPart("draft weights", size, "safetensors headers", speculation=True),
        MemoryPart("draft KV cache", 2 * tokens * layers * kv * head * 4, basis, estimate=True, speculation=True),
    ]
