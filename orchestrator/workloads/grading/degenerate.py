"""Tells an answer that is no answer: empty, unreadable, or one piece of text over and over.

The rule looks at the text and at its tokens, and is made so that honest output does not trip it: a table of digits,
JSON and a count are not periodic, and a piece that the prompt asks to repeat may be repeated.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from orchestrator.workloads.grading.asked import asked_for
from orchestrator.workloads.grading.verdict import LENGTH

LONGEST_PERIOD = 200
"""Characters that the repeated piece of a loop may have."""
LEAST_REPEATS = 4
LEAST_LOOP = 64
"""Characters that the repetition must cover, and at least half of the answer."""
SHORT_LOOP, SHORT_REPEATS = 24, 12
"""Characters and repeats that are enough where the repetition is nearly all of the answer: an answer may be short."""
LEAST_TOKENS, TOKEN_PERIOD = 16, 4
"""Tokens of an answer that is a flood of one piece of at most so many tokens, and of hardly anything else."""
NEARLY_ALL = 0.8
ENDED_LOOP, ENDED_REPEATS, ENDED_TOKENS = 400, 16, 128
"""Characters, repeats and tokens of a flood that ended by itself: much more, for people write short rows too."""
LOOKED_AT = 20_000
"""Characters or tokens from the end of an answer that are searched for a loop."""
LEAST_UNREADABLE = 16
"""Characters below which unreadable ones are not counted: an answer may be cut within one."""
_UNREADABLE = frozenset({"Cc", "Cn", "Co", "Cs"})


def degenerate(text: str, *, prompt: str, finish: str, token_ids: Sequence[int] = (), right: bool = False) -> str:
    """What is wrong with the answer: ``empty: …``, ``unreadable: …`` or ``loop: …``; empty text for nothing.

    Args:
        text: the answer.
        prompt: what it answers. A piece that it asks to repeat may be repeated (:mod:`.asked`).
        finish: why the answer ended.
        token_ids: its tokens, where the engine tells them.
        right: a grader found the whole of it right, or right as far as it goes: then it is no loop.
    """
    if not text.strip() or not any(_visible(char) for char in text[:LOOKED_AT]):
        return f"empty: {len(text)} characters, none of them visible"
    bad = sum(1 for char in text[:LOOKED_AT] if _unreadable(char))
    looked = min(len(text), LOOKED_AT)
    if looked >= LEAST_UNREADABLE and 2 * bad > looked:
        return f"unreadable: {bad} of {looked} characters are no text"
    return "" if right else _loop(text, prompt, token_ids, ended=finish != LENGTH)


def _visible(char: str) -> bool:
    return not char.isspace() and unicodedata.category(char) not in {"Cc", "Cf"}


def _unreadable(char: str) -> bool:
    return char == "\ufffd" or (not char.isspace() and unicodedata.category(char) in _UNREADABLE)


def _loop(text: str, prompt: str, token_ids: Sequence[int], *, ended: bool) -> str:
    tail = text[-LOOKED_AT:]
    runs = _covered(tail[::-1], LONGEST_PERIOD)
    for period, covered in enumerate(runs):
        if period and _is_loop(period, covered, len(tail), ended=ended):
            piece = tail[-period:]
            if asked_for(piece, prompt):
                return ""
            return f"loop: the last {covered} of {len(text)} characters repeat {piece[:60]!r}"
    flood = _flood(token_ids[-LOOKED_AT:], ended=ended)
    piece = next((tail[-period:] for period, covered in enumerate(runs) if period and 2 * covered > len(tail)), "")
    return "" if not flood or (piece and asked_for(piece, prompt)) else flood


def _is_loop(period: int, covered: int, looked: int, *, ended: bool) -> bool:
    nearly_all = covered > NEARLY_ALL * looked
    if ended:
        return nearly_all and covered >= max(ENDED_LOOP, ENDED_REPEATS * period)
    if nearly_all and covered >= max(SHORT_LOOP, SHORT_REPEATS * period):
        return True
    return covered >= max(LEAST_LOOP, LEAST_REPEATS * period, looked / 2)


def _flood(tokens: Sequence[int], *, ended: bool) -> str:
    """Whether the tokens are one, or a piece of few, over and over; the mark of the end at their end does not count."""
    if ended:
        tokens = tokens[:-1]
    if len(tokens) < (ENDED_TOKENS if ended else LEAST_TOKENS):
        return ""
    most = Counter(tokens).most_common(1)[0][1]
    if most > NEARLY_ALL * len(tokens):
        return f"loop: {most} of {len(tokens)} tokens are the same"
    for period, covered in enumerate(_covered(tokens[::-1], TOKEN_PERIOD)):
        if period and covered > NEARLY_ALL * len(tokens):
            return f"loop: the last {covered} of {len(tokens)} tokens repeat {period} of them"
    return ""


def _covered(items: Sequence[object], longest: int) -> list[int]:
    """For each period up to ``longest``, how many items from the start of ``items`` have it (Z-function)."""
    size, most = len(items), min(longest, len(items) - 1)
    agree = [0] * (most + 1)
    left = right = 0
    for at in range(1, most + 1):
        if at < right:
            agree[at] = min(right - at, agree[at - left])
        while at + agree[at] < size and items[agree[at]] == items[at + agree[at]]:
            agree[at] += 1
        if at + agree[at] > right:
            left, right = at, at + agree[at]
    return [0, *(at + agree[at] for at in range(1, most + 1))]
