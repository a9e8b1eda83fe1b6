"""Runs the exactness checks that stored answers allow, and places every speculative cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.exactness.checking import judge_check
from orchestrator.exactness.checks import DISTRIBUTION, checks_of
from orchestrator.exactness.coverage import REPLAYS, Gate, active_gates
from orchestrator.exactness.cross import cross_scored
from orchestrator.exactness.greedy import greedy_identity
from orchestrator.exactness.groups import Mark, mark, place
from orchestrator.exactness.replays import replayed, scored_answers
from orchestrator.exactness.seed import seed_identity
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.cell import CHECK_SUFFIX, Role
from orchestrator.schema.record import Engagement
from orchestrator.schema.result import CheckResult, GreedyIdentity, Output, Placement, Verdict
from orchestrator.store.outputs import outputs

if TYPE_CHECKING:
    from orchestrator.store.index import Index
    from orchestrator.store.states import CellState

NO_CLAIM = Claim(Rule.UNKNOWN, None, "nobody")
EXACT_NUMERICS = "numerics_exact"
"""Key of ``MatrixRecord.run_settings``: names of engines whose two arms compute the same numbers, by a test."""


@dataclass(frozen=True, slots=True)
class Checks:
    """By cell id: greedy identity where it was compared, the group, how far the claim was checked, the active gates."""

    identities: Mapping[str, GreedyIdentity]
    placements: Mapping[str, Placement]
    marks: Mapping[str, Mark]
    gates: Mapping[str, frozenset[Gate]] = field(default_factory=dict)


def run_checks(index: Index) -> Checks:
    """All checks that need nothing but the stored answers."""
    every = outputs(index)
    vouched = index.matrix.run_settings.get(EXACT_NUMERICS, ()) if index.matrix is not None else ()
    scoring = bool(index.matrix is not None and index.matrix.run_settings.get("checks", {}).get("cross_scoring"))
    identities: dict[str, GreedyIdentity] = {}
    placements: dict[str, Placement] = {}
    marks: dict[str, Mark] = {}
    gates: dict[str, frozenset[Gate]] = {}
    able = index.matrix.run_settings.get(REPLAYS, ()) if index.matrix is not None else ()
    for state in index.cells.values():
        if state.role is not Role.SPECULATIVE:
            continue
        twin = next((s.id for s in index.cells.values() if s.role is Role.TWIN and s.block == state.block), None)
        ours = _of_block(every, state, twin)
        greedy = state.settings["sampling"]["temperature"] == 0
        identity, seed = None, None
        told = replayed(index, state)
        if greedy and state.trials:
            exact = state.settings["engine"]["name"] in vouched
            identity = greedy_identity(
                state.id,
                state.baseline or "",
                ours,
                twin,
                numerics_exact=exact,
                replays=told.replays,
                jitter_nat=told.limit_nat,
            )
            identities[state.id] = identity
        elif state.trials:
            seed = seed_identity(state.id, state.baseline or "", ours, twin)
        cross = None
        if state.trials and (scoring or told.scored):
            arms = (state.baseline or "", state.id)
            counted = {cell: scored_answers(ours, cell, greedy=greedy) for cell in arms}
            cross = cross_scored(state, told, counted)
        judged = _distribution(index, state)
        distribution, beside = (judged[0], judged[1:]) if judged else (None, ())
        made = checks_of(
            is_greedy=greedy,
            identity=identity,
            seed=seed,
            distribution=distribution,
            beside=beside,
            cross_scoring=cross,
        )
        # Where an engine does not report its drafts, nothing says that none were made.
        engaged = state.engagement in (Engagement.ENGAGED, Engagement.UNVERIFIABLE) or not state.trials
        placements[state.id] = place(state.id, state.claim or NO_CLAIM, made, engaged)
        marks[state.id] = mark(made, engaged)
        gates[state.id] = active_gates(state, made, replays=state.settings["engine"]["name"] in able)
    return Checks(identities, placements, marks, gates)


def _distribution(index: Index, state: CellState) -> tuple[CheckResult, ...]:
    """The cell's distribution check with what goes with it; nothing where the matrix asks for none."""
    check = index.checks.get(state.id + CHECK_SUFFIX)
    if check is None:
        return ()
    if check.attempt is None or not check.arms:
        words = f"not tested: {check.reason or check.status.value}"
        return (CheckResult(DISTRIBUTION, Verdict.NOT_TESTED, words),)
    return judge_check(check, state.claim).results


def _of_block(every: tuple[Output, ...], state: CellState, twin: str | None) -> tuple[Output, ...]:
    cells = {state.id, state.baseline, twin}
    return tuple(one for one in every if one.cell in cells and one.attempt == state.attempt)
