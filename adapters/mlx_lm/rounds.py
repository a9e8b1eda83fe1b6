"""Verify rounds of MLX-LM, from which emitted tokens were drafted.

Source: mlx-lm 0.32.2 ``generate.py``, ``speculative_generate_step``. Each round drafts ``min(limit - emitted, K)``
tokens, verifies them in one pass of the target that starts with the last committed token (in the first round the
last prompt token), emits the accepted ones and, unless the limit is reached, one token of the target's own. A pass of
the baseline starts with the same tokens, so that passes of both count alike: n tokens without a draft are n passes.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapters.shared.rounds import Round
from orchestrator.schema.errors import CaptureError


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
