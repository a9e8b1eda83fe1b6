"""How long sessions took, for the expected time of a plan and of a running run."""

from __future__ import annotations

from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING

from orchestrator.schema.record import CheckRecord, SessionRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.schema.record import Record


def session_seconds(records: Iterable[Record]) -> dict[str, list[float]]:
    """Seconds of every session by cell id, to a few milliseconds (wall-clock stamps are kept to 1 ms)."""
    taken: dict[str, list[float]] = {}
    for record in records:
        if isinstance(record, SessionRecord):
            span = datetime.fromisoformat(record.ended_utc) - datetime.fromisoformat(record.started_utc)
            taken.setdefault(record.place.cell, []).append(span.total_seconds())
    return taken


def expected_s(queue: Sequence[str], spent_s: Mapping[str, Sequence[float]]) -> float:
    """Seconds that the queued sessions will take: by the same cell's sessions, else its engine's, else all others'.

    Args:
        queue: cell ids, one per session still to run.
        spent_s: seconds of finished sessions by cell id; must not be empty.
    """
    everything = [span for spans in spent_s.values() for span in spans]
    engines: dict[str, list[float]] = {}
    for cell, spans in spent_s.items():
        engines.setdefault(cell.split("/")[0], []).extend(spans)
    return sum(median(spent_s.get(cell) or engines.get(cell.split("/")[0]) or everything) for cell in queue)


def generation_seconds(records: Iterable[Record]) -> dict[str, float]:
    """Median seconds of one generation of a distribution check, by engine."""
    taken: dict[str, list[float]] = {}
    for record in records:
        if isinstance(record, CheckRecord) and record.tokens:
            span = datetime.fromisoformat(record.ended_utc) - datetime.fromisoformat(record.started_utc)
            taken.setdefault(record.cell.split("/")[0], []).append(span.total_seconds() / len(record.tokens))
    return {engine: median(spans) for engine, spans in taken.items()}
