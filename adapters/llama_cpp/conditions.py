"""What became of each requested setting, by the engine's own echo."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from adapters.llama_cpp.drafters import longest_draft, spec_types
from adapters.llama_cpp.options import engine_options
from adapters.llama_cpp.request import REQUEST, SLOTS
from adapters.llama_cpp.stream import read_stream
from adapters.llama_cpp.trace import read_rounds
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.errors import CaptureError

ECHOED = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
    "repeat_last_n",
    "seed",
    "n_predict",
    "ignore_eos",
    "samplers",
    "typical_p",
    "top_n_sigma",
    "xtc_probability",
    "xtc_threshold",
    "dynatemp_range",
    "mirostat",
    "dry_multiplier",
    "backend_sampling",
    "n_probs",
)
_ECHO = f"events:{REQUEST}/generation_settings"
_FLOAT32 = 1e-6
"""The engine echoes 32-bit floats."""


def conditions(cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
    """Requested and effective settings of one trial; nothing when the capture cannot be read."""
    try:
        stream = read_stream(capture)
        asked = json.loads(capture.steps[REQUEST].body)
    except (CaptureError, KeyError, ValueError):
        return ()
    echo = stream.final.get("generation_settings")
    if not isinstance(echo, dict) or not isinstance(asked, dict):
        return ()
    cached, cold = stream.timings.get("cache_n"), asked.get("cache_prompt") is False
    return (
        *(_echoed(name, asked[name], echo) for name in ECHOED if name in asked),
        _verdict(
            "cache_prompt",
            "no cached tokens" if cold else "cached tokens",
            f"{cached} cached tokens",
            same=(cached == 0) is cold,
            source=f"events:{REQUEST}/timings.cache_n",
        ),
        *_speculation(cell, echo, capture),
        *_context(cell, capture),
    )


def _echoed(name: str, asked: object, echo: Mapping[str, Any]) -> Condition:
    if name not in echo:
        return Condition(name, _words(asked), None, Honoured.UNKNOWN, _ECHO)
    found = echo[name]
    return _verdict(name, _words(asked), _words(found), same=_same(asked, found), source=_ECHO)


def _speculation(cell: Cell, echo: Mapping[str, Any], capture: TrialCapture) -> Iterable[Condition]:
    wanted = spec_types(cell.method)
    found = echo.get("speculative.types")
    types = [part for part in found.split(",") if part != "none"] if isinstance(found, str) else None
    effective = ",".join(types) or "none" if types is not None else None
    source = f"{_ECHO}.speculative.types"
    if effective is None:
        yield Condition("speculation", wanted, None, Honoured.UNKNOWN, source)
    else:
        yield _verdict("speculation", wanted, effective, same=effective == wanted, source=source)
    if cell.method.kind is not MethodKind.NONE:
        asked = longest_draft(cell.method)
        rounds = read_rounds(capture.log)
        longest = max((item.drafted for item in rounds), default=0) if rounds else None
        verdict = Honoured.UNKNOWN
        if longest is not None and longest >= asked:
            verdict = Honoured.HONOURED if longest == asked else Honoured.CHANGED
        seen = None if longest is None else f"longest draft seen: {longest}"
        yield Condition("draft_length", str(asked), seen, verdict, "stderr.log:LLAMA_TRACE lines")


def _context(cell: Cell, capture: TrialCapture) -> Iterable[Condition]:
    asked = engine_options(cell).context
    step = capture.step(SLOTS)
    try:
        slots = json.loads(step.text) if step is not None else None
    except ValueError:
        slots = None
    found = slots[0].get("n_ctx") if isinstance(slots, list) and slots and isinstance(slots[0], dict) else None
    if not isinstance(found, int):
        yield Condition("context", str(asked), None, Honoured.UNKNOWN, f"events:{SLOTS}")
    elif asked == 0:
        yield Condition("context", "the model's own", str(found), Honoured.HONOURED, f"events:{SLOTS}")
    else:
        yield _verdict("context", str(asked), str(found), same=found == asked, source=f"events:{SLOTS}")


def _verdict(name: str, asked: str, found: str, *, same: bool, source: str) -> Condition:
    return Condition(name, asked, found, Honoured.HONOURED if same else Honoured.CHANGED, source)


def _same(asked: object, found: object) -> bool:
    if isinstance(asked, bool) or isinstance(found, bool):
        return asked is found
    if isinstance(asked, int | float) and isinstance(found, int | float):
        return math.isclose(asked, found, rel_tol=_FLOAT32, abs_tol=_FLOAT32)
    return asked == found


def _words(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
