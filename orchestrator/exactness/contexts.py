"""Contexts for a distribution check: places in the workload's prompts where the next tokens are uncertain enough.

A prompt at its end is often followed by one certain token, and there any acceptance rule gives the right text. So
the candidates are the prompts and their beginnings, and a small pilot of the baseline chooses among them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.exactness.prefix_tree import END, Tokens

CUTS = (0.75, 0.5, 1.0)
"""Parts of a prompt's characters, in the order in which candidates are tried."""
CANDIDATES = 12
PILOT = 50
"""Generations of the baseline after each candidate."""
NATS = (1.0, 3.0)
"""Entropy wanted of at least one compared token (docs/methodology)."""
_NODE = 10
"""Pilot generations behind a prefix below which nothing is estimated there."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the pilot says of a context.

    Args:
        entropy: of the compared token that varies most, nat, corrected for the sample's size.
        moved: total variation that the negative control would come to, mean per generation: where a lower
            temperature changes nothing, as after eight equally likely tokens, it could not be caught.
        untold: whether the engine withheld token ids.
    """

    context: str
    prompt: str
    entropy: float
    moved: float
    untold: bool

    @property
    def in_range(self) -> bool:
        """Whether it has the entropy that the method wants."""
        return NATS[0] <= self.entropy <= NATS[1]


@dataclass(frozen=True, slots=True)
class Choice:
    """Context ids with the reason for each; ``warning`` says what the choice lacks."""

    chosen: tuple[str, ...]
    why: Mapping[str, str]
    warning: str


def candidates(prompts: Sequence[tuple[str, str]], limit: int = CANDIDATES) -> dict[str, tuple[str, str]]:
    """At most ``limit`` contexts by id: the prompt's id and the text.

    Args:
        prompts: (id, text) in the workload's order.
        limit: how many.
    """
    found: dict[str, tuple[str, str]] = {}
    for cut in CUTS:
        for name, text in prompts:
            length = max(1, round(cut * len(text)))
            context = name if length == len(text) else f"{name}@{length}"
            if len(found) < limit:
                found.setdefault(context, (name, text[:length]))
    return found


def appraise(context: str, prompt: str, samples: Sequence[Tokens], *, factor: float, skip: int) -> Candidate:
    """The pilot's word on one context.

    Args:
        context: its id.
        prompt: the prompt's.
        samples: of the baseline.
        factor: of the temperature in the negative control.
        skip: leading tokens that are not compared.
    """
    places = range(skip, max((len(one) for one in samples), default=0))
    entropies = [_entropy(Counter(_at(one, place) for one in samples)) for place in places]
    moved = sum(_moved(samples, place, factor) for place in places)
    untold = any(token < 0 for one in samples for token in one)
    return Candidate(context, prompt, max(entropies, default=0.0), moved, untold)


def choose(found: Sequence[Candidate], wanted: int) -> Choice:
    """The contexts in range in which the control moves most, each of another prompt where that is possible."""
    usable = [one for one in found if not one.untold]
    ranked = sorted(usable, key=lambda one: (not one.in_range, -one.moved, one.context))
    chosen: list[Candidate] = []
    for other_prompts in (True, False):
        for one in ranked:
            known = {other.prompt for other in chosen}
            if len(chosen) < wanted and one not in chosen and not (other_prompts and one.prompt in known):
                chosen.append(one)
    outside = [one.context for one in chosen if not one.in_range]
    warning = ""
    if outside:
        low, high = NATS
        warning = f"too few contexts of {low:g} to {high:g} nat among {len(found)}: {', '.join(outside)} lie outside"
    if len(chosen) < wanted:
        warning = f"{len(chosen)} of {wanted} contexts: the workload's prompts offer no more"
    return Choice(tuple(one.context for one in chosen), {one.context: _why(one) for one in chosen}, warning)


def _why(one: Candidate) -> str:
    return (
        f"{one.entropy:.1f} nat at the compared token that varies most; the control would move {one.moved:.2f} of the "
        f"probability ({PILOT} generations of the baseline)"
    )


def _at(one: Tokens, place: int) -> int:
    return one[place] if place < len(one) else END


def _entropy(counts: Counter[int]) -> float:
    total = counts.total()
    plain = -sum(n / total * math.log(n / total) for n in counts.values())
    return plain + (len(counts) - 1) / (2 * total)  # Miller (1955): the plain estimate is too low by as much


def _moved(samples: Sequence[Tokens], place: int, factor: float) -> float:
    """Expected total variation between the next token at T and at T × ``factor``, over prefixes met often."""
    nodes: dict[Tokens, Counter[int]] = {}
    for one in samples:
        if len(one) >= place:
            nodes.setdefault(one[:place], Counter())[_at(one, place)] += 1
    moved = 0.0
    for counts in nodes.values():
        total = counts.total()
        if total < _NODE:
            continue
        sharp = {token: (n / total) ** (1 / factor) for token, n in counts.items()}
        norm = sum(sharp.values())
        moved += total * sum(abs(n / total - sharp[token] / norm) for token, n in counts.items()) / 2
    return moved / len(samples)
