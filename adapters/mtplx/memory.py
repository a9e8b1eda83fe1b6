"""What memory an MTPLX cell will need: weights by the folder's headers, caches as MLX-LM has them."""

from __future__ import annotations

import dataclasses

from adapters.shared import mlx_memory
from orchestrator.schema.cell import Cell, Method, MethodKind
from orchestrator.schema.fit import MemoryNeed, Unmapped

REST = "the program and the cache of its MTP head: never measured"


class MtplxMemory:
    """The part of the MTPLX adapter that foresees memory (:class:`orchestrator.schema.fit.ForeseesMemory`)."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """By the headers of the model's folder, whose MTP head is loaded in every arm."""
        alone = dataclasses.replace(cell, method=Method("none", MethodKind.NONE))
        found = mlx_memory.need(alone, None, None, 64)
        parts = tuple(part for part in found.parts if part.what != "program")
        return MemoryNeed(parts, (*found.unknown, REST))

    def unmapped(self, cell: Cell) -> Unmapped:
        """The cell itself: mlx reads weights into buffers of its own and maps no file."""
        return Unmapped(cell, "weights read into mlx's own buffers, as always")
