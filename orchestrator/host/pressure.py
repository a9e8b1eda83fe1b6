"""How short of memory the machine is, over an interval: Linux's stall counters, macOS's level."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orchestrator.host import macos
from orchestrator.host.swap import swap_used_bytes
from orchestrator.host.unavailable import UnavailableError
from orchestrator.schema.observation import Absence, Observation, absent, observed

PSI = Path("/proc/pressure/memory")
T = TypeVar("T")
_WORST = ("normal", "warning", "critical")


@dataclass(frozen=True, slots=True)
class Stalls:
    """Seconds since boot in which some, or all, runnable tasks waited for memory."""

    some_s: float
    full_s: float


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known at one moment; an error says why something is not."""

    swap: int | UnavailableError
    level: str | UnavailableError
    stalls: Stalls | UnavailableError


def moment() -> Moment:
    """Swap in use, pressure level and stall counters now. Takes well below a millisecond on Linux."""
    return Moment(_try(swap_used_bytes), _try(_level), _try(_stalls))


def parse_stalls(text: str) -> Stalls:
    """The ``total`` fields, microseconds, of ``/proc/pressure/memory``.

    Raises:
        UnavailableError: the text has another form.
    """
    totals: dict[str, float] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        for item in rest.split():
            key, _, value = item.partition("=")
            if key == "total" and value.isdigit():
                totals[word] = int(value) / 1e6
    if "some" not in totals:
        raise UnavailableError(f"{PSI} reads {text.strip()[:60]!r}")
    return Stalls(totals["some"], totals.get("full", 0.0))


def between(before: Moment, after: Moment) -> tuple[Observation, ...]:
    """``trial_swap_delta``, ``memory_stall`` and ``memory_pressure`` from one moment to another."""
    return _swap(before, after), _stall(before, after), _pressure(before, after)


def _swap(before: Moment, after: Moment) -> Observation:
    if isinstance(before.swap, int) and isinstance(after.swap, int):
        note = "of the whole machine, other programs included"
        return observed("trial_swap_delta", after.swap - before.swap, "os:swap in use, after − before", note=note)
    return absent("trial_swap_delta", Absence.NOT_REPORTED, _why(before.swap, after.swap))


def _stall(before: Moment, after: Moment) -> Observation:
    if isinstance(before.stalls, Stalls) and isinstance(after.stalls, Stalls):
        stalled = max(0.0, after.stalls.full_s - before.stalls.full_s)
        return observed("memory_stall", stalled, f"os:{PSI} full, after − before", note="of the whole machine")
    return absent("memory_stall", Absence.NOT_REPORTED, _why(before.stalls, after.stalls))


def _pressure(before: Moment, after: Moment) -> Observation:
    if isinstance(before.level, str) and isinstance(after.level, str):
        worst = max((before.level, after.level), key=_WORST.index)
        source = "os:kern.memorystatus_vm_pressure_level, the worse of before and after"
        return observed("memory_pressure", worst, source)
    if isinstance(before.stalls, Stalls) and isinstance(after.stalls, Stalls):
        some, full = after.stalls.some_s - before.stalls.some_s, after.stalls.full_s - before.stalls.full_s
        word = "full stalls" if full > 0 else "some stalls" if some > 0 else "no stalls"
        return observed("memory_pressure", word, f"os:{PSI}, after − before")
    return absent("memory_pressure", Absence.NOT_REPORTED, _why(before.level, after.level, before.stalls))


def _why(*values: object) -> str:
    return "; ".join(dict.fromkeys(str(value) for value in values if isinstance(value, UnavailableError)))


def _level() -> str:
    if sys.platform != "darwin":
        raise UnavailableError("the level exists on macOS only")
    return macos.memory_pressure_level()


def _stalls() -> Stalls:
    if sys.platform != "linux":
        raise UnavailableError("stall counters exist on Linux only")
    try:
        return parse_stalls(PSI.read_text(encoding="ascii"))
    except FileNotFoundError as err:
        raise UnavailableError("this kernel counts no memory stalls (no /proc/pressure)") from err


def _try(read: Callable[[], T]) -> T | UnavailableError:
    try:
        return read()
    except UnavailableError as err:
        return err
    except (OSError, ValueError) as err:
        return UnavailableError(str(err) or type(err).__name__)
