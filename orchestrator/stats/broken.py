"""Answers that are no answers, in one arm and in the other: the model's own, or a run that must not be ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

MOST_SHARE = {True: 0.10, False: 0.20}
"""By whether sampling is greedy: the share of pairs that may be broken in one arm alone before nothing is compared.

Greedy answers repeat themselves, so a difference is one; drawn ones may go astray by chance."""
LEAST = 2
"""Pairs broken in one arm alone below which the times stand, however few pairs there are."""
Key = tuple[int, str]
"""Set and prompt."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Answers that are no answers, the cell's beside the baseline's to the same prompts in the same sets.

    Args:
        pairs: answers that both arms gave.
        on: of them, those broken with speculation; ``off`` without.
        alone_on: broken with speculation and not the same way without; ``alone_off`` the other way round.
        kinds: what is wrong with those of the cell alone, the most frequent first; if it has none, with all.
        refusal: why the two arms' times are not compared for it; empty where they may be.
        greedy: whether sampling is.
    """

    pairs: int
    on: int
    off: int
    alone_on: int
    alone_off: int
    kinds: tuple[str, ...]
    refusal: str
    greedy: bool

    @property
    def both(self) -> int:
        """Broken the same way in both arms: that is the model and not the speculation."""
        return self.on - self.alone_on


def broken_pairs(on: Mapping[Key, str], off: Mapping[Key, str], *, greedy: bool) -> Broken:
    """Counts the answers that are none, and says whether one arm's times can stand beside the other's.

    Args:
        on: by set and prompt what is wrong with the cell's answer, in one word; empty where nothing is.
        off: likewise of the baseline.
        greedy: whether sampling is.
    """
    both = sorted(on.keys() & off.keys())
    alone_on = [key for key in both if on[key] and on[key] != off[key]]
    alone_off = [key for key in both if off[key] and on[key] != off[key]]
    told = [on[key] for key in alone_on] or [kind for key in both for kind in (on[key], off[key]) if kind]
    kinds = tuple(kind for kind, _ in sorted(Counter(told).items(), key=lambda item: (-item[1], item[0])))
    return Broken(
        len(both),
        sum(bool(on[key]) for key in both),
        sum(bool(off[key]) for key in both),
        len(alone_on),
        len(alone_off),
        kinds,
        _refusal(
            len(both),
            sum(1 for key in alone_on if not off[key]),
            sum(1 for key in alone_off if not on[key]),
            sum(1 for key in alone_on if off[key]),
            kinds,
            greedy=greedy,
        ),
        greedy,
    )


def _refusal(pairs: int, only_on: int, only_off: int, unlike: int, kinds: tuple[str, ...], *, greedy: bool) -> str:
    # Greedy answers repeat themselves, so none that is broken here makes up for one that is broken there.
    turned = (only_on, only_off) if greedy else (only_on - only_off, only_off - only_on)
    if _too_many(turned[0], pairs, greedy=greedy):
        kind = kinds[0]
        return (
            f"{only_on} of {pairs} answers are no answer ({kind}) where the baseline's are: a broken run is not ranked"
        )
    if _too_many(turned[1], pairs, greedy=greedy):
        return (
            f"{only_off} of {pairs} answers of the baseline are no answer where the cell's are: nothing to compare with"
        )
    if _too_many(unlike, pairs, greedy=greedy):
        return f"{unlike} of {pairs} answers are no answer, otherwise than the baseline's: not ranked"
    return ""


def _too_many(count: int, pairs: int, *, greedy: bool) -> bool:
    return count >= LEAST and count > MOST_SHARE[greedy] * pairs
