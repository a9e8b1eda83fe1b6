"""Seed-coupled equality: where one random number is drawn per emitted token, one seed gives one text, on or off."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.exactness.prefix_tree import Tokens
from orchestrator.schema.result import CheckResult, Verdict

CHECK = "seed-coupled equality"


def seed_coupled(pairs: Sequence[tuple[Tokens, Tokens]]) -> CheckResult:
    """On against off with the same seeds; informational, for an engine may draw otherwise and be exact.

    All equal is strong evidence for the very answers compared: no token was changed by speculation. A difference is
    none against it, since batched arithmetic moves a draw now and then, and MLX-LM draws once per verified row.
    """
    if not pairs:
        return CheckResult(CHECK, Verdict.NOT_TESTED, "not tested: no two generations of one seed")
    same = sum(on == off for on, off in pairs)
    head = f"{same}/{len(pairs)} generations equal the baseline's with the same seed"
    if same == len(pairs):
        return CheckResult(CHECK, Verdict.PASS, head)
    return CheckResult(CHECK, Verdict.UNINFORMATIVE, f"{head} (an exact engine may draw otherwise)")
