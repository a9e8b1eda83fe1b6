"""The memory of an engine's process tree while it runs: sampled into a file, with the kernel's own peaks beside."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path

from orchestrator.clock import now_s
from orchestrator.host import peaks
from orchestrator.host.peaks import Peaks
from orchestrator.host.swap import swap_used_bytes
from orchestrator.host.unavailable import UnavailableError
from orchestrator.host.usage import Usage, descendants, read_usage
from orchestrator.schema.observation import Absence, Observation, absent, observed

_TREE_REFRESH_S = 1.0
"""How often descendants are looked for; a shorter-lived one can be missed, and is small."""


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """What became known of an engine's memory.

    Args:
        observations: ``peak_rss``, ``peak_footprint``, ``peak_unified`` and ``swap_delta``, each once.
        samples: samples taken.
        max_gap_s: longest time between two of them, seconds; ``None`` below two samples.
        descendants: most descendants seen at once.
    """

    observations: tuple[Observation, ...]
    samples: int
    max_gap_s: float | None
    descendants: int


class MemorySampler:
    """A thread that looks at a process tree a few times a second and sleeps in between.

    ``start`` → … → ``final_read`` while the process still lives → stop the process → ``stop``. Without the final read
    the kernel's peaks are those of the last sample, at most ``1 / hz`` seconds older: the kernel forgets them
    with the process.

    Args:
        pid: the engine's process.
        path: ``memory.jsonl``: lines ``{"t_s", "rss_bytes", "footprint_bytes"}``, sums over the process tree.
        hz: samples per second.
    """

    def __init__(self, pid: int, path: Path, hz: float = 10) -> None:
        """Prepare; nothing is read before :meth:`start`."""
        self._pid = pid
        self._path = path
        self._period_s = 1 / hz
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._peaks = Peaks()
        self._tree: tuple[int, ...] = ()
        self._tree_s: float | None = None
        self._gone = False
        self._swap_before: int | UnavailableError | None = None
        self._reading: MemoryReading | None = None

    def start(self) -> None:
        """Take the first sample and start the thread."""
        self._swap_before = _swap()
        self._path.write_text("", encoding="ascii")
        self._sample(refresh=True)
        self._thread = threading.Thread(target=self._run, name=f"memory of {self._pid}", daemon=True)
        self._thread.start()

    def final_read(self) -> None:
        """Sample once more, and read the kernel's peaks: call it just before the process is stopped."""
        self._sample(refresh=True)

    def stop(self) -> MemoryReading:
        """End the thread; what was seen. A second call returns the same.

        Raises:
            RuntimeError: the sampler was never started.
        """
        if self._reading is not None:
            return self._reading
        if self._thread is None:
            raise RuntimeError("the memory sampler was not started")
        self._over.set()
        self._thread.join()
        seen = self._peaks
        observations = (*peaks.observations(seen), self._swap_delta())
        self._reading = MemoryReading(observations, seen.samples, seen.max_gap_s, seen.descendants)
        return self._reading

    def _run(self) -> None:
        while not self._over.wait(self._period_s) and not self._gone:
            self._sample()

    def _sample(self, *, refresh: bool = False) -> None:
        with self._lock:
            if self._gone or self._over.is_set():
                return
            t_s = now_s()
            root = read_usage(self._pid)
            if root is None:
                self._gone = True
                return
            if refresh or self._tree_s is None or t_s - self._tree_s >= _TREE_REFRESH_S:
                self._tree, self._tree_s = descendants(self._pid), t_s
            others = [usage for pid in self._tree if (usage := read_usage(pid)) is not None]
            self._peaks.add(t_s, root, others)
            self._write(t_s, root, others)

    def _write(self, t_s: float, root: Usage, others: list[Usage]) -> None:
        row = {
            "t_s": t_s,
            "rss_bytes": peaks.rss(root, others),
            "footprint_bytes": peaks.footprint(root, others),
        }
        try:
            with self._path.open("a", encoding="ascii") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as err:
            self._peaks.fault = f"{self._path.name} is incomplete: {err}"

    def _swap_delta(self) -> Observation:
        before, after = self._swap_before, _swap()
        for value in (before, after):
            if isinstance(value, UnavailableError):
                return absent("swap_delta", Absence.NOT_REPORTED, str(value))
        if not isinstance(before, int) or not isinstance(after, int):
            return absent("swap_delta", Absence.NOT_RUN, "the sampler was not started")
        note = "of the whole machine, other programs included"
        return observed("swap_delta", after - before, "os:swap in use, after − before", note=note)


def _swap() -> int | UnavailableError:
    try:
        return swap_used_bytes()
    except UnavailableError as err:
        return err
    except (OSError, ValueError) as err:
        return UnavailableError(str(err))
