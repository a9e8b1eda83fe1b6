"""Ranks a given text under the loaded target: loaded by ``mlx_lm_worker.py`` from beside it, on its first request."""

# ruff: noqa: ANN401  (objects of mlx are seen through importlib)

from __future__ import annotations

import math
from typing import Any

SINGLE = "single"


def score(session: Any, request: dict[str, Any]) -> dict[str, Any]:
    """One row per place: the top tokens, and the text's own token there.

    ``width`` ``single`` feeds one token a pass, as plain decoding does; ``batched`` feeds prompt and text together.
    The distribution is the one that mlx-lm would draw from: processors, then the sampler's filters, then the
    temperature. At temperature 0 it is the model's own, as at 1.
    """
    mx = session.mx
    prompt = session._prompt_ids(request)  # noqa: SLF001  (a part of the worker in a file of its own)
    ids, places = [int(token) for token in request["ids"]], [int(place) for place in request["places"]]
    used = ids[: max(places)] if places else []
    session._drain()  # noqa: SLF001
    logits = passes(session, prompt, used, single=request["width"] == SINGLE)
    rows = []
    for place in places:
        row = distribution(session, request, prompt + used[:place], logits[place])
        rows.append(ranked(mx, row, place, ids[place] if place < len(ids) else None, request))
    return {"rows": rows, "prompt_tokens": len(prompt), **session.versions}


def passes(session: Any, prompt: list[int], ids: list[int], *, single: bool) -> list[Any]:
    """Logits that follow the prompt and each token of the text, with a fresh cache of the target's own kind."""
    mx, model = session.mx, session.model
    cache = session.caches.make_prompt_cache(model)
    step = session.config["prefill_step_size"]
    tokens = prompt if single else prompt + ids
    parts = [tokens[start : start + step] for start in range(0, len(tokens), step)]
    if single:
        parts += [[token] for token in ids]
    rows: list[Any] = []
    for part in parts:
        out = model(mx.array(part)[None], cache=cache)[0]
        mx.eval(out)
        rows += [out[number] for number in range(len(part))]
    return rows[len(prompt) - 1 :]


def distribution(session: Any, request: dict[str, Any], before: list[int], logits: Any) -> Any:
    """Log-probabilities of the next token after processors, filters and temperature.

    Up to the filters in the model's own number format, as mlx-lm does: in half precision two scores may tie there.
    """
    mx, samplers, asked = session.mx, session.samplers, request["sampling"]
    row = logits[None]
    for processor in session._processors(asked, mask=request["eos"] == "mask"):  # noqa: SLF001
        row = processor(mx.array(before), row)
    row = row - mx.logsumexp(row, axis=-1, keepdims=True)
    if asked["temperature"] == 0:
        return row[0].astype(mx.float32)
    if 0 < asked["top_p"] < 1:
        row = samplers.apply_top_p(row, asked["top_p"])
    if asked["min_p"]:
        row = samplers.apply_min_p(row, asked["min_p"])
    if asked["top_k"]:
        row = samplers.apply_top_k(row, asked["top_k"])
    row = row.astype(mx.float32) / asked["temperature"]
    return (row - mx.logsumexp(row, axis=-1, keepdims=True))[0]


def ranked(mx: Any, row: Any, place: int, own: int | None, request: dict[str, Any]) -> dict[str, Any]:
    """The row as plain numbers; a token that cannot be drawn has no log-probability and no rank."""
    order = mx.argsort(-row)[: request["top"]]
    top = [(token, value) for token, value in zip(order.tolist(), row[order].tolist(), strict=True) if drawable(value)]
    logprob = rank = entropy = variance = None
    if own is not None and drawable(value := row[own].item()):
        logprob, rank = value, int((row > row[own]).sum().item()) + 1
    if request["full"]:
        logs = [value for value in row.tolist() if drawable(value)]
        entropy = -math.fsum(math.exp(value) * value for value in logs)
        variance = max(math.fsum(math.exp(value) * value * value for value in logs) - entropy**2, 0.0)
    return {
        "place": place,
        "top": top,
        "logprob": logprob,
        "rank": rank,
        "entropy": entropy,
        "variance": variance,
    }


def drawable(value: float) -> bool:
    """Whether a log-probability belongs to a token that the sampler may take."""
    return math.isfinite(value)
