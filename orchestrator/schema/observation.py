"""A measured value with all that makes it a fact, or an absence with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.schema.metrics import VOCABULARY, Clock, Unit

Value = float | int | bool | str | tuple[int, ...]


class Absence(StrEnum):
    """Why there is no value. None of these is 0, NaN or an empty cell."""

    NOT_APPLICABLE = "not_applicable"
    NOT_REPORTED = "not_reported"
    NOT_RUN = "not_run"
    FAILED = "failed"
    SUPPRESSED = "suppressed"


@dataclass(frozen=True, slots=True)
class Observation:
    """One metric of one trial or session.

    Args:
        metric: a name of the vocabulary.
        value: in the metric's base unit; ``None`` exactly when ``absent`` is set.
        unit: the metric's base unit.
        clock: whose clock or counter.
        source: where in the capture, e.g. ``events:request/timings.predicted_ms``.
        definition: ``name@version``, or the engine's own definition id.
        absent: why there is no value.
        note: what a reader must know, e.g. that the value is a lower bound.

    Raises:
        ValueError: an unknown metric, a wrong unit, a value beside an absence, or a number that is not finite.
    """

    metric: str
    value: Value | None
    unit: Unit
    clock: Clock
    source: str
    definition: str
    absent: Absence | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        """Refuse what could become a wrong number."""
        known = VOCABULARY.get(self.metric)
        if known is None:
            raise ValueError(f"metric {self.metric!r} is not in the vocabulary")
        if known.unit is not self.unit:
            raise ValueError(f"{self.metric} is in {known.unit.value}, not {self.unit.value}")
        if (self.value is None) == (self.absent is None):
            raise ValueError(f"{self.metric}: exactly one of value and absent must be given")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"{self.metric}: {self.value} is not a measurement")


def observed(
    metric: str,
    value: Value,
    source: str,
    *,
    definition: str | None = None,
    clock: Clock | None = None,
    note: str | None = None,
) -> Observation:
    """An observation with unit, clock and definition taken from the vocabulary unless given."""
    known = VOCABULARY[metric]
    return Observation(metric, value, known.unit, clock or known.clock, source, definition or known.id, None, note)


def absent(metric: str, reason: Absence, why: str) -> Observation:
    """An absence with its reason and one sentence that says why."""
    known = VOCABULARY[metric]
    return Observation(metric, None, known.unit, known.clock, "-", known.id, reason, why)
