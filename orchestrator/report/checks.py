"""Runs the exactness checks that stored answers allow, and places every speculative cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.exactness.checks import checks_of
from orchestrator.exactness.greedy import greedy_identity
from orchestrator.exactness.groups import Mark, mark, place
from orchestrator.exactness.seed import seed_identity
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.cell import Role
from orchestrator.schema.record import Engagement
from orchestrator.schema.result import GreedyIdentity, Output, Placement
from orchestrator.store.outputs import outputs

if TYPE_CHECKING:
    from orchestrator.store.index import Index
    from orchestrator.store.states import CellState

NO_CLAIM = Claim(Rule.UNKNOWN, None, "nobody")
EXACT_NUMERICS = "numerics_exact"
"""Key of ``MatrixRecord.run_settings``: names of engines whose two arms compute the same numbers, by a test."""


@dataclass(frozen=True, slots=True)
class Checks:
    """By cell id: greedy identity where it was compared, the group, and how far the claim was checked."""

    identities: Mapping[str, GreedyIdentity]
    placements: Mapping[str, Placement]
    marks: Mapping[str, Mark]


def run_checks(index: Index) -> Checks:
    """All checks that need nothing but the stored answers."""
    every = outputs(index)
    vouched = index.matrix.run_settings.get(EXACT_NUMERICS, ()) if index.matrix is not None else ()
    identities: dict[str, GreedyIdentity] = {}
    placements: dict[str, Placement] = {}
    marks: dict[str, Mark] = {}
    for state in index.cells.values():
        if state.role is not Role.SPECULATIVE:
            continue
        twin = next((s.id for s in index.cells.values() if s.role is Role.TWIN and s.block == state.block), None)
        ours = _of_block(every, state, twin)
        greedy = state.settings["sampling"]["temperature"] == 0
        identity, seed = None, None
        if greedy and state.trials:
            exact = state.settings["engine"]["name"] in vouched
            identity = greedy_identity(state.id, state.baseline or "", ours, twin, numerics_exact=exact)
            identities[state.id] = identity
        elif state.trials:
            seed = seed_identity(state.id, state.baseline or "", ours, twin)
        made = checks_of(is_greedy=greedy, identity=identity, seed=seed)
        # Where an engine does not report its drafts, nothing says that none were made.
        engaged = state.engagement in (Engagement.ENGAGED, Engagement.UNVERIFIABLE) or not state.trials
        placements[state.id] = place(state.id, state.claim or NO_CLAIM, made, engaged)
        marks[state.id] = mark(made, engaged)
    return Checks(identities, placements, marks)


def _of_block(every: tuple[Output, ...], state: CellState, twin: str | None) -> tuple[Output, ...]:
    cells = {state.id, state.baseline, twin}
    return tuple(one for one in every if one.cell in cells and one.attempt == state.attempt)
