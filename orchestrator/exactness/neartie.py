"""Near-ties: whether a flipped token was a coin toss of rounding, by a replay on the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.schema.result import Divergence

ASSUMED_JITTER_NAT = 0.1
"""Used, and called an assumption, where single-vs-batched jitter was not measured for the engine (``METHOD``)."""


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
    top: tuple[tuple[int, float], ...]


class Tie(StrEnum):
    """What a replay says about one divergence."""

    NEAR_TIE = "near-tie"
    DIVERGENT = "divergent"
    OPEN = "not adjudicated"


@dataclass(frozen=True, slots=True)
class Adjudication:
    """The verdict on one divergence with its reason."""

    divergence: Divergence
    tie: Tie
    sentence: str


def adjudicate(divergence: Divergence, replays: Sequence[Replay], jitter_nat: float | None = None) -> Adjudication:
    """Whether a divergence is a near-tie: the two tokens are the baseline's top two, and within the jitter.

    Args:
        divergence: where on and off part.
        replays: made on the baseline; one for this prompt, index and prefix decides, others are ignored.
        jitter_nat: the engine's measured single-vs-batched difference; ``None`` where it was not measured, and
            then 0.1 nat is assumed and said so.

    Either order of the two counts: batching may have flipped the replay as well, and the gap is what bounds it.
    An output that merely ends earlier names no token at the place where they part, so it stays open.
    """
    index = divergence.index
    where = f"{divergence.prompt_id} at token {index}"
    if index >= min(len(divergence.baseline_ids), len(divergence.cell_ids)):
        return Adjudication(divergence, Tie.OPEN, f"{where}: one output ends there, which a replay cannot rank")
    replay = _find(divergence, replays)
    if replay is None:
        return Adjudication(divergence, Tie.OPEN, f"{where}: no replay on the baseline")
    (best, best_log), (second, second_log) = replay.top[0], replay.top[1]
    gap = best_log - second_log
    limit = ASSUMED_JITTER_NAT if jitter_nat is None else jitter_nat
    basis = "assumed" if jitter_nat is None else "measured"
    mine, theirs = divergence.cell_ids[index], divergence.baseline_ids[index]
    if theirs != best and (theirs != second or gap > limit):
        # The replay does not even give the baseline's own token: it ranked something else, or batching moves far.
        return Adjudication(divergence, Tie.OPEN, f"{where}: the replay does not reproduce the baseline's own token")
    if mine not in (best, second):
        return Adjudication(divergence, Tie.DIVERGENT, f"{where}: not among the baseline's top two tokens")
    words = f"{where}: top two {gap:.3f} nat apart, {basis} jitter {limit:g} nat"
    return Adjudication(divergence, Tie.NEAR_TIE if gap <= limit else Tie.DIVERGENT, words)


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
