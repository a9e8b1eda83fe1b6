"""What DSpark says: ``ds4: DSpark stats …``, running totals of the process in any order (``DS4_DSPARK_STATS``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapters.ds4.rounds import Spoken, pairs_of, whole
from adapters.ds4.run import Line
from orchestrator.schema.errors import CaptureError

_DSPARK = re.compile(r"^ds4: DSpark stats (.*)$")


def dspark_totals(lines: Iterable[Line], *, exact: bool = False) -> Spoken | None:
    """DSpark's totals of the whole process, which made this one answer; ``None`` where it printed none.

    A pass is no cycle here where DSpark does not try to draft: near the limit (``tail_skips``), while its scheduler has
    given up, and for the last token. Such passes print a token each and are in no total.

    Source: ds4.c at 000401c, ``ds4_session_eval_speculative`` and what it calls.

    Args:
        lines: what ds4 printed.
        exact: it samples exactly above temperature 0.

    Raises:
        CaptureError: a number is missing or contradicts another.
    """
    last = None
    for line in lines:
        last = _DSPARK.match(line.text) or last
    if last is None:
        return None
    pairs = pairs_of(last[1])
    cycles, drafted, kept = (whole(pairs, key) for key in ("cycles", "proposed", "accepted_draft"))
    idle = sum(whole(pairs, key, 0) for key in ("no_draft", "no_room", "invalid"))
    if not 0 <= kept <= drafted or idle > cycles:
        raise CaptureError(f"DSpark's totals contradict each other: {last[1][:200]}")
    outcomes = [whole(pairs, key, -1) for key in ("full", "partial", "miss_first")]
    problems = []
    if min(outcomes) >= 0 and sum(outcomes) != cycles - idle:
        problems.append(
            f"DSpark counts {sum(outcomes)} judged cycles by outcome and {cycles - idle} by subtraction (of {cycles} "
            f"cycles {idle} drafted nothing)"
        )
    problems += [f"DSpark counts {whole(pairs, key)} {key}" for key in ("errors",) if whole(pairs, key, 0)]
    lengths, kept_lengths = _histogram(pairs.get("draft_len_hist")), _histogram(pairs.get("accepted_len_hist"))
    agree = lengths is not None and sum(lengths) == drafted and len(lengths) == cycles - idle
    agree = agree and kept_lengths is not None and sum(kept_lengths) == kept
    refused = outcomes[1] + outcomes[2] if min(outcomes) >= 0 else None
    return Spoken(
        "stderr:DSpark stats",
        "ds4:2026-09:dspark-exact-total" if exact else "ds4:2026-09:dspark-total",
        drafted,
        kept,
        refused,
        cycles - idle,
        idle,
        lengths if agree else None,
        tuple(length for length in kept_lengths or () if length) if agree else None,
        _seconds(pairs, "propose"),
        _seconds(pairs, "verify"),
        _seconds(pairs, "replay"),
        whole(pairs, "replay_fallbacks") if "replay_fallbacks" in pairs else None,
        problems=tuple(problems),
        replaced=refused if exact else 0,
    )


def _seconds(pairs: dict[str, str], key: str) -> float | None:
    try:
        return float(pairs[key]) / 1e3 if key in pairs else None
    except ValueError:
        return None


def _histogram(text: str | None) -> tuple[int, ...] | None:
    """Lengths one by one from ``1:10,2:6``; ``None`` where there is none or it cannot be read."""
    if text is None:
        return None
    lengths: list[int] = []
    for part in text.split(","):
        length, colon, count = part.partition(":")
        if not colon or not length.isdecimal() or not count.isdecimal():
            return None
        if int(length):
            lengths += [int(length)] * int(count)
    return tuple(lengths)
