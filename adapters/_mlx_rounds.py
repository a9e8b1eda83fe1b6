"""Verify rounds of MLX-LM, from which emitted tokens were drafted.

Source: mlx-lm 0.32.2 ``generate.py``, ``speculative_generate_step``. Each round drafts ``min(limit - emitted, K)``
tokens, verifies them in one pass of the target that starts with the last committed token (in the first round the
last prompt token), emits the accepted ones and, unless the limit is reached, one token of the target's own. A pass of
the baseline starts with the same tokens, so that passes of both count alike: n tokens without a draft are n passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.schema.errors import CaptureError


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


def split_rounds(from_draft: Sequence[bool], limit: int, k: int) -> tuple[Round, ...]:
    """The rounds of an answer, in order; only the last may be open.

    Args:
        from_draft: per emitted token, whether it was drafted.
        limit: the most tokens the answer could have.
        k: draft length.

    Raises:
        CaptureError: mlx-lm cannot have emitted such a sequence.
    """
    if len(from_draft) > limit:
        raise CaptureError(f"{len(from_draft)} tokens were emitted, the limit is {limit}")
    rounds: list[Round] = []
    at = 0
    while at < len(from_draft):
        drafted = min(limit - at, k)
        accepted = 0
        while at + accepted < len(from_draft) and from_draft[at + accepted]:
            accepted += 1
        closed = at + accepted < len(from_draft)
        if accepted > drafted:
            raise CaptureError(f"{accepted} tokens from the draft in a row from token {at}, {drafted} were drafted")
        rounds.append(Round(drafted, accepted, closed))
        at += accepted + int(closed)
    return tuple(rounds)


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
