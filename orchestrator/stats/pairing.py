"""Two arms brought onto one footing: log ratios of the same session index and the same prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("set_index", "prompt_id", "value")
_SMALLEST, _LARGEST = 1e-100, 1e100
"""Beyond these a ratio of two values could leave the range of a float; no measurement comes near."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Log ratios (cell ÷ baseline) of every session and prompt that both arms have.

    Args:
        logs: per session index, in order: log ratio by prompt id. A trial repeated within a session and prompt
            enters as the mean of its logs.
        missing: pairs of session and prompt that only one arm has; they are left out, and counted here.
        refusal: why there is nothing to compare; empty when there is.
    """

    logs: Mapping[int, Mapping[str, float]]
    missing: int = 0
    refusal: str = ""

    @property
    def sessions(self) -> tuple[float, ...]:
        """Mean log ratio of each session, in the order of their indices: the units of replication."""
        return tuple(_mean(tuple(row.values())) for row in self.logs.values())

    @property
    def prompts(self) -> dict[str, float]:
        """Mean log ratio by prompt over the sessions that have it."""
        by_prompt: dict[str, list[float]] = {}
        for row in self.logs.values():
            for prompt, log in row.items():
                by_prompt.setdefault(prompt, []).append(log)
        return {prompt: _mean(tuple(logs)) for prompt, logs in sorted(by_prompt.items())}


def pair(cell: pd.DataFrame, base: pd.DataFrame) -> Paired:
    """The paired log ratios of two arms, or the reason why there are none.

    Args:
        cell: measured trials with the columns ``set_index``, ``prompt_id`` and ``value`` (> 0, base unit).
        base: the same for the baseline, from the same block attempt.

    Raises:
        ValueError: a column is missing, which is a fault of the caller and not of a measurement.
    """
    arms = []
    for frame, name in ((cell, "the cell"), (base, "the baseline")):
        means, refusal = _log_means(frame, name)
        if refusal:
            return Paired({}, refusal=refusal)
        arms.append(means)
    mine, theirs = arms
    both = sorted(mine.keys() & theirs.keys())
    missing = len(mine.keys() ^ theirs.keys())
    if not both:
        return Paired({}, missing, "no session and prompt was measured in both the cell and the baseline")
    logs: dict[int, dict[str, float]] = {}
    for session, prompt in both:
        logs.setdefault(session, {})[prompt] = mine[session, prompt] - theirs[session, prompt]
    return Paired(logs, missing)


def rows(frame: pd.DataFrame) -> tuple[tuple[int, str, float], ...]:
    """The frame as (session index, prompt id, value), sorted so that the order of rows never matters.

    Raises:
        ValueError: a column is missing.
    """
    if frame.empty:
        return ()
    present = [str(name) for name in frame.columns]
    absent = ", ".join(name for name in COLUMNS if name not in present)
    if absent:
        raise ValueError(f"the frame lacks the columns {absent}; it has {', '.join(present)}")
    table = frame.to_numpy(dtype=object)
    columns = [table[:, present.index(name)].tolist() for name in COLUMNS]
    return tuple(sorted((int(s), str(p), float(v)) for s, p, v in zip(*columns, strict=True)))


def _log_means(frame: pd.DataFrame, name: str) -> tuple[dict[tuple[int, str], float], str]:
    found = rows(frame)
    if not found:
        return {}, f"{name} has no measured value"
    bad = sum(1 for _, _, value in found if not _SMALLEST <= value <= _LARGEST)
    if bad:
        return {}, f"{bad} of {len(found)} values of {name} are not positive numbers, and a ratio needs positive ones"
    logs: dict[tuple[int, str], list[float]] = {}
    for session, prompt, value in found:
        logs.setdefault((session, prompt), []).append(math.log(value))
    return {key: _mean(tuple(values)) for key, values in logs.items()}, ""


def _mean(values: tuple[float, ...]) -> float:
    # fsum rounds once, so that neither the order of the values nor the exchange of the arms changes the result.
    return math.fsum(values) / len(values)
