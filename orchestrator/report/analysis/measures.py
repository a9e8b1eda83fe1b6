"""From trial and session records to values by metric: summaries, absences with their reasons, frames for statistics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from orchestrator.report.analysis.findings import DraftTotals, Missing, ProcessTotal
from orchestrator.schema.cell import Role
from orchestrator.schema.metrics import TIME_TO_N, VOCABULARY, Scope
from orchestrator.schema.observation import Absence, Observation
from orchestrator.schema.record import Phase, SessionRecord, TrialRecord
from orchestrator.schema.result import Summary
from orchestrator.schema.status import STATUS_RULES, Status
from orchestrator.stats.estimate import summary
from orchestrator.store.states import CellState

SESSION_PROMPT = "-"
"""The prompt id of values that describe a whole session, so that they pair by session alone."""

COLUMNS = pd.Index(["set_index", "prompt_id", "trial", "value"])
"""Of what statistics are given."""

PHASE_TIMES = ("draft_time", "verify_time", "rollback_time")
"""What an instrumented repeat times."""

DRAFTING = frozenset({
    "drafted_tokens", "accepted_tokens", "rejected_tokens", "discarded_tokens", "verify_rounds", "acceptance_rate",
    "mean_accepted_length", "tokens_per_round", "tokens_per_pass", "draft_time", "verify_time", "rollback_time",
    "speculative_coverage",
})  # fmt: skip
"""Metrics that a run without speculation cannot have."""

_ABSENT_WHEN = {
    Status.NOT_RUN: Absence.NOT_RUN,
    Status.SKIPPED: Absence.NOT_RUN,
    Status.UNAVAILABLE: Absence.NOT_RUN,
    Status.STALE: Absence.NOT_RUN,
    Status.ABORTED: Absence.NOT_RUN,
    Status.UNSUPPORTED: Absence.NOT_APPLICABLE,
}


@dataclass(frozen=True, slots=True)
class Arm:
    """The pooled sessions and measured trials of one cell in one attempt."""

    sessions: tuple[SessionRecord, ...]
    trials: tuple[TrialRecord, ...]
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Each asked for many times: a baseline's once for every cell that stands on it."""

    def frame(self, metric: str) -> pd.DataFrame:
        """Columns ``set_index``, ``prompt_id``, ``trial`` and ``value``, in base units; not to be changed."""
        if metric not in self._frames:
            self._frames[metric] = self._frame(metric)
        return self._frames[metric]

    def _frame(self, metric: str) -> pd.DataFrame:
        records: Iterable[TrialRecord | SessionRecord] = self.trials
        if VOCABULARY[metric].scope is Scope.SESSION:
            records = self.sessions
        rows = [
            (record.place.set_index, *_where(record), float(value))
            for record in records
            for value in _numbers(record.observations, metric)
        ]
        # As objects, in one block: a frame of four types costs more than all that is computed from it.
        table = np.empty((len(rows), len(COLUMNS)), dtype=object)
        for place, row in enumerate(rows):
            table[place] = row
        return pd.DataFrame(table, columns=COLUMNS)


def arm_of(state: CellState, attempt: int | None) -> Arm:
    """The cell in that attempt: its own figures, or those of an older one on which other cells stand."""
    sessions = tuple(s for s in (*state.partner_sessions, *state.sessions) if s.place.attempt == attempt)
    trials = tuple(t for t in (*state.partner_trials, *state.trials) if t.place.attempt == attempt)
    return Arm(sessions, tuple(t for t in trials if t.phase is Phase.MEASURED))


def summaries(arm: Arm) -> dict[str, Summary]:
    """Median, MAD and raw values of every numeric metric that has any."""
    values: dict[str, list[float]] = defaultdict(list)
    for item in _observations(arm):
        if isinstance(item.value, int | float) and not isinstance(item.value, bool):
            values[item.metric].append(float(item.value))
    return {metric: summary(found) for metric, found in values.items()}


def phase_times(state: CellState, arm: Arm) -> dict[str, Summary]:
    """Draft, verify and rollback seconds per answer of the instrumented repeat, where there was one without a fault."""
    sessions = {session.place for session in arm.sessions}
    values: dict[str, list[float]] = defaultdict(list)
    for trial in state.trials:
        if trial.phase is not Phase.PHASES or trial.status is not Status.OK or trial.problems:
            continue
        if trial.place in sessions:
            for metric in PHASE_TIMES:
                values[metric] += _numbers(trial.observations, metric)
    return {metric: summary(found) for metric, found in values.items() if found}


def process_totals(state: CellState, arm: Arm) -> dict[str, ProcessTotal]:
    """Metrics of an answer that the engine totals over a process: no answer has its own, and it is not divided here."""
    values: dict[str, list[float]] = defaultdict(list)
    notes: dict[str, str] = {}
    for session in arm.sessions:
        for item in session.observations:
            if _is_total(item) and isinstance(item.value, int | float) and not isinstance(item.value, bool):
                values[item.metric].append(float(item.value))
                notes.setdefault(item.metric, item.note or "")
    if not values:
        return {}
    served = Counter(trial.place for trial in (*state.partner_trials, *state.trials))
    counts = [served[session.place] for session in arm.sessions]
    return {
        metric: ProcessTotal(summary(found), (min(counts), max(counts)), notes[metric])
        for metric, found in values.items()
    }


def missing(state: CellState, arm: Arm, metrics: Iterable[str]) -> tuple[dict[str, Missing], dict[str, Missing]]:
    """Why metrics have no value at all; and where some records have one, why and how many others do not."""
    absences: dict[str, list[Observation]] = defaultdict(list)
    present: Counter[str] = Counter()
    for item in _observations(arm):
        if item.absent is not None:
            absences[item.metric].append(item)
        else:
            present[item.metric] += 1
    none: dict[str, Missing] = {}
    for metric in metrics:
        if present[metric]:
            continue
        said = absences.get(metric, [])
        if state.role is not Role.SPECULATIVE and metric in DRAFTING:
            none[metric] = Missing(Absence.NOT_APPLICABLE, "")
        elif said:
            none[metric] = _recorded(said)
        elif not arm.trials:
            none[metric] = _unmeasured(state)
        else:
            none[metric] = Missing(Absence.NOT_REPORTED, "")
    partial = {metric: _recorded(said) for metric, said in absences.items() if present[metric]}
    return none, partial


def _recorded(said: Sequence[Observation]) -> Missing:
    """What the first of the absences says."""
    return Missing(said[0].absent or Absence.NOT_REPORTED, said[0].note or "", len(said))


def _observations(arm: Arm) -> Iterable[Observation]:
    """Of answers and of sessions; a total of a process is no value of an answer, and stands among neither."""
    for trial in arm.trials:
        yield from trial.observations
    for session in arm.sessions:
        yield from (item for item in session.observations if not _is_total(item))


def _is_total(item: Observation) -> bool:
    """Whether what a session reports is a metric of one answer: a running total of its process."""
    return item.absent is None and VOCABULARY[item.metric].scope is Scope.TRIAL


def _unmeasured(state: CellState) -> Missing:
    word = STATUS_RULES[state.status].word
    why = f"{word}: {state.reason}" if state.reason else word
    return Missing(_ABSENT_WHEN.get(state.status, Absence.FAILED), why)


def longest_reached(arms: Sequence[Arm]) -> int | None:
    """The largest N of ``time_to_n`` that every trial of every arm reached."""
    reached = [n for n in TIME_TO_N if all(_all_have(arm, f"time_to_{n}") for arm in arms)]
    return max(reached, default=None)


def reached_by_both(cell: Arm, base: Arm) -> tuple[str, ...]:
    """Names of the ``time_to_n`` that some trial of each arm reached."""
    names = (f"time_to_{n}" for n in TIME_TO_N)
    return tuple(name for name in names if _any_has(cell, name) and _any_has(base, name))


def draft_totals(arm: Arm) -> DraftTotals | None:
    """Sums over the trials that report drafting; ``None`` when none does."""
    counted = [t for t in arm.trials if _number(t, "drafted_tokens") is not None]
    if not counted:
        return None

    def total(metric: str) -> int | None:
        found = [_number(trial, metric) for trial in counted]
        return None if any(value is None for value in found) else round(sum(value or 0 for value in found))

    drafted, accepted = total("drafted_tokens"), total("accepted_tokens")
    if drafted is None or accepted is None:
        return None
    return DraftTotals(drafted, accepted, total("rejected_tokens"), total("discarded_tokens"), total("verify_rounds"))


def acceptance_frame(arm: Arm) -> pd.DataFrame:
    """Columns ``prompt_id``, ``drafted``, ``accepted`` of the trials that report both."""
    rows = []
    for trial in arm.trials:
        drafted, accepted = _number(trial, "drafted_tokens"), _number(trial, "accepted_tokens")
        if drafted is not None and accepted is not None:
            rows.append((trial.prompt_id, round(drafted), round(accepted)))
    return pd.DataFrame(rows, columns=["prompt_id", "drafted", "accepted"])


def doubtful(arm: Arm) -> int:
    """Answers that break an invariant: what is read from their stamps is not to be compared."""
    return sum(1 for trial in arm.trials if trial.problems)


def problem_counts(trials: Iterable[TrialRecord]) -> tuple[tuple[str, int], ...]:
    """Broken invariants with how many trials each was seen in, most frequent first."""
    counts = Counter(problem for trial in trials for problem in set(trial.problems))
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def medians(found: Mapping[str, Summary]) -> dict[str, float]:
    """Median by metric."""
    return {metric: one.median for metric, one in found.items()}


def _number(record: TrialRecord | SessionRecord, metric: str) -> float | None:
    return next(iter(_numbers(record.observations, metric)), None)


def _numbers(observations: Iterable[Observation], metric: str) -> list[float]:
    return [
        float(item.value) for item in observations
        if item.metric == metric and isinstance(item.value, int | float) and not isinstance(item.value, bool)
    ]  # fmt: skip


def _where(record: TrialRecord | SessionRecord) -> tuple[str, int]:
    return (record.prompt_id, record.trial) if isinstance(record, TrialRecord) else (SESSION_PROMPT, 0)


def _any_has(arm: Arm, metric: str) -> bool:
    return any(_number(trial, metric) is not None for trial in arm.trials)


def _all_have(arm: Arm, metric: str) -> bool:
    return bool(arm.trials) and all(_number(trial, metric) is not None for trial in arm.trials)
