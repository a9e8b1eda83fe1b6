"""When the broken answers of one arm forbid a comparison, and when they are the model's own."""

from __future__ import annotations

import pytest

from orchestrator.stats.broken import broken_pairs


def arm(count: int, broken: int, kind: str = "loop", start: int = 0) -> dict[tuple[int, str], str]:
    return {(0, f"p{n}"): kind if start <= n < start + broken else "" for n in range(count)}


@pytest.mark.parametrize(
    ("on", "off", "greedy", "why"),
    [
        (arm(20, 0), arm(20, 0), True, ""),
        (arm(20, 2), arm(20, 0), True, ""),
        (arm(20, 3), arm(20, 0), True, "3 of 20 answers are no answer (loop) where the baseline's are"),
        (arm(20, 4), arm(20, 0), False, ""),
        (arm(20, 5), arm(20, 0), False, "5 of 20 answers are no answer (loop) where the baseline's are"),
        (arm(1, 1), arm(1, 0), True, ""),
        (arm(2, 2), arm(2, 0), True, "2 of 2 answers are no answer (loop) where the baseline's are"),
        (arm(20, 0), arm(20, 3, "empty"), True, "3 of 20 answers of the baseline are no answer"),
        (arm(20, 20), arm(20, 20), True, ""),
        (arm(20, 20, "empty"), arm(20, 20), True, "20 of 20 answers are no answer, otherwise than the baseline's"),
        # Loops of the cell's own are not made up for by others of the baseline's; drawn ones may be chance.
        (arm(20, 8), arm(20, 8, start=8), True, "8 of 20 answers are no answer (loop) where the baseline's are"),
        (arm(20, 2), arm(20, 8, start=8), True, "8 of 20 answers of the baseline are no answer"),
        (arm(20, 8), arm(20, 8, start=8), False, ""),
        (arm(20, 8), arm(20, 3, start=8), False, "8 of 20 answers are no answer (loop) where the baseline's are"),
    ],
)
def test_what_is_refused(
    on: dict[tuple[int, str], str], off: dict[tuple[int, str], str], greedy: bool, why: str
) -> None:
    found = broken_pairs(on, off, greedy=greedy)
    assert found.refusal.startswith(why)
    assert bool(found.refusal) is bool(why)


def test_what_is_counted() -> None:
    on = {(0, "a"): "loop", (0, "b"): "empty", (0, "c"): "loop", (0, "d"): "", (9, "x"): "loop"}
    off = {(0, "a"): "loop", (0, "b"): "loop", (0, "c"): "", (0, "d"): "empty", (8, "y"): "loop"}
    found = broken_pairs(on, off, greedy=True)
    assert (found.pairs, found.on, found.off, found.both, found.alone_on, found.alone_off) == (4, 3, 3, 1, 2, 2)
    assert found.kinds == ("empty", "loop")


def test_without_pairs_nothing_is_said() -> None:
    found = broken_pairs({}, arm(3, 3), greedy=True)
    assert (found.pairs, found.refusal) == (0, "")
