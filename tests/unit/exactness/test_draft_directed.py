"""The draft-directed z on simulated rounds: near 0 for an exact rule, large where tokens follow the draft."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import poisson

from orchestrator.exactness.coupled import seed_coupled
from orchestrator.exactness.draft_directed import (
    ALPHA,
    NONE_HELD,
    bounded_p,
    critical_z,
    draft_directed,
    draft_directed_z,
    unavailable,
)
from orchestrator.schema.judged import Judged, flattened, unflattened
from orchestrator.schema.result import Verdict

SIZE = 6


def drawn(generator, weights):
    """A token of each row."""
    marks = weights.cumsum(axis=1)
    return (generator.random((len(weights), 1)) * marks[:, -1:] >= marks).sum(axis=1)


def rounds(seed, rule, count=1_500):
    """One drafted token a round; the place is judged whatever becomes of the draft."""
    generator, every = np.random.default_rng(seed), np.arange(count)
    p, q = (generator.dirichlet(np.ones(SIZE), count) for _ in range(2))
    draft, own, corrected = drawn(generator, q), drawn(generator, p), drawn(generator, np.maximum(p - q, 0))
    kept = generator.random(count) < p[every, draft] / q[every, draft]
    best = q.argmax(axis=1)
    token = {
        "sample match": own,
        "rejection": np.where(kept, draft, corrected),
        "missing residual": np.where(kept, draft, own),
        "greedy accept": np.where(best == p.argmax(axis=1), best, own),
        "kept drafts alone": own,
    }[rule]
    mean = (p * q).sum(axis=1)
    numbers = np.stack([q[every, token], mean, (p * q**2).sum(axis=1) - mean**2, q.max(axis=1)], axis=1)
    wanted = own == draft if rule == "kept drafts alone" else np.full(count, True)
    return [Judged(*row) for row in numbers[wanted].tolist()]


@pytest.mark.parametrize("rule", ["sample match", "rejection"])
def test_an_exact_rule_has_a_standard_normal_z(rule):
    runs = [rounds(seed, rule, 300) for seed in range(300)]
    found = [draft_directed_z(run) for run in runs]
    assert abs(sum(found)) / math.sqrt(len(found)) < 3
    assert 0.75 < sum(z * z for z in found) / len(found) < 1.3
    assert 5 <= sum(abs(z) > 1.96 for z in found) <= 27
    assert not [run for run in runs if draft_directed(run).verdict is Verdict.FAIL]
    assert draft_directed(rounds(1, rule)).verdict is Verdict.PASS


@pytest.mark.parametrize("rule", ["missing residual", "greedy accept"])
def test_a_rule_that_favours_the_draft_is_caught(rule):
    found = draft_directed(rounds(1, rule))
    assert draft_directed_z(rounds(1, rule)) > 6
    assert found.verdict is Verdict.FAIL
    assert found.evidence.startswith("tokens are drawn towards the draft: z ")


def test_choosing_places_by_the_token_itself_would_contradict_an_exact_rule():
    """Why the correction behind kept drafts counts too: whether a place counts must not hang on its own token."""
    assert draft_directed(rounds(1, "kept drafts alone")).verdict is Verdict.FAIL


@pytest.mark.parametrize("mean", [0.05, 0.5, 4, 25, 100])
def test_the_bound_holds_where_a_normal_tail_does_not(mean):
    """The worst case: each token a rare one that the draft is sure of, so that the sum is a Poisson count."""
    counts = np.arange(0, 400)
    for count in counts[counts > mean]:
        z = (count - mean) / math.sqrt(mean)
        exact = poisson.sf(count - 1, mean) + poisson.cdf(math.floor(2 * mean - count), mean)
        assert exact <= bounded_p(z, mean) * (1 + 1e-9)
    rejected = poisson.sf(math.ceil(mean + critical_z(mean) * math.sqrt(mean)) - 1, mean)
    assert rejected <= ALPHA / 2
    if mean <= 4:
        normal = poisson.sf(math.ceil(mean + 3.2905 * math.sqrt(mean)) - 1, mean)
        assert normal > 2 * ALPHA / 2


def test_the_critical_z_is_where_the_bound_meets_the_level():
    for variance in (0.01, 1, 300, 1e6):
        assert bounded_p(critical_z(variance), variance) == pytest.approx(ALPHA, rel=1e-6)
    assert critical_z(1e6) == pytest.approx(math.sqrt(2 * math.log(2 / ALPHA)), rel=0.01)
    assert bounded_p(0.0, 5.0) == 1.0
    assert bounded_p(2.0, 50.0) > 0.0455  # of a normal


def test_a_pass_says_what_it_would_have_seen():
    found = draft_directed([Judged(0.9, 0.5, 0.09, 0.9), Judged(0.1, 0.5, 0.09, 0.9)] * 400)
    share = (critical_z(72.0) + 1.2815515655) * math.sqrt(72.0) / (800 * 0.4)
    assert found.verdict is Verdict.PASS
    assert "z 0.00, two-sided p at most 1 (Bennett's bound, 0.001 decides)" in found.evidence
    assert "800 judged places 0.5000 in the mean, 0.5000 is expected" in found.evidence
    assert f"were {100 * share:.2g} % of them the draft's favourite instead" in found.evidence


@pytest.mark.parametrize(
    "tokens",
    [[], [Judged(0.5, 0.5, 0.0, 0.5)] * 500, [Judged(0.9, 0.5, 0.09, 0.9)] * 10],
    ids=["none", "no variance", "few"],
)
def test_too_little_is_no_pass(tokens):
    found = draft_directed(tokens)
    assert found.verdict is Verdict.UNDERPOWERED
    assert "to judge" in found.evidence


def test_known_values_and_nothing_told():
    assert draft_directed_z([Judged(0.9, 0.5, 0.04, 1), Judged(0.7, 0.5, 0.05, 1)]) == pytest.approx(0.6 / 0.3)
    assert draft_directed_z([]) is None
    assert draft_directed_z([Judged(0.5, 0.5, 0.0, 1)]) is None
    found = unavailable(NONE_HELD)
    assert (found.verdict, found.evidence) == (Verdict.NOT_APPLICABLE, f"not available: {NONE_HELD}")


def test_away_from_the_draft_is_told_apart():
    found = draft_directed([Judged(0.1, 0.5, 0.05, 0.9)] * 400)
    assert found.verdict is Verdict.FAIL
    assert found.evidence.startswith("tokens are drawn away from the draft: z -")


def test_places_to_a_row_of_numbers_and_back():
    places = (Judged(0.9, 0.5, 0.04, 1.0), Judged(0.7, 0.25, 0.05, 0.75))
    assert flattened(places) == (0.9, 0.5, 0.04, 1.0, 0.7, 0.25, 0.05, 0.75)
    assert unflattened(flattened(places)) == places
    assert unflattened(()) == ()
    with pytest.raises(ValueError, match="5 numbers are not 4 per judged place"):
        unflattened((0.1,) * 5)


def test_seed_coupled_equality_passes_when_all_are_equal_and_never_fails():
    assert seed_coupled([((1, 2), (1, 2))] * 3).verdict is Verdict.PASS
    differs = seed_coupled([((1, 2), (1, 2)), ((1,), (2,))])
    assert (differs.verdict, differs.evidence[:3]) == (Verdict.UNINFORMATIVE, "1/2")
    assert seed_coupled([]).verdict is Verdict.NOT_TESTED
