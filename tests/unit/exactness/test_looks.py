"""Looks at growing samples: their total error by simulation, and what they save."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from orchestrator.exactness.distribution import ALPHA, CERTIFY, SCREEN
from orchestrator.exactness.looks import look_sizes, spending
from orchestrator.exactness.prefix_tree import tree_test


def test_looks_fall_on_whole_batches_and_the_last_takes_all():
    assert look_sizes(SCREEN.per_arm) == (300, 500, 1_000)
    assert look_sizes(CERTIFY.per_arm) == (1_800, 3_500, 7_000)
    assert look_sizes(150) == (100, 150)
    assert look_sizes(80) == (80,)


@pytest.mark.parametrize("per_arm", [80, 150, 1_000, 7_000])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_the_levels_add_up_to_alpha_and_grow(per_arm, alpha):
    levels = spending(look_sizes(per_arm), alpha)
    assert sum(levels) == pytest.approx(alpha)
    assert list(levels) == sorted(levels)


def test_almost_all_of_alpha_is_left_for_the_last_look():
    first, second, last = spending(look_sizes(SCREEN.per_arm), ALPHA)
    # 2 − 2·Φ(2.5758 ÷ √0.3) and 2 − 2·Φ(2.5758 ÷ √0.5), by tables
    assert first == pytest.approx(2.6e-6, rel=0.03)
    assert first + second == pytest.approx(2.7e-4, rel=0.02)
    assert last > 0.97 * ALPHA


def arm(generator, weights, size):
    return [tuple(row) for row in generator.choice(len(weights), (size, 2), p=weights)]


WEIGHTS = np.asarray([0.3, 0.25, 0.2, 0.15, 0.1])


def statistics(generator, sizes, repeats):
    """X² of two equal arms at every look, by simulated run: counts grow from look to look (Pearson, 4 df)."""
    steps = np.diff((0, *sizes))
    arms = [np.cumsum([generator.multinomial(n, WEIGHTS, size=repeats) for n in steps], axis=0) for _ in (0, 1)]
    return ((arms[0] - arms[1]) ** 2 / np.maximum(arms[0] + arms[1], 1)).sum(axis=2)


def test_the_simulated_statistic_is_that_of_the_tree_test():
    generator = np.random.default_rng(3)
    off, on = arm(generator, WEIGHTS, 600), arm(generator, WEIGHTS, 600)
    counts = [np.bincount([row[0] for row in rows], minlength=5) for rows in (off, on)]
    assert tree_test(on, off, depth=1).statistic == pytest.approx(
        float(((counts[0] - counts[1]) ** 2 / (counts[0] + counts[1])).sum())
    )


def test_total_error_of_the_looks_by_simulation():
    alpha, repeats, sizes = 0.05, 40_000, look_sizes(600)
    p = stats.chi2.sf(statistics(np.random.default_rng(8), sizes, repeats), 4)
    levels = np.asarray(spending(sizes, alpha))[:, None]

    def rejected(factor):
        return float((p < factor * levels).any(axis=0).mean())

    # Four standard errors of a share of 0.05 are 0.0044; the looks overlap, so that a little less than alpha is spent.
    assert alpha - 0.008 <= rejected(1) <= alpha + 0.0044
    # What overspends by half would be seen, and so would judging every look with the full alpha.
    assert rejected(1.5) > alpha + 0.015
    assert float((p < alpha).any(axis=0).mean()) > alpha + 0.03


def test_total_error_at_the_products_level_with_two_contexts_under_holm():
    repeats, sizes = 100_000, look_sizes(SCREEN.per_arm)
    p = [stats.chi2.sf(statistics(np.random.default_rng(seed), sizes, repeats), 4) for seed in (31, 32)]
    holm = np.minimum(1.0, SCREEN.contexts * np.minimum(*p))
    levels = np.asarray(spending(sizes, ALPHA))[:, None]
    # Four standard errors are 0.00126.
    assert ALPHA - 0.0018 <= float((holm < levels).any(axis=0).mean()) <= ALPHA + 0.00126
    assert float((holm < 1.5 * levels).any(axis=0).mean()) > ALPHA + 0.003
    assert float((np.minimum(*p) < levels).any(axis=0).mean()) > 1.8 * ALPHA  # without Holm


def test_a_broken_engine_is_caught_at_the_first_look():
    generator = np.random.default_rng(9)
    sizes = look_sizes(SCREEN.per_arm)
    levels = spending(sizes, ALPHA)
    good, bad = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.7, 0.15, 0.1, 0.05])
    caught = 0
    for _ in range(20):
        off, on = arm(generator, good, sizes[0]), arm(generator, bad, sizes[0])
        p = tree_test(on, off, depth=2).p
        caught += p is not None and p < levels[0]
    assert caught == 20
