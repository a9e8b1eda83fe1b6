"""The distribution check against simulated samplers whose exactness is known, and its parts against known answers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import stats

from orchestrator.exactness.distribution import (
    CERTIFY,
    SCREEN,
    ContextSamples,
    DistributionResult,
    Preset,
    distribution_check,
    smallest_holm_p,
)
from orchestrator.exactness.prefix_tree import TreeTest, detectable_tv, total_variation, tree_test
from orchestrator.schema.result import Verdict

VOCABULARY, LENGTH, DRAFTED = 12, 4, 3
RNG = np.random.default_rng(2)
TARGET_LOGITS = RNG.normal(0, 2.2, (VOCABULARY, VOCABULARY))
DRAFT_LOGITS = TARGET_LOGITS + RNG.normal(0, 0.9, (VOCABULARY, VOCABULARY))


def softmax(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    scaled = np.exp(logits / temperature - (logits / temperature).max(axis=1, keepdims=True))
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


TARGET, DRAFT = softmax(TARGET_LOGITS), softmax(DRAFT_LOGITS)
TARGET_BEST, DRAFT_BEST = TARGET.argmax(axis=1), DRAFT.argmax(axis=1)


class Coin:
    """Uniform numbers drawn in bulk; ``pick`` is inverse-transform sampling, so that one number gives one token."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.stock = iter(())

    def __call__(self) -> float:
        for value in self.stock:
            return value
        self.stock = iter(self.generator.random(4096).tolist())
        return next(self.stock)

    def pick(self, cumulative: list[float]) -> int:
        return find(cumulative, self())


def find(cumulative: list[float], u: float) -> int:
    return min(bisect_right(cumulative, u * cumulative[-1]), VOCABULARY - 1)


@cache
def rows(temperature: float = 1.0) -> list[list[float]]:
    return [list(map(float, row)) for row in softmax(TARGET_LOGITS, temperature).cumsum(axis=1)]


DRAFT_ROWS = [list(map(float, row)) for row in DRAFT.cumsum(axis=1)]
RESIDUAL_ROWS = [list(map(float, row)) for row in np.maximum(TARGET - DRAFT, 0).cumsum(axis=1)]

Round = Callable[[int, Coin], list[int]]
"""One verify round: the tokens it commits after the given last token."""


def plain(temperature: float = 1.0) -> Round:
    table = rows(temperature)
    return lambda last, coin: [coin.pick(table[last])]


def rejection(last: int, coin: Coin) -> list[int]:
    out: list[int] = []
    for _ in range(DRAFTED):
        token = coin.pick(DRAFT_ROWS[last])
        if coin() >= TARGET[last, token] / DRAFT[last, token]:
            return [*out, coin.pick(RESIDUAL_ROWS[last])]
        out.append(token)
        last = token
    return [*out, coin.pick(rows()[last])]


def missing_residual(last: int, coin: Coin) -> list[int]:
    out: list[int] = []
    for _ in range(DRAFTED):
        token = coin.pick(DRAFT_ROWS[last])
        if coin() >= TARGET[last, token] / DRAFT[last, token]:
            return [*out, coin.pick(rows()[last])]
        out.append(token)
        last = token
    return [*out, coin.pick(rows()[last])]


def sample_match(last: int, coin: Coin, temperature: float = 1.0) -> list[int]:
    out: list[int] = []
    for _ in range(DRAFTED):
        guess, token = int(DRAFT_BEST[last]), coin.pick(rows(temperature)[last])
        out.append(token)
        if token != guess:
            return out
        last = token
    return [*out, coin.pick(rows(temperature)[last])]


def temperature_slip(last: int, coin: Coin) -> list[int]:
    return sample_match(last, coin, 0.8)


def greedy_accept(last: int, coin: Coin) -> list[int]:
    out: list[int] = []
    for _ in range(DRAFTED):
        guess = int(DRAFT_BEST[last])
        if guess != TARGET_BEST[last]:
            return [*out, coin.pick(rows()[last])]
        out.append(guess)
        last = guess
    return [*out, coin.pick(rows()[last])]


def typical_acceptance(last: int, coin: Coin) -> list[int]:
    out: list[int] = []
    for _ in range(DRAFTED):
        guess = int(DRAFT_BEST[last])
        entropy = float(-(TARGET[last] * np.log(TARGET[last])).sum())
        if TARGET[last, guess] <= min(0.3, 0.6 * np.exp(-entropy)):
            return [*out, coin.pick(rows()[last])]
        out.append(guess)
        last = guess
    return [*out, coin.pick(rows()[last])]


def shared_coin(last: int, coin: Coin) -> list[int]:
    """One uniform number for the whole round: each token has the right marginal, and the next depends on it."""
    out: list[int] = []
    u = coin()
    for _ in range(DRAFTED):
        guess, token = coin.pick(DRAFT_ROWS[last]), find(rows()[last], u)
        out.append(token)
        if token != guess:
            return out
        last = token
    return [*out, find(rows()[last], u)]


def injected_token(last: int, coin: Coin) -> list[int]:
    out = sample_match(last, coin)
    return [0, *out] if coin() < 0.05 else out


def generate(
    one_round: Round, prompt: int, count: int, seed: int, *, stale: bool = False
) -> tuple[tuple[int, ...], ...]:
    """``count`` sequences; the first token comes from prefill. ``stale``: a rejected draft stays in the cache."""
    coin, table, made = Coin(seed), rows(), []
    for _ in range(count):
        out = [coin.pick(table[prompt])]
        last = out[0]
        while len(out) < LENGTH:
            committed = one_round(last, coin)
            out += committed
            last = committed[-1]
            if stale and len(committed) <= DRAFTED:
                last = int(DRAFT_BEST[out[-2]])
        made.append(tuple(out[:LENGTH]))
    return tuple(made)


def check(one_round: Round, preset: Preset, seed: int = 1, *, stale: bool = False) -> DistributionResult:
    contexts = tuple(
        ContextSamples(
            f"prompt {prompt}",
            generate(one_round, prompt, preset.per_arm, 100 * seed + prompt, stale=stale),
            *off_arms(prompt, preset, seed),
        )
        for prompt in range(preset.contexts)
    )
    return distribution_check(contexts, skip=1)


@cache
def off_arms(prompt: int, preset: Preset, seed: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    factors = (1.0, 1.0, preset.control_factor)
    return tuple(
        generate(plain(factor), prompt, preset.per_arm, 100 * seed + 10 * (arm + 1) + prompt)
        for arm, factor in enumerate(factors)
    )


JUDGED = [
    (rejection, False, Verdict.PASS),
    (sample_match, False, Verdict.PASS),
    (missing_residual, False, Verdict.FAIL),
    (typical_acceptance, False, Verdict.FAIL),
    (greedy_accept, False, Verdict.FAIL),
    (shared_coin, False, Verdict.FAIL),
    (temperature_slip, False, Verdict.FAIL),
    (injected_token, False, Verdict.FAIL),
    (sample_match, True, Verdict.FAIL),
]


@pytest.mark.parametrize(("one_round", "stale", "verdict"), JUDGED)
def test_simulated_samplers_are_judged_rightly_at_screen_size(one_round: Round, stale: bool, verdict: Verdict) -> None:
    found = check(one_round, SCREEN, stale=stale)
    assert found.check.verdict is verdict, found.check.evidence


def test_the_contexts_have_the_entropy_that_the_check_asks_for() -> None:
    entropy = -(TARGET * np.log(TARGET)).sum(axis=1)[: CERTIFY.contexts]
    assert (entropy > 1).all()
    assert (entropy < 3).all()


def test_exact_samplers_rarely_fail_and_are_mostly_settled() -> None:
    verdicts = [check(rule, SCREEN, seed).check.verdict for seed in range(2, 8) for rule in (rejection, sample_match)]
    assert verdicts.count(Verdict.FAIL) <= 1
    assert verdicts.count(Verdict.PASS) >= 10


def test_the_negative_control_decides_whether_a_pass_means_anything() -> None:
    # 400 generations cannot tell T × 0.97 from T, so that silence about the cell proves nothing either.
    weak = Preset("weak", 400, 2, 0.97)
    found = check(sample_match, weak)
    assert found.check.verdict is Verdict.UNDERPOWERED
    assert "a lower temperature was not noticed" in found.check.evidence


def test_a_baseline_that_differs_from_itself_is_no_measure() -> None:
    off, _, control = off_arms(0, SCREEN, 1)
    found = distribution_check((ContextSamples("p", control, off, control, control),), skip=1)
    assert found.check.verdict is Verdict.UNDERPOWERED
    assert found.check.evidence.startswith("the baseline differs from itself")


def test_too_few_generations_are_underpowered_and_never_passed() -> None:
    few = ContextSamples("p", ((1, 2),), ((1, 2),), ((1, 2),), ((1, 2),))
    for contexts in ((), (few,)):
        found = distribution_check(contexts)
        assert (found.check.verdict, found.detectable) == (Verdict.UNDERPOWERED, None)


def test_pass_prints_the_distance_it_could_have_seen() -> None:
    found = check(rejection, SCREEN)
    assert found.detectable is not None
    assert f"a total variation of {found.detectable:.2f} at every compared place" in found.check.evidence


def test_certify_is_larger_than_screen_and_its_control_closer() -> None:
    assert (SCREEN.per_arm, SCREEN.contexts, SCREEN.control_factor) == (1_000, 2, 0.8)
    assert (CERTIFY.per_arm, CERTIFY.contexts, CERTIFY.control_factor) == (7_000, 3, 0.9)


def test_certify_passes_an_exact_sampler_and_catches_a_smaller_slip() -> None:
    assert check(rejection, CERTIFY).check.verdict is Verdict.PASS
    slip = check(plain(0.93), CERTIFY)
    assert slip.check.verdict is Verdict.FAIL


def test_one_node_is_pearsons_test() -> None:
    left = ((1,),) * 300 + ((2,),) * 200 + ((3,),) * 100
    right = ((1,),) * 250 + ((2,),) * 300 + ((3,),) * 150
    found = tree_test(left, right)
    expected = stats.chi2_contingency([[300, 200, 100], [250, 300, 150]], correction=False)
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.df, found.nodes, found.per_arm, found.compared) == (2, 1, 600, 600)
    assert found.detectable(0.01) == detectable_tv(600, 3, 0.01)


def test_nodes_below_the_root_add_their_statistic() -> None:
    left = ((1, 1),) * 200 + ((1, 2),) * 100 + ((2, 1),) * 100
    right = ((1, 1),) * 100 + ((1, 2),) * 200 + ((2, 1),) * 100
    found = tree_test(left, right)
    below = stats.chi2_contingency([[200, 100], [100, 200]], correction=False)
    # The root does not differ (300 and 100 in both); after 1 the next token does; after 2 only 100 sequences follow.
    assert (found.nodes, found.df, found.depth) == (2, 2, 1)
    assert found.statistic == pytest.approx(below.statistic)
    skipped = tree_test(left, right, skip=1)
    assert (skipped.nodes, skipped.df, skipped.depth) == (1, 1, 0)


def test_rare_prefixes_make_one_stratified_node() -> None:
    # Two prefixes of 150 per arm: O − E = 25 in each (100 against 50 of 150), V = 150² × 150 × 150 ÷ (300² × 299).
    left = tuple((p, 1) for p in (1, 2) for _ in range(100)) + tuple((p, 2) for p in (1, 2) for _ in range(50))
    right = tuple((p, 1) for p in (1, 2) for _ in range(50)) + tuple((p, 2) for p in (1, 2) for _ in range(100))
    found = tree_test(left, right, skip=1)
    variance = 150**4 / (300**2 * 299)
    assert (found.nodes, found.df) == (1, 1)
    assert found.statistic == pytest.approx(50**2 / (2 * variance))


def test_a_chance_difference_in_prefixes_is_not_counted_again_below_them() -> None:
    # After 1 always 3, after 2 always 4: the arms differ in the first token alone, which is skipped.
    left = ((1, 3),) * 190 + ((2, 4),) * 110
    right = ((1, 3),) * 110 + ((2, 4),) * 190
    assert tree_test(left, right, skip=1, min_per_arm=150).p is None


def test_rare_outcomes_are_pooled_and_an_end_is_an_outcome() -> None:
    left = ((1,),) * 300 + ((2,),) * 200 + tuple((token,) for token in range(10, 15))
    right = ((1,),) * 200 + ((2,),) * 300 + tuple((token,) for token in range(20, 26))
    assert tree_test(left, right).df == 2  # 1, 2, and eleven rare ones together
    assert tree_test(((1,),) * 300 + ((),) * 300, ((1,),) * 450 + ((),) * 150).df == 1
    assert tree_test(((1,),) * 300, ((1,),) * 300).p is None
    assert tree_test(((1,),) * 199, ((2,),) * 199).p is None


def test_the_tree_test_keeps_its_level() -> None:
    rejected = 0
    for seed in range(100):
        left, right = (generate(plain(), 1, 400, 2 * seed + arm + 5000) for arm in (0, 1))
        p = tree_test(left, right).p
        rejected += p is not None and p < 0.05
    assert rejected <= 11  # 5 expected, 11 is the 99.5 % point


def test_power_figures_of_the_method() -> None:
    assert [detectable_tv(n) for n in (1_600, 7_000, 43_000)] == pytest.approx([0.10, 0.05, 0.02], rel=0.03)
    assert detectable_tv(1) == 1.0
    assert (detectable_tv(0), detectable_tv(100, outcomes=1)) == (None, None)


def test_the_power_that_is_stated_is_had() -> None:
    n, outcomes = 1_600, 20
    shift = detectable_tv(n, outcomes)
    assert shift is not None
    base = np.full(outcomes, 1 / outcomes)
    moved = base * (1 + 2 * shift * np.where(np.arange(outcomes) % 2, 1, -1))
    generator = np.random.default_rng(3)
    found = 0
    for _ in range(200):
        arms = [[(int(t),) for t in generator.choice(outcomes, n, p=p / p.sum())] for p in (base, moved)]
        p = tree_test(arms[0], arms[1]).p
        found += p is not None and p < 0.01
    assert 168 <= found <= 195


def test_total_variation_says_its_bias() -> None:
    left, right = ((1,),) * 600 + ((2,),) * 400, ((1,),) * 400 + ((2,),) * 600
    found = total_variation(left, right, seed=1, shuffles=199)
    assert found is not None
    assert found.raw == pytest.approx(0.2)
    assert found.p == 1 / 200
    same = total_variation(generate(plain(), 0, 1000, 1), generate(plain(), 0, 1000, 2), seed=1, skip=1, shuffles=199)
    assert same is not None
    assert same.raw > 0.05
    assert same.null_mean == pytest.approx(same.raw, rel=0.3)
    assert same.p > 0.01
    assert total_variation((), left, seed=1) is None


def test_holm_over_contexts() -> None:
    def one(p: float | None) -> TreeTest:
        return TreeTest(p, 0.0, 1, 1, 0, 200, 200)

    assert smallest_holm_p([one(0.02), one(0.5), one(None)]) == pytest.approx(0.04)
    assert smallest_holm_p([one(0.9), one(0.8)]) == 1.0
    assert smallest_holm_p([one(None)]) is None
