"""Outputs sorted for comparison: which may be compared with which, and where two of them part."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.schema.result import Output

MEASURED = "measured"
"""Warm-up trials use other prompts and are not compared."""

PromptKey = tuple[int, str]
"""Block attempt and prompt: comparisons exist only inside one attempt."""


def by_prompt(
    outputs: Sequence[Output], cells: frozenset[str], first: str | None = None
) -> dict[PromptKey, tuple[Output, ...]]:
    """Measured outputs of these cells by attempt and prompt, those of ``first`` first, then by session and trial.

    Outputs without token ids are left out: two answers that are both unknown are not equal.
    """
    found: dict[PromptKey, list[Output]] = {}
    for one in outputs:
        if one.cell in cells and one.phase == MEASURED and one.token_ids:
            found.setdefault((one.attempt, one.prompt_id), []).append(one)
    return {
        key: tuple(sorted(group, key=lambda one: (one.cell != first, one.cell, one.set_index, one.trial)))
        for key, group in sorted(found.items())
    }


def first_difference(left: Sequence[int], right: Sequence[int]) -> int | None:
    """Index of the first differing token, the shorter length when one is a prefix of the other, else ``None``."""
    for index, (mine, theirs) in enumerate(zip(left, right, strict=False)):
        if mine != theirs:
            return index
    return None if len(left) == len(right) else min(len(left), len(right))
