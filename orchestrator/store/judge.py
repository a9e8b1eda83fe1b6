"""What one attempt says of one cell: which sessions count, which may be pooled, and the status that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.schema.record import AttemptRecord, Engagement, Phase, SessionRecord, TrialRecord
from orchestrator.schema.status import STATUS_RULES, Status
from orchestrator.store.ledger import Ledger
from orchestrator.store.states import worst

_ENGAGEMENT_ORDER = (
    Engagement.NOT_ENGAGED,
    Engagement.ENGAGED,
    Engagement.UNVERIFIABLE,
    Engagement.IDLE,
    Engagement.OFF,
)
"""A cell's engagement is the first of these that any session has: something drafted anywhere makes it engaged."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A session that counts for its cell: the status that it and its trials have together, and whether it pools."""

    session: SessionRecord
    trials: tuple[TrialRecord, ...]
    status: Status
    reason: str
    complete: bool

    @property
    def pooled(self) -> bool:
        """Whether its set is complete and its figures may be compared."""
        return self.complete and STATUS_RULES[self.status].ranked

    @property
    def failed(self) -> bool:
        """Whether it ended by itself, and not well."""
        return self.status not in (Status.OK, Status.ABORTED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One cell in one attempt."""

    attempt: int
    planned: int
    done: int
    counted: tuple[Counted, ...]
    status: Status
    reason: str
    remedy: str

    @property
    def pooled(self) -> tuple[Counted, ...]:
        """The sessions whose figures may be pooled, by set."""
        return tuple(one for one in self.counted if one.pooled)

    @property
    def failed(self) -> tuple[Counted, ...]:
        """The sessions that failed, by set."""
        return tuple(one for one in self.counted if one.failed)

    @property
    def engagement(self) -> Engagement | None:
        """Over the pooled sessions, or over all counted ones when none is pooled."""
        found = {one.session.engagement for one in self.pooled or self.counted}
        return next((kind for kind in _ENGAGEMENT_ORDER if kind in found), None)


def judge(ledger: Ledger, cell: str, attempt: AttemptRecord) -> Verdict:
    """The cell's part in the attempt, under the fingerprint that the attempt recorded for it."""
    counted = _counted(ledger, cell, attempt)
    done = sum(one.complete for one in counted)
    status, reason, remedy = _status(ledger, cell, attempt, counted, done)
    return Verdict(attempt.attempt, attempt.planned_sets, done, counted, status, reason, remedy)


def trials_of(sessions: Sequence[Counted]) -> tuple[TrialRecord, ...]:
    """The trials of the sessions, in order."""
    return tuple(trial for one in sessions for trial in one.trials)


def _counted(ledger: Ledger, cell: str, attempt: AttemptRecord) -> tuple[Counted, ...]:
    """One session for each set: the one that completed it, else the cell's last.

    So a failure is forgotten only when that cell was measured anew in that set, not when others were.
    """
    key = (attempt.block, attempt.attempt)
    chosen: dict[int, tuple[SessionRecord, bool]] = {}
    for session in ledger.sessions.get((cell, *key), ()):
        place = session.place
        if place.fingerprint != attempt.cells[cell]:
            continue
        closing = ledger.complete.get(key, {}).get(place.set_index)
        complete = closing is not None and closing.take == place.take and closing.cells.get(cell) == place.fingerprint
        before = chosen.get(place.set_index)
        if before is None or complete or (not before[1] and place.take >= before[0].place.take):
            chosen[place.set_index] = (session, complete)
    return tuple(_count(ledger, *chosen[number]) for number in sorted(chosen))


def _count(ledger: Ledger, session: SessionRecord, complete: bool) -> Counted:
    trials = tuple(sorted(ledger.trials.get(session.place, ()), key=lambda trial: trial.trial))
    # What the instrumented repeat came to says nothing about the figures measured before it.
    told = [trial for trial in trials if trial.phase is not Phase.PHASES]
    status = worst((session.status, *(trial.status for trial in told)))
    reason = session.reason
    if status is not session.status:
        bad = next(trial for trial in told if trial.status is status)
        reason = f"trial {bad.trial} ({bad.phase.value}): {bad.reason}"
    return Counted(session, trials, status, reason, complete)


def _status(
    ledger: Ledger, cell: str, attempt: AttemptRecord, counted: tuple[Counted, ...], done: int
) -> tuple[Status, str, str]:
    bad = worst(one.status for one in counted)
    if bad is not Status.OK:
        latest = [one for one in counted if one.status is bad][-1]
        return bad, latest.reason, latest.session.remedy
    if attempt.planned_sets and done >= attempt.planned_sets:
        return Status.OK, "", ""
    sets = f"{done} of {attempt.planned_sets} sets are complete"
    if (cell, attempt.block, attempt.attempt) in ledger.begun:
        return Status.ABORTED, f"interrupted: {sets}", "run again: complete sets are kept"
    return Status.NOT_RUN, f"attempt {attempt.attempt} began, no session ended yet", "run again"
