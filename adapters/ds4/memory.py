"""What memory a ds4 cell will need, as far as its files tell: they are nearly all of it."""

from __future__ import annotations

from adapters.ds4.options import mtp_options
from adapters.shared.gguf_layout import LayoutError, read_layout
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.fit import MemoryNeed, MemoryPart, Unmapped

REST = "KV cache and buffers: their size is by rules of ds4's own, which prints it as it starts"
INSIDE = "the MTP module apart from the target: it is in the same file, which is mapped whole in every arm"


class Ds4Memory:
    """The part of the ds4 adapter that foresees memory (:class:`orchestrator.schema.fit.ForeseesMemory`)."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """By the headers of the cell's files."""
        return need(cell)

    def unmapped(self, cell: Cell) -> Unmapped | None:  # noqa: ARG002  (the port's signature)
        """None: ds4 has no option to read its files instead of mapping them."""
        return None


def need(cell: Cell) -> MemoryNeed:
    """The weights of the cell in one process, all of which it keeps in memory: no option for SSD streaming is given."""
    files = [(cell.model.target, "weights", "tensors of the target's file")]
    unknown = [REST]
    if cell.method.kind is MethodKind.MTP:
        if mtp_options(cell.method).drafter == "embedded":
            unknown.append(INSIDE)
        elif cell.model.mtp is not None:
            files.append((cell.model.mtp, "MTP weights", "tensors of the MTP file"))
    parts = []
    for path, what, basis in files:
        try:
            size = sum(read_layout(path).tensors.values())
        except LayoutError as err:
            unknown.append(str(err))
        else:
            parts.append(MemoryPart(what, size, basis, speculation=path != cell.model.target))
    return MemoryNeed(tuple(parts), tuple(unknown))
