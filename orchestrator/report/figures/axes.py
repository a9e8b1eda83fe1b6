"""Where axes begin, end and carry a number, for whatever draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence

RATIO_TICKS = (
    0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.15, 1.25, 1.33, 1.5, 2.0,
    3.0, 5.0, 10.0, 20.0,
)  # fmt: skip


def ratio_limits(values: Sequence[float]) -> tuple[float, float]:
    """Limits that hold every value and 1, with some air, and never less than ±6 %."""
    low, high = min((*values, 1 / 1.06)), max((*values, 1.06))
    air = (high / low) ** 0.06
    return low / air, high * air


def ratio_places(low: float, high: float, *, vertical: bool = False) -> list[float]:
    """Round ratios within the limits, 1 among them, as many as there is room for."""
    inside = [tick for tick in RATIO_TICKS if low <= tick <= high]
    gap = math.log2(high / low) / (7 if vertical else 8)
    kept = [1.0]
    for tick in sorted(inside, key=lambda t: abs(math.log2(t))):
        if all(abs(math.log2(tick / other)) >= gap for other in kept):
            kept.append(tick)
    return sorted(kept)


def nice_ticks(top: float) -> list[float]:
    """About five round numbers from zero on."""
    return ticks_between(0.0, top)


def ticks_between(low: float, high: float) -> list[float]:
    """About five round numbers within the limits."""
    raw = (high - low) / 5
    if raw <= 0:
        return [low]
    scale = 10 ** math.floor(math.log10(raw))
    step = next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= raw)
    first = math.ceil(low / step)
    return [round(step * k, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]
