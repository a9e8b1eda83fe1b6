"""Whether the memory that a cell will need is there: by RAM, what others hold or shall keep, and the GPU's limit."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from orchestrator.host import linux, macos
from orchestrator.host.unavailable import UnavailableError
from orchestrator.schema.fit import MemoryNeed
from orchestrator.schema.units import size

GPU_SHARE = 0.75
"""Of RAM, where macOS has no limit set and no engine tells: logs of others show 67 % on 16 GiB, 84 % on 128 and 192."""

USED_ON_MACOS = (
    "file pages that macOS can give back count as used here, such as those of a model that was mapped a moment ago"
)
"""``psutil`` takes inactive and free pages for available (its ``_psosx.py``); active ones of files are neither."""


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
        gpu_estimated: it is a guess, and so no ground to refuse a cell.
        used_note: why ``used`` may be too much, and so is no ground to refuse a cell either; empty where it is not.
    """

    total: int
    used: int
    reserved: int
    gpu_limit: int | None = None
    gpu_note: str = ""
    gpu_estimated: bool = False
    used_note: str = ""

    @property
    def at_most(self) -> int:
        """What can be had at best: programs that are reserved for may be running, and are then not counted twice."""
        return self.total - (self.reserved if self.used_note else max(self.used, self.reserved))

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
            "gpu_limit_estimated": self.gpu_estimated,
            "used_note": self.used_note,
        }

    def told(self, limits: Mapping[str, int]) -> Budget:
        """With the GPU's limit as engines are told it: the largest where they differ.

        Args:
            limits: bytes by the engine's name; this budget where it is empty.
        """
        if not limits:
            return self
        name = max(limits, key=lambda one: limits[one])
        return replace(self, gpu_limit=limits[name], gpu_note=f"as {name} is told it", gpu_estimated=False)


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
    limit, note, words, estimated = None, "", "", False
    if sys.platform == "linux":
        with contextlib.suppress(OSError, UnavailableError):
            total = min(total, linux.memory_limit_bytes())
    elif sys.platform == "darwin":
        limit, note, estimated = gpu_limit(macos.gpu_wired_limit_bytes, total)
        words = USED_ON_MACOS
    return Budget(total, used, sum(reserved), limit, note, estimated, words)


def gpu_limit(read: Any, total: int) -> tuple[int | None, str, bool]:  # noqa: ANN401  (a reader of macOS, or a test's)
    """How much the GPU may wire, bytes, where that comes from, and whether it is an estimate.

    Args:
        read: returns bytes, or the word ``default``.
        total: RAM in bytes.
    """
    try:
        found = read()
    except (OSError, UnavailableError) as err:
        return None, str(err), False
    if isinstance(found, int):
        return found, "iogpu.wired_limit_mb, set on this machine", False
    return round(total * GPU_SHARE), f"not set, and no engine tells it: {GPU_SHARE:.0%} of RAM is an estimate", True


def judge(need: MemoryNeed, room: Budget) -> Fit:
    """Whether it fits. ``does not fit`` only where it cannot, whatever of the reserve is running already."""
    if not need.parts:
        return Fit(Verdict.UNKNOWN, "; ".join(need.unknown) or "this adapter does not foresee memory")
    words = f"needs {size(need.total)} ({parts_in_words(need)})"
    if need.total > room.at_most:
        held = f"{size(room.used)} in use now, {size(room.reserved)} reserved"
        held = f"{size(room.reserved)} reserved" if room.used_note else held
        return Fit(
            Verdict.DOES_NOT_FIT, f"{words}; at most {size(max(0, room.at_most))} of {size(room.total)} ({held})"
        )
    unknown = f"; not counted: {'; '.join(need.unknown)}" if need.unknown else ""
    if room.gpu_limit is not None and need.total > room.gpu_limit:
        surely = need.known > room.gpu_limit and not room.gpu_estimated
        text = f"{words}; the GPU may use {size(room.gpu_limit)} ({room.gpu_note})"
        return Fit(Verdict.DOES_NOT_FIT, text) if surely else Fit(Verdict.TIGHT, f"{text}{unknown}")
    if need.total > room.for_sure:
        text = f"{words}; {size(max(0, room.for_sure))} are left if all that is reserved comes on top"
        text = f"{text} ({room.used_note})" if room.used_note else text
        return Fit(Verdict.TIGHT, f"{text}{unknown}")
    return Fit(Verdict.FITS, f"{words} of {size(room.for_sure)}{unknown}")


def parts_in_words(need: MemoryNeed) -> str:
    """``weights 64.0 GB, KV cache 12.0 GB, …``, largest first; estimates say so."""
    ordered = sorted(need.parts, key=lambda part: -part.size)
    return ", ".join(f"{part.what} {'≈ ' if part.estimate else ''}{size(part.size)}" for part in ordered)


def fit_of(record: Mapping[str, Any]) -> str:
    """The verdict's word from a record; empty where there is none."""
    found = record.get("verdict")
    return found if isinstance(found, str) else ""
