"""Whether a process is dead, asked in one step: it may be reaped between two questions."""

from __future__ import annotations

import psutil


def is_dead(pid: int) -> bool:
    """Whether there is no such process any more, or only an unreaped one."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
