"""Which faults a run would have caught: from what its cells reported and which checks were made.

The same table predicts what ``specmatrix selftest`` must see when it puts each fault into a real stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.exactness import greedy
from orchestrator.exactness.checks import DISTRIBUTION
from orchestrator.schema.cell import MethodKind
from orchestrator.schema.record import Engagement, Phase
from orchestrator.schema.result import CheckResult, Verdict

if TYPE_CHECKING:
    from orchestrator.schema.record import TrialRecord
    from orchestrator.store.states import CellState

CROSS_SCORING = "cross-scoring"
REPLAYS = "replays"
"""Key of ``MatrixRecord.run_settings``: engines whose baseline can rank a given text."""


class Gate(StrEnum):
    """What a fault can be caught by."""

    ENGAGEMENT = "engagement: a drafter that proposes in every round must have proposed"
    CONTAMINATION = "contamination: cached prompt tokens must be 0"
    STREAM = "stream: running counts and token ids must agree"
    COUNTS = "counts: independent counters and the pass invariant must agree"
    CLOCKS = "clocks: our decode rate and the engine's must agree"
    GREEDY_IDENTITY = "greedy identity, differences adjudicated by replay"
    CROSS_SCORING = "cross-scoring"
    DISTRIBUTION = "distribution check"


class Fault(StrEnum):
    """What can go wrong between an engine and its figures, as the self-test makes it."""

    CONTROL = "nothing (control)"
    DROPPED_DRAFTER = "drafter silently dropped"
    CACHED_PROMPT = "prompt taken from a cache"
    LENIENT = "lenient acceptance: draft-like tokens kept"
    DUPLICATED = "a token sent twice"
    INJECTED = "a foreign token injected"
    STALLED = "a burst stalled"
    COUNT_IN_ANSWER = "accepted tokens off by one in the answer"
    COUNT_IN_METRICS = "accepted tokens off by one in the counters"
    HIDDEN_CACHE = "prompt taken from a cache, reported as none"


_TEXT = (Gate.GREEDY_IDENTITY, Gate.CROSS_SCORING)
CAUGHT_BY: dict[Fault, tuple[Gate, ...]] = {
    Fault.DROPPED_DRAFTER: (Gate.ENGAGEMENT,),
    Fault.CACHED_PROMPT: (Gate.CONTAMINATION,),
    Fault.LENIENT: (*_TEXT, Gate.DISTRIBUTION),
    Fault.DUPLICATED: (Gate.STREAM,),
    Fault.INJECTED: _TEXT,
    Fault.STALLED: (Gate.CLOCKS,),
    Fault.COUNT_IN_ANSWER: (Gate.COUNTS,),
    Fault.COUNT_IN_METRICS: (Gate.COUNTS,),
    Fault.HIDDEN_CACHE: (),
}
"""By fault, the gates of which any one suffices. A hidden cache shows in nothing but a quick first answer."""


@dataclass(frozen=True, slots=True)
class Caught:
    """Whether a fault would have been caught, and by which gates; ``missing`` are those that would have to be on."""

    fault: Fault
    by: tuple[Gate, ...]
    missing: tuple[Gate, ...]

    @property
    def caught(self) -> bool:
        """Whether any gate would have caught it."""
        return bool(self.by)


def coverage(active: Iterable[Gate]) -> tuple[Caught, ...]:
    """Each fault against the gates that were active, in the order of the table."""
    on = frozenset(active)
    return tuple(
        Caught(fault, tuple(gate for gate in gates if gate in on), tuple(gate for gate in gates if gate not in on))
        for fault, gates in CAUGHT_BY.items()
    )


def active_gates(state: CellState, checks: Sequence[CheckResult], *, replays: bool) -> frozenset[Gate]:
    """The gates that really looked at a speculative cell: settings alone do not make one active.

    Args:
        state: the cell; without a pooled trial nothing was looked at.
        checks: its exactness checks.
        replays: whether its baseline can rank a given text, without which a difference stays undecided.
    """
    trials = [trial for trial in state.trials if trial.phase is Phase.MEASURED]
    if not trials:
        return frozenset()
    verdicts = {check.check: check.verdict for check in checks}
    told = [_told(trial) for trial in trials]

    def everywhere(*metrics: str) -> bool:
        return all(set(metrics) <= names for names in told)

    kind = state.settings["method"]["kind"]
    must_draft = kind in (MethodKind.DRAFT, MethodKind.MTP)
    rules = (
        (Gate.ENGAGEMENT, must_draft and state.engagement is Engagement.ENGAGED),
        (Gate.CONTAMINATION, everywhere("cached_tokens")),
        (Gate.STREAM, everywhere("output_tokens") and all(trial.token_ids for trial in trials)),
        (Gate.COUNTS, everywhere("accepted_tokens", "target_passes", "burst_count")),
        (Gate.CLOCKS, everywhere("engine_decode_rate", "burst_count")),
        (Gate.GREEDY_IDENTITY, replays and verdicts.get(greedy.CHECK) in _DECIDED),
        (Gate.CROSS_SCORING, verdicts.get(CROSS_SCORING) in _DECIDED),
        (Gate.DISTRIBUTION, verdicts.get(DISTRIBUTION) in _DECIDED),
    )
    return frozenset(gate for gate, on in rules if on)


_DECIDED = frozenset({Verdict.PASS, Verdict.FAIL})


def _told(trial: TrialRecord) -> set[str]:
    return {item.metric for item in trial.observations if item.value is not None}
