"""Progress as events: the runner says what happens, whoever listens decides how to show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.schema.status import Status


@dataclass(frozen=True, slots=True)
class RunStarted:
    """How much there is to do: cell ids, one per session, in order; and how many cells cannot be measured."""

    queue: tuple[str, ...]
    refused: int


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """An engine process is about to start for a cell."""

    cell: str
    set_index: int
    planned_sets: int
    trials: int


@dataclass(frozen=True, slots=True)
class TrialDone:
    """A trial ended; ``engine_line`` is the last line of the engine's log."""

    cell: str
    trial: int
    phase: str
    status: Status
    wait_s: float | None
    engine_line: str


@dataclass(frozen=True, slots=True)
class SessionDone:
    """A session ended with a status; ``duration_s`` covers start to stop."""

    cell: str
    status: Status
    reason: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class CellGivenUp:
    """A cell failed and is left out of the remaining sets of its attempt."""

    cell: str
    sessions_left_out: int


@dataclass(frozen=True, slots=True)
class PreciseEnough:
    """An adaptive attempt stops early: its cells, the sets that are spared, and the interval that was reached."""

    block: str
    cells: tuple[str, ...]
    sets_spared: int
    why: str


@dataclass(frozen=True, slots=True)
class QueueGrew:
    """More sessions than were announced: cell ids, one per session, and why."""

    queue: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class BatchDone:
    """Generations of a distribution check's arm are in the journal: how many of how many, in how many seconds."""

    cell: str
    arm: str
    made: int
    wanted: int
    spent_s: float


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence for the person watching."""

    text: str


Event = (
    RunStarted | SessionStarted | TrialDone | SessionDone | CellGivenUp | PreciseEnough | QueueGrew | BatchDone | Said
)
Listener = Callable[[Event], None]
