"""Near-ties: whether a flipped token was a coin toss of rounding, by a replay on the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator.schema.result import Divergence

ASSUMED_JITTER_NAT = 0.1
"""Used, and called an assumption, where single-vs-batched jitter was not measured for the engine (docs/methodology)."""


Top = tuple[tuple[int, float], ...]
"""(token id, log-probability in nat), best first."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The baseline's own next-token ranking after the prompt and the prefix common to both arms.

    Args:
        prompt_id: the prompt.
        index: how many output tokens were fed; the ranked token is the one at this index.
        prefix: those tokens, so that a replay is never used for another divergence.
        top: (token id, log-probability in nat), best first; at least two entries.
    """

    prompt_id: str
    index: int
    prefix: tuple[int, ...]
    top: Top


JITTER_FACTOR = 3.0
"""The places at which jitter is measured do not hold the worst of a whole run, and a flip picks the bad ones."""
JITTER_FLOOR_NAT = 0.01
"""The limit is never below it: in half precision two log-probabilities near −10 that differ by less may tie."""
JITTER_PLACES = 8
"""Fewer places than that measure nothing."""


def jitter_limit(single: Sequence[Top], batched: Sequence[Top]) -> float | None:
    """The gap up to which two tokens count as tied on this engine, nat; ``None`` where it was not measured.

    The same places of one text are ranked with one token a pass and with the whole text in one pass. The jitter of a
    place is the change of the distance between the two best tokens of the former.

    Args:
        single: by place, (token id, log-probability), best first.
        batched: the same places in the same order.
    """
    moved = []
    for one, other in zip(single, batched, strict=True):
        there = dict(other)
        if len(one) >= 2 and one[0][0] in there and one[1][0] in there:
            moved.append(abs((one[0][1] - one[1][1]) - (there[one[0][0]] - there[one[1][0]])))
    if len(moved) < JITTER_PLACES:
        return None
    return max(JITTER_FACTOR * max(moved), JITTER_FLOOR_NAT)


class Tie(StrEnum):
    """What a replay says about one divergence."""

    NEAR_TIE = "near-tie"
    DIVERGENT = "divergent"
    OPEN = "not adjudicated"


@dataclass(frozen=True, slots=True)
class Adjudication:
    """The verdict on one divergence with its reason; ``margin_nat`` and ``limit_nat`` where a replay told them."""

    divergence: Divergence
    tie: Tie
    sentence: str
    margin_nat: float | None = None
    limit_nat: float | None = None

    @property
    def told(self) -> Divergence:
        """The divergence with the verdict written into it."""
        return replace(
            self.divergence,
            tie=self.tie.value,
            why=self.sentence,
            margin_nat=self.margin_nat,
            limit_nat=self.limit_nat,
        )


def adjudicate(divergence: Divergence, replays: Sequence[Replay], jitter_nat: float | None = None) -> Adjudication:
    """Whether a divergence is a near-tie: both tokens are within the jitter of the baseline's best, whatever rank.

    Args:
        divergence: where on and off part.
        replays: made on the baseline; one for this prompt, index and prefix decides, others are ignored.
        jitter_nat: the limit from the engine's measured single-vs-batched difference (:func:`jitter_limit`);
            ``None`` where it was not measured, and then 0.1 nat is assumed and said so.

    Neither order nor rank counts: of three tokens that are almost equally likely rounding may choose any, and batching
    may have flipped the replay as well. The distance to the best is what bounds it (docs/decisions/0014-near-ties.md).
    An output that merely ends earlier names no token at the place where they part, so it stays open.
    """
    index = divergence.index
    where = f"{divergence.prompt_id} at token {index}"
    if index >= min(len(divergence.baseline_ids), len(divergence.cell_ids)):
        return Adjudication(divergence, Tie.OPEN, f"{where}: one output ends there, which a replay cannot rank")
    replay = _find(divergence, replays)
    if replay is None:
        return Adjudication(divergence, Tie.OPEN, f"{where}: no replay on the baseline")
    best, below = replay.top[0][0], {token: replay.top[0][1] - value for token, value in replay.top}
    limit = ASSUMED_JITTER_NAT if jitter_nat is None else jitter_nat
    basis = "assumed" if jitter_nat is None else "measured"
    mine, theirs = divergence.cell_ids[index], divergence.baseline_ids[index]
    gap = below.get(mine) if mine != best else below.get(theirs)
    if theirs != best and below.get(theirs, math.inf) > limit:
        # The replay does not even give the baseline's own token: it ranked something else, or batching moves far.
        words = f"{where}: the replay does not reproduce the baseline's own token"
        return Adjudication(divergence, Tie.OPEN, words, gap, limit)
    if gap is None:
        words = f"{where}: not among the {len(replay.top)} tokens that the baseline told"
        return Adjudication(divergence, Tie.DIVERGENT, words, None, limit)
    words = f"{where}: {gap:.3f} nat below the baseline's best token, {basis} jitter {limit:g} nat"
    return Adjudication(divergence, Tie.NEAR_TIE if gap <= limit else Tie.DIVERGENT, words, gap, limit)


def tally(adjudications: Sequence[Adjudication]) -> Mapping[Tie, int]:
    """How many divergences of each kind; all three keys are present."""
    return {tie: sum(1 for one in adjudications if one.tie is tie) for tie in Tie}


def _find(divergence: Divergence, replays: Sequence[Replay]) -> Replay | None:
    prefix = divergence.baseline_ids[: divergence.index]
    for replay in replays:
        same_place = replay.prompt_id == divergence.prompt_id and replay.index == divergence.index
        if same_place and replay.prefix == prefix and len(replay.top) >= 2:
            return replay
    return None
