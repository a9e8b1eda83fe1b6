"""Replays on a llama.cpp baseline: one request of one token per place, with the probabilities after its samplers.

No build so far tells the probabilities of a prompt's own tokens, so a text of n tokens costs n requests. With the
prompt cache on each of them decodes one token, as plain decoding does; with it off the whole text enters at once.
Never asked of a server that speculates: its probabilities are not the target's.
"""

from __future__ import annotations

import json
import math
from typing import Any

from adapters.llama_cpp.request import request_body
from orchestrator.schema.adapter import HttpStep, Step, TrialSpec
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.replay import Ranked, ReplaySpec, Width

TOP = 16
"""Tokens told per place where only the top matters."""
WHOLE = 4096
"""Tokens told per place where the whole distribution is wanted; a longer tail must weigh next to nothing."""
MASS = 0.999
"""Probability that the told tokens must hold before they stand for the whole distribution."""


def replay_steps(cell: Cell, spec: ReplaySpec) -> tuple[Step, ...]:
    """One request per place.

    Raises:
        ValueError: the cell speculates, or the text has a token whose id the stream did not tell.
    """
    if cell.method.kind is not MethodKind.NONE:
        raise ValueError(f"{cell.id}: only a baseline's probabilities are the target's own")
    if cell.sampling.xtc_probability:
        raise ValueError("under XTC the distribution of a token depends on a coin")
    if any(token < 0 for token in spec.ids):
        raise ValueError("the text holds a token whose id llama.cpp did not tell")
    return tuple(HttpStep(_name(place), "POST", "/completion", _body(cell, spec, place)) for place in spec.places)


def parse_replay(cell: Cell, spec: ReplaySpec, capture: TrialCapture) -> tuple[Ranked, ...]:  # noqa: ARG001
    """One entry per place; raises :class:`CaptureError` on an answer that is incomplete or cannot be read."""
    return tuple(_ranked(spec, place, capture) for place in spec.places)


def _name(place: int) -> str:
    return f"place-{place}"


def _body(cell: Cell, spec: ReplaySpec, place: int) -> dict[str, Any]:
    body = request_body(cell, TrialSpec(spec.index, "replay", "replay", spec.prompt, cell.sampling.seed))
    if cell.sampling.greedy:
        # At temperature 0 the samplers leave one token; at 1 they leave the model's own distribution.
        body |= {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    return body | {
        "prompt": [spec.prompt, *spec.ids[:place]],
        "n_predict": 1,
        "n_probs": WHOLE if spec.full else TOP,
        "post_sampling_probs": True,
        "cache_prompt": spec.width is Width.SINGLE,
        "timings_per_token": False,
        "stream": False,
    }


def _ranked(spec: ReplaySpec, place: int, capture: TrialCapture) -> Ranked:
    step = capture.step(_name(place))
    if step is None:
        raise CaptureError(f"place {place}: the answer is incomplete")
    try:
        rows = json.loads(step.text)["completion_probabilities"][0]["top_probs"]
        told = [(int(row["id"]), float(row["prob"])) for row in rows]
    except (ValueError, KeyError, IndexError, TypeError) as err:
        raise CaptureError(f"place {place}: no probabilities in the answer: {step.text[:80]!r}") from err
    found = sorted(((token, prob) for token, prob in told if prob > 0), key=lambda item: -item[1])
    if not found:
        raise CaptureError(f"place {place}: the engine tells no token with a probability")
    ids = [token for token, _ in found]
    own = spec.ids[place] if place < len(spec.ids) else None
    at = ids.index(own) if own in ids else None
    entropy, variance = _moments([prob for _, prob in found]) if spec.full else (None, None)
    return Ranked(
        place,
        tuple((token, math.log(prob)) for token, prob in found[:TOP]),
        math.log(found[at][1]) if at is not None else None,
        at + 1 if at is not None else None,
        entropy,
        variance,
    )


def _moments(probs: list[float]) -> tuple[float | None, float | None]:
    mass = math.fsum(probs)
    if mass < MASS:
        return None, None
    logs = [math.log(prob / mass) for prob in probs]
    entropy = -math.fsum(prob / mass * log for prob, log in zip(probs, logs, strict=True))
    second = math.fsum(prob / mass * log * log for prob, log in zip(probs, logs, strict=True))
    return entropy, max(second - entropy**2, 0.0)
