"""One distribution check, from what was generated so far: what is still needed, and the verdict once nothing is.

The order saves generations: the baseline twice, then the speculative arm with looks at a quarter, half and all of
it, and the negative control only for a cell that none of the looks rejected, for a rejection needs no proof of power.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.exactness.checks import DISTRIBUTION
from orchestrator.exactness.coupled import seed_coupled
from orchestrator.exactness.distribution import (
    ALPHA,
    CERTIFY,
    SCREEN,
    ContextSamples,
    DistributionResult,
    Preset,
    distribution_check,
    smallest_holm_p,
)
from orchestrator.exactness.draft_directed import ALPHA as DIRECTED_ALPHA
from orchestrator.exactness.draft_directed import NONE_HELD, draft_directed, unavailable
from orchestrator.exactness.experiments import Experiment, over_experiments
from orchestrator.exactness.looks import BATCH, look_sizes, spending
from orchestrator.exactness.prefix_tree import Tokens, TreeTest, tree_test
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.judged import unflattened
from orchestrator.schema.record import CheckArm
from orchestrator.schema.result import CheckResult, Verdict

if TYPE_CHECKING:
    from orchestrator.store.check_states import CheckState

PRESETS = {one.name: one for one in (SCREEN, CERTIFY)}
DEPTH = 4
TOKENS = 1 + DEPTH
"""Length of each generation: the first token, which prefill may give, and those compared after it."""
COUPLED = BATCH
"""Generations per context with the seeds of ``off``."""


@dataclass(frozen=True, slots=True)
class Need:
    """Generations still wanted of one arm: up to ``size`` after each context."""

    arm: CheckArm
    size: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a check stands.

    Args:
        need: what to generate next; ``None`` when it is decided.
        results: the distribution check first, then what goes with it.
        looks: (generations, Holm-adjusted p, level) of every look at on against off so far.
        detail: the tests behind the verdict, once there is one.
    """

    need: Need | None
    results: tuple[CheckResult, ...]
    looks: tuple[tuple[int, float | None, float], ...] = ()
    detail: DistributionResult | None = None


def judge_check(state: CheckState, claim: Claim | None, *, alpha: float = ALPHA) -> Outcome:
    """The outcome of a check by its records, over all experiments that were made of it.

    Args:
        state: its generations so far, with the experiments before.
        claim: the cell's; seed-coupled equality is looked at under sample match alone.
        alpha: of each comparison.
    """
    found = _alone(state, claim, alpha)
    if not state.before:
        return found
    states = (*state.before, state)
    outcomes = (*(_alone(one, claim, alpha) for one in state.before), found)
    return replace(found, results=(over_experiments(_experiments(states, outcomes, alpha), alpha), *found.results[1:]))


def _alone(state: CheckState, claim: Claim | None, alpha: float) -> Outcome:
    """The newest experiment by itself."""
    plan = state.plan
    if plan is None or not plan.contexts:
        words = "not tested: its contexts are not chosen yet"
        if plan is not None:
            words = "no context to compare: the workload's prompts offer none"
            return Outcome(None, (CheckResult(DISTRIBUTION, Verdict.UNDERPOWERED, words),))
        return Outcome(None, (CheckResult(DISTRIBUTION, Verdict.NOT_TESTED, words),))
    arms = {arm: {name: _tokens(state, arm, name) for name in plan.contexts} for arm in CheckArm}
    preset = replace(PRESETS[plan.preset], per_arm=plan.per_arm, contexts=len(plan.contexts))
    return _outcome(state, arms, preset, alpha, coupled=claim is not None and claim.rule is Rule.SAMPLE_MATCH)


def _experiments(states: Sequence[CheckState], outcomes: Sequence[Outcome], alpha: float) -> list[Experiment]:
    decided = max(1, sum(one.need is None and one.results[0].verdict is not Verdict.NOT_TESTED for one in outcomes))
    found = []
    for number, (state, one) in enumerate(zip(states, outcomes, strict=True), start=1):
        beside = next((each.check for each in one.results[1:] if each.verdict is Verdict.FAIL), "")
        stands = _rejects(state, one, alpha / decided) or (
            bool(beside) and _directed(state, DIRECTED_ALPHA / decided).verdict is Verdict.FAIL
        )
        p = one.looks[-1][1] if one.looks else None
        found.append(Experiment(number, one.results[0], beside, p, stands))
    return found


def _rejects(state: CheckState, one: Outcome, alpha: float) -> bool:
    """Whether one of the looks made rejects at this total level too."""
    levels = spending(look_sizes(state.plan.per_arm), alpha) if state.plan is not None else ()
    return any(p is not None and p < level for (_, p, _), level in zip(one.looks, levels, strict=False))


Arms = Mapping[CheckArm, Mapping[str, tuple[Tokens, ...]]]


def _outcome(state: CheckState, arms: Arms, preset: Preset, alpha: float, *, coupled: bool) -> Outcome:
    whole = preset.per_arm
    for arm in (CheckArm.OFF, CheckArm.OFF_AGAIN):
        if _least(arms[arm]) < whole:
            return _open(state, Need(arm, whole))
    skip = _skip(state)
    contexts = _contexts(arms, whole)
    again = tuple(tree_test(one.off_again, one.off, skip=skip, depth=DEPTH) for one in contexts)
    p_again = smallest_holm_p(again)
    if p_again is None or p_again < alpha:
        return _decided(contexts, again, skip, (alpha, alpha), (), ())
    sizes = look_sizes(whole)
    levels = spending(sizes, alpha)
    looks: list[tuple[int, float | None, float]] = []
    for size, level in zip(sizes, levels, strict=True):
        if _least(arms[CheckArm.ON]) < size:
            return _open(state, Need(CheckArm.ON, size), tuple(looks))
        cut = _contexts(arms, size)
        p = smallest_holm_p([tree_test(one.on, one.off, skip=skip, depth=DEPTH) for one in cut])
        looks.append((size, p, level))
        if p is not None and p < level:
            return _decided(cut, again, skip, (alpha, level), tuple(looks), _extra(state, arms, coupled=False))
    if words := _undrafted(state):
        return Outcome(None, (CheckResult(DISTRIBUTION, Verdict.UNDERPOWERED, words),), tuple(looks))
    if coupled and _least(arms[CheckArm.COUPLED]) < min(COUPLED, whole):
        return _open(state, Need(CheckArm.COUPLED, min(COUPLED, whole)), tuple(looks))
    if _least(arms[CheckArm.CONTROL]) < whole:
        return _open(state, Need(CheckArm.CONTROL, whole), tuple(looks))
    return _decided(contexts, again, skip, (alpha, levels[-1]), tuple(looks), _extra(state, arms, coupled=coupled))


def _decided(
    contexts: list[ContextSamples],
    again: tuple[TreeTest, ...],
    skip: int,
    levels: tuple[float, float],
    looks: tuple[tuple[int, float | None, float], ...],
    extra: tuple[CheckResult, ...],
) -> Outcome:
    alpha, level = levels
    detail = distribution_check(contexts, skip=skip, depth=DEPTH, alpha=alpha, alpha_on=level, off_again=again)
    return Outcome(None, (detail.check, *extra), looks, detail)


def _open(state: CheckState, need: Need, looks: tuple[tuple[int, float | None, float], ...] = ()) -> Outcome:
    words = f"not tested: {state.generated} generations so far, next are those of the arm {need.arm.value}"
    return Outcome(need, (CheckResult(DISTRIBUTION, Verdict.NOT_TESTED, words),), looks)


def _extra(state: CheckState, arms: Arms, *, coupled: bool) -> tuple[CheckResult, ...]:
    directed = _directed(state)
    if not coupled:
        return (directed,)
    pairs = [
        pair for name, on in arms[CheckArm.COUPLED].items() for pair in zip(on, arms[CheckArm.OFF][name], strict=False)
    ]
    return (directed, seed_coupled(pairs))


def _directed(state: CheckState, alpha: float = DIRECTED_ALPHA) -> CheckResult:
    """The draft-directed z over every generation of ``on`` that tells its judged places."""
    batches = [one for found in state.arms.get(CheckArm.ON, {}).values() for one in found]
    told = [generation for one in batches for generation in one.judged]
    if not told:
        return unavailable(next((one.unjudged for one in batches if one.unjudged), NONE_HELD))
    found = draft_directed([place for generation in told for place in unflattened(generation)], alpha=alpha)
    made = sum(len(one.tokens) for one in batches)
    if len(told) == made:
        return found
    return replace(found, evidence=f"{found.evidence}; {len(told)} of {made} generations tell them")


def _contexts(arms: Arms, size: int) -> list[ContextSamples]:
    names = list(arms[CheckArm.OFF])
    order = (CheckArm.ON, CheckArm.OFF, CheckArm.OFF_AGAIN, CheckArm.CONTROL)
    return [ContextSamples(name, *(arms[arm][name][:size] for arm in order)) for name in names]


def _tokens(state: CheckState, arm: CheckArm, context: str) -> tuple[Tokens, ...]:
    return tuple(one for batch in state.arms.get(arm, {}).get(context, ()) for one in batch.tokens)


def _least(by_context: Mapping[str, tuple[Tokens, ...]]) -> int:
    return min((len(found) for found in by_context.values()), default=0)


def _skip(state: CheckState) -> int:
    """0 where the first token came with others, hence from a verify round; 1 where prefill gives it."""
    batches = state.arms.get(CheckArm.ON, {}).values()
    return 0 if any(one.first_burst > 1 for found in batches for one in found) else 1


def _undrafted(state: CheckState) -> str:
    """Why nothing was tested; empty where a count, tokens that came together or judged places show that drafts were."""
    batches = [one for found in state.arms.get(CheckArm.ON, {}).values() for one in found]
    if any(one.in_bursts or one.drafted or any(one.judged) for one in batches):
        return ""
    if all(one.drafted is None for one in batches):
        return "nothing shows that anything was drafted in these generations: the engine does not tell"
    return "nothing was drafted in these generations, and then any acceptance rule gives the baseline's text"
