"""Which checks a cell owes at its temperature, with those not made named as such."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.exactness import greedy
from orchestrator.schema.result import CheckResult, GreedyIdentity, Verdict

DISTRIBUTION = "distribution"


def checks_of(
    *,
    is_greedy: bool,
    identity: GreedyIdentity | None = None,
    seed: CheckResult | None = None,
    distribution: CheckResult | None = None,
    beside: Sequence[CheckResult] = (),
    cross_scoring: CheckResult | None = None,
) -> tuple[CheckResult, ...]:
    """Greedy identity at temperature 0; above it the distribution check, and seed identity as information.

    ``beside`` are what a distribution check says besides its verdict: seed-coupled equality and the like.
    A check that is owed and missing enters as ``not_tested``, so that no cell looks checked by leaving it out.
    """
    extra = (cross_scoring,) if cross_scoring is not None else ()
    if is_greedy:
        if identity is None:
            return (CheckResult(greedy.CHECK, Verdict.NOT_TESTED, "not tested: the outputs were not compared"), *extra)
        return (CheckResult(greedy.CHECK, identity.verdict, identity.evidence), *extra)
    if distribution is None:
        words = "not tested: a distribution check needs many short generations, and none was asked for"
        distribution = CheckResult(DISTRIBUTION, Verdict.NOT_TESTED, words)
    return (distribution, *beside, *((seed,) if seed is not None else ()), *extra)
