"""Swap in use on the machine."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.host import macos
from orchestrator.host.unavailable import UnavailableError


def swap_used_bytes() -> int:
    """Bytes of swap in use now, by all programs together.

    Raises:
        UnavailableError: the system does not tell.
    """
    if sys.platform == "linux":
        return used_of_meminfo(Path("/proc/meminfo").read_text(encoding="ascii"))
    if sys.platform == "darwin":
        return macos.swap_used(macos.sysctl("vm.swapusage"))
    raise UnavailableError(f"not known how to read it on {sys.platform}")


def used_of_meminfo(text: str) -> int:
    """``SwapTotal`` − ``SwapFree`` of ``/proc/meminfo``, bytes.

    Raises:
        UnavailableError: one of the two is missing.
    """
    sizes: dict[str, int] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key in ("SwapTotal", "SwapFree"):
            sizes[key] = int(value.removesuffix("kB").strip()) * 1024
    if len(sizes) != 2:
        raise UnavailableError("/proc/meminfo has no SwapTotal and SwapFree")
    return sizes["SwapTotal"] - sizes["SwapFree"]
