from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.host import memory, usage
from orchestrator.host.memory import MemoryReading, MemorySampler
from orchestrator.host.peaks import Peaks, observations
from orchestrator.host.swap import used_of_meminfo
from orchestrator.host.unavailable import UnavailableError
from orchestrator.host.usage import RusageInfoV4, Usage, descendants, read_usage, usage_of_rusage, usage_of_status
from orchestrator.schema.observation import Absence, Observation

MIB = 2**20
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="kernel-kept resident peaks exist on Linux")
CHILD = """
import sys
block = bytearray({size}); block[::4096] = b'x' * len(block[::4096])
print('grown', flush=True); sys.stdin.readline()
del block
print('shrunk', flush=True); sys.stdin.readline()
"""


class Child:
    """A Python process that grows, shrinks and ends on command."""

    def __init__(self, script: str) -> None:
        argv = [sys.executable, "-c", script]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def hear(self) -> str:
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def grower() -> Iterator[Child]:
    child = Child(CHILD.format(size=64 * MIB))
    yield child
    child.end()


def by_name(reading: MemoryReading) -> dict[str, Observation]:
    return {one.metric: one for one in reading.observations}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@linux_only
def test_the_kernel_remembers_a_peak_that_no_sample_saw(grower: Child, tmp_path: Path) -> None:
    assert grower.hear() == "grown"
    grower.go_on()
    assert grower.hear() == "shrunk"
    sampler = MemorySampler(grower.pid, tmp_path / "memory.jsonl", hz=0.001)
    sampler.start()
    sampler.final_read()
    reading = sampler.stop()
    found = by_name(reading)
    sampled = max(row["rss_bytes"] for row in rows(tmp_path / "memory.jsonl"))
    assert found["peak_rss"].value >= 64 * MIB
    assert sampled < found["peak_rss"].value - 32 * MIB
    assert "VmHWM" in found["peak_rss"].source
    assert found["peak_unified"].value == found["peak_rss"].value
    assert "resident set alone" in found["peak_unified"].source
    assert found["peak_footprint"].absent is Absence.NOT_REPORTED
    assert "Linux" in found["peak_footprint"].note
    assert (reading.samples, reading.descendants) == (2, 0)
    assert set(found) == {"peak_rss", "peak_footprint", "peak_unified", "swap_delta"}
    assert len(reading.observations) == 4


@linux_only
def test_lines_hold_time_and_sizes(grower: Child, tmp_path: Path) -> None:
    grower.hear()
    sampler = MemorySampler(grower.pid, tmp_path / "memory.jsonl", hz=0.001)
    sampler.start()
    sampler.stop()
    (row,) = rows(tmp_path / "memory.jsonl")
    assert set(row) == {"t_s", "rss_bytes", "footprint_bytes"}
    assert row["rss_bytes"] >= 64 * MIB
    assert row["footprint_bytes"] is None


def test_the_thread_samples_by_itself_and_ends_with_the_process(grower: Child, tmp_path: Path) -> None:
    grower.hear()
    sampler = MemorySampler(grower.pid, tmp_path / "memory.jsonl", hz=200)
    sampler.start()
    thread = sampler._thread
    while len(rows(tmp_path / "memory.jsonl")) < 5:
        thread.join(0.01)
    grower.end()
    thread.join(60)
    assert not thread.is_alive()
    reading = sampler.stop()
    assert reading.samples == len(rows(tmp_path / "memory.jsonl")) >= 5
    assert reading.max_gap_s > 0
    assert sampler.stop() is reading


def test_a_process_that_is_gone_gives_no_number(grower: Child, tmp_path: Path) -> None:
    grower.end()
    sampler = MemorySampler(grower.pid, tmp_path / "memory.jsonl")
    sampler.start()
    found = by_name(sampler.stop())
    for name in ("peak_rss", "peak_footprint", "peak_unified"):
        assert found[name].value is None
        assert found[name].absent is Absence.FAILED
        assert "gone before the first sample" in found[name].note
    assert (tmp_path / "memory.jsonl").read_text() == ""


def test_a_sampler_that_never_ran_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not started"):
        MemorySampler(os.getpid(), tmp_path / "memory.jsonl").stop()


@linux_only
def test_descendants_are_summed(tmp_path: Path) -> None:
    inner = CHILD.format(size=64 * MIB)
    outer = Child(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])")
    try:
        assert outer.hear() == "grown"
        (child,) = descendants(outer.pid)
        alone = read_usage(outer.pid).rss
        assert alone < 64 * MIB
        assert read_usage(child).rss >= 64 * MIB
        sampler = MemorySampler(outer.pid, tmp_path / "memory.jsonl", hz=0.001)
        sampler.start()
        reading = sampler.stop()
    finally:
        outer.go_on()
        outer.end()
    found = by_name(reading)
    assert reading.descendants == 1
    assert found["peak_rss"].value < 64 * MIB < found["peak_unified"].value
    assert "1 descendants are not in it" in found["peak_rss"].note
    assert "process tree" in found["peak_unified"].source
    assert "shared between its processes" in found["peak_unified"].note


@pytest.mark.parametrize(("before", "after", "value"), [(100, 350, 250), (350, 100, -250), (7, 7, 0)])
def test_swap_is_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, after: int, value: float
) -> None:
    answers = iter((before, after))
    monkeypatch.setattr(memory, "swap_used_bytes", lambda: next(answers))
    sampler = MemorySampler(os.getpid(), tmp_path / "memory.jsonl", hz=0.001)
    sampler.start()
    assert by_name(sampler.stop())["swap_delta"].value == value


def test_unreadable_swap_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise UnavailableError("no swap figures here")

    monkeypatch.setattr(memory, "swap_used_bytes", refuse)
    sampler = MemorySampler(os.getpid(), tmp_path / "memory.jsonl", hz=0.001)
    sampler.start()
    found = by_name(sampler.stop())["swap_delta"]
    assert (found.value, found.absent, found.note) == (None, Absence.NOT_REPORTED, "no swap figures here")


def test_a_full_disk_is_noted_and_does_not_stop_the_sampling(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    sampler = MemorySampler(os.getpid(), path, hz=0.001)
    sampler.start()
    path.unlink()
    path.mkdir()
    sampler.final_read()
    reading = sampler.stop()
    assert reading.samples == 2
    assert "memory.jsonl is incomplete" in by_name(reading)["peak_rss"].note


def test_swap_of_meminfo() -> None:
    assert used_of_meminfo("MemTotal: 9 kB\nSwapTotal:    2048 kB\nSwapCached: 1 kB\nSwapFree:  1024 kB\n") == MIB
    with pytest.raises(UnavailableError):
        used_of_meminfo("SwapTotal: 1 kB\n")


def test_status_without_memory_is_no_usage() -> None:
    assert usage_of_status("Name:\tx\nState:\tZ (zombie)\n") is None
    assert usage_of_status("VmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n") == Usage(MIB, 2 * MIB, None, None)


def test_macos_accounting_is_read_at_the_documented_offsets() -> None:
    """A buffer as the kernel fills it: 16 bytes of id, then 35 numbers of 8 bytes (from source only)."""
    numbers = list(range(100, 135))
    buffer = bytearray(b"u" * 16 + struct.pack("<35Q", *numbers))
    assert ctypes.sizeof(RusageInfoV4) == len(buffer) == 296
    info = RusageInfoV4.from_buffer(buffer)
    assert RusageInfoV4.ri_resident_size.offset == 64
    assert RusageInfoV4.ri_phys_footprint.offset == 72
    assert RusageInfoV4.ri_lifetime_max_phys_footprint.offset == 240
    assert usage_of_rusage(info) == Usage(106, None, 107, 128)


def test_macos_reading_asks_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def proc_pid_rusage(self, pid: int, flavor: int, buffer: Any) -> int:
            if pid != 42:
                return -1
            info = ctypes.cast(buffer, ctypes.POINTER(RusageInfoV4)).contents
            info.ri_resident_size, info.ri_phys_footprint, info.ri_lifetime_max_phys_footprint = 1, flavor, 3
            return 0

    monkeypatch.setattr(usage, "_libproc", Library)
    assert usage._macos(42) == Usage(1, None, 4, 3)
    assert usage._macos(43) is None


def test_macos_peaks_name_their_basis() -> None:
    seen = Peaks()
    seen.add(1.0, Usage(500, None, 900, 950), [Usage(10, None, 20, 25)])
    seen.add(1.5, Usage(700, None, 100, 950), [])
    rss, footprint, unified = observations(seen)
    assert (rss.value, footprint.value, unified.value) == (700, 950, 950)
    assert "sampled: n = 2, longest gap 0.50 s" in rss.source
    assert "a shorter peak can be missed" in rss.note
    assert "ri_lifetime_max_phys_footprint" in footprint.source
    assert unified.source.startswith("os:basis lifetime maximum of the footprint")
    seen.add(2.0, Usage(2000, None, 100, 950), [])
    assert observations(seen)[2].value == 2000
    assert observations(seen)[2].source.startswith("os:basis resident set of the process tree")
    seen.add(2.5, Usage(1, None, 900, 950), [Usage(1, None, 1200, 1200)])
    assert observations(seen)[2].value == 2100
    assert observations(seen)[2].source.startswith("os:basis footprint of the process tree")
