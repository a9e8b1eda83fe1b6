"""How many tokens each prompt has, by the tokenizers of the demo models; counted by scripts/count_tokens.py."""

from __future__ import annotations

import json
import pathlib

COUNTS = pathlib.Path(__file__).parent / "data" / "token-counts.json"
TOKENIZERS = ("tiny", "smollm2")
"""Of the built-in tiny models, and of SmolLM2-135M."""


def token_counts() -> dict[str, dict[str, int]]:
    """Tokens by prompt id and tokenizer; a prompt that was not counted with one lacks it there."""
    rows = json.loads(COUNTS.read_text(encoding="utf-8"))
    return {key: {name: row[name] for name in TOKENIZERS if name in row} for key, row in rows.items()}
