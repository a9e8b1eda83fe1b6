"""Model files that lie in this package as they are."""

from __future__ import annotations

import json
import pathlib

from orchestrator.demo.recipes import WEIGHTS

#: A draft for SmolLM2-135M-Instruct, distilled from it (training/README.md); Apache-2.0, as its target is.
SMOLLM2_DRAFT = "smollm2-draft-q8_0.gguf"
COMMITTED: dict[str, pathlib.Path] = {SMOLLM2_DRAFT: WEIGHTS / "smollm2-draft" / SMOLLM2_DRAFT}


def told(name: str) -> dict[str, object]:
    """What the training wrote down of a committed file: size, sha256, text, what it reached."""
    found: dict[str, object] = json.loads(COMMITTED[name].with_suffix(".json").read_text(encoding="utf-8"))
    return found
