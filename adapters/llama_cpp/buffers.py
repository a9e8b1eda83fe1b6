"""The buffers that llama.cpp says it allocated while loading, from its log."""

from __future__ import annotations

import re

from orchestrator.schema.observation import Absence, Observation, absent, observed

_LINE = re.compile(
    r"(?P<where>\w+):\s+(?P<device>\S+)\s+(?P<kind>model|output|KV|RS|compute) buffer size =\s*(?P<mib>[\d.]+) MiB"
)
_CONTEXT = re.compile(r"llama_context: n_ctx\s+=")
_LOADED = re.compile(r"slot\s+load_model: .*new slot, n_ctx")
"""The line after which everything is allocated."""
_MIB = 1024 * 1024


def engine_buffers(stderr: str) -> Observation:
    """Sum of all buffers, bytes (each rounded to 0.01 MiB); absent while the log does not reach the end of loading.

    A context that reserves its compute buffer again keeps the last one only.
    """
    loaded = _LOADED.search(stderr)
    if loaded is None or "\n" not in stderr[loaded.end() :]:
        return absent("engine_buffers", Absence.NOT_REPORTED, "the log does not tell that the model was loaded")
    models = 0.0
    contexts: list[dict[tuple[str, str], float]] = []
    for line in stderr[: loaded.start()].split("\n"):
        if _CONTEXT.search(line):
            contexts.append({})
        found = _LINE.search(line)
        if found is None:
            continue
        size = float(found["mib"])
        if found["kind"] == "model":
            models += size
        elif contexts:
            key = (found["device"], found["kind"])
            again = found["kind"] == "compute" or key not in contexts[-1]
            contexts[-1][key] = size if again else contexts[-1][key] + size
    total = models + sum(sum(one.values()) for one in contexts)
    if not total:
        return absent("engine_buffers", Absence.NOT_REPORTED, "the log names no buffers")
    words = f"stderr.log: buffer sizes of {len(contexts)} context(s)"
    note = None if models else "the log names no weights"
    return observed("engine_buffers", round(total * _MIB), words, definition="llama.cpp:b11434:buffer size", note=note)
