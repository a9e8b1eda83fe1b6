"""Whether a workload's prompts can fit into the engine's context at all, told without starting the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.schema.adapter import Refusal, token_texts
from orchestrator.schema.status import Status
from orchestrator.workloads.least_tokens import Pieces, least_tokens, pieces

if TYPE_CHECKING:
    from orchestrator.schema.adapter import Adapter
    from orchestrator.schema.cell import Cell
    from orchestrator.workloads.prompt import Prompt

CONTEXT = "context"
"""The engine option, in tokens, of every adapter that has one; 0 stands for the model's own, which is not judged."""
CELLS = 256
"""llama.cpp rounds a context up to a multiple of this, so one that is smaller may hold as much."""
MOST_IDS = 1_000_000
"""More than any vocabulary has."""
_VOCABULARIES: dict[tuple[str, str, int, int], Pieces] = {}
"""By adapter and file, as it was read."""


@dataclass(frozen=True, slots=True)
class Longest:
    """The prompt with the highest bound, and the context it is to go into.

    Args:
        prompt: its id.
        least: tokens that it is at least.
        context: tokens, as written.
        room: the most that such a context holds.
    """

    prompt: str
    least: int
    context: int
    room: int


def longest(cell: Cell, adapter: Adapter, sent: Sequence[Prompt]) -> Longest | None:
    """The longest of the prompts that with its answer may not fit; ``None`` where all do, or too little is known.

    Args:
        cell: with its engine's options.
        adapter: knows the vocabulary in the model's own files, or does not.
        sent: each measured prompt as it is sent.
    """
    context = cell.engine.options.get(CONTEXT)
    if not isinstance(context, int) or context <= 0:
        return None
    room = -(-context // CELLS) * CELLS
    # No token is less than a byte: most prompts are settled without the vocabulary.
    enough = room - cell.workload.max_tokens
    long = [one for one in sent if len(one.text.encode("utf-8", "surrogatepass")) > enough]
    known = _vocabulary(adapter, cell) if long else None
    if known is None:
        return None
    least, name = max((_least(one.text, known), one.id) for one in long)
    return Longest(name, least, context, room)


def room_refusal(cell: Cell, found: Longest | None) -> Refusal | None:
    """Why the prompt cannot fit; ``None`` where it may."""
    if found is None or found.least < found.room:
        return None
    reason = f"{_is_long(cell, found)}, the context holds {found.context}"
    return Refusal(Status.UNSUPPORTED, reason, f"{_widen(cell, found)}, or take shorter prompts")


def crowded(cell: Cell, found: Longest | None) -> str:
    """A sentence where the prompt fits, and an answer as long as ``max_tokens`` after it does not; else empty."""
    asked = cell.workload.max_tokens
    if found is None or found.least >= found.room or found.least + asked <= found.room:
        return ""
    return (
        f"{_is_long(cell, found)}: with the {asked} of max_tokens that is more than the context of {found.context}, so "
        f"answers may be cut; {_widen(cell, found)}, or lower max_tokens"
    )


def _is_long(cell: Cell, found: Longest) -> str:
    which = f"prompt {found.prompt} of workload {cell.workload.name}"
    return f"{which} is at least {found.least} tokens by the model's vocabulary"


def _widen(cell: Cell, found: Longest) -> str:
    wanted = -(-(found.least + cell.workload.max_tokens) // CELLS) * CELLS
    return f"set engines.{cell.engine.name}.options.{CONTEXT} to {wanted} or more"


def _vocabulary(adapter: Adapter, cell: Cell) -> Pieces | None:
    """The target's pieces, read once for all cells; ``None`` where the adapter does not know them."""
    path = Path(cell.model.target)
    stat = path.stat()
    key = (adapter.name, str(path), stat.st_size, stat.st_mtime_ns)
    if key not in _VOCABULARIES:
        _VOCABULARIES[key] = pieces(token_texts(adapter, cell, tuple(range(MOST_IDS))).values())
    found = _VOCABULARIES[key]
    return found if found.every else None


@lru_cache(maxsize=64)
def _least(text: str, known: Pieces) -> int:
    """Counted once for all cells of a model and a workload."""
    return least_tokens(text, known)
