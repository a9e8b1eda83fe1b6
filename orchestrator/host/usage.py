"""One process's memory at one moment, and the processes that came from it: the sampler's eyes.

Resident set and footprint are two ledgers of the same memory and are never added: the resident set counts clean pages
of a mapped model file, the footprint counts what the GPU holds.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory of one process, bytes; ``None`` where the system keeps no such figure.

    Args:
        rss: resident now.
        rss_peak: most ever resident, kept by the kernel (Linux ``VmHWM``).
        footprint: physical footprint now (macOS).
        footprint_peak: its lifetime maximum, kept by the kernel (macOS).
    """

    rss: int
    rss_peak: int | None
    footprint: int | None
    footprint_peak: int | None


class RusageInfoV4(ctypes.Structure):
    """``struct rusage_info_v4`` of macOS's ``<sys/resource.h>``. From source only: not run on a Mac."""

    _fields_ = (
        ("ri_uuid", ctypes.c_uint8 * 16),
        *(
            (name, ctypes.c_uint64)
            for name in (
                "ri_user_time",
                "ri_system_time",
                "ri_pkg_idle_wkups",
                "ri_interrupt_wkups",
                "ri_pageins",
                "ri_wired_size",
                "ri_resident_size",
                "ri_phys_footprint",
                "ri_proc_start_abstime",
                "ri_proc_exit_abstime",
                "ri_child_user_time",
                "ri_child_system_time",
                "ri_child_pkg_idle_wkups",
                "ri_child_interrupt_wkups",
                "ri_child_pageins",
                "ri_child_elapsed_abstime",
                "ri_diskio_bytesread",
                "ri_diskio_byteswritten",
                "ri_cpu_time_qos_default",
                "ri_cpu_time_qos_maintenance",
                "ri_cpu_time_qos_background",
                "ri_cpu_time_qos_utility",
                "ri_cpu_time_qos_legacy",
                "ri_cpu_time_qos_user_initiated",
                "ri_cpu_time_qos_user_interactive",
                "ri_billed_system_time",
                "ri_serviced_system_time",
                "ri_logical_writes",
                "ri_lifetime_max_phys_footprint",
                "ri_instructions",
                "ri_cycles",
                "ri_billed_energy",
                "ri_serviced_energy",
                "ri_interval_max_phys_footprint",
                "ri_runnable_time",
            )
        ),
    )


_RUSAGE_INFO_V4 = 4


def read_usage(pid: int) -> Usage | None:
    """The process's memory now; ``None`` when it is gone, a zombie, or may not be looked at."""
    if sys.platform == "linux":
        return _linux(pid)
    if sys.platform == "darwin":
        return _macos(pid)
    return _portable(pid)


def descendants(pid: int) -> tuple[int, ...]:
    """Pids of all processes below this one, nearest first; empty when there are none or it is gone."""
    if sys.platform == "linux":
        try:
            return _linux_descendants(pid)
        except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN, or the process is gone
            pass
    import psutil  # noqa: PLC0415

    try:
        return tuple(child.pid for child in psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return ()


def usage_of_status(text: str) -> Usage | None:
    """``VmRSS`` and ``VmHWM`` of ``/proc/PID/status``; ``None`` without them (a zombie or kernel thread)."""
    sizes: dict[str, int] = {}
    for line in text.splitlines():
        if line.startswith(("VmRSS:", "VmHWM:")):
            key, value = line.split(":", 1)
            sizes[key] = int(value.removesuffix("kB").strip()) * _KIB
    if len(sizes) != 2:
        return None
    return Usage(sizes["VmRSS"], sizes["VmHWM"], None, None)


def usage_of_rusage(info: RusageInfoV4) -> Usage:
    """The memory fields of macOS's process accounting."""
    return Usage(
        int(info.ri_resident_size), None, int(info.ri_phys_footprint), int(info.ri_lifetime_max_phys_footprint)
    )


def _linux(pid: int) -> Usage | None:
    try:
        return usage_of_status(Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def _linux_descendants(pid: int) -> tuple[int, ...]:
    """By the kernel's own child lists: looking through every process of the machine would cost milliseconds."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop(0)
        try:
            threads = list(Path(f"/proc/{parent}/task").iterdir())
        except OSError:
            continue
        for thread in threads:
            try:
                text = (thread / "children").read_text(encoding="ascii")
            except ProcessLookupError:
                continue
            except FileNotFoundError:
                if thread.exists():
                    raise
                continue
            waiting += [int(child) for child in text.split()]
        found.append(parent)
    return tuple(found[1:])


@cache
def _libproc() -> Any:  # noqa: ANN401  (a foreign library)
    library = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
    library.proc_pid_rusage.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    library.proc_pid_rusage.restype = ctypes.c_int
    return library


def _macos(pid: int) -> Usage | None:
    info = RusageInfoV4()
    if _libproc().proc_pid_rusage(pid, _RUSAGE_INFO_V4, ctypes.byref(info)) != 0:
        return None
    return usage_of_rusage(info)


def _portable(pid: int) -> Usage | None:
    import psutil  # noqa: PLC0415

    try:
        return Usage(int(psutil.Process(pid).memory_info().rss), None, None, None)
    except psutil.Error:
        return None
