"""How predictable each rung of the set `entropy-ladder` is to a real model, and to a look-up in the text so far.

Usage: python scripts/measure_ladder.py MODEL.gguf [LANGUAGE [TEMPERATURE [PROMPTS]]]
which prints a table for docs/workloads.md: per rung, over answers of at most 160 tokens in the model's own chat
template, the mean surprisal of the tokens that came in bits (0: the model was certain) and the share of them that
follow, in prompt and answer so far, the latest earlier occurrence of the same three tokens with the same next one:
what an n-gram drafter of that size could have drafted rightly.
"""

from __future__ import annotations

import importlib
import json
import math
import statistics
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from orchestrator.workloads.load import load_prompts

LOOKUP = 3
TOKENS = 160


def ask(url: str, body: dict[str, Any]) -> Any:  # noqa: ANN401  (an answer of the engine)
    """The engine's answer."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310  (on this machine)
        return json.loads(answer.read())


def looked_up(ids: Sequence[int], start: int) -> list[bool]:
    """For each token from `start` on, whether the latest earlier occurrence of the three before it continued so."""
    followed: dict[tuple[int, ...], int] = {}
    found = []
    for at in range(LOOKUP, len(ids)):
        key = tuple(ids[at - LOOKUP : at])
        if at >= start:
            found.append(followed.get(key) == ids[at])
        followed[key] = ids[at]
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the table; the exit status."""
    model, language = arguments[0], arguments[1] if len(arguments) > 1 else "en"
    temperature = float(arguments[2]) if len(arguments) > 2 else 0.0
    prompts = [one for one in load_prompts("entropy-ladder") if one.language == language]
    prompts = prompts[: int(arguments[3]) if len(arguments) > 3 else None]
    engine: Any = importlib.import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.verbosity = model, 4096, 1, -1
    params.cpuparams.n_threads = 1
    server = engine.Server(params)
    address = server.listening_address
    bits: dict[str, list[float]] = defaultdict(list)
    hits: dict[str, list[bool]] = defaultdict(list)
    for prompt in prompts:
        messages = [{"role": one.role, "content": one.content} for one in prompt.conversation]
        text = ask(f"{address}/apply-template", {"messages": messages})["prompt"]
        given = ask(f"{address}/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]
        sampling = {"temperature": temperature, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 7}
        settings = {"n_predict": TOKENS, "cache_prompt": False, "n_probs": 1, "return_tokens": True, **sampling}
        answer = ask(f"{address}/completion", {"prompt": given, **settings})
        where = prompt.category
        bits[where] += [-one["logprob"] / math.log(2) for one in answer["completion_probabilities"]]
        hits[where] += looked_up([*given, *answer["tokens"]], len(given))
        print(prompt.id, len(answer["tokens"]), file=sys.stderr)
    print("| rung | tokens | bits per token | found by look-up |\n|---|---|---|---|")
    for rung in sorted(bits):
        surprise, share = statistics.fmean(bits[rung]), statistics.fmean(hits[rung])
        print(f"| {rung} | {len(bits[rung])} | {surprise:.2f} | {share:.0%} |")
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
