"""The one place that decides where a cell's figures stand: claimed × verified."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from orchestrator.exactness import coupled, draft_directed, seed
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.result import CheckResult, Group, Placement, Verdict

INFORMATIONAL = frozenset({seed.CHECK, coupled.CHECK})
"""Checks that are shown and decide nothing."""
ONE_SIDED = frozenset({draft_directed.CHECK})
"""Checks that can contradict a claim and settle none: they look in one direction of all those there are."""


class Mark(StrEnum):
    """How far a claim of exactness was checked."""

    PASSED = "checks passed"
    PARTLY = "partly tested"
    NOT_TESTED = "not tested"
    UNSETTLED = "not settled"
    NOT_ENGAGED = "nothing drafted, so nothing tested"
    FAILED = "a check failed"


_OPEN = frozenset({Verdict.UNINFORMATIVE, Verdict.UNDERPOWERED})


def mark(checks: Sequence[CheckResult], engaged: bool) -> Mark:
    """How far the deciding checks got. ``PASSED`` needs one that passed and none that is open or was not made."""
    verdicts = {check.verdict for check in checks if _decides(check)}
    if Verdict.FAIL in verdicts:
        return Mark.FAILED
    if not engaged:
        # Text written without a draft equals the baseline's under any acceptance rule.
        return Mark.NOT_ENGAGED
    if verdicts & _OPEN:
        return Mark.UNSETTLED
    if Verdict.PASS not in verdicts:
        return Mark.NOT_TESTED
    return Mark.PARTLY if Verdict.NOT_TESTED in verdicts else Mark.PASSED


def _decides(check: CheckResult) -> bool:
    return check.verdict is Verdict.FAIL if check.check in ONE_SIDED else check.check not in INFORMATIONAL


def place(cell_id: str, claim: Claim, checks: Sequence[CheckResult], engaged: bool) -> Placement:
    """The cell's group, with a sentence that names the claim, who makes it, and each deciding check.

    Args:
        cell_id: the cell.
        claim: rule and claimant, from the adapter.
        checks: all that were made, and those that were not, as ``not_tested``.
        engaged: whether draft tokens were judged at all in the measured trials.

    The rule goes before the claim: a heuristic rule is opportunistic whoever calls it exact. A failed check
    contradicts only a claim of exactness; passed checks never promote a cell that claims none.
    """
    if claim.rule is Rule.NONE:
        return Placement(cell_id, Group.BASELINE, "no speculation", tuple(checks))
    found = mark(checks, engaged)
    group = _group(claim, found)
    return Placement(cell_id, group, _sentence(claim, group, found, checks), tuple(checks))


def _group(claim: Claim, found: Mark) -> Group:
    if claim.rule is Rule.SYNTHETIC:
        return Group.SYNTHETIC
    if claim.rule is Rule.HEURISTIC or claim.exact is False:
        return Group.OPPORTUNISTIC
    if claim.exact is None:
        return Group.UNPROVEN
    return Group.CONTRADICTED if found is Mark.FAILED else Group.EXACT


def _sentence(claim: Claim, group: Group, found: Mark, checks: Sequence[CheckResult]) -> str:
    by = f" ({claim.rule.value}, by {claim.by})" if claim.by else f" ({claim.rule.value})"
    head = {
        Group.SYNTHETIC: f"synthetic acceptance{by}: the output is not valid text of the model",
        Group.OPPORTUNISTIC: f"claimed not exact{by}" if claim.exact is False else f"a heuristic rule{by}",
        Group.UNPROVEN: f"nobody claims exactness{by}",
        Group.CONTRADICTED: f"claimed exact{by}, and contradicted",
        Group.EXACT: f"claimed exact{by}",
    }[group]
    evidence = "; ".join(
        f"{check.check}: {_word(check)}" for check in checks if check.verdict is not Verdict.NOT_APPLICABLE
    )
    parts = (f"{head}; {found.value}", claim.note, evidence)
    return ". ".join(part for part in parts if part)


def _word(check: CheckResult) -> str:
    word = check.verdict.value.replace("_", " ")
    return check.evidence if check.evidence.lower().startswith(word) else f"{word}, {check.evidence}"
