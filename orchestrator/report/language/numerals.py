"""How many digits a comparison is told with: as many as the width of its interval bears."""

from __future__ import annotations

import math

from orchestrator.schema import units
from orchestrator.schema.metrics import VOCABULARY, Unit
from orchestrator.schema.result import Estimate


def digits(low: float | None, high: float | None) -> int:
    """Decimals such that the interval's ends differ in the last but one, between 2 and 3."""
    return 3 if low is not None and high is not None and high - low < 0.02 else 2


def ratio(estimate: Estimate) -> str:
    """``0.74×``."""
    return f"{estimate.point:.{digits(estimate.low, estimate.high)}f}×"


def interval(estimate: Estimate) -> str:
    """``[0.71, 0.78]``, or nothing where there is no interval."""
    if estimate.low is None or estimate.high is None:
        return ""
    shown = digits(estimate.low, estimate.high)
    return f"[{estimate.low:.{shown}f},\u00a0{estimate.high:.{shown}f}]"


def spread(values: tuple[float, ...]) -> str:
    """``0.71…0.78``: the range of session ratios, where an interval would claim too much; equal ends are said once."""
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low}…{high}"


def within(estimate: Estimate) -> str:
    """``±3.1 %`` or ``±4.6×``: the half-width of the interval, which is what could have been seen."""
    if estimate.low is None or estimate.high is None:
        return ""
    half = math.sqrt(estimate.high / estimate.low)
    if half >= 2:
        return f"±{half:.1f}×"
    return f"±{units.percent(half - 1, 1 if half < 1.1 else 0)}"


def quantity(metric: str, value: float) -> str:
    """A value of a metric with its display unit."""
    return units.quantity(value, VOCABULARY[metric].unit)


def change(metric: str, value: float) -> str:
    """A signed difference: ``+1.90 GB``, ``−12.0 ms``; never a signed nothing."""
    unit = VOCABULARY[metric].unit
    if unit not in (Unit.BYTE, Unit.SECOND):
        raise ValueError(f"{metric}: a difference in {unit.value} has no form of its own")
    if value == 0:
        return units.quantity(0.0, unit)
    return f"{'+' if value > 0 else '−'}{units.quantity(abs(value), unit)}"
