"""What memory a llama-cpp-python cell will need: llama.cpp's parts, and the scores that the package keeps."""

from __future__ import annotations

from dataclasses import replace

from pydantic import ValidationError

from adapters.llama_cpp_python.support import engine_options
from adapters.shared.gguf_layout import LayoutError, read_layout
from adapters.shared.llama_memory import Asked, of_target
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.fit import MemoryNeed, MemoryPart, Unmapped

PROGRAM = 42_000_000
"""Resident bytes of Python, numpy and the package after import, measured once on Linux."""


class LcppMemory:
    """The part of the adapter that foresees memory (:class:`orchestrator.schema.fit.ForeseesMemory`)."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """By the headers of the cell's files and its options."""
        try:
            return _need(cell)
        except (LayoutError, ValidationError) as err:
            return MemoryNeed((), (str(err),))

    def unmapped(self, cell: Cell) -> Unmapped:
        """The same cell with its file read instead of mapped."""
        options = {**cell.engine.options, "mmap": False}
        return Unmapped(
            replace(cell, engine=replace(cell.engine, options=options)), "weights read, not mapped (use_mmap)"
        )


def _need(cell: Cell) -> MemoryNeed:
    options = engine_options(cell)
    target = read_layout(cell.model.target)
    types = (options.cache_type_k, options.cache_type_v)
    unknown: list[str] = []
    found = of_target(target, Asked(options.context, types, options.ubatch, flash=options.flash_attention), 0, unknown)
    parts = [part for part in found if part.size]
    vocabulary = target.vocabulary
    if cell.method.kind is MethodKind.NGRAM and vocabulary is None:
        unknown.append("scores of every token: the header tells no vocabulary")
    elif cell.method.kind is MethodKind.NGRAM and vocabulary is not None:
        size = 4 * options.context * vocabulary
        basis = f"{options.context} tokens × {vocabulary} scores, f32; at most: a row is touched when its token is read"
        parts.append(MemoryPart("scores of every token", size, basis, estimate=True, speculation=True))
    parts.append(MemoryPart("program", PROGRAM, "measured once on Linux", estimate=True))
    return MemoryNeed(tuple(parts), tuple(unknown))
