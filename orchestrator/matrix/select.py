"""Cells by what the user types: an id, or a glob in which ``*`` crosses ``/``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from orchestrator.schema.errors import SelectionError

if TYPE_CHECKING:
    from orchestrator.schema.cell import Cell, CheckCell

Chosen = TypeVar("Chosen", bound="Cell | CheckCell")


def select(cells: Sequence[Chosen], patterns: Sequence[str]) -> tuple[Chosen, ...]:
    """The cells that any pattern names, in the order of ``cells``, each once.

    Raises:
        SelectionError: patterns that name nothing, each with the nearest ids.
    """
    by_id = {cell.id: cell for cell in cells}
    return tuple(by_id[one] for one in matching_ids(tuple(by_id), patterns))


def matching_ids(ids: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The ids that any pattern names, in the order of ``ids``, each once.

    Raises:
        SelectionError: patterns that name nothing, each with the nearest ids.
    """
    found: set[str] = set()
    unknown: list[str] = []
    for pattern in patterns:
        # An id is tried first as it is: it may hold nothing that a glob reads, but a pattern must never hide it.
        matches = {one for one in ids if one == pattern} or {one for one in ids if fnmatchcase(one, pattern)}
        found |= matches
        if not matches:
            unknown.append(_unknown(pattern, ids))
    if unknown:
        raise SelectionError("\n".join(unknown))
    return tuple(one for one in dict.fromkeys(ids) if one in found)


def _unknown(pattern: str, ids: Sequence[str]) -> str:
    what = f"no cell matches {pattern!r}"
    if not ids:
        return f"{what}: there are no cells"
    inside = [one for one in ids if pattern and pattern in one]
    if inside:
        return f"{what} as a whole; for the {len(inside)} that contain it, write '*{pattern}*'"
    bare = re.sub(r"[*?\[\]]", "", pattern)
    near = get_close_matches(bare, ids, n=3, cutoff=0.5) or list(ids[:3])
    return f"{what}; nearest: {', '.join(near)} (`specmatrix plan` lists all; in a glob * crosses /)"
