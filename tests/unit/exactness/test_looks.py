"""Looks at growing samples: their total error by simulation, and what they save."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.exactness.distribution import ALPHA, CERTIFY, SCREEN, smallest_holm_p
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


def test_total_error_of_the_looks_by_simulation():
    alpha, per_arm, repeats = 0.05, 600, 300
    generator, weights = np.random.default_rng(8), np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    sizes = look_sizes(per_arm)
    levels = spending(sizes, alpha)
    rejected = unguarded = 0
    for _ in range(repeats):
        off, on = arm(generator, weights, per_arm), arm(generator, weights, per_arm)
        found = [smallest_holm_p([tree_test(on[:n], off[:n], depth=2)]) for n in sizes]
        rejected += any(p is not None and p < level for p, level in zip(found, levels, strict=True))
        unguarded += any(p is not None and p < alpha for p in found)
    # 15 expected at most; 27 is the 99.9 % point of that, 5 the 0.1 % one: neither too lenient nor asleep.
    assert 5 <= rejected <= 27
    # Judging at every look with the full alpha rejects exact engines more often.
    assert unguarded > rejected


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
