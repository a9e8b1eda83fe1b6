"""The draft-directed z on simulated rounds: near 0 for an exact rule, large where tokens follow the draft."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.exactness.coupled import seed_coupled
from orchestrator.exactness.draft_directed import NOT_TOLD, Judged, draft_directed_z
from orchestrator.exactness.scoring import two_sided_p
from orchestrator.schema.result import Verdict


def rounds(seed, *, residual):
    """One drafted token a round, judged by rejection, with the residual or without."""
    generator, found = np.random.default_rng(seed), []
    for _ in range(1_500):
        p, q = generator.dirichlet(np.ones(6)), generator.dirichlet(np.ones(6))
        token = generator.choice(6, p=q)
        if generator.random() >= p[token] / q[token]:
            left = np.maximum(p - q, 0)
            token = generator.choice(6, p=left / left.sum() if residual else p)
        mean = float(p @ q)
        found.append(Judged(float(q[token]), mean, float(p @ q**2) - mean**2))
    return found


def test_an_exact_rule_has_a_standard_normal_z():
    found = [draft_directed_z(rounds(seed, residual=True)) for seed in range(4)]
    assert all(z is not None and two_sided_p(z) > 1e-3 for z in found)


def test_a_missing_residual_is_pulled_towards_the_draft():
    z = draft_directed_z(rounds(1, residual=False))
    assert z is not None
    assert z > 6


def test_known_values_and_nothing_to_judge():
    assert draft_directed_z([Judged(0.9, 0.5, 0.04), Judged(0.7, 0.5, 0.05)]) == pytest.approx(0.6 / 0.3)
    assert draft_directed_z([]) is None
    assert draft_directed_z([Judged(0.5, 0.5, 0.0)]) is None
    assert NOT_TOLD.verdict is Verdict.NOT_APPLICABLE


def test_seed_coupled_equality_passes_when_all_are_equal_and_never_fails():
    assert seed_coupled([((1, 2), (1, 2))] * 3).verdict is Verdict.PASS
    differs = seed_coupled([((1, 2), (1, 2)), ((1,), (2,))])
    assert (differs.verdict, differs.evidence[:3]) == (Verdict.UNINFORMATIVE, "1/2")
    assert seed_coupled([]).verdict is Verdict.NOT_TESTED
