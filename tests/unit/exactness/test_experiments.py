"""Repeating a distribution check: what failed once is told, and never becomes a pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.exactness.checking import judge_check
from orchestrator.exactness.distribution import SCREEN
from orchestrator.exactness.experiments import Experiment, over_experiments
from orchestrator.exactness.groups import Mark, mark, place
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.record import CheckArm
from orchestrator.schema.result import CheckResult, Group, Verdict
from scripts.samplers import check, greedy_accept, injected_token, rejection, state_of

CLAIM = Claim(Rule.REJECTION, exact=True, by="the test")


def one(number: int, verdict: Verdict, p: float | None = 0.5, *, stands: bool = False, beside: str = "") -> Experiment:
    return Experiment(number, CheckResult("distribution", verdict, f"evidence {number}"), beside, p, stands)


def group(result: CheckResult) -> tuple[Group, bool]:
    """The group, and whether it is said that checks passed."""
    return place("c", CLAIM, [result], True).group, mark([result], True) is Mark.PASSED


def test_one_experiment_stands_for_itself() -> None:
    for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.NOT_TESTED, Verdict.UNDERPOWERED):
        alone = one(1, verdict, stands=verdict is Verdict.FAIL)
        assert over_experiments([alone], 0.01) == alone.result


def test_a_pass_after_a_pass_names_both() -> None:
    found = over_experiments([one(1, Verdict.PASS, 0.3), one(2, Verdict.PASS, 0.7)], 0.01)
    assert (found.verdict, group(found)) == (Verdict.PASS, (Group.EXACT, True))
    assert found.evidence == "evidence 2; experiment 1 passed (p 0.3); experiment 2 passed (p 0.7)"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_failure_that_stands_at_the_divided_level_contradicts_whatever_comes_after(order: tuple[int, int]) -> None:
    pair = (one(1, Verdict.FAIL, 2e-7, stands=True), one(2, Verdict.PASS))
    found = over_experiments([pair[place] for place in order], 0.01)
    assert (found.verdict, group(found)) == (Verdict.FAIL, (Group.CONTRADICTED, False))
    assert "evidence 1; experiment" in found.evidence
    assert "experiment 1 failed (p 2e-07)" in found.evidence
    assert found.evidence.endswith("experiment 1 failed at 0.01 ÷ 2 experiments too")


def test_a_failure_that_may_be_chance_among_so_many_leaves_the_claim_unsettled() -> None:
    found = over_experiments([one(1, Verdict.FAIL, 0.008), one(2, Verdict.PASS)], 0.01)
    assert (found.verdict, group(found)) == (Verdict.UNINFORMATIVE, (Group.EXACT, False))
    assert mark([found], True) is Mark.UNSETTLED
    assert found.evidence == (
        "experiment 1 failed (p 0.008); experiment 2 passed (p 0.5); at 0.01 ÷ 2 experiments none failed, but one that "
        "failed is not undone by repeating it"
    )


def test_an_experiment_that_is_not_decided_hides_no_failure() -> None:
    found = over_experiments([one(1, Verdict.FAIL, 0.008, stands=True), one(2, Verdict.NOT_TESTED, None)], 0.01)
    assert (found.verdict, group(found)[0]) == (Verdict.FAIL, Group.CONTRADICTED)
    assert "÷ 1 experiment" in found.evidence


def test_a_check_beside_that_failed_counts_as_a_failure() -> None:
    found = over_experiments([one(1, Verdict.PASS, beside="draft-directed z"), one(2, Verdict.PASS)], 0.01)
    assert found.verdict is Verdict.UNINFORMATIVE
    assert found.evidence.startswith("experiment 1 failed (draft-directed z); experiment 2 passed (p 0.5)")


def test_records_of_a_failed_and_a_passed_experiment_end_as_contradicted() -> None:
    bad, good = state_of(greedy_accept, SCREEN, 1), state_of(rejection, SCREEN, 2)
    assert judge_check(good, CLAIM).results[0].verdict is Verdict.PASS
    found = judge_check(replace(good, attempt=2, earlier=(1,), before=(bad,)), CLAIM)
    assert found.results[0].verdict is Verdict.FAIL
    assert "experiment 2 passed (p " in found.results[0].evidence
    assert place("c", CLAIM, found.results, True).group is Group.CONTRADICTED


def test_records_of_a_failure_that_may_be_chance_end_unsettled() -> None:
    # At this seed the sampler's p is 0.03: below 0.04, which one experiment may spend, and above half of that.
    alpha, maybe, good = 0.04, state_of(injected_token, SCREEN, 1), state_of(rejection, SCREEN, 2)
    assert judge_check(maybe, CLAIM, alpha=alpha).results[0].verdict is Verdict.FAIL
    for pair in ((maybe, good), (good, maybe)):
        found = judge_check(replace(pair[1], attempt=2, earlier=(1,), before=pair[:1]), CLAIM, alpha=alpha).results
        assert found[0].verdict is Verdict.UNINFORMATIVE
        assert mark(found, True) is Mark.UNSETTLED


def test_nothing_that_shows_drafting_is_no_pass() -> None:
    state = state_of(rejection, SCREEN, 2)
    silent = {
        context: tuple(replace(batch, drafted=None) for batch in batches)
        for context, batches in state.arms[CheckArm.ON].items()
    }
    for drafted, words in ((None, "nothing shows that anything was drafted"), (0, "nothing was drafted")):
        on = {name: tuple(replace(b, drafted=drafted) for b in found) for name, found in silent.items()}
        found = judge_check(replace(state, arms={**state.arms, CheckArm.ON: on}), CLAIM).results[0]
        assert (found.verdict, found.evidence.startswith(words)) == (Verdict.UNDERPOWERED, True)
    for told in ({"in_bursts": 3}, {"drafted": 5}, {"judged": ((0.1, 0.2, 0.3, 0.4),)}):
        on = {name: tuple(replace(b, **told) for b in found) for name, found in silent.items()}
        found = judge_check(replace(state, arms={**state.arms, CheckArm.ON: on}), CLAIM).results[0]
        assert found.verdict is Verdict.PASS


def test_a_clear_failure_stays_one_whatever_the_part_of_off_that_the_look_compared() -> None:
    # The first 300 of off are unlike off again by construction, all 1 000 of them are not.
    state = state_of(greedy_accept, SCREEN, 1)
    off, again = state.arms[CheckArm.OFF], {}
    for name, (batch,) in state.arms[CheckArm.OFF_AGAIN].items():
        again[name] = (replace(batch, tokens=off[name][0].tokens[::-1]),)
    sorted_off = {name: (replace(b, tokens=tuple(sorted(b.tokens))),) for name, (b,) in off.items()}
    found = judge_check(replace(state, arms={**state.arms, CheckArm.OFF: sorted_off, CheckArm.OFF_AGAIN: again}), None)
    assert found.looks[-1][0] < SCREEN.per_arm
    assert found.results[0].verdict is Verdict.FAIL


def test_a_sampler_that_fails_says_how_often_an_exact_one_would() -> None:
    evidence = check(greedy_accept, SCREEN).results[0].evidence
    assert evidence.endswith("; an exact engine fails at most 1 % of such checks")
