"""The only formatters of numbers for people; stored values stay in base units."""

from __future__ import annotations

from orchestrator.schema.metrics import Unit


def seconds(value: float) -> str:
    """``1.25 s`` · ``41.2 ms`` · ``820 µs`` · ``2 min 05 s``: three significant digits."""
    if value >= 120:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest:02d} s"
    if value >= 1:
        return f"{_three(value)} s"
    if value == 0:
        return "0 s"
    if value >= 1e-3:
        return f"{_three(value * 1e3)} ms"
    return f"{_three(value * 1e6)} µs"


def size(value: float) -> str:
    """Bytes with decimal prefixes: ``49.2 MB``, ``1.90 GB``."""
    for factor, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(value) >= factor:
            return f"{_three(value / factor)} {name}"
    return f"{value:.0f} B"


def ratio(value: float) -> str:
    """``0.74×``."""
    return f"{value:.2f}×"


def ratio_interval(low: float, high: float) -> str:
    """``[0.71, 0.78]``."""
    return f"[{low:.2f}, {high:.2f}]"


def percent(value: float, digits: int = 0) -> str:
    """A share of one as ``71 %``."""
    return f"{100 * value:.{digits}f} %"


def plain(value: float) -> str:
    """A number with three significant digits and no unit."""
    return _three(value)


def quantity(value: float, unit: Unit) -> str:
    """A value of a metric with its display unit."""
    if unit is Unit.SECOND:
        return seconds(value)
    if unit is Unit.BYTE:
        return size(value)
    if unit in (Unit.TOKEN, Unit.COUNT):
        return f"{value:.0f}" if float(value).is_integer() else _three(value)
    if unit is Unit.TOKEN_RATE:
        return f"{_three(value)} tok/s"
    if unit is Unit.JOULE:
        return f"{_three(value)} J"
    if unit is Unit.SECOND_PER_TOKEN:
        return f"{seconds(value)}/tok"
    return _three(value)


def _three(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
