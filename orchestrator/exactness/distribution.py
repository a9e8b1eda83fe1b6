"""Is the distribution of answers at T > 0 the same with and without speculation? Judged with both controls.

A test that never rejected anything proves nothing, so a pass needs a negative control that fails (the baseline at
a lower temperature) and a positive one that passes (the baseline against itself). The order of the verdicts:

1. nothing to compare, or off against off differs → ``underpowered`` (the instrument is not in order);
2. on against off differs → ``fail`` (a rejection needs no proof of power);
3. the negative control was not caught → ``underpowered``;
4. else ``pass``, with the distance that would have been seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.exactness.checks import DISTRIBUTION
from orchestrator.exactness.prefix_tree import DEPTH, MIN_PER_ARM, Tokens, TreeTest, tree_test
from orchestrator.schema.result import CheckResult, Verdict

ALPHA = 0.01


@dataclass(frozen=True, slots=True)
class Preset:
    """How much a check generates: generations per arm and context, contexts, and the control's temperature."""

    name: str
    per_arm: int
    contexts: int
    control_factor: float


SCREEN = Preset("screen", 1_000, 2, 0.8)
CERTIFY = Preset("certify", 7_000, 3, 0.9)


@dataclass(frozen=True, slots=True)
class ContextSamples:
    """Generations after one context, a seed of its own for each.

    Args:
        context: a prompt id, 1 to 3 nats of entropy at its next token.
        on: with speculation.
        off: without; ``off_again`` likewise, with other seeds.
        control: without, at ``control_factor`` of the temperature.
    """

    context: str
    on: tuple[Tokens, ...]
    off: tuple[Tokens, ...]
    off_again: tuple[Tokens, ...]
    control: tuple[Tokens, ...]


@dataclass(frozen=True, slots=True)
class DistributionResult:
    """The verdict with the tests behind it, one per context: on, off again and the control, each against off.

    ``detectable`` is the total variation that a pass would have seen with 90 % power, after each prefix that has a
    test of its own; ``None`` where there is none.
    """

    check: CheckResult
    on: tuple[TreeTest, ...]
    off_again: tuple[TreeTest, ...]
    control: tuple[TreeTest, ...]
    detectable: float | None


def distribution_check(
    contexts: Sequence[ContextSamples],
    *,
    skip: int = 0,
    depth: int = DEPTH,
    alpha: float = ALPHA,
    alpha_on: float | None = None,
    off_again: Sequence[TreeTest] | None = None,
) -> DistributionResult:
    """The prefix-tree test of on against off over all contexts, Holm within each comparison.

    Args:
        contexts: samples of one cell and its baseline.
        skip: 1 where the first token comes from prefill and not from a verify round.
        depth: tokens compared after them.
        alpha: of each of the three comparisons.
        alpha_on: of on against off alone, where earlier looks have spent a part of ``alpha``.
        off_again: those tests where they are made already: judged once on whole arms, they are not made anew on the
            part of ``off`` that an early look compares.
    """
    own = alpha if alpha_on is None else alpha_on
    on = tuple(tree_test(one.on, one.off, skip=skip, depth=depth) for one in contexts)
    if off_again is None:
        off_again = [tree_test(one.off_again, one.off, skip=skip, depth=depth) for one in contexts]
    again = tuple(off_again)
    control = tuple(tree_test(one.control, one.off, skip=skip, depth=depth) for one in contexts)
    # Holm may ask the first context for alpha ÷ contexts: the power stated is what is left then.
    seen = [one.detectable(own / len(on)) for one in on if one.df]
    detectable = max((one for one in seen if one is not None), default=None)
    verdict, words = _judge(on, again, control, detectable, alpha, own)
    return DistributionResult(CheckResult(DISTRIBUTION, verdict, words), on, again, control, detectable)


def smallest_holm_p(tests: Sequence[TreeTest]) -> float | None:
    """The smallest Holm-adjusted p over contexts: smallest p × their number, at most 1; ``None`` without any."""
    known = [one.p for one in tests if one.p is not None]
    return min(1.0, min(known) * len(known)) if known else None


def _judge(
    on: Sequence[TreeTest],
    again: Sequence[TreeTest],
    control: Sequence[TreeTest],
    detectable: float | None,
    alpha: float,
    alpha_on: float,
) -> tuple[Verdict, str]:
    p_on, p_again, p_control = (smallest_holm_p(tests) for tests in (on, again, control))
    fewest, nodes = min((one.per_arm for one in on), default=0), sum(one.nodes for one in on)
    size = f"{fewest} generations per arm, {len(on)} contexts, {nodes} nodes"
    if p_again is not None and p_again < alpha:
        return Verdict.UNDERPOWERED, f"the baseline differs from itself (p {p_again:.2g}): seeds or state leak"
    if p_on is None or p_again is None:
        return Verdict.UNDERPOWERED, "too few generations share a prefix in both arms: nothing was compared"
    if p_on < alpha_on:
        words = f"next-token distributions differ (p {p_on:.2g}, Holm over contexts; {size})"
        return Verdict.FAIL, f"{words}; an exact engine fails at most {100 * alpha:g} % of such checks"
    if detectable is None:
        words = f"no prefix is shared by {MIN_PER_ARM} generations of either arm: no power can be stated ({size})"
        return Verdict.UNDERPOWERED, words
    if p_control is None:
        return Verdict.UNDERPOWERED, f"the negative control shares too few prefixes with the baseline ({size})"
    if p_control >= alpha:
        return Verdict.UNDERPOWERED, f"a lower temperature was not noticed either (p {p_control:.2g}; {size})"
    return Verdict.PASS, (
        f"no difference (p {p_on:.2g}; {size}); a total variation of {detectable:.2f} after every prefix that "
        f"{MIN_PER_ARM} generations of either arm share would have been seen with 90 % power ({_reach(on)}), and the "
        f"negative control was (p {p_control:.2g})"
    )


def _reach(on: Sequence[TreeTest]) -> str:
    """What share of the compared tokens the stated power is about."""
    own, compared = sum(one.own for one in on), sum(one.compared for one in on)
    if own == compared:
        return "all of the compared tokens follow such prefixes"
    rare = f"{100 * (1 - own / compared):.0f} %"
    return f"{rare} of the compared tokens follow rarer ones, where only a shift common to them shows"
