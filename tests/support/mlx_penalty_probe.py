"""What mlx-lm's logits processors see first, without and with a draft: prints two lists of token ids as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from mlx_lm import load, stream_generate

target, draft, prompt = json.load(sys.stdin)
model, tokenizer = load(target)
small, _ = load(draft)
seen: dict[str, list[list[int]]] = {}


def recorder(name: str) -> Callable[[Any, Any], Any]:
    def record(tokens: Any, logits: Any) -> Any:
        seen.setdefault(name, []).append(tokens.tolist())
        return logits

    return record


for name, extra in (("none", {}), ("draft", {"draft_model": small, "num_draft_tokens": 2})):
    list(stream_generate(model, tokenizer, prompt, max_tokens=4, logits_processors=[recorder(name)], **extra))
sys.stdout.write(json.dumps([seen["none"][0], seen["draft"][0]]))
