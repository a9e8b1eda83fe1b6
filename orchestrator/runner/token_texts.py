"""Writes down how the tokens around a divergence are spelled, so that a report needs no model file for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.clock import utc_now
from orchestrator.exactness.greedy import greedy_identity
from orchestrator.exactness.replays import of_block, twin_of
from orchestrator.schema.adapter import token_texts
from orchestrator.schema.cell import Role
from orchestrator.schema.record import TokensRecord
from orchestrator.schema.replay import Purpose
from orchestrator.store.index import Index
from orchestrator.store.outputs import outputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.matrix.types import Block
    from orchestrator.runner.execute import Job
    from orchestrator.schema.result import Output
    from orchestrator.store.directory import RunDirectory

BEFORE, AFTER = 4, 8
"""Tokens of each answer before and from the place where two answers part."""


def record_token_texts(job: Job, directory: RunDirectory) -> None:
    """One record per block attempt in which answers part, where the adapter knows the target's vocabulary."""
    index = Index.build(directory.records())
    every = outputs(index)
    for block in job.expansion.blocks:
        adapter = job.adapters[block.baseline.engine.adapter]
        for attempt, wanted in _wanted(index, block, every).items():
            known = index.texts.get((block.id, attempt), {})
            texts = token_texts(adapter, block.baseline, tuple(sorted(wanted - known.keys())))
            if texts:
                spelled = {str(number): text for number, text in texts.items()}
                directory.append(TokensRecord(block.id, attempt, spelled, utc_now()))


def _wanted(index: Index, block: Block, every: tuple[Output, ...]) -> dict[int, set[int]]:
    """Ids by attempt."""
    found: dict[int, set[int]] = {}
    for state in index.cells.values():
        greedy = state.settings["sampling"]["temperature"] == 0
        if state.block != block.id or state.role is not Role.SPECULATIVE or not greedy:
            continue
        if state.attempt is None or not state.trials:
            continue
        ours = of_block(every, index, state)
        identity = greedy_identity(state.id, state.baseline or "", ours, twin_of(index, state))
        for one in identity.divergences:
            near = slice(max(0, one.index - BEFORE), one.index + AFTER)
            found.setdefault(state.attempt, set()).update((*one.baseline_ids[near], *one.cell_ids[near]))
    for attempt, ids in found.items():
        ids.update(_ranked(index, block.id, attempt))
    return {attempt: {number for number in ids if number >= 0} for attempt, ids in found.items()}


def _ranked(index: Index, block: str, attempt: int) -> Iterator[int]:
    """What the baseline would have said at those places, by its replays."""
    for one in index.replays:
        if (one.block, one.attempt, one.purpose) == (block, attempt, Purpose.DIVERGENCE):
            for place in one.ranked:
                yield from (number for number, _ in place.top)
