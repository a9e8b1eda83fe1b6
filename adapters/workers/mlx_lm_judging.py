"""Tells what draft and target thought of each judged place of an answer: part of a distribution check, never timed.

Loaded by ``mlx_lm_worker.py`` for a request with ``"judge": true`` only. The draft model is wrapped so that the scores
of its passes are kept, which changes no number and draws nothing.

A place is *judged* when the draft proposed a token for it and every earlier draft of its round was kept: the emitted
token is then the kept draft, or the correction of the round's first refused one. A token behind a wholly kept draft
was never proposed, and does not count. Whether a place is judged is known before its token is drawn, since it follows
from what came before, so that counting these places alone favours no token.
"""

# ruff: noqa: ANN401  (objects of mlx are seen through importlib)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

LONGEST = 64
"""Most tokens of an answer that is judged: the scores of every draft pass are held until its end."""


def refusal(session: Any, request: dict[str, Any]) -> str:
    """Why the places of such a request cannot be judged; empty where they can."""
    asked = request["sampling"]
    if not request["num_draft_tokens"]:
        return "without a draft nothing is judged"
    if request.get("phases"):
        return "an instrumented repeat is timed, and a judged answer is not"
    if asked["temperature"] == 0:
        return "at temperature 0 nothing is drawn"
    if asked["xtc_probability"]:
        return "under XTC the distribution of a token depends on a coin"
    if asked["repeat_penalty"] != 1 or asked["presence_penalty"] or asked["frequency_penalty"]:
        return "with penalties a draft's verify pass sees other tokens than the baseline"
    if session.config["kv_bits"] is not None:
        return "with a quantised cache one pass over a text gives other scores than the baseline's"
    if request["max_tokens"] > LONGEST:
        return f"answers of more than {LONGEST} tokens are not judged"
    return ""


class Drafts:
    """The scores of the draft's passes behind the prompt; made anew for every answer."""

    def __init__(self, prompt_tokens: int) -> None:
        self.scores: list[Any] = []
        self._prefill = prompt_tokens - 1

    def watch(self, model: Any) -> Watched:
        """The draft model, the scores of each drafting pass kept."""
        return Watched(model, self._prefill, self.scores.append)

    def judged(
        self, scoring: Any, session: Any, request: dict[str, Any], prompt: list[int], rows: Sequence[Any]
    ) -> list[list[float]]:
        """Four numbers per judged place: the draft's probability of the emitted token, and what it could have been.

        These are its mean and variance under the target's distribution, and the probability of the draft's favourite.

        The draft's distribution is what its own pass gave. The target's comes from a pass of its own over prompt and
        emitted tokens, with a fresh cache and without a draft: a verify pass that reads a wrong cache would tell the
        distribution that it drew from, and look right. Both are after processors, filters and temperature.

        Raises:
            RuntimeError: the draft ran another number of passes than such an answer has.
        """
        mx = session.mx
        ids = [int(token) for token, _, _ in rows]
        places, passes = judged_places([drafted for *_, drafted in rows], request)
        if passes != len(self.scores):
            raise RuntimeError(f"the draft made {len(self.scores)} passes, an answer of this form has {passes}")
        if not places:
            return []
        logits = scoring.passes(session, prompt, ids[: places[-1][0]], single=False)
        found = []
        for place, number in places:
            before = prompt + ids[:place]
            target = scoring.distribution(session, request, before, logits[place])
            draft = scoring.distribution(session, request, before, self.scores[number])
            # A model may have more rows of scores than there are tokens; what one lacks it never draws.
            width = min(target.shape[0], draft.shape[0])
            p, q = mx.exp(target[:width]), mx.exp(draft[:width])
            mean = (p * q).sum()
            own = q[ids[place]] if ids[place] < width else mx.array(0.0)
            # Around the mean, so that rounding never makes it negative; beyond ``width`` the draft's is 0.
            variance = (p * (q - mean) ** 2).sum() + mx.maximum(1 - p.sum(), 0) * mean**2
            found.append(mx.stack([own, mean, variance, q.max()]))
        rounded: list[list[float]] = [[float(f"{value:.6g}") for value in row] for row in mx.stack(found).tolist()]
        return rounded


class Watched:
    """A draft model; each pass behind the prefill hands over the scores of its last token."""

    def __init__(self, model: Any, prefill: int, keep: Callable[[Any], None]) -> None:
        self._model, self._prefill, self._keep = model, prefill, keep
        self._fed = 0

    def __getattr__(self, name: str) -> Any:
        """Whatever mlx-lm asks of the model besides calling it."""
        return getattr(self._model, name)

    def __call__(self, inputs: Any, *args: Any, **named: Any) -> Any:
        """One pass, handed through unchanged."""
        self._fed += inputs.shape[1]
        out = self._model(inputs, *args, **named)
        if self._fed > self._prefill:
            self._keep(out[0, -1])
        return out


def judged_places(from_draft: Sequence[bool], request: dict[str, Any]) -> tuple[list[tuple[int, int]], int]:
    """Judged places, each with the number of the draft pass that proposed a token for it; and all draft passes.

    A round of mlx-lm drafts ``min(limit − tokens so far, K)`` tokens, one a pass, emits those that are kept and then
    one of the target's own, which is the correction where a draft was refused.
    """
    limit, most = request["max_tokens"], request["num_draft_tokens"]
    places: list[tuple[int, int]] = []
    at = passes = 0
    while at < len(from_draft):
        drafted, kept = min(limit - at, most), 0
        while at + kept < len(from_draft) and from_draft[at + kept]:
            kept += 1
        emitted = min(kept + 1, len(from_draft) - at)
        places += [(at + place, passes + place) for place in range(min(emitted, drafted))]
        passes += drafted
        at += emitted
    return places, passes
