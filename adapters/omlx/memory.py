"""What memory an oMLX cell will need: weights and caches as MLX-LM has them, whose models oMLX serves."""

from __future__ import annotations

import dataclasses

from adapters.omlx.options import Path, path_of
from adapters.shared.mlx_memory import need
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.fit import MemoryNeed, MemoryPart, Unmapped

PROGRAM = 145_000_000
"""Peak resident bytes of a serving flyto-mlx 0.7.0 less a tiny model's weights, measured once on Linux (CPU)."""


class OmlxMemory:
    """The part of the oMLX adapter that foresees memory (:class:`orchestrator.schema.fit.ForeseesMemory`)."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """By the headers of the cell's files: the target's own MTP layers are among its weights."""
        found = need(_as_draft(cell), None, None, 64)
        parts = tuple(part for part in found.parts if part.what != "program")
        program = MemoryPart("program", PROGRAM, "measured once with a tiny model on Linux", estimate=True)
        return MemoryNeed((*parts, program), found.unknown)

    def unmapped(self, cell: Cell) -> Unmapped:
        """The cell itself: mlx reads weights into buffers of its own and maps no file."""
        return Unmapped(cell, "weights read into mlx's own buffers, as always")


def _as_draft(cell: Cell) -> Cell:
    """The cell with VLM MTP's drafter in the place of a draft model: its folder is loaded besides the target's."""
    if path_of(cell) is not Path.VLM or cell.model.mtp is None:
        return cell
    method = dataclasses.replace(cell.method, kind=MethodKind.DRAFT, draft="drafter")
    model = dataclasses.replace(cell.model, drafts={"drafter": cell.model.mtp}, mtp=None)
    return dataclasses.replace(cell, method=method, model=model)
