"""How long sessions took, for the expected time of a plan."""

from __future__ import annotations

from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING

from orchestrator.schema.record import SessionRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.schema.record import Record


def session_seconds(records: Iterable[Record]) -> dict[str, float]:
    """Median seconds per session by cell id, to a few milliseconds (wall-clock stamps are kept to 1 ms)."""
    taken: dict[str, list[float]] = {}
    for record in records:
        if isinstance(record, SessionRecord):
            span = datetime.fromisoformat(record.ended_utc) - datetime.fromisoformat(record.started_utc)
            taken.setdefault(record.place.cell, []).append(span.total_seconds())
    return {cell: median(spans) for cell, spans in taken.items()}
