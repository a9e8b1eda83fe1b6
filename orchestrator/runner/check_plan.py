"""Which distribution checks are to run, in which attempt, and what they will cost: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.schema.cell import CheckCell, fingerprint
from orchestrator.schema.record import CheckArm
from orchestrator.schema.status import Status

if TYPE_CHECKING:
    from orchestrator.runner.survey import CellFate
    from orchestrator.schema.cell import Cell
    from orchestrator.store.check_states import CheckState

PILOT_CONTEXTS, PILOT = 12, 50
SIZES = {"screen": (1_000, 2), "certify": (7_000, 3)}
"""Generations per arm and context, and contexts; :mod:`orchestrator.exactness.distribution` says the same, tested."""
TOKENS = 5
COUPLED = 100
SHARED_ARMS = (CheckArm.OFF, CheckArm.OFF_AGAIN, CheckArm.CONTROL)
OPEN = frozenset({Status.NOT_RUN, Status.ABORTED, Status.STALE})


@dataclass(frozen=True, slots=True)
class CheckPrints:
    """Fingerprints of a check: of its own arms, and of those that its block's checks share."""

    own: str
    base: str


@dataclass(frozen=True, slots=True)
class PlannedCheck:
    """One attempt of a block's checks.

    Args:
        attempt: its number; ``is_new`` when nothing of it exists yet.
        checks: in order of the matrix.
        shared_done: generations of the shared arms that exist already.
    """

    block: str
    attempt: int
    is_new: bool
    baseline: Cell
    base: str
    preset: str
    checks: tuple[CheckCell, ...]
    shared_done: int
    own_done: int

    @property
    def most_generations(self) -> int:
        """Generations at most: pilot, the three shared arms once, and for each check its own and the coupled ones."""
        per_arm, contexts = SIZES[self.preset]
        shared = 0 if self.shared_done else PILOT_CONTEXTS * PILOT
        shared += max(0, len(SHARED_ARMS) * per_arm * contexts - self.shared_done)
        own = len(self.checks) * (per_arm + COUPLED) * contexts - self.own_done
        return shared + max(0, own)

    @property
    def most_tokens(self) -> int:
        """Output tokens at most."""
        return TOKENS * self.most_generations


def prints_of(check: CheckCell, fates: Mapping[str, CellFate]) -> CheckPrints:
    """What a check's generations depend on: as for the cell, but not on how often the matrix measures its wait."""
    own, base = fates[check.cell.id], fates[check.baseline.id]
    facts = {"check": f"{check.preset} {SIZES[check.preset]} tokens={TOKENS} pilot={PILOT_CONTEXTS}x{PILOT}"}
    return CheckPrints(
        fingerprint(check.cell, _lasting(own.facts) | facts), fingerprint(check.baseline, _lasting(base.facts) | facts)
    )


def plan_checks(
    checks: Sequence[CheckCell],
    fates: Mapping[str, CellFate],
    states: Mapping[str, CheckState],
    last_attempts: Mapping[str, int],
    *,
    selected: frozenset[str],
    again: bool,
) -> tuple[PlannedCheck, ...]:
    """The attempts to run, one per block at most.

    Args:
        checks: of the matrix.
        fates: of its cells; a check of a cell that cannot run is not planned.
        states: what the journal holds.
        last_attempts: the highest attempt number of each block.
        selected: ids of checks to make.
        again: make them anew although they are decided.
    """
    blocks: dict[str, list[CheckCell]] = {}
    for check in checks:
        runnable = fates[check.cell.id].refusal is None and fates[check.baseline.id].refusal is None
        state = states.get(check.id)
        is_open = again or state is None or state.status in OPEN or state.fingerprint != prints_of(check, fates).own
        if check.id in selected and runnable and is_open:
            blocks.setdefault(check.block_id, []).append(check)
    planned = []
    for block, members in blocks.items():
        first = members[0]
        base = prints_of(first, fates).base
        known = [states[one.id] for one in members if one.id in states]
        resumed = [one.attempt for one in known if one.attempt is not None and one.base == base]
        attempt = max(resumed, default=None) if not again else None
        is_new = attempt is None
        number = last_attempts.get(block, 0) + 1 if attempt is None else attempt
        mine = [] if is_new else [one for one in known if one.attempt == number]
        shared = _count(mine[:1], frozenset(SHARED_ARMS))
        own = _count(mine, frozenset({CheckArm.ON, CheckArm.COUPLED}))
        planned.append(
            PlannedCheck(block, number, is_new, first.baseline, base, first.preset, tuple(members), shared, own)
        )
    return tuple(planned)


def _lasting(facts: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in facts.items() if key != "run"}


def _count(states: Sequence[CheckState], arms: frozenset[CheckArm]) -> int:
    return sum(
        len(batch.tokens)
        for state in states
        for arm, contexts in state.arms.items()
        if arm in arms
        for batches in contexts.values()
        for batch in batches
    )
