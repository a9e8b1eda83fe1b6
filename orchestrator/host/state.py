"""The state of the machine at the start and at the end of a session: load, free memory, swap, pressure, heat, power."""

from __future__ import annotations

import os
import sys

from orchestrator.host import linux, macos
from orchestrator.host.pressure import Stalls, moment
from orchestrator.host.thermal import thermal
from orchestrator.host.unavailable import UnavailableError, fact, unavailable

WORSE = ("moderate", "heavy", "trapping", "sleeping")
"""Levels of macOS's thermal pressure above nominal."""


def state() -> dict[str, object]:
    """Facts by name; each is a value in base units, or ``{"unavailable": why}``. Call it outside of timed regions."""
    now = moment()
    stalls = now.stalls if isinstance(now.stalls, Stalls) else unavailable(str(now.stalls))
    return {
        "load_average": fact(lambda: list(os.getloadavg())),
        "memory_available_bytes": fact(_available),
        "swap_used_bytes": _plain(now.swap),
        "memory_pressure_level": _plain(now.level),
        "memory_stall_s": stalls.full_s if isinstance(stalls, Stalls) else stalls,
        **thermal(),
        "power": fact(_power),
    }


def concerns(start: dict[str, object], end: dict[str, object]) -> tuple[str, ...]:
    """What a reader must know of a session's machine: it throttled, changed its power or ran in a low mode."""
    found = []
    for when, facts in (("start", start), ("end", end)):
        level = facts.get("thermal_pressure")
        if level in WORSE:
            found.append(f"thermal pressure was {level} at its {when}")
    before, after = start.get("throttle_count"), end.get("throttle_count")
    if isinstance(before, int) and isinstance(after, int) and after > before:
        found.append(f"the processors throttled {after - before} times")
    if start.get("power") != end.get("power") and not _percent_only(start.get("power"), end.get("power")):
        found.append(f"power changed from {start.get('power')} to {end.get('power')}")
    power = start.get("power")
    if isinstance(power, dict) and (power.get("lowpowermode") == 1 or power.get("powermode") == 1):
        found.append("the machine was in low-power mode")
    return tuple(found)


def _percent_only(before: object, after: object) -> bool:
    """A battery that charges is the same power."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    return {**before, "charge_percent": 0} == {**after, "charge_percent": 0}


def _plain(value: object) -> object:
    return unavailable(str(value)) if isinstance(value, UnavailableError) else value


def _available() -> int:
    import psutil  # noqa: PLC0415  (not needed at start-up)

    return int(psutil.virtual_memory().available)


def _power() -> object:
    if sys.platform == "darwin":
        return macos.power()
    if sys.platform == "linux":
        return linux.power()
    raise UnavailableError(f"not known how to read it on {sys.platform}")
