"""The paired sign-flip test: without an effect, every difference could as well have had the other sign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

MOST_STEPS = 50_000_000
"""Additions up to which the distribution is worked out exactly; beyond it is drawn."""
DRAWS = 20_000
MOST_TRIALS = 10_000
"""Denominators of differences up to which they are taken as the fractions that they are."""
_SEED = 20_261_129
_CLOSE = 1e-9


def sign_flips(differences: Sequence[float]) -> float:
    """The two-sided p of the sum of the differences among all that their signs could have made; 1 where none differs.

    Exact wherever the differences are of rates of like numbers of trials, which makes every sum a whole number of
    small parts; else from a fixed draw of 20 000 sets of signs, the observed one counted in.

    Args:
        differences: one for each prompt; finite.
    """
    parts = [Fraction(one).limit_denominator(MOST_TRIALS) for one in differences if one]
    if not parts:
        return 1.0
    scale = math.lcm(*(one.denominator for one in parts))
    sizes = [abs(one.numerator) * (scale // one.denominator) for one in parts]
    observed = abs(sum(one.numerator * (scale // one.denominator) for one in parts))
    if len(sizes) * (2 * sum(sizes) + 1) > MOST_STEPS:
        return _drawn([float(one) for one in parts])
    whole = sum(sizes)
    chances = np.zeros(2 * whole + 1)
    chances[whole] = 1.0
    for size in sizes:
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    sums = np.abs(np.arange(-whole, whole + 1))
    return min(1.0, float(chances[sums >= observed].sum()))


def _drawn(differences: Sequence[float]) -> float:
    values = np.abs(np.array(differences))
    observed = abs(float(np.sum(differences))) - _CLOSE
    rng = np.random.default_rng(_SEED)
    beyond = sum(abs(float(values @ rng.choice((-1.0, 1.0), len(values)))) >= observed for _ in range(DRAWS))
    return (beyond + 1) / (DRAWS + 1)
