"""Reads the line per verify round that llama.cpp writes when ``LLAMA_TRACE`` is set."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_ROUND = re.compile(r"\| task (\d+) \| accepted\s+(\d+)/\s*(\d+) draft tokens( \(restore checkpoint\))?")
_TOTAL = re.compile(r"print_timing: id\s+\d+ \| task (\d+) \|\s+total time =")
_RELEASED = re.compile(r"release: id\s+\d+ \| task (\d+) \| stop processing")
_DRAFT_TIME = re.compile(r"statistics\s+(\S+): .*dur\(b,g,a\) = [\d.]+, ([\d.]+), [\d.]+ ms")


@dataclass(frozen=True, slots=True)
class Round:
    """One verify round: tokens drafted and accepted, and how often a checkpoint was restored and tokens replayed."""

    drafted: int
    accepted: int
    replays: int


def read_rounds(log: str) -> tuple[Round, ...] | None:
    """The rounds of the one request that the log slice covers; ``None`` unless the slice has its whole log.

    Where a cache cannot be cut back, a partial acceptance restores a checkpoint and decodes the accepted tokens and
    the correction once more. That replay writes a line of its own, in which the correction counts as accepted:
    the first line tells what was drafted, the last one less the correction what was accepted.

    Source: llama.cpp b11434, tools/server/server-context.cpp (verification), and real runs.
    """
    timed, released = _TOTAL.findall(log), _RELEASED.findall(log)
    if len(timed) != 1 or timed != released:
        return None
    lines = [
        (int(accepted), int(drafted), bool(restored))
        for task, accepted, drafted, restored in _ROUND.findall(log)
        if task == timed[0]
    ]
    return _fold(lines)


def _fold(lines: Iterable[tuple[int, int, bool]]) -> tuple[Round, ...] | None:
    rounds: list[Round] = []
    drafted, replays = 0, 0
    for accepted, proposed, restored in lines:
        if restored:
            drafted = proposed if replays == 0 else drafted
            replays += 1
        elif replays:
            rounds.append(Round(drafted, max(accepted - 1, 0), replays))
            drafted, replays = 0, 0
        else:
            rounds.append(Round(proposed, accepted, 0))
    return None if replays else tuple(rounds)


def drafter_seconds(log: str) -> float | None:
    """Seconds in the drafter over the process so far, from the last running total in a log; ``None`` without one."""
    last: dict[str, float] = {}
    for name, milliseconds in _DRAFT_TIME.findall(log):
        last[name] = float(milliseconds) / 1e3
    return sum(last.values()) if last else None
