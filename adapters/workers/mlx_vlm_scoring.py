"""Ranks a given text under the loaded target: loaded by ``mlx_vlm_worker.py`` from beside it, on its first request.

What a row is made into is the same as for MLX-LM, whose samplers mlx-vlm shares (``mlx_lm_scoring.py``). How a text
goes through the model is not.
"""

# ruff: noqa: ANN401  (objects of mlx are seen through importlib)

from __future__ import annotations

from typing import Any

SINGLE = "single"


def score(session: Any, rows: Any, request: dict[str, Any]) -> dict[str, Any]:
    """One row per place: the top tokens, and the text's own token there.

    Args:
        session: the worker's session.
        rows: the module that makes logits into ranked rows.
        request: ``width`` ``single`` feeds one token a pass, as plain decoding does from the prompt's last token on;
            ``batched`` feeds prompt and text together.
    """
    mx = session.mx
    prompt = session.prompt_ids(request["prompt"])
    ids, places = [int(token) for token in request["ids"]], [int(place) for place in request["places"]]
    used = ids[: max(places)] if places else []
    session.forget()
    session.drain()
    logits = passes(session, prompt, used, single=request["width"] == SINGLE)
    ranked = []
    for place in places:
        row = rows.distribution(Samplers(session), request, prompt + used[:place], logits[place])
        ranked.append(rows.ranked(mx, row, place, ids[place] if place < len(ids) else None, request))
    return {"rows": ranked, "prompt_tokens": len(prompt), **session.versions}


class Samplers:
    """What a row is made of, under the names that the shared module looks for."""

    def __init__(self, session: Any) -> None:
        self.mx, self.samplers, self.end_of_text = session.mx, session.samplers, session.end_of_text

    def _processors(self, asked: dict[str, Any], *, mask: bool) -> list[Any]:
        """The mask alone: no text is scored under penalties."""
        del asked
        forbidden = self.mx.array(sorted(self.end_of_text))

        def without_end_of_text(_tokens: Any, logits: Any) -> Any:
            logits[..., forbidden] = -float("inf")
            return logits

        return [without_end_of_text] if mask else []


def passes(session: Any, prompt: list[int], ids: list[int], *, single: bool) -> list[Any]:
    """Logits that follow the prompt and each token of the text, with a fresh cache of the target's own kind."""
    mx, model = session.mx, session.model.language_model
    cache = session.caches.make_prompt_cache(model)
    tokens = prompt[:-1] if single else prompt + ids
    step = session.config["prefill_step_size"] or max(len(tokens), 1)
    parts = [tokens[start : start + step] for start in range(0, len(tokens), step)]
    if single:
        parts += [[token] for token in (prompt[-1], *ids)]
    rows: list[Any] = []
    for part in parts:
        out = model(mx.array(part)[None], cache=cache).logits[0]
        mx.eval(out)
        rows += [out[number] for number in range(len(part))]
    return rows[len(prompt) - 1 :]
