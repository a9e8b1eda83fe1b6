"""Seed identity at T > 0: whether one seed gives one text with and without speculation. Informational."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.exactness.outputs import MEASURED, first_difference
from orchestrator.schema.result import CheckResult, Output, Verdict

CHECK = "seed identity"


def seed_identity(cell_id: str, base_id: str, outputs: Sequence[Output], twin_id: str | None = None) -> CheckResult:
    """How many outputs equal the baseline's of the same session, trial and prompt, hence of the same seed.

    An exact engine may draw its random numbers otherwise under speculation (rejection sampling does), so a
    difference is never a failure; and equal texts are no proof for other seeds. The verdict is ``pass`` when all
    are equal and ``uninformative`` otherwise; no group depends on it.
    """
    off, on = _by_place(outputs, base_id), _by_place(outputs, cell_id)
    control = _by_place(outputs, twin_id) if twin_id is not None else {}
    same, compared = _equal(off, on)
    control_same, control_compared = _equal(off, control)
    if compared == 0:
        return CheckResult(CHECK, Verdict.NOT_TESTED, "not tested: no two outputs with token ids of one seed")
    head = f"{same}/{compared} outputs equal the baseline's with the same seed"
    if control_same < control_compared:
        words = f"{head}; the baseline equals its twin in {control_same}/{control_compared}: its seed does not bind"
        return CheckResult(CHECK, Verdict.UNINFORMATIVE, words)
    if same == compared:
        return CheckResult(CHECK, Verdict.PASS, f"{head} (informational)")
    return CheckResult(CHECK, Verdict.UNINFORMATIVE, f"{head} (informational: an exact engine may differ)")


_Where = tuple[int, int, int, str]


def _by_place(outputs: Sequence[Output], cell: str) -> dict[_Where, tuple[int, ...]]:
    return {
        (one.attempt, one.set_index, one.trial, one.prompt_id): one.token_ids
        for one in outputs
        if one.cell == cell and one.phase == MEASURED and one.token_ids
    }


def _equal(left: dict[_Where, tuple[int, ...]], right: dict[_Where, tuple[int, ...]]) -> tuple[int, int]:
    both = left.keys() & right.keys()
    return sum(1 for key in both if first_difference(left[key], right[key]) is None), len(both)
