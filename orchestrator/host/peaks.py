"""From samples of a process tree to peak observations that say what each peak is made of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.host.usage import Usage
from orchestrator.schema.observation import Absence, Observation, absent, observed


def rss(root: Usage, others: Sequence[Usage]) -> int:
    """Resident bytes of the tree; pages shared between its processes count in each."""
    return root.rss + sum(usage.rss for usage in others)


def footprint(root: Usage, others: Sequence[Usage]) -> int | None:
    """Footprint of the tree, bytes; ``None`` where a process of it has none."""
    parts = [root.footprint, *(usage.footprint for usage in others)]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


@dataclass(slots=True)
class Peaks:
    """The maxima of all samples so far, bytes; ``None`` before the first."""

    samples: int = 0
    descendants: int = 0
    last_s: float | None = None
    max_gap_s: float | None = None
    root_rss: int = 0
    root_rss_kernel: int | None = None
    root_footprint_kernel: int | None = None
    tree_rss: int = 0
    tree_footprint: int | None = None
    fault: str | None = None

    def add(self, t_s: float, root: Usage, others: Sequence[Usage]) -> None:
        """Take one sample of the tree, at ``t_s`` seconds of our clock."""
        if self.last_s is not None:
            self.max_gap_s = max(self.max_gap_s or 0.0, t_s - self.last_s)
        self.last_s = t_s
        self.samples += 1
        self.descendants = max(self.descendants, len(others))
        self.root_rss = max(self.root_rss, root.rss)
        self.root_rss_kernel = _larger(self.root_rss_kernel, root.rss_peak)
        self.root_footprint_kernel = _larger(self.root_footprint_kernel, root.footprint_peak)
        self.tree_rss = max(self.tree_rss, rss(root, others))
        self.tree_footprint = _larger(self.tree_footprint, footprint(root, others))

    @property
    def basis(self) -> str:
        """How dense the samples were, in words."""
        gap = "" if self.max_gap_s is None else f", longest gap {self.max_gap_s:.2f} s"
        return f"sampled: n = {self.samples}{gap}"


def observations(seen: Peaks) -> tuple[Observation, ...]:
    """``peak_rss``, ``peak_footprint`` and ``peak_unified``."""
    if not seen.samples:
        why = "the process was gone before the first sample"
        return tuple(absent(name, Absence.FAILED, why) for name in ("peak_rss", "peak_footprint", "peak_unified"))
    return _peak_rss(seen), _peak_footprint(seen), _peak_unified(seen)


def _peak_rss(seen: Peaks) -> Observation:
    if seen.root_rss_kernel is not None:
        source = f"os:/proc/PID/status VmHWM of the engine process, kernel-kept, read {seen.samples} times"
        return observed("peak_rss", seen.root_rss_kernel, source, note=_note(seen))
    note = _note(seen, "a sampled maximum: a shorter peak can be missed")
    return observed("peak_rss", seen.root_rss, f"os:resident size of the engine process, {seen.basis}", note=note)


def _peak_footprint(seen: Peaks) -> Observation:
    if seen.root_footprint_kernel is not None:
        source = "os:proc_pid_rusage ri_lifetime_max_phys_footprint of the engine process, kernel-kept"
        return observed("peak_footprint", seen.root_footprint_kernel, source, note=_note(seen))
    why = f"{'Linux' if sys.platform == 'linux' else 'this system'} keeps no physical footprint of a process"
    return absent("peak_footprint", Absence.NOT_REPORTED, why)


def _peak_unified(seen: Peaks) -> Observation:
    """The largest of what the kernel kept of the engine process and what was sampled of its tree."""
    candidates = [
        (seen.root_footprint_kernel, "lifetime maximum of the footprint of the engine process, kernel-kept"),
        (seen.root_rss_kernel, "resident set: VmHWM of the engine process, kernel-kept"),
        (seen.tree_footprint, f"footprint of the process tree, {seen.basis}"),
        (seen.tree_rss, f"resident set of the process tree, {seen.basis}"),
    ]
    known = [(value, basis) for value, basis in candidates if value is not None]
    value, basis = max(known, key=lambda pair: pair[0])
    alone = "" if seen.tree_footprint is not None else " (no footprint on this system: the resident set alone)"
    shared = "pages shared between its processes count in each" if seen.descendants else None
    return observed("peak_unified", value, f"os:basis {basis}{alone}", note=_join(shared, seen.fault))


def _note(seen: Peaks, first: str | None = None) -> str | None:
    below = f"up to {seen.descendants} descendants are not in it (peak_unified has them)" if seen.descendants else None
    return _join(first, below, seen.fault)


def _join(*parts: str | None) -> str | None:
    return "; ".join(part for part in parts if part) or None


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)
