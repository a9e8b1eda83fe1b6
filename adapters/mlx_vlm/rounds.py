"""Draft and verify rounds of mlx-vlm's MTP, from what the library records of each.

Source: mlx-vlm 0.7.10 ``speculative/mtp.py`` and ``speculative/common.py``. The first token comes from the prompt's
pass. Each round then drafts a block, judges it in one pass of the target and emits the accepted tokens and one of the
target's own. A block is asked to have ``min(size, limit − emitted + 1)`` − 1 tokens. Of the last round tokens can be
missing: the target's own one at the limit; at end of text all that follow it, though mlx-vlm counts them as accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

from adapters.mlx_vlm.protocol import Done, Speculation
from orchestrator.schema.errors import CaptureError

LINE = re.compile(
    r"Speculative decoding: (?P<tokens>\d+\.\d\d) accepted tokens/round "
    r"\((?P<drafts>\d+\.\d\d) accepted drafts/round, (?P<share>\d+\.\d)% of drafted, "
    r"avg draft (?P<size>\d+\.\d\d)\) over (?P<rounds>\d+) rounds"
)


@dataclass(frozen=True, slots=True)
class Round:
    """One round in tokens: proposed by the drafter, accepted by mlx-vlm's count, and added to the answer."""

    drafted: int
    accepted: int
    emitted: int

    @property
    def closed(self) -> bool:
        """Whether all that the round had accepted was emitted, with the target's own token."""
        return self.emitted == self.accepted + 1


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over the rounds of one answer, in tokens and rounds; ``unseen`` were accepted and not emitted."""

    rounds: int
    drafted: int
    accepted: int
    rejected: int
    unseen: int
    cut: int
    committed_by_uncut: int
    drafted_by_position: tuple[int, ...]
    accepted_by_position: tuple[int, ...]


def read_rounds(done: Done) -> tuple[Round, ...]:
    """The rounds of an answer, in order; none of a baseline.

    Raises:
        CaptureError: mlx-vlm cannot have recorded such rounds.
    """
    told = done.speculation
    if told is None:
        if len(done.emitted) != 1:
            raise CaptureError("the worker's answer tells rounds, and nothing of what was drafted in them")
        return ()
    if done.emitted[0] != 1:
        raise CaptureError(f"{done.emitted[0]} tokens came from the prompt's pass, which gives one")
    rounds = []
    for drafted, accepted, emitted in zip_longest(told.proposed, told.accepted, done.emitted[1:]):
        if drafted is None or accepted is None or emitted is None:
            counts = f"{len(told.proposed)} drafted, {len(told.accepted)} judged, {len(done.emitted) - 1} emitted"
            raise CaptureError(f"the rounds of an answer are not as many each time they are counted: {counts}")
        if not 0 <= accepted <= drafted or emitted > accepted + 1 or drafted < 1:
            raise CaptureError(f"a round drafted {drafted} tokens, accepted {accepted} and emitted {emitted}")
        rounds.append(Round(drafted, accepted, emitted))
    if any(not one.closed for one in rounds[:-1]):
        raise CaptureError("a round before the last emitted fewer tokens than it had accepted")
    return tuple(rounds)


def tally(rounds: tuple[Round, ...]) -> Tally:
    """Adds up rounds: a round that accepted fewer than it drafted refused exactly one."""
    uncut = [one for one in rounds if one.closed]
    places = range(max((one.drafted for one in rounds), default=0))
    return Tally(
        rounds=len(rounds),
        drafted=sum(one.drafted for one in rounds),
        accepted=sum(one.accepted for one in rounds),
        rejected=sum(one.accepted < one.drafted for one in rounds),
        unseen=sum(max(one.accepted - one.emitted, 0) for one in rounds),
        cut=len(rounds) - len(uncut),
        committed_by_uncut=sum(one.emitted for one in uncut),
        drafted_by_position=tuple(sum(one.drafted > at for one in rounds) for at in places),
        accepted_by_position=tuple(sum(one.accepted > at for one in rounds) for at in places),
    )


def disagreements(told: Speculation) -> list[str]:
    """Where mlx-vlm's own counters, its line and its record of each round say different things."""
    rounds, accepted, capacity = len(told.accepted), sum(told.accepted), sum(told.capacity)
    found = []
    if len(told.capacity) != rounds:
        found.append(f"mlx-vlm tells the size of {len(told.capacity)} blocks and the end of {rounds}")
    if any(size < drafted for size, drafted in zip(told.capacity, told.proposed, strict=False)):
        found.append("a block has more tokens than mlx-vlm asked for")
    counted = (rounds, accepted, capacity) if rounds else None
    if told.counters != counted:
        found.append(f"mlx-vlm's counters say {told.counters}, its record of the rounds {counted}")
    return found + _line_disagreements(told, rounds, accepted, capacity)


def _line_disagreements(told: Speculation, rounds: int, accepted: int, capacity: int) -> list[str]:
    if not rounds:
        return [] if told.line is None else [f"mlx-vlm prints {told.line!r} of no round"]
    read = LINE.fullmatch(told.line or "")
    if read is None:
        return [f"mlx-vlm's statistics line cannot be read: {told.line!r}"]
    wanted = {
        "tokens": f"{(accepted + rounds) / rounds:.2f}",
        "drafts": f"{accepted / rounds:.2f}",
        "share": f"{100 * accepted / capacity:.1f}",
        "size": f"{capacity / rounds:.2f}",
        "rounds": str(rounds),
    }
    if read.groupdict() != wanted:
        return [f"mlx-vlm prints {told.line!r}, its record of the rounds says {', '.join(wanted.values())}"]
    return []
