"""The distribution check against simulated samplers whose exactness is known, and its parts against known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from orchestrator.exactness.distribution import (
    CERTIFY,
    SCREEN,
    ContextSamples,
    Preset,
    distribution_check,
    smallest_holm_p,
)
from orchestrator.exactness.prefix_tree import TreeTest, detectable_tv, total_variation, tree_test
from orchestrator.schema.result import Verdict
from scripts.samplers import (
    SIMULATED,
    TARGET,
    Simulated,
    check,
    generate,
    injected_token,
    off_arms,
    plain,
    rejection,
    sample_match,
)


@pytest.mark.parametrize("one", SIMULATED, ids=lambda one: one.title)
def test_simulated_samplers_are_judged_rightly(one: Simulated) -> None:
    # One token in twenty rounds is less than `screen` sees, as the table says.
    preset = CERTIFY if one.rule is injected_token else SCREEN
    found = check(one.rule, preset, stale=one.stale).results[0]
    assert found.verdict is one.verdict, found.evidence


def test_the_contexts_have_the_entropy_that_the_check_asks_for() -> None:
    entropy = -(TARGET * np.log(TARGET)).sum(axis=1)[: CERTIFY.contexts]
    assert (entropy > 1).all()
    assert (entropy < 3).all()


def test_exact_samplers_rarely_fail_and_are_mostly_settled() -> None:
    verdicts = [
        check(rule, SCREEN, seed).results[0].verdict for seed in range(2, 8) for rule in (rejection, sample_match)
    ]
    assert verdicts.count(Verdict.FAIL) <= 1
    assert verdicts.count(Verdict.PASS) >= 10


def test_the_negative_control_decides_whether_a_pass_means_anything() -> None:
    # 400 generations cannot tell T × 0.97 from T, so that silence about the cell proves nothing either.
    weak = Preset("weak", 400, 2, 0.97)
    found = check(sample_match, weak).results[0]
    assert found.verdict is Verdict.UNDERPOWERED
    assert "a lower temperature was not noticed" in found.evidence


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
    outcome = check(rejection, SCREEN)
    assert outcome.detail is not None
    seen, evidence = outcome.detail.detectable, outcome.results[0].evidence
    assert seen is not None
    assert f"a total variation of {seen:.2f} after every prefix that 200 generations of either arm share" in evidence
    own, compared = (sum(getattr(one, name) for one in outcome.detail.on) for name in ("own", "compared"))
    assert f"({100 * (1 - own / compared):.0f} % of the compared tokens follow rarer ones" in evidence


def test_certify_is_larger_than_screen_and_its_control_closer() -> None:
    assert (SCREEN.per_arm, SCREEN.contexts, SCREEN.control_factor) == (1_000, 2, 0.8)
    assert (CERTIFY.per_arm, CERTIFY.contexts, CERTIFY.control_factor) == (7_000, 3, 0.9)


def test_certify_passes_an_exact_sampler_and_catches_a_smaller_slip() -> None:
    assert check(rejection, CERTIFY).results[0].verdict is Verdict.PASS
    slip = check(plain(0.93), CERTIFY)
    assert slip.results[0].verdict is Verdict.FAIL


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


def branching(generator: np.random.Generator, root: np.ndarray, tables: np.ndarray, n: int) -> list[tuple[int, int]]:
    first = generator.choice(len(root), n, p=root)
    drawn = (generator.random(n)[:, None] > tables.cumsum(axis=1)[first]).sum(axis=1)
    return [(int(a), int(b)) for a, b in zip(first, drawn, strict=True)]


def moved_apart(generator: np.random.Generator, base: np.ndarray, shift: float) -> np.ndarray:
    """Every row ``shift`` away in total variation, half of its tokens up and half down, in a direction of its own."""
    signs = np.stack([generator.permutation(np.where(np.arange(base.shape[1]) % 2, 1, -1)) for _ in base])
    return np.asarray(base * (1 + 2 * shift * signs))


def test_the_power_that_is_stated_is_had_where_prefixes_differ_in_opposite_directions() -> None:
    # Three prefixes with a test of their own, and ten rare ones, whose differences cancel in their common node.
    root, base = np.asarray([*[0.25] * 3, *[0.025] * 10]), np.full((13, 10), 0.1)
    generator, found, share = np.random.default_rng(21), 0, []
    for _ in range(200):
        left = branching(generator, root, base, 1_000)
        shift = tree_test(left, branching(generator, root, base, 1_000), skip=1, depth=1).detectable(0.01)
        assert shift is not None
        other = tree_test(left, branching(generator, root, moved_apart(generator, base, shift), 1_000), skip=1, depth=1)
        found += other.p is not None and other.p < 0.01
        share.append(other.own / other.compared)
    assert 168 <= found <= 195
    assert 0.7 < np.mean(share) < 0.8


def test_rare_prefixes_alone_pass_nothing() -> None:
    # Twenty prefixes of fifty generations: a shift of 0.2 in twenty directions leaves no trace in the common node.
    root, base, generator = np.full(20, 0.05), np.full((20, 10), 0.1), np.random.default_rng(22)
    off, again = branching(generator, root, base, 1_000), branching(generator, root, base, 1_000)
    on = branching(generator, root, moved_apart(generator, base, 0.2), 1_000)
    sharp = branching(generator, root, np.tile([0.2, 0.2, *[0.075] * 8], (20, 1)), 1_000)
    samples = ContextSamples("p", tuple(on), tuple(off), tuple(again), tuple(sharp))
    found = distribution_check((samples,), skip=1, depth=1)
    assert (found.check.verdict, found.detectable) == (Verdict.UNDERPOWERED, None)
    assert found.check.evidence.startswith("no prefix is shared by 200 generations")
    # A shift that is common to them does show, and a rejection needs no proof of power.
    caught = distribution_check((ContextSamples("p", tuple(sharp), tuple(off), tuple(again), tuple(sharp)),), skip=1)
    assert caught.check.verdict is Verdict.FAIL


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
        return TreeTest(p, 0.0, 1, 1, 0, 200, 200, 200)

    assert smallest_holm_p([one(0.02), one(0.5), one(None)]) == pytest.approx(0.04)
    assert smallest_holm_p([one(0.9), one(0.8)]) == 1.0
    assert smallest_holm_p([one(None)]) is None
