"""Where two answers part: the text around the place, the tokens beside each other, and how close a call it was."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.report.language.untrusted import EXCERPT, clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.chapters import DivergenceView, TokenView
from orchestrator.schema.replay import Purpose
from orchestrator.schema.result import Divergence
from orchestrator.schema.status import Status

if TYPE_CHECKING:
    from orchestrator.schema.record import ReplayRecord
    from orchestrator.store.index import Index

SHOWN_BEFORE, SHOWN_AFTER = 3, 6
"""Tokens shown before the place where two answers part, and from it on."""
PIECE = 24
"""Characters shown of one token."""
SHOWN_RANKED = 3
SPACE = "␣"
"""In place of a blank at the edge of a token, where it could not be seen."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a block attempt's tokens: their texts by id, and what the baseline ranked."""

    texts: Mapping[int, str]
    replays: tuple[ReplayRecord, ...]


def known_of(index: Index, block: str, attempt: int | None) -> Known:
    """Texts and replays of an attempt; both empty for runs that recorded none."""
    replays = tuple(
        one
        for one in index.replays
        if (one.block, one.attempt) == (block, attempt)
        and one.purpose is Purpose.DIVERGENCE
        and one.status is Status.OK
    )
    return Known(index.texts.get((block, attempt or 0), {}), replays)


def divergence(one: Divergence, known: Known, words: Words) -> DivergenceView:
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
        _tokens(one, known.texts, words),
        _margin(one, words),
        _ranked(one, known, words),
    )


def _margin(one: Divergence, words: Words) -> str:
    """How close a call it was: how far the other token is from the baseline's best there, or why it is not known."""
    verdict = {
        "near-tie": words.say("near-tie"),
        "divergent": words.say("divergent"),
    }.get(one.tie, words.say("not settled"))
    if one.margin_nat is None:
        return words.say("Margin: to be measured ({why})", why=words.said(clean(one.why)) or words.say("no replay"))
    limit = words.say("limit {limit} nat", limit=f"{one.limit_nat:.3g}") if one.limit_nat is not None else ""
    return words.say(
        "Margin: {margin} nat below the baseline's best token ({limit}): {verdict}",
        margin=f"{one.margin_nat:.3g}",
        limit=limit,
        verdict=verdict,
    )


def _common(left: str, right: str) -> int:
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def _tokens(one: Divergence, texts: Mapping[int, str], words: Words) -> tuple[TokenView, ...]:
    """Both answers around the place, token by token: ids, and their texts where the vocabulary was read."""
    ends = words.say("(ends here)")

    def at(ids: Sequence[int], index: int) -> tuple[str, str]:
        if index < len(ids):
            # A negative number stands for an id that the engine did not tell.
            shown = str(ids[index]) if ids[index] >= 0 else words.say("id not told")
            return shown, piece(texts[ids[index]]) if ids[index] in texts else ""
        return (ends if index == len(ids) else ""), ""

    last = min(one.index + SHOWN_AFTER, max(len(one.baseline_ids), len(one.cell_ids)) + 1)
    found = []
    for n in range(max(0, one.index - SHOWN_BEFORE), last):
        (off, off_text), (on, on_text) = at(one.baseline_ids, n), at(one.cell_ids, n)
        if off or on:
            found.append(TokenView(str(n), off, on, off != on, n == one.index, off_text, on_text))
    return tuple(found)


def _ranked(one: Divergence, known: Known, words: Words) -> tuple[str, ...]:
    """The baseline's best tokens at the place, which are what the margin lies between."""
    prefix = one.baseline_ids[: one.index]
    for replay in known.replays:
        for place in replay.ranked:
            if replay.prompt_id == one.prompt_id and place.place == one.index and replay.ids[: place.place] == prefix:
                return tuple(
                    f"{piece(known.texts[number]) if number in known.texts else ''} {number} "
                    f"({words.percent(math.exp(min(0.0, log)), 1)})".strip()
                    for number, log in place.top[:SHOWN_RANKED]
                )
    return ()


def piece(text: str) -> str:
    """A token's text with what stands at its edges made visible."""
    shown = clean(text, PIECE)
    head = len(shown) - len(shown.lstrip(" "))
    inner = shown.strip(" ")
    tail = len(shown) - head - len(inner)
    return SPACE * head + inner + SPACE * tail if inner else SPACE * len(shown)
