"""Which replays a run's answers call for, and what those made say: pure, from the journal's index.

Everything here is about block attempts at their newest: a divergence, or a text to be scored, belongs to the attempt
in which its cell was measured beside its baseline.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.exactness.greedy import greedy_identity
from orchestrator.exactness.neartie import Replay, Top, jitter_limit
from orchestrator.exactness.outputs import MEASURED
from orchestrator.schema.cell import Role
from orchestrator.schema.replay import Purpose, Ranked, Width
from orchestrator.schema.status import Status
from orchestrator.store.outputs import outputs

if TYPE_CHECKING:
    from orchestrator.schema.record import ReplayRecord
    from orchestrator.schema.result import Output
    from orchestrator.store.index import Index
    from orchestrator.store.states import CellState

MOST_DIVERGENCES = 24
"""Places replayed per block attempt; the others stay not adjudicated, and are said to be."""
JITTER_TOKENS = 64
"""Tokens of one baseline answer along which jitter is measured: kernels change with the width of a pass."""
JITTER_PLACES = 16
"""Places among them that are ranked in one pass as well, evenly spaced, the last one among them."""
MOST_TEXTS = 12
"""Answers scored per cell."""
WORST_RANK = 10**6
"""Stands for a rank beyond what the engine told."""


Answer = tuple[str, tuple[int, ...]]
"""Prompt id, and the token ids as far as the engine told them."""


@dataclass(frozen=True, slots=True)
class Want:
    """One text that a block's baseline should rank; see :class:`orchestrator.schema.replay.ReplaySpec`."""

    block: str
    attempt: int
    purpose: Purpose
    about: str
    prompt_id: str
    ids: tuple[int, ...]
    places: tuple[int, ...]
    width: Width
    full: bool

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two of them the same."""
        return (self.block, self.attempt, self.purpose, self.prompt_id, self.ids, self.places, self.width, self.full)


def wanted(
    index: Index, block: str, *, adjudicate: bool, scoring: bool, scoring_width: Width, cells: frozenset[str]
) -> tuple[Want, ...]:
    """The replays that are still to be made for a block, each once.

    Args:
        index: of the journal so far.
        block: its id.
        adjudicate: whether differences at temperature 0 are to be adjudicated.
        scoring: whether texts are to be scored under the baseline.
        scoring_width: how the engine ranks a long text.
        cells: speculative cells that this is about.
    """
    made = {_key(one) for one in index.replays}
    every = outputs(index)
    found: dict[tuple[object, ...], Want] = {}
    for state in index.cells.values():
        if state.block != block or state.role is not Role.SPECULATIVE or state.id not in cells:
            continue
        if state.attempt is None or not state.trials or state.baseline is None:
            continue
        ours = of_block(every, index, state)
        flips = list(_divergences(index, state, ours)) if adjudicate and _greedy(state) else []
        texts = list(_texts(state, ours, scoring_width)) if scoring else []
        # A full window of jitter is only measured where a limit is needed.
        control = _jitter(state, ours) if flips or (texts and _greedy(state)) else ()
        for want in (*control, *flips, *texts):
            if want.key not in made:
                found.setdefault(want.key, want)
    return _bounded(index, found.values())


def of_block(every: Sequence[Output], index: Index, state: CellState) -> tuple[Output, ...]:
    """The outputs of a cell, its baseline and its twin in the attempt that the cell was measured in."""
    twin = twin_of(index, state)
    cells = {state.id, state.baseline, twin}
    return tuple(one for one in every if one.cell in cells and one.attempt == state.attempt)


def twin_of(index: Index, state: CellState) -> str | None:
    """The A/A twin of the cell's block."""
    return next((s.id for s in index.cells.values() if s.role is Role.TWIN and s.block == state.block), None)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the replays of a block attempt say.

    Args:
        replays: of divergences.
        limit_nat: of a near-tie, measured; ``None`` where it was not.
        failures: why replays that were wanted could not be made, each once.
    """

    replays: tuple[Replay, ...]
    limit_nat: float | None
    failures: tuple[str, ...]
    scored: tuple[ReplayRecord, ...]


def replayed(index: Index, state: CellState) -> Replayed:
    """Everything that was replayed in the attempt that the cell stands on."""
    own = [one for one in index.replays if (one.block, one.attempt) == (state.block, state.attempt)]
    good = [one for one in own if one.status is Status.OK]
    replays = tuple(
        Replay(one.prompt_id, ranked.place, one.ids[: ranked.place], ranked.top)
        for one in good
        if one.purpose is Purpose.DIVERGENCE
        for ranked in one.ranked
    )
    failures = dict.fromkeys(one.reason for one in own if one.status is not Status.OK)
    scored = tuple(one for one in good if one.purpose is Purpose.SCORING)
    return Replayed(replays, _limit(good), tuple(failures), scored)


def _limit(records: Iterable[ReplayRecord]) -> float | None:
    by_width: dict[Width, dict[tuple[object, ...], Top]] = {Width.SINGLE: {}, Width.BATCHED: {}}
    for one in records:
        if one.purpose is Purpose.JITTER:
            for ranked in one.ranked:
                by_width[one.width][one.prompt_id, one.ids[: ranked.place]] = ranked.top
    single, batched = by_width[Width.SINGLE], by_width[Width.BATCHED]
    both = [place for place in single if place in batched]
    return jitter_limit([single[place] for place in both], [batched[place] for place in both])


def worst_rank(ranked: Ranked) -> int:
    """The rank of the text's own token, or a rank beyond all others where the engine told none."""
    return WORST_RANK if ranked.rank is None else ranked.rank


def gap_of(ranked: Ranked) -> float:
    """How far the text's own token is below the best, nat; infinite where the engine told no probability for it."""
    return math.inf if ranked.logprob is None else ranked.top[0][1] - ranked.logprob


def _divergences(index: Index, state: CellState, ours: Sequence[Output]) -> Iterator[Want]:
    identity = greedy_identity(state.id, state.baseline or "", ours, twin_of(index, state))
    if identity.control_same < identity.control_compared:
        return
    for one in identity.divergences:
        if one.index >= min(len(one.baseline_ids), len(one.cell_ids)):
            continue
        prefix = one.baseline_ids[: one.index]
        if all(token >= 0 for token in (*prefix, one.baseline_ids[one.index], one.cell_ids[one.index])):
            yield _want(state, Purpose.DIVERGENCE, one.prompt_id, prefix, (one.index,), Width.BATCHED)


def _jitter(state: CellState, ours: Sequence[Output]) -> tuple[Want, ...]:
    text = next(
        (
            one
            for one in ours
            if one.cell == state.baseline and one.phase == MEASURED and len(_known(one.token_ids)) >= JITTER_PLACES
        ),
        None,
    )
    if text is None:
        return ()
    ids = _known(text.token_ids)[:JITTER_TOKENS]
    step = len(ids) // JITTER_PLACES
    spaced = tuple(range(len(ids) - 1 - step * (JITTER_PLACES - 1), len(ids), step))
    return (
        _want(state, Purpose.JITTER, text.prompt_id, ids, tuple(range(len(ids))), Width.SINGLE),
        _want(state, Purpose.JITTER, text.prompt_id, ids, spaced, Width.BATCHED),
    )


def scored_answers(ours: Sequence[Output], cell: str, *, greedy: bool) -> tuple[Answer, ...]:
    """The answers of a cell that cross-scoring is about: the first :data:`MOST_TEXTS` in order of set and trial.

    Above temperature 0 which of them count must not hang on their text: leaving out repeated answers would leave the
    rare ones, which are unlikely text. So each counts as often as it was given. At 0 nothing is drawn, each token is
    judged by itself, and distinct answers show more of them.

    Args:
        ours: outputs of the cell's attempt.
        cell: its id.
        greedy: whether nothing is drawn.
    """
    mine = sorted(
        (one for one in ours if one.cell == cell and one.phase == MEASURED), key=lambda one: (one.set_index, one.trial)
    )
    found: list[Answer] = [(one.prompt_id, _known(one.token_ids)) for one in mine]
    if greedy:
        found = list(dict.fromkeys(answer for answer in found if answer[1]))
    return tuple(answer for answer in found[:MOST_TEXTS] if answer[1])


def _texts(state: CellState, ours: Sequence[Output], width: Width) -> Iterator[Want]:
    greedy = _greedy(state)
    for cell in (state.baseline or "", state.id):
        for prompt_id, ids in dict.fromkeys(scored_answers(ours, cell, greedy=greedy)):
            places = tuple(range(len(ids)))
            yield _want(state, Purpose.SCORING, prompt_id, ids, places, width, about=cell, full=not greedy)


def _want(
    state: CellState,
    purpose: Purpose,
    prompt_id: str,
    ids: tuple[int, ...],
    places: tuple[int, ...],
    width: Width,
    *,
    about: str | None = None,
    full: bool = False,
) -> Want:
    who = about or state.baseline or ""
    return Want(state.block, state.attempt or 0, purpose, who, prompt_id, ids, places, width, full)


def _key(one: ReplayRecord) -> tuple[object, ...]:
    return (one.block, one.attempt, one.purpose, one.prompt_id, one.ids, one.places, one.width, one.full)


def _bounded(index: Index, wants: Iterable[Want]) -> tuple[Want, ...]:
    """At most :data:`MOST_DIVERGENCES` per attempt, those of earlier runs counted in."""
    flips = Counter((one.block, one.attempt) for one in index.replays if one.purpose is Purpose.DIVERGENCE)
    kept = []
    for want in wants:
        if want.purpose is Purpose.DIVERGENCE:
            flips[want.block, want.attempt] += 1
            if flips[want.block, want.attempt] > MOST_DIVERGENCES:
                continue
        kept.append(want)
    return tuple(kept)


def _known(ids: tuple[int, ...]) -> tuple[int, ...]:
    """The tokens up to the first whose id the engine did not tell."""
    return next((ids[:place] for place, token in enumerate(ids) if token < 0), ids)


def _greedy(state: CellState) -> bool:
    return bool(state.settings["sampling"]["temperature"] == 0)
