"""Short commands that tell what an engine is: with a time-out, bounded output, and nothing left behind.

Why neither ``subprocess-tee`` nor ``subprocess.run`` does this: ``docs/decisions/0002-subprocess-tee.md``.
"""

from __future__ import annotations

import os
import selectors
import subprocess
from pathlib import Path

from orchestrator.clock import now_s
from orchestrator.process.environment import scrubbed
from orchestrator.process.ladder import climb
from orchestrator.process.tree import Family
from orchestrator.schema.adapter import Probe, ProbeOutput

MAX_OUTPUT_BYTES = 1024 * 1024
"""Per stream; a probe that prints more is no probe."""

_CHUNK_BYTES = 64 * 1024
_LOOK_S = 0.25
"""How often a silent probe is looked at: a child of it may hold its pipes open."""


def run_probe(probe: Probe, folder: Path) -> ProbeOutput:
    """What the command printed, run in ``folder`` without a shell, without input, in a scrubbed environment.

    ``error`` says why it could not be run, took too long or printed too much; what it printed so far is kept.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        popen = subprocess.Popen(
            list(probe.argv),
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=scrubbed({}),
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError) as err:
        return ProbeOutput(None, "", "", f"{probe.argv[0] if probe.argv else 'an empty command'}: {_why(err)}")
    with popen:
        family = Family(popen)
        output = {"stdout": bytearray(), "stderr": bytearray()}
        try:
            error = _collect(popen, family, output, probe.timeout_s)
        finally:
            climb(popen, family, ("KILL",), 0, None)
    texts = [bytes(output[name]).decode("utf-8", "replace") for name in ("stdout", "stderr")]
    return ProbeOutput(popen.returncode if error is None else None, texts[0], texts[1], error)


def _collect(
    popen: subprocess.Popen[bytes], family: Family, output: dict[str, bytearray], timeout_s: float
) -> str | None:
    """Fill ``output`` until the command is over; the reason when it had to be cut short."""
    deadline = now_s() + timeout_s
    with selectors.DefaultSelector() as selector:
        for name, pipe in (("stdout", popen.stdout), ("stderr", popen.stderr)):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, name)
        while selector.get_map():
            ended = family.poll() is not None
            left = deadline - now_s()
            ready = selector.select(0 if ended else max(0.0, min(_LOOK_S, left)))
            if ended and not ready:
                return None
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fileobj)
                    continue
                output[key.data] += chunk
                if len(output[key.data]) > MAX_OUTPUT_BYTES:
                    del output[key.data][MAX_OUTPUT_BYTES:]
                    return f"printed more than {MAX_OUTPUT_BYTES} bytes"
            if left <= 0 and not ended:  # after a last look: what it printed in time is kept
                return f"not finished within {timeout_s:g} s"
    try:
        popen.wait(max(0.0, deadline - now_s()))
    except subprocess.TimeoutExpired:
        return f"not finished within {timeout_s:g} s"
    return None


def _why(err: Exception) -> str:
    if isinstance(err, FileNotFoundError):
        return "not found"
    if isinstance(err, PermissionError):
        return "may not be executed"
    return str(err)
