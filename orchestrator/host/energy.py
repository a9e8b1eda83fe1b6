"""Energy of the chip while tokens are decoded, where a sampler without administrator rights is installed.

``macmon pipe`` (Apple Silicon) prints one JSON object a sample with its power in watts; energy is the integral between
two moments. From source only: the parsing is tested on lines written after macmon's documentation, not on a Mac. Rails
of the chip are not the mains: a display and the power supply's loss are not in it.

The package ``zeus`` is not read (docs/methodology.md, Energy).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import IO

from orchestrator.clock import now_s
from orchestrator.schema.observation import Absence, Observation, absent, observed

Sample = tuple[float, float]
"""Seconds of our clock, watts."""

PERIOD_MS = 200
LONGEST_GAP_S = 2.0
"""Between samples: over a longer one no energy is told."""
LAST_WAIT_S = 10.0
"""For the exit code of a sampler that has closed its output."""
KEYS = ("all_power", "sys_power")
MISSING = "no power sampler: macmon is not on PATH"


def watts_of(line: str) -> float | None:
    """The chip's power in a line of ``macmon pipe``; ``None`` where it tells none."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    for key in KEYS:
        value = row.get(key) if isinstance(row, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return float(value)
    return None


def energy(samples: Sequence[Sample], start_s: float, end_s: float) -> float | None:
    """Joules from ``start_s`` to ``end_s`` by trapezoids; ``None`` where samples do not enclose it without a gap."""
    inside = [sample for sample in samples if start_s <= sample[0] <= end_s]
    before = [sample for sample in samples if sample[0] < start_s][-1:]
    after = [sample for sample in samples if sample[0] > end_s][:1]
    if not before or not after or end_s <= start_s:
        return None
    row = [*before, *inside, *after]
    if any(later[0] - earlier[0] > LONGEST_GAP_S for earlier, later in pairwise(row)):
        return None
    total = 0.0
    for (t_0, w_0), (t_1, w_1) in pairwise(row):
        low, high = max(t_0, start_s), min(t_1, end_s)
        if high > low and t_1 > t_0:
            slope = (w_1 - w_0) / (t_1 - t_0)
            total += (high - low) * (w_0 + slope * ((low + high) / 2 - t_0))
    return total


class EnergySampler:
    """Reads ``macmon`` while a session runs; without it every answer is an absence with the reason."""

    def __init__(self, program: str | None = None) -> None:
        """Look for the program; nothing is started before :meth:`start`."""
        self._program = program if program is not None else shutil.which("macmon")
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._news = threading.Condition()
        self._said: IO[bytes] | None = None
        self._ended = False
        self.samples: list[Sample] = []
        self.why = "" if self._program is not None else MISSING

    def start(self) -> None:
        """Start sampling, if there is anything to sample with."""
        if self._program is None:
            return
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (open until the end is told; closed by stop)
        try:
            self._process = subprocess.Popen(
                [self._program, "pipe", "-i", str(PERIOD_MS)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._said,
                text=True,
            )
        except OSError as err:
            self.why = f"{self._program} cannot be started ({err.strerror})"
            self._said.close()
            return
        if self._process.stdout is not None:
            self._thread = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End sampling."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.wait()
        if self._thread is not None:
            self._thread.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._said is not None:
            self._said.close()

    def decode(self, start_s: float, end_s: float) -> Observation:
        """``energy_decode`` from the first burst to the last, seconds of our clock; waits for the sample after it.

        A sampler that has ended gives no more of them: then there is nothing to wait for.
        """
        if self._thread is not None:
            with self._news:
                self._news.wait_for(
                    lambda: self._ended or (bool(self.samples) and self.samples[-1][0] > end_s), timeout=LONGEST_GAP_S
                )
        found = energy(list(self.samples), start_s, end_s)
        if found is not None:
            return observed(
                "energy_decode", found, "os:macmon pipe, integrated", note="gross, of the chip, not the mains"
            )
        why = self.why or "no power samples enclose the decode interval without a gap"
        return absent("energy_decode", Absence.NOT_REPORTED, why)

    def _read(self, stream: IO[str]) -> None:
        with contextlib.suppress(ValueError):  # the stream was closed while we waited
            for line in stream:
                watts = watts_of(line)
                if watts is not None:
                    with self._news:
                        self.samples.append((now_s(), watts))
                        self._news.notify_all()
        why = self._end()
        with self._news:
            self._ended, self.why = True, self.why or why
            self._news.notify_all()

    def _end(self) -> str:
        """How the sampler ended, with its last words."""
        if self._process is None or self._said is None:
            return ""
        try:
            end = f"ended with exit code {self._process.wait(LAST_WAIT_S)}"
        except subprocess.TimeoutExpired:
            end = "closed its output"
        self._said.seek(0)
        words = self._said.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        return f"{self._program} {end} before the answer did" + (f": {last[:200]}" if last else "")
