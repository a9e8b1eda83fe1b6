"""How warm the machine is and how fast it runs, as far as that is told without administrator rights."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.host.unavailable import UnavailableError, fact

_ROOT = Path("/")
NOTIFICATION = b"com.apple.system.thermalpressurelevel"
LEVELS = {0: "nominal", 1: "moderate", 2: "heavy", 3: "trapping", 4: "sleeping"}
"""Source: ``OSThermalPressureLevel`` of macOS's ``<libkern/OSThermalNotification.h>``."""


def thermal() -> dict[str, object]:
    """Facts by name; each is a value, or ``{"unavailable": why}``."""
    if sys.platform == "darwin":
        return {
            "thermal_pressure": fact(pressure_level),
            "temperature_c": fact(lambda: _refuse("macOS tells temperatures to administrators only")),
            "frequency_hz": fact(lambda: _refuse("Apple Silicon tells no frequency without administrator rights")),
            "throttle_count": fact(lambda: _refuse("macOS keeps no throttle counter")),
        }
    if sys.platform == "linux":
        return {
            "thermal_pressure": fact(lambda: _refuse("the level exists on macOS only")),
            "temperature_c": fact(temperatures),
            "frequency_hz": fact(frequency),
            "throttle_count": fact(throttle_count),
        }
    unknown = fact(lambda: _refuse(f"not known how to read it on {sys.platform}"))
    return dict.fromkeys(("thermal_pressure", "temperature_c", "frequency_hz", "throttle_count"), unknown)


def temperatures(root: Path = _ROOT) -> dict[str, float]:
    """Degrees Celsius by the kernel's zones; the hottest of zones with one name."""
    found: dict[str, float] = {}
    for zone in sorted((root / "sys/class/thermal").glob("thermal_zone*")):
        try:
            name = (zone / "type").read_text(encoding="utf-8").strip()
            degrees = int((zone / "temp").read_text(encoding="ascii")) / 1000
        except (OSError, ValueError):
            continue
        found[name] = max(degrees, found.get(name, degrees))
    if not found:
        raise UnavailableError("the kernel lists no thermal zone (a virtual machine or container)")
    return found


def frequency(root: Path = _ROOT) -> dict[str, float]:
    """Lowest, mean and highest frequency of the processors now, Hz."""
    values = []
    for file in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")):
        try:
            values.append(int(file.read_text(encoding="ascii")) * 1000.0)
        except (OSError, ValueError):
            continue
    if not values:
        values = _cpuinfo((root / "proc/cpuinfo").read_text(encoding="utf-8"))
    return {"low": min(values), "mean": sum(values) / len(values), "high": max(values)}


def _cpuinfo(text: str) -> list[float]:
    values = [float(value) * 1e6 for value in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.MULTILINE)]
    if not values:
        raise UnavailableError("the kernel tells no processor frequency (a virtual machine, or another architecture)")
    return values


def throttle_count(root: Path = _ROOT) -> int:
    """How often the processors were slowed down by heat since boot, all of them together (Intel)."""
    counts = []
    for file in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count")):
        try:
            counts.append(int(file.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    if not counts:
        raise UnavailableError("the kernel keeps no throttle counter here")
    return sum(counts)


def pressure_level(library: Any = None) -> str:  # noqa: ANN401  (libSystem, or a test's stand-in)
    """The thermal pressure of a Mac in a word, by a Darwin notification. From source only: not run on a Mac.

    Raises:
        UnavailableError: the notification cannot be registered or read, or its state has no known meaning.
    """
    notify = library if library is not None else _system()
    token, state = ctypes.c_int(0), ctypes.c_uint64(0)
    done = notify.notify_register_check(NOTIFICATION, ctypes.byref(token))
    if done != 0:
        raise UnavailableError(f"notify_register_check failed ({done})")
    try:
        done = notify.notify_get_state(token, ctypes.byref(state))
        if done != 0:
            raise UnavailableError(f"notify_get_state failed ({done})")
    finally:
        notify.notify_cancel(token)
    if state.value not in LEVELS:
        raise UnavailableError(f"thermal pressure level {state.value} has no known meaning")
    return LEVELS[state.value]


@cache
def _system() -> Any:  # noqa: ANN401  (a foreign library)
    return ctypes.CDLL("/usr/lib/libSystem.B.dylib")


def _refuse(why: str) -> Callable[[], object]:
    raise UnavailableError(why)
