"""What the memory sampler costs: processor time of its thread over so many seconds, as a share of one core.

Usage: python benchmarks/memory_sampler.py [SECONDS] [CHILDREN]
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from orchestrator.host.memory import MemorySampler
from orchestrator.host.pressure import moment

LIMIT = 0.01


def main(arguments: list[str]) -> int:
    """Prints the shares; 1 when the sampler takes more than one hundredth of a core."""
    seconds = float(arguments[0]) if arguments else 20.0
    children = int(arguments[1]) if len(arguments) > 1 else 2
    start = f"p = [subprocess.Popen(['sleep', '600']) for _ in range({children})]"
    tree = f"import subprocess, time; {start}; time.sleep(600)"
    engine = subprocess.Popen([sys.executable, "-c", tree], start_new_session=True)
    try:
        time.sleep(0.5)
        share = sampled(engine.pid, seconds)
    finally:
        os.killpg(engine.pid, signal.SIGKILL)
        engine.wait()
    begun = time.perf_counter()
    for _ in range(100):
        moment()
    per_trial = (time.perf_counter() - begun) / 50
    print(f"sampler at 10 Hz over {seconds:g} s, {children} descendants: {share:.3%} of one core")
    print(f"pressure and swap, before and after a trial: {per_trial * 1e6:.0f} µs, outside of the timed region")
    return 0 if share <= LIMIT else 1


def sampled(pid: int, seconds: float) -> float:
    """Processor time of this process while only the sampler works, over wall time."""
    with tempfile.TemporaryDirectory() as folder:
        sampler = MemorySampler(pid, Path(folder) / "memory.jsonl")
        sampler.start()
        cpu, wall = time.process_time(), time.perf_counter()
        time.sleep(seconds)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        sampler.final_read()
        reading = sampler.stop()
    print(f"{reading.samples} samples, longest gap {reading.max_gap_s:.3f} s, {reading.descendants} descendants")
    return cpu / wall


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
