"""Choice of contexts: entropy and the control's effect against known answers, and the order of choice."""

from __future__ import annotations

import math

import pytest

from orchestrator.exactness.contexts import Candidate, appraise, candidates, choose


def test_candidates_are_prompts_and_their_beginnings_in_turn():
    found = candidates([("a", "abcdefgh"), ("b", "xy")], limit=5)
    assert found == {
        "a@6": ("a", "abcdef"),
        "b": ("b", "xy"),
        "a@4": ("a", "abcd"),
        "b@1": ("b", "x"),
        "a": ("a", "abcdefgh"),
    }
    assert len(candidates([("a", "abcdefgh"), ("b", "xy")], limit=3)) == 3


def test_entropy_is_that_of_the_compared_token_that_varies_most():
    samples = [(0, token) for token in range(4) for _ in range(25)]
    found = appraise("c", "p", samples, factor=0.8, skip=1)
    assert found.entropy == pytest.approx(math.log(4) + 3 / 200)
    assert found.in_range
    # Equally likely tokens stay so at any temperature: such a context cannot show a control.
    assert found.moved == pytest.approx(0)


def test_the_controls_effect_is_the_total_variation_to_the_sharper_distribution():
    samples = [(0, 1)] * 80 + [(0, 2)] * 20
    found = appraise("c", "p", samples, factor=0.5, skip=1)
    assert found.moved == pytest.approx(0.64 / 0.68 - 0.8)
    assert not found.in_range
    # The first token is not compared, so its spread counts for nothing.
    assert appraise("c", "p", [(1, 0)] * 80 + [(2, 0)] * 20, factor=0.5, skip=1).moved == 0


def test_ends_are_outcomes_and_withheld_ids_are_noticed():
    found = appraise("c", "p", [(0,)] * 50 + [(0, 1)] * 50, factor=0.5, skip=1)
    assert found.entropy == pytest.approx(math.log(2) + 1 / 200)
    assert not found.untold
    assert appraise("c", "p", [(0, -7)], factor=0.5, skip=1).untold


def one(context, prompt, entropy, moved, *, untold=False):
    return Candidate(context, prompt, entropy, moved, untold)


def test_in_range_first_then_the_controls_effect_then_other_prompts():
    found = [
        one("flat", "p1", 2.0, 0.01),
        one("best", "p2", 2.0, 0.2),
        one("same prompt", "p2", 2.0, 0.15),
        one("certain", "p3", 0.1, 0.3),
        one("untold", "p4", 2.0, 0.4, untold=True),
    ]
    assert choose(found, 2).chosen == ("best", "flat")
    assert choose(found, 2).warning == ""
    three = choose(found, 3)
    assert three.chosen == ("best", "flat", "certain")
    assert three.warning.endswith("certain lie outside")
    assert set(three.why) == set(three.chosen)


def test_too_few_contexts_are_said():
    assert choose([one("c", "p", 2.0, 0.1)], 2).warning.startswith("1 of 2 contexts")
    assert choose([], 2).chosen == ()
