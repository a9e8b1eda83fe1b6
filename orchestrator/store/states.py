"""What an index knows of a cell and of a block attempt; and which of several statuses is the worst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.schema.adapter import Claim
from orchestrator.schema.cell import Role
from orchestrator.schema.record import Engagement, SessionRecord, TrialRecord
from orchestrator.schema.status import Status

BADNESS: tuple[Status, ...] = (
    Status.OK,
    Status.SKIPPED,
    Status.NOT_RUN,
    Status.STALE,
    Status.UNAVAILABLE,
    Status.UNSUPPORTED,
    Status.ABORTED,
    Status.CONFOUNDED,
    Status.MEMORY_PRESSURE,
    Status.TIMEOUT,
    Status.FAILED,
    Status.UNPARSED,
    Status.NOT_ENGAGED,
    Status.CONTAMINATED,
)
"""All statuses from good to bad: last those whose figures would be wrong, before them those that have none."""

_RANK = {status: rank for rank, status in enumerate(BADNESS)}


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of the statuses by :data:`BADNESS`; ``ok`` when there are none."""
    return max(statuses, key=_RANK.__getitem__, default=Status.OK)


@dataclass(frozen=True, slots=True)
class CellState:
    """A cell of the current matrix with what counts for it.

    A session is *pooled* when its set is complete and it and all its trials are ``ok``.

    Args:
        fingerprint: the current one, of the newest matrix revision.
        attempt: the newest attempt that measured the cell with this fingerprint; ``None`` without one.
        sets_done: complete sets of the attempt that hold a session of the cell, of ``sets_planned``.
        sessions: pooled ones of the attempt, by set; ``trials`` are theirs, warm-up included.
        failed_sessions: sessions of the attempt that ended neither ``ok`` nor ``aborted`` and were not made anew.
        failed_trials: their trials; shown, never pooled.
        stale_trials: of the newest attempt with an older fingerprint, where there is no attempt with the current
            one; shown, never pooled.
        partner_sessions: of a baseline or twin: pooled sessions of older attempts on which other cells of the block
            still stand. For comparisons inside that attempt only, never for the cell's own figures.
        partner_trials: the trials of ``partner_sessions``.
        engagement: over the pooled sessions, or over all that were judged when none is pooled.
        history: status per attempt that held the cell, each judged under its own fingerprint.
        facts: what the fingerprint hashes besides the settings, in clear; empty for runs of older versions.
    """

    id: str
    block: str
    role: Role
    baseline: str | None
    fingerprint: str
    status: Status
    reason: str
    remedy: str
    attempt: int | None
    sets_done: int
    sets_planned: int
    sessions: tuple[SessionRecord, ...]
    trials: tuple[TrialRecord, ...]
    failed_sessions: tuple[SessionRecord, ...]
    failed_trials: tuple[TrialRecord, ...]
    stale_trials: tuple[TrialRecord, ...]
    partner_sessions: tuple[SessionRecord, ...]
    partner_trials: tuple[TrialRecord, ...]
    claim: Claim | None
    settings: Mapping[str, Any]
    engagement: Engagement | None
    history: tuple[tuple[int, Status], ...]
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttemptState:
    """A block attempt, for resuming it.

    Args:
        cells: fingerprint by cell id, as recorded when the attempt began.
        complete: the take that completed a set, by set index.
        takes: the highest take seen of each set, complete or not.
        current: whether every cell is in the newest matrix with the recorded fingerprint; else it is not resumed.
        max_sets: the limit of an adaptive attempt, whose ``planned_sets`` becomes the number that was enough.
        stopped: why it stopped early.
        purpose: ``confirm`` where the best of several faster cells was measured anew.
    """

    block: str
    attempt: int
    cells: Mapping[str, str]
    planned_sets: int
    trials_per_session: int
    complete: Mapping[int, int]
    takes: Mapping[int, int]
    order: str
    order_seed: int
    current: bool
    max_sets: int | None = None
    stopped: str = ""
    purpose: str = ""

    @property
    def missing(self) -> tuple[int, ...]:
        """Planned sets that are not complete."""
        return tuple(number for number in range(self.planned_sets) if number not in self.complete)

    def next_take(self, set_index: int) -> int:
        """The lowest take above every one in the journal; 0 for a set that was not begun.

        A session killed before its end leaves a folder and no record: see also ``RunDirectory.next_take``.
        """
        return self.takes.get(set_index, -1) + 1
