"""The largest other programs on the machine: they share memory, caches and heat with what is measured."""

from __future__ import annotations

import os
from collections.abc import Iterable

COUNT = 10


def largest_others(count: int = COUNT) -> list[dict[str, object]]:
    """The programs with most resident memory, our own apart: name and bytes, and nothing of their arguments."""
    import psutil  # noqa: PLC0415  (not needed at start-up)

    mine = {os.getpid()}
    try:
        mine |= {child.pid for child in psutil.Process().children(recursive=True)}
        mine |= {parent.pid for parent in psutil.Process().parents()}
    except psutil.Error:
        pass
    found = []
    for process in psutil.process_iter():
        if process.pid in mine:
            continue
        try:
            with process.oneshot():
                found.append((process.name(), int(process.memory_info().rss)))
        except (psutil.Error, OSError):
            continue
    return ranked(found, count)


def ranked(found: Iterable[tuple[str, int]], count: int = COUNT) -> list[dict[str, object]]:
    """The largest ``count``, by name the processes of one program together."""
    sums: dict[str, list[int]] = {}
    for name, size in found:
        sums.setdefault(name, []).append(size)
    rows = sorted(((sum(sizes), name, len(sizes)) for name, sizes in sums.items()), key=lambda row: (-row[0], row[1]))
    return [{"name": name, "rss_bytes": size, "processes": number} for size, name, number in rows[:count] if size]
