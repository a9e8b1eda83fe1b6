"""Runs the real mlx-vlm worker and counts the target's passes by itself.

Every call of the target's ``__call__`` with its rows, and whether it judges a draft, is written to ``calls.jsonl`` before
each answer. It prints a stray line besides, as a library might.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

REAL = Path(__file__).resolve().parents[2] / "adapters" / "workers" / "mlx_vlm_worker.py"


def load_worker() -> Any:
    spec = importlib.util.spec_from_file_location("mlx_vlm_worker", REAL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__file__ = str(REAL)
    return module


def count_passes(worker: Any) -> None:
    from mlx_vlm.models.qwen3_5 import language  # noqa: PLC0415

    calls: list[tuple[int, bool]] = []
    call, say = language.LanguageModel.__call__, worker.say

    def counted(model: Any, inputs: Any, *args: Any, **named: Any) -> Any:
        print("a stray line")  # noqa: T201
        calls.append((inputs.shape[1], bool(named.get("speculative_verify"))))
        return call(model, inputs, *args, **named)

    def say_after_counts(protocol: Any, **message: Any) -> None:
        with Path("calls.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(calls) + "\n")
        calls.clear()
        say(protocol, **message)

    language.LanguageModel.__call__ = counted
    worker.say = say_after_counts


if __name__ == "__main__":
    real = load_worker()
    count_passes(real)
    sys.exit(real.main())
