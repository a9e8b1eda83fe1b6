"""Verify rounds in which a draft was judged from its first token on, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Round:
    """One draft and verify: tokens drafted, drafted tokens emitted, and whether the target's own token followed."""

    drafted: int
    accepted: int
    closed: bool

    @property
    def emitted(self) -> int:
        """Tokens that the round added to the answer."""
        return self.accepted + int(self.closed)


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over the rounds of one answer, in tokens and rounds."""

    rounds: int
    drafted: int
    accepted: int
    rejected: int
    cut: int
    shortened: int
    committed_by_uncut: int
    drafted_by_position: tuple[int, ...]
    accepted_by_position: tuple[int, ...]

    @property
    def discarded(self) -> int:
        """Drafted, and neither accepted nor judged and refused."""
        return self.drafted - self.accepted - self.rejected


def tally(rounds: Sequence[Round], k: int) -> Tally:
    """Adds up rounds.

    A closed round with fewer accepted than drafted refused exactly one token; what an open round did after the cut is
    unknown, so it refuses none. ``shortened`` rounds drafted fewer than ``k`` because the limit was near.
    """
    uncut = [one for one in rounds if one.closed]
    return Tally(
        rounds=len(rounds),
        drafted=sum(one.drafted for one in rounds),
        accepted=sum(one.accepted for one in rounds),
        rejected=sum(one.accepted < one.drafted for one in uncut),
        cut=len(rounds) - len(uncut),
        shortened=sum(one.drafted < k for one in rounds),
        committed_by_uncut=sum(one.emitted for one in uncut),
        drafted_by_position=tuple(sum(one.drafted > at for one in rounds) for at in range(k)),
        accepted_by_position=tuple(sum(one.accepted > at for one in rounds) for at in range(k)),
    )
