"""Runs prompts through MLX-LM: one JSON request on stdin, one JSON answer on stdout."""

from __future__ import annotations

import json
import sys
import time

import mlx.core as mx
from mlx_lm import load, stream_generate

END_OF_TEXT = 0


def mask_end_of_text(_tokens: mx.array, logits: mx.array) -> mx.array:
    logits[..., END_OF_TEXT] = -float("inf")
    return logits


def main() -> None:
    wanted = json.load(sys.stdin)
    model, tokenizer = load(wanted["target"])
    options: dict[str, object] = {"prefill_step_size": 2048}
    if wanted["speculation"] == "draft":
        options |= {"draft_model": load(wanted["draft"])[0], "num_draft_tokens": wanted["k"]}
    if wanted["mask_eos"]:
        options["logits_processors"] = [mask_end_of_text]
    results = []
    for prompt in wanted["prompts"]:
        ids = tokenizer.encode(prompt)
        tokens, drafted, stamps, text = [], [], [], ""
        for response in stream_generate(model, tokenizer, ids, max_tokens=wanted["tokens"], **options):
            tokens.append(response.token)
            drafted.append(response.from_draft)
            stamps.append(time.perf_counter())
            text += response.text
        mx.synchronize()
        results.append(
            {
                "prompt_ids": ids,
                "tokens": tokens,
                "text": text,
                "from_draft": drafted,
                "milliseconds": 1000 * (stamps[-1] - stamps[0]),
            }
        )
    sys.stdout.write(json.dumps({"results": results}) + "\n")


if __name__ == "__main__":
    main()
