"""What ds4's last words mean, and what to do about them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters.ds4.options import MAY, SEPTEMBER
from orchestrator.schema.adapter import Refusal
from orchestrator.schema.status import Status

_FILES = "take a GGUF from the project's download_model.sh, made for this build"
_MEMORY = (
    "end other programs, take a smaller context, or let Metal wire more memory (sudo sysctl iogpu.wired_limit_mb=…; a "
    "restart of the Mac sets it back)"
)
_LOCK = re.compile(r"^ds4: another ds4 process is already running(?: \(pid (\d+)\))?; refusing to start", re.MULTILINE)

KNOWN: Mapping[str, tuple[Status, str]] = {
    r"ds4: (?:failed to open lock file|failed to lock) .*": (
        Status.FAILED,
        "make /tmp/ds4.lock writable, or remove it when no ds4 runs",
    ),
    r"ds4: cannot open model .*": (Status.FAILED, "correct the model's path in the matrix"),
    r"ds4: model (?:file is too small to be GGUF|is not a GGUF file)": (Status.UNSUPPORTED, _FILES),
    r"ds4: required (?:tokenizer token|tensor) is missing: .*": (Status.UNSUPPORTED, _FILES),
    r"(?:ds4|ds4-server): unknown option: .*": (
        Status.UNSUPPORTED,
        f"set options.generation to what `specmatrix check` reads from --help ({MAY} or {SEPTEMBER})",
    ),
    r"(?:ds4|ds4-server): invalid value for .*": (Status.UNSUPPORTED, "correct that setting in the matrix"),
    r"ds4: .* build has no graph backend support.*": (Status.UNSUPPORTED, "set options.backend to what the build has"),
    r"ds4: .*(?:Insufficient Memory|failed to map .*|failed to prepare startup model cache).*": (
        Status.FAILED,
        _MEMORY,
    ),
    r"ds4: prompt (?:is empty or exceeds context size|processing failed: .*exceeds context.*)": (
        Status.FAILED,
        "raise the engine's option context",
    ),
}
"""Pattern of a line to the status and the remedy; the line itself is the reason."""


def explain(stderr: str) -> Refusal | None:
    """The refusal behind what the engine printed; ``None`` where nothing known is in it."""
    locked = _LOCK.search(stderr)
    if locked is not None:
        who = f"process {locked[1]}" if locked[1] is not None else "another process"
        reason = f"ds4 runs once on a machine, and {who} holds its lock: another ds4, not one of this run"
        remedy = "end that ds4 (a chat, an agent or a server), then: specmatrix rerun --failed"
        return Refusal(Status.FAILED, reason, remedy)
    for pattern, (status, remedy) in KNOWN.items():
        found = re.search(rf"^(?:\d{{4}} [\d:]+ )?({pattern})$", stderr, re.MULTILINE)
        if found is not None:
            return Refusal(status, found[1], remedy)
    return None
