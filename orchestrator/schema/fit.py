"""What memory a cell will need, by its files' headers and settings, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from orchestrator.schema.cell import Cell


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One part of the memory that a cell needs.

    Args:
        what: in a few words, e.g. ``KV cache``.
        size: bytes.
        basis: what the figure was computed from.
        estimate: it is a guess by rule, not a sum of what is known.
        speculation: it is there only because of the drafter.
    """

    what: str
    size: int
    basis: str
    estimate: bool = False
    speculation: bool = False


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """The parts, and what could not be computed, in words."""

    parts: tuple[MemoryPart, ...]
    unknown: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Bytes of all parts; a lower bound while something is unknown."""
        return sum(part.size for part in self.parts)

    @property
    def known(self) -> int:
        """Bytes of the parts that are no guess."""
        return sum(part.size for part in self.parts if not part.estimate)

    @property
    def increase(self) -> int:
        """Bytes that are there only because of the drafter."""
        return sum(part.size for part in self.parts if part.speculation)

    def plain(self) -> dict[str, Any]:
        """As JSON has it, for records."""
        return {
            "total_bytes": self.total,
            "increase_bytes": self.increase,
            "parts": [
                {
                    "what": part.what,
                    "bytes": part.size,
                    "basis": part.basis,
                    "estimate": part.estimate,
                    "speculation": part.speculation,
                }
                for part in self.parts
            ],
            "unknown": list(self.unknown),
        }


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A cell whose weights are read into memory instead of mapped, and how that is brought about, in words."""

    cell: Cell
    basis: str


@runtime_checkable
class ForeseesMemory(Protocol):
    """What an adapter may add to the port: it can tell the memory of a cell before it runs."""

    def memory(self, cell: Cell) -> MemoryNeed:
        """What the cell will need; reads headers of files that exist."""
        ...

    def unmapped(self, cell: Cell) -> Unmapped | None:
        """The cell as an untimed memory trial runs it; ``None`` where this engine cannot."""
        ...


def need_of(record: object) -> Mapping[str, Any] | None:
    """The need of a cell as :meth:`MemoryNeed.plain` wrote it into a record; ``None`` where there is none."""
    return record if isinstance(record, Mapping) and isinstance(record.get("total_bytes"), int) else None
