"""Where two answers part: the text around the place, the tokens beside each other, and how close a call it was."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.model import DivergenceView, TokenView
from orchestrator.report.untrusted import EXCERPT, clean
from orchestrator.report.words import Words
from orchestrator.schema.result import Divergence

SHOWN_IDS = 6


def divergence(one: Divergence, words: Words) -> DivergenceView:
    """The texts around the point where they part; the common beginning is found in the texts themselves."""
    common = _common(one.baseline_text, one.cell_text)
    start = max(0, common - EXCERPT // 2)
    head = "…" if start else ""
    where = words.say("token {index} of {length}", index=one.index, length=one.length)
    return DivergenceView(
        clean(one.prompt_id, 80),
        where,
        head + clean(one.baseline_text[start:common], EXCERPT),
        clean(one.baseline_text[common : common + EXCERPT], EXCERPT) or words.say("(ends here)"),
        clean(one.cell_text[common : common + EXCERPT], EXCERPT) or words.say("(ends here)"),
        _tokens(one, words),
        _margin(one, words),
    )


def _margin(one: Divergence, words: Words) -> str:
    """How close a call it was: the distance of the baseline's two best tokens there, or why it is not known."""
    verdict = {
        "near-tie": words.say("near-tie"),
        "divergent": words.say("divergent"),
    }.get(one.tie, words.say("not settled"))
    if one.margin_nat is None:
        return words.say("Margin: to be measured ({why})", why=words.said(clean(one.why)) or words.say("no replay"))
    limit = words.say("limit {limit} nat", limit=f"{one.limit_nat:.3g}") if one.limit_nat is not None else ""
    return words.say(
        "Margin: {margin} nat between the baseline's two best tokens ({limit}): {verdict}",
        margin=f"{one.margin_nat:.3g}",
        limit=limit,
        verdict=verdict,
    )


def _common(left: str, right: str) -> int:
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def _tokens(one: Divergence, words: Words) -> tuple[TokenView, ...]:
    """The ids of both answers around the place, token by token."""
    ends = words.say("(ends here)")

    def at(ids: Sequence[int], index: int) -> str:
        return str(ids[index]) if index < len(ids) else ends if index == len(ids) else ""

    last = min(one.index + SHOWN_IDS, max(len(one.baseline_ids), len(one.cell_ids)) + 1)
    rows = ((n, at(one.baseline_ids, n), at(one.cell_ids, n)) for n in range(max(0, one.index - 2), last))
    return tuple(TokenView(str(n), off, on, off != on) for n, off, on in rows if off or on)
