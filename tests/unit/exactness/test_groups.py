"""Claimed × verified: every combination has its group, and no open check is ever called passed."""

from __future__ import annotations

import itertools

import pytest

from orchestrator.exactness.checks import checks_of
from orchestrator.exactness.groups import Mark, mark, place
from orchestrator.exactness.seed import seed_identity
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.record import Phase
from orchestrator.schema.result import CheckResult, GreedyIdentity, Group, Output, Verdict


def check(verdict: Verdict, name: str = "greedy identity") -> CheckResult:
    return CheckResult(name, verdict, "evidence")


def claim(rule: Rule, exact: bool | None) -> Claim:
    return Claim(rule, exact, "engine 1.2", "")


EXACT = claim(Rule.SAMPLE_MATCH, True)


@pytest.mark.parametrize("verdict", list(Verdict))
@pytest.mark.parametrize("exact", [True, False, None])
@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("engaged", [True, False])
def test_the_whole_table(rule: Rule, exact: bool | None, verdict: Verdict, engaged: bool) -> None:
    group = place("c", claim(rule, exact), (check(verdict),), engaged).group
    if rule is Rule.NONE:
        expected = Group.BASELINE
    elif rule is Rule.SYNTHETIC:
        expected = Group.SYNTHETIC
    elif rule is Rule.HEURISTIC or exact is False:
        expected = Group.OPPORTUNISTIC
    elif exact is None:
        expected = Group.UNPROVEN
    elif verdict is Verdict.FAIL:
        expected = Group.CONTRADICTED
    else:
        expected = Group.EXACT
    assert group is expected


@pytest.mark.parametrize(
    ("verdicts", "engaged", "expected"),
    [
        ([Verdict.PASS], True, Mark.PASSED),
        ([Verdict.PASS, Verdict.NOT_APPLICABLE], True, Mark.PASSED),
        ([Verdict.PASS, Verdict.NOT_TESTED], True, Mark.PARTLY),
        ([Verdict.PASS, Verdict.UNINFORMATIVE], True, Mark.UNSETTLED),
        ([Verdict.PASS, Verdict.UNDERPOWERED], True, Mark.UNSETTLED),
        ([Verdict.NOT_TESTED], True, Mark.NOT_TESTED),
        ([], True, Mark.NOT_TESTED),
        ([Verdict.PASS], False, Mark.NOT_ENGAGED),
        ([Verdict.PASS, Verdict.FAIL], True, Mark.FAILED),
        ([Verdict.FAIL], False, Mark.FAILED),
    ],
)
def test_marks(verdicts: list[Verdict], engaged: bool, expected: Mark) -> None:
    assert mark([check(verdict) for verdict in verdicts], engaged) is expected


@pytest.mark.parametrize("verdicts", list(itertools.product(Verdict, repeat=2)))
def test_checks_passed_is_said_only_when_something_passed_and_nothing_is_open(verdicts: tuple[Verdict, ...]) -> None:
    sentence = place("c", EXACT, [check(verdict) for verdict in verdicts], engaged=True).sentence
    allowed = Verdict.PASS in verdicts and set(verdicts) <= {Verdict.PASS, Verdict.NOT_APPLICABLE}
    assert ("checks passed" in sentence) == allowed


def test_the_sentence_names_claim_claimant_and_evidence() -> None:
    placed = place("c", EXACT, (CheckResult("greedy identity", Verdict.PASS, "40/40 outputs"),), engaged=True)
    assert placed.sentence == (
        "claimed exact (sample match, by engine 1.2); checks passed. greedy identity: pass, 40/40 outputs"
    )
    noted = Claim(Rule.REJECTION, True, "engine 1.2", "top-k 10 on the draft side")
    assert "top-k 10 on the draft side" in place("c", noted, (), engaged=True).sentence


def test_above_temperature_zero_an_unmade_distribution_check_is_said() -> None:
    placed = place("c", EXACT, checks_of(is_greedy=False), engaged=True)
    assert (placed.group, placed.checks[0].verdict) == (Group.EXACT, Verdict.NOT_TESTED)
    assert placed.sentence.startswith(
        "claimed exact (sample match, by engine 1.2); not tested. distribution: not tested:"
    )


def test_a_divergent_cell_whose_near_tie_is_open_is_neither_passed_nor_contradicted() -> None:
    identity = GreedyIdentity("c", Verdict.UNINFORMATIVE, 3, 4, 2, 2, 5.0, (), "differs; near-tie not adjudicated: 3/4")
    placed = place("c", EXACT, checks_of(is_greedy=True, identity=identity), engaged=True)
    assert placed.group is Group.EXACT
    assert "not settled" in placed.sentence
    assert "checks passed" not in placed.sentence
    assert "differs; near-tie not adjudicated" in placed.sentence


def test_checks_owed_by_temperature() -> None:
    assert [(one.check, one.verdict) for one in checks_of(is_greedy=True)] == [("greedy identity", Verdict.NOT_TESTED)]
    seed = CheckResult("seed identity", Verdict.PASS, "")
    assert [one.check for one in checks_of(is_greedy=False, seed=seed)] == ["distribution", "seed identity"]
    made = check(Verdict.PASS, "distribution")
    assert checks_of(is_greedy=False, distribution=made) == (made,)


def test_seed_identity_decides_nothing() -> None:
    for verdict in Verdict:
        seed = check(verdict, "seed identity")
        assert mark(checks_of(is_greedy=False, seed=seed), engaged=True) is Mark.NOT_TESTED
        assert place("c", EXACT, (seed,), engaged=True).group is Group.EXACT


def out(cell: str, ids: tuple[int, ...], session: int = 0) -> Output:
    return Output(cell, 1, session, 0, Phase.MEASURED, "p", ids, "")


def test_seed_identity_verdicts() -> None:
    same = (out("b", (1, 2)), out("c", (1, 2)), out("b", (1, 3), 1), out("c", (1, 3), 1))
    assert seed_identity("c", "b", same) == CheckResult(
        "seed identity", Verdict.PASS, "2/2 outputs equal the baseline's with the same seed (informational)"
    )
    differs = seed_identity("c", "b", (*same, out("b", (1, 4), 2), out("c", (1, 5), 2)))
    assert differs.verdict is Verdict.UNINFORMATIVE
    assert differs.evidence.startswith("2/3 ")
    loose = seed_identity("c", "b", (*same, out("t", (9,))), "t")
    assert loose.verdict is Verdict.UNINFORMATIVE
    assert "equals its twin in 0/1" in loose.evidence
    assert seed_identity("c", "b", ()).verdict is Verdict.NOT_TESTED


def test_the_draft_directed_z_contradicts_a_claim_and_settles_none() -> None:
    def directed(verdict: Verdict) -> CheckResult:
        return check(verdict, "draft-directed z")

    tree = check(Verdict.PASS, "distribution")
    assert mark((tree, directed(Verdict.FAIL)), engaged=True) is Mark.FAILED
    assert place("c", EXACT, (tree, directed(Verdict.FAIL)), engaged=True).group is Group.CONTRADICTED
    assert mark((directed(Verdict.PASS),), engaged=True) is Mark.NOT_TESTED
    assert mark((tree, directed(Verdict.UNDERPOWERED)), engaged=True) is Mark.PASSED
    assert "draft-directed z: pass" in place("c", EXACT, (tree, directed(Verdict.PASS)), engaged=True).sentence
