"""What memory a Slipstream cell will need: not to be told from its files, and this says why."""

from __future__ import annotations

from adapters.slipstream.options import engine_options
from orchestrator.schema.cell import Cell
from orchestrator.schema.fit import MemoryNeed, Unmapped


class SlipstreamMemory:
    """The part of the Slipstream adapter that foresees memory (:class:`orchestrator.schema.fit.ForeseesMemory`)."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """Nothing: how much of its files it keeps is the engine's choice.

        Source: runtime/model/WeightStore.cpp at e253787, which maps its files, and SPLASH_EXPERT_CACHE_GIB.
        """
        options = engine_options(cell)
        limit = "as much as it decides" if options.max_memory_gib is None else f"up to {options.max_memory_gib} GiB"
        return MemoryNeed((), (f"it maps its files and keeps {limit} of them in memory, experts as they are used",))

    def unmapped(self, cell: Cell) -> Unmapped | None:  # noqa: ARG002  (the port's signature)
        """None: it has no option to read its files instead of mapping them."""
        return None
