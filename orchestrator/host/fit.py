"""Whether the memory that a cell will need is there: by RAM, what others hold or shall keep, and the GPU's limit."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.host import linux, macos
from orchestrator.host.unavailable import UnavailableError
from orchestrator.schema.fit import MemoryNeed
from orchestrator.schema.units import size

GPU_SHARE = 0.75
"""Of RAM, where macOS has no limit set: it then lets the GPU wire two thirds to three quarters, the larger is taken."""


class Verdict(StrEnum):
    """What is known before the run."""

    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does not fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Budget:
    """The machine's memory at one moment, bytes.

    Args:
        total: RAM, or the control group's limit where that is smaller.
        used: held by programs now.
        reserved: what ``host.reserve`` names, in all.
        gpu_limit: how much the GPU may use; ``None`` where memory is not shared with one (or that is not known).
        gpu_note: where that limit comes from.
    """

    total: int
    used: int
    reserved: int
    gpu_limit: int | None = None
    gpu_note: str = ""

    @property
    def at_most(self) -> int:
        """What can be had at best: programs that are reserved for may be running, and are then not counted twice."""
        return self.total - max(self.used, self.reserved)

    @property
    def for_sure(self) -> int:
        """What can be had even when everything that is reserved comes on top of what runs now."""
        return self.total - self.used - self.reserved

    def plain(self) -> dict[str, Any]:
        """As JSON has it, for records."""
        return {
            "total_bytes": self.total,
            "used_bytes": self.used,
            "reserved_bytes": self.reserved,
            "gpu_limit_bytes": self.gpu_limit,
            "gpu_limit_note": self.gpu_note,
        }


@dataclass(frozen=True, slots=True)
class Fit:
    """The verdict of one cell with the sentence that justifies it."""

    verdict: Verdict
    sentence: str


def budget(reserved: Sequence[int]) -> Budget:
    """The machine's memory now, less nothing yet.

    Args:
        reserved: bytes that ``host.reserve`` names.

    Raises:
        UnavailableError: the system does not tell how much memory there is.
    """
    import psutil  # noqa: PLC0415  (not needed at start-up)

    seen = psutil.virtual_memory()
    total, used = int(seen.total), int(seen.total) - int(seen.available)
    limit, note = None, ""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, UnavailableError):
            total = min(total, linux.memory_limit_bytes())
    elif sys.platform == "darwin":
        limit, note = gpu_limit(macos.gpu_wired_limit_bytes, total)
    return Budget(total, used, sum(reserved), limit, note)


def gpu_limit(read: Any, total: int) -> tuple[int | None, str]:  # noqa: ANN401  (a reader of macOS, or a test's)
    """How much the GPU may wire, bytes, and where that comes from.

    Args:
        read: returns bytes, or the word ``default``.
        total: RAM in bytes.
    """
    try:
        found = read()
    except (OSError, UnavailableError) as err:
        return None, str(err)
    if isinstance(found, int):
        return found, "iogpu.wired_limit_mb, set on this machine"
    return round(total * GPU_SHARE), f"not set: at most {GPU_SHARE:.0%} of RAM, by macOS's default (estimate)"


def judge(need: MemoryNeed, room: Budget) -> Fit:
    """Whether it fits. ``does not fit`` only where it cannot, whatever of the reserve is running already."""
    if not need.parts:
        return Fit(Verdict.UNKNOWN, "; ".join(need.unknown) or "this adapter does not foresee memory")
    words = f"needs {size(need.total)} ({parts_in_words(need)})"
    if need.total > room.at_most:
        held = f"{size(room.used)} in use now, {size(room.reserved)} reserved"
        return Fit(
            Verdict.DOES_NOT_FIT, f"{words}; at most {size(max(0, room.at_most))} of {size(room.total)} ({held})"
        )
    if room.gpu_limit is not None and need.total > room.gpu_limit:
        return Fit(Verdict.DOES_NOT_FIT, f"{words}; the GPU may use {size(room.gpu_limit)} ({room.gpu_note})")
    unknown = f"; not counted: {'; '.join(need.unknown)}" if need.unknown else ""
    if need.total > room.for_sure:
        text = f"{words}; {size(max(0, room.for_sure))} are left if all that is reserved comes on top{unknown}"
        return Fit(Verdict.TIGHT, text)
    return Fit(Verdict.FITS, f"{words} of {size(room.for_sure)}{unknown}")


def parts_in_words(need: MemoryNeed) -> str:
    """``weights 64.0 GB, KV cache 12.0 GB, …``, largest first; estimates say so."""
    ordered = sorted(need.parts, key=lambda part: -part.size)
    return ", ".join(f"{part.what} {'≈ ' if part.estimate else ''}{size(part.size)}" for part in ordered)


def fit_of(record: Mapping[str, Any]) -> str:
    """The verdict's word from a record; empty where there is none."""
    found = record.get("verdict")
    return found if isinstance(found, str) else ""
