"""Two samples of token sequences compared node by node of their prefix tree, and the power such a test has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri, chndtrinc

Tokens = tuple[int, ...]
Arms = tuple[tuple[Tokens, ...], tuple[Tokens, ...]]

MIN_PER_ARM = 200
"""Prefixes that fewer sequences of either arm reach have no test of their own (docs/methodology)."""
MIN_EXPECTED = 5.0
DEPTH = 3
"""Tokens compared: beyond them the sequences are spread too thinly to add evidence."""
SHUFFLES = 1_999
END = -1
"""Stands for "the sequence ends here"; token ids are never negative."""


@dataclass(frozen=True, slots=True)
class TreeTest:
    """ΣX² and Σdf over all compared nodes.

    Args:
        p: of the sum; ``None`` when no node could be compared, which is no evidence of anything.
        statistic: ΣX².
        df: Σdf.
        nodes: how many were compared; ``depth`` counts the tokens that the deepest of them lies behind the first.
        per_arm: sequences in the smaller arm.
        compared: next tokens compared per arm, over all nodes.
        own: those of them at prefixes with a test of their own; the others lie behind rare prefixes.
    """

    p: float | None
    statistic: float
    df: int
    nodes: int
    depth: int
    per_arm: int
    compared: int
    own: int

    def detectable(self, alpha: float, power: float = 0.9) -> float | None:
        """The total variation that this test finds with ``power`` when every node of its own differs by as much.

        Nothing is counted on behind rare prefixes, whose differences cancel where their directions differ; the degrees
        of freedom that they take from the sum are counted. ``None`` where no prefix has a node of its own.
        """
        return detectable_tv(self.own, self.df + 1, alpha, power)


@dataclass(frozen=True, slots=True)
class TotalVariation:
    """Distance between two samples of the first ``depth`` tokens jointly.

    ``raw`` is biased upward: two samples of one distribution differ by ``null_mean``. ``p`` is by permutation.
    """

    raw: float
    null_mean: float
    p: float
    depth: int


def tree_test(
    left: Sequence[Tokens],
    right: Sequence[Tokens],
    *,
    skip: int = 0,
    depth: int = DEPTH,
    min_per_arm: int = MIN_PER_ARM,
) -> TreeTest:
    """Two-sample χ² of the next token at every prefix that both arms reach often, and at the rare ones together.

    A prefix reached ``min_per_arm`` times by both arms is a node with a χ² test of its own. The rarer prefixes of
    one depth make one node more, stratified by prefix (generalised Cochran-Mantel-Haenszel): where answers branch
    widely most of the evidence lies there. Strata keep the level: pooled without them, chance differences in how
    often a prefix came up would count at its parent and again below it. Differences in opposite directions cancel
    in it, so that it may reject and is no part of the power that a pass claims.

    Args:
        left: one sequence per generation, each with its own seed.
        right: likewise.
        skip: leading tokens that do not come from a verify round (1 where prefill gives the first): part of the
            prefix, and themselves not compared.
        depth: tokens compared after them.
        min_per_arm: sequences that must reach a node in either arm.

    Source: Pearson (1900); Landis, Heyman & Koch (1978) for the stratified statistic.
    """
    level: dict[Tokens, Arms] = {(): (tuple(left), tuple(right))}
    results: list[tuple[int, int, float, int]] = []
    own: list[int] = []
    for place in range(skip + depth):
        rare: list[tuple[Counter[int], Counter[int]]] = []
        for mine, theirs in level.values() if place >= skip else ():
            counts = _next(mine, place), _next(theirs, place)
            if min(len(mine), len(theirs)) >= min_per_arm:
                results.append((place - skip, min(len(mine), len(theirs)), *_chi_square(*counts)))
                own += [results[-1][1]] if results[-1][3] else []
            else:
                rare.append(counts)
        together = sum(min(a.total(), b.total()) for a, b in rare)
        if together >= min_per_arm:
            results.append((place - skip, together, *_stratified(rare)))
        level = _grow(level, place)
    results = [one for one in results if one[3]]
    statistic, df = sum(one[2] for one in results), sum(one[3] for one in results)
    return TreeTest(
        float(chdtrc(df, statistic)) if df else None,
        statistic,
        df,
        len(results),
        max((one[0] for one in results), default=0),
        min(len(left), len(right)),
        sum(one[1] for one in results),
        sum(own),
    )


def total_variation(
    left: Sequence[Tokens],
    right: Sequence[Tokens],
    *,
    seed: int,
    depth: int = 3,
    skip: int = 0,
    shuffles: int = SHUFFLES,
) -> TotalVariation | None:
    """TV of the joint of ``depth`` tokens after ``skip``, with p over shuffles of whole sequences between arms.

    Returns:
        ``None`` when an arm is empty.
    """
    if not left or not right:
        return None
    keys = [one[skip : skip + depth] for one in (*left, *right)]
    index = {key: code for code, key in enumerate(sorted(set(keys)))}
    codes = np.asarray([index[key] for key in keys])
    size, total = len(left), np.bincount(codes, minlength=len(index))

    def distance(mine: np.ndarray[tuple[int, ...], np.dtype[np.int_]]) -> float:
        counts = np.bincount(mine, minlength=len(index))
        return float(np.abs(counts / size - (total - counts) / len(right)).sum() / 2)

    raw = distance(codes[:size])
    generator = np.random.default_rng(seed)
    null = np.asarray([distance(generator.permutation(codes)[:size]) for _ in range(shuffles)])
    return TotalVariation(
        raw, float(null.mean()), float((1 + np.count_nonzero(null >= raw - 1e-12)) / (shuffles + 1)), depth
    )


def detectable_tv(per_arm: int, outcomes: int = 20, alpha: float = 0.01, power: float = 0.9) -> float | None:
    """The total variation that a χ² test of this size finds with the given power.

    Args:
        per_arm: sequences per arm.
        outcomes: equally likely next tokens; half of them shifted up and half down.
        alpha: of the test.
        power: wanted chance of rejection.

    Returns:
        ``None`` where there is nothing to compare. With all shifts equal the noncentrality is 2·N·TV², which is
        solved for TV; above 1 no difference at all would be found so surely, and 1 is returned.
    """
    if per_arm < 1 or outcomes < 2:
        return None
    critical = float(chdtri(outcomes - 1, alpha))
    noncentrality = float(chndtrinc(critical, outcomes - 1, 1 - power))
    return min(1.0, float(np.sqrt(noncentrality / (2 * per_arm))))


def _next(sequences: Sequence[Tokens], depth: int) -> Counter[int]:
    return Counter(one[depth] if depth < len(one) else END for one in sequences)


def _grow(level: dict[Tokens, Arms], place: int) -> dict[Tokens, Arms]:
    grown: dict[Tokens, Arms] = {}
    for prefix, (mine, theirs) in level.items():
        one, other = _children(mine, place), _children(theirs, place)
        grown |= {(*prefix, token): (tuple(one[token]), tuple(other[token])) for token in one.keys() & other.keys()}
    return dict(sorted(grown.items()))


def _children(sequences: Sequence[Tokens], place: int) -> dict[int, list[Tokens]]:
    grown: dict[int, list[Tokens]] = {}
    for one in sequences:
        if place < len(one):
            grown.setdefault(one[place], []).append(one)
    return grown


def _stratified(strata: Sequence[tuple[Counter[int], Counter[int]]]) -> tuple[float, int]:
    total: Counter[int] = Counter()
    for mine, theirs in strata:
        total.update(mine)
        total.update(theirs)
    # Outcomes too rare to count on their own share the last column.
    common = {token: i for i, token in enumerate(sorted(t for t, n in total.items() if n >= 2 * MIN_EXPECTED))}
    table = np.zeros((2, len(strata), len(common) + 1))
    for row, arms in enumerate(strata):
        for arm, counts in enumerate(arms):
            for token, count in counts.items():
                table[arm, row, common.get(token, len(common))] += count
    mine, both = table[0], table.sum(axis=0)
    n, size = mine.sum(axis=1), both.sum(axis=1)
    surplus = (mine - both * (n / size)[:, None]).sum(axis=0)
    weight = n * (size - n) / (size**2 * (size - 1))
    covariance = np.diag((weight * size) @ both) - both.T @ (both * weight[:, None])
    values, vectors = np.linalg.eigh(covariance)
    # One direction (the sum of all outcomes) has no variance by construction; outcomes met in one arm only have none.
    free = values > 1e-9 * max(float(values.max()), 1.0)
    scores = vectors[:, free].T @ surplus
    return float((scores**2 / values[free]).sum()), int(free.sum())


def _chi_square(mine: Counter[int], theirs: Counter[int]) -> tuple[float, int]:
    n, m = mine.total(), theirs.total()
    smaller = min(n, m) / (n + m)
    kept: list[tuple[int, int]] = []
    a, b = 0, 0
    for token in sorted(mine.keys() | theirs.keys(), key=lambda one: (-(mine[one] + theirs[one]), one)):
        if (mine[token] + theirs[token]) * smaller >= MIN_EXPECTED:
            kept.append((mine[token], theirs[token]))
        else:
            a, b = a + mine[token], b + theirs[token]
    if (a + b) * smaller >= MIN_EXPECTED or (a + b and not kept):
        kept.append((a, b))
    elif a + b:
        last = kept.pop()
        kept.append((last[0] + a, last[1] + b))
    if len(kept) < 2:
        return 0.0, 0
    # For 2 × k counts Pearson's X² is Σ (x·√(m/n) − y·√(n/m))² ÷ (x + y).
    scale = float(np.sqrt(m / n))
    return sum((x * scale - y / scale) ** 2 / (x + y) for x, y in kept), len(kept) - 1
