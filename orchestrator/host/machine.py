"""What machine a run was made on, and what state it was in."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable

from orchestrator.host import linux, macos
from orchestrator.host.swap import swap_used_bytes
from orchestrator.host.unavailable import UnavailableError, fact


def facts() -> dict[str, object]:
    """Facts by name; each is a value, or ``{"unavailable": why}``. Sizes are in bytes.

    ``load_average``, ``memory_available_bytes`` and ``swap_used_bytes`` are of this moment.
    """
    return {name: fact(read) for name, read in {**_common(), **_by_system()}.items()}


def _common() -> dict[str, Callable[[], object]]:
    return {
        "os": platform.system,
        "kernel": platform.release,
        "architecture": platform.machine,
        "python": lambda: f"{platform.python_implementation()} {platform.python_version()}",
        "cores_physical": _physical_cores,
        "cores_logical": _logical_cores,
        "cores_usable": _usable_cores,
        "memory_bytes": _memory_total,
        "memory_available_bytes": _memory_available,
        "swap_used_bytes": swap_used_bytes,
        "load_average": lambda: list(os.getloadavg()),
    }


def _by_system() -> dict[str, Callable[[], object]]:
    if sys.platform == "darwin":
        return {
            "os_version": macos.os_version,
            "machine_model": macos.machine_model,
            "cpu": macos.cpu_brand,
            "memory_limit_bytes": _not_here("control groups exist on Linux only"),
            "governor": _not_here("macOS has no frequency governor to read"),
            "power": macos.power,
            "gpu_wired_limit_bytes": macos.gpu_wired_limit_bytes,
            "memory_pressure_level": macos.memory_pressure_level,
        }
    if sys.platform == "linux":
        return {
            "os_version": linux.os_version,
            "machine_model": linux.machine_model,
            "cpu": linux.cpu_model,
            "memory_limit_bytes": linux.memory_limit_bytes,
            "governor": linux.governor,
            "power": linux.power,
            "gpu_wired_limit_bytes": _not_here("the limit exists on macOS only"),
            "memory_pressure_level": _not_here("the level exists on macOS only"),
        }
    unknown = _not_here(f"not known how to read it on {sys.platform}")
    names = ("os_version", "machine_model", "cpu", "memory_limit_bytes", "governor", "power")
    return dict.fromkeys((*names, "gpu_wired_limit_bytes", "memory_pressure_level"), unknown)


def _not_here(why: str) -> Callable[[], object]:
    def refuse() -> object:
        raise UnavailableError(why)

    return refuse


def _physical_cores() -> int:
    import psutil  # noqa: PLC0415  (not needed at start-up)

    return _counted(psutil.cpu_count(logical=False))


def _logical_cores() -> int:
    return _counted(os.cpu_count())


def _usable_cores() -> int:
    if sys.platform != "linux":
        raise UnavailableError("processor affinity is read on Linux only")
    return len(os.sched_getaffinity(0))


def _counted(count: int | None) -> int:
    if count is None:
        raise UnavailableError("the operating system does not tell")
    return count


def _memory_total() -> int:
    import psutil  # noqa: PLC0415

    return int(psutil.virtual_memory().total)


def _memory_available() -> int:
    import psutil  # noqa: PLC0415

    return int(psutil.virtual_memory().available)
