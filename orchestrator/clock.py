"""The one clock that all durations of ours come from."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_s() -> float:
    """Seconds on a monotonic clock shared by all processes of this machine.

    Source: ``time.perf_counter`` is ``CLOCK_MONOTONIC`` on Linux and ``mach_absolute_time`` on macOS;
    both count from boot, so a worker's stamps and ours may be subtracted from each other.
    """
    return time.perf_counter()


def utc_now() -> str:
    """The wall-clock moment as ISO 8601 with a ``Z``, for people; never used for a duration."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
