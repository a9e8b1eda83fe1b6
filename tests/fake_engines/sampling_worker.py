"""A worker engine that samples from a small Markov chain, with an acceptance rule on demand; no inference.

argv: the path of a JSON file ``{"rule": "none" | "sample_match" | "greedy_accept" | "idle", "sharp": bool, "crash_at":
int}``. A sharp engine samples at half the temperature it was asked for. A request with ``"judge": true`` is answered
with four numbers per place behind the first token: the draft likes what the target likes, at half the temperature.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import sys
import time

SIZE = 10
TABLE = random.Random(3)
LOGITS = [[TABLE.gauss(0, 1.8) for _ in range(SIZE)] for _ in range(SIZE)]


def say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def draw(last: int, temperature: float, coin: float) -> int:
    weights = [math.exp(value / temperature) for value in LOGITS[last]]
    mark = coin * sum(weights)
    for token, weight in enumerate(weights):
        mark -= weight
        if mark < 0:
            return token
    return SIZE - 1


def shares(last: int, temperature: float) -> list[float]:
    weights = [math.exp(value / temperature) for value in LOGITS[last]]
    return [weight / sum(weights) for weight in weights]


def judged(tokens: list[int], temperature: float) -> list[list[float]]:
    rows = []
    for last, token in itertools.pairwise(tokens):
        p, q = shares(last, temperature), shares(last, temperature / 2)
        mean = sum(a * b for a, b in zip(p, q, strict=True))
        rows.append([q[token], mean, sum(a * b * b for a, b in zip(p, q, strict=True)) - mean**2, max(q)])
    return rows


def generate(request: dict[str, object], rule: str, sharp: bool) -> tuple[list[tuple[int, int]], int]:
    generator = random.Random(int(str(request["seed"])))
    temperature, last = float(str(request["temperature"])), len(str(request["prompt"])) % SIZE
    temperature *= 0.5 if sharp else 1
    tokens: list[tuple[int, int]] = []
    drafted = rounds = 0
    while len(tokens) < int(str(request["max_tokens"])):
        token = draw(last, temperature, generator.random())
        guess = max(range(SIZE), key=LOGITS[last].__getitem__)
        if rule in ("sample_match", "greedy_accept") and tokens:
            drafted += 1
            if rule == "greedy_accept" and generator.random() < 0.8:
                token = guess
        tokens.append((token, rounds))
        # The first token stands alone, as where prefill gives it; after it a kept draft stays in its round.
        rounds += len(tokens) == 1 or rule not in ("sample_match", "greedy_accept") or token != guess
        last = token
    return tokens, drafted


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    say(event="ready")
    for served, line in enumerate(sys.stdin):
        if served == config["crash_at"]:
            sys.stderr.write("E out of memory\n")
            os._exit(9)
        request = json.loads(line)
        now = time.perf_counter()
        tokens, drafted = generate(request, config["rule"], config["sharp"])
        rows = [[token, now, key] for token, key in tokens]
        told = judged([token for token, _ in tokens], request["temperature"]) if request.get("judge") else None
        say(event="done", t0=now, t1=time.perf_counter(), tokens=rows, drafted=drafted, cached=0, judged=told)


if __name__ == "__main__":
    main()
