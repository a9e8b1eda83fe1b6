"""Several experiments of one check: repeating it never turns a failure into a pass.

Each experiment judged by itself errs with at most α. Of n of them one fails by chance with up to n·α, so a failure
among n contradicts a claim when it would also have been one at α ÷ n (Bonferroni; the looks spend that level by the
same function). One that would not, with no other that would, leaves the claim unsettled: it may have been chance, and a
pass elsewhere does not show that it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.schema.result import CheckResult, Verdict

_WORDS = {Verdict.PASS: "passed", Verdict.FAIL: "failed", Verdict.UNDERPOWERED: "was underpowered"}


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment by itself.

    Args:
        number: of those under the check's fingerprint, from 1.
        result: of the distribution check.
        failed_beside: the check beside it that failed, such as the draft-directed z; empty without one.
        p: at its last look; ``None`` where nothing was compared.
        stands: whether it also fails at the level divided by the number of experiments.
    """

    number: int
    result: CheckResult
    failed_beside: str
    p: float | None
    stands: bool

    @property
    def decided(self) -> bool:
        """Whether it came to a verdict."""
        return self.result.verdict in _WORDS

    @property
    def failed(self) -> bool:
        """Whether it failed by itself, at the whole level."""
        return self.result.verdict is Verdict.FAIL or bool(self.failed_beside)

    @property
    def told(self) -> str:
        """Its number and verdict in words."""
        if self.failed_beside and self.result.verdict is not Verdict.FAIL:
            return f"experiment {self.number} failed ({self.failed_beside})"
        words = f"experiment {self.number} {_WORDS[self.result.verdict]}"
        return words if self.p is None else f"{words} (p {self.p:.2g})"


def over_experiments(found: Sequence[Experiment], alpha: float) -> CheckResult:
    """The verdict of the distribution check over all its experiments, with each of them named.

    Args:
        found: in order, the newest last; those that came to no verdict do not count.
        alpha: of one experiment.
    """
    newest, decided = found[-1].result, [one for one in found if one.decided]
    if len(found) == 1 or not decided:
        return newest
    told, failed = "; ".join(one.told for one in decided), [one for one in decided if one.failed]
    if not failed:
        return replace(newest, evidence=f"{newest.evidence}; {told}")
    standing = next((one for one in failed if one.stands), None)
    if standing is None:
        last = (
            f"at {alpha:g} ÷ {len(decided)} experiments none failed, but one that failed is not undone by repeating it"
        )
        return replace(newest, verdict=Verdict.UNINFORMATIVE, evidence=f"{told}; {last}")
    last = f"experiment {standing.number} failed at {alpha:g} ÷ {len(decided)} experiments too"
    why = [standing.result.evidence] if standing.result.verdict is Verdict.FAIL else []
    return replace(newest, verdict=Verdict.FAIL, evidence="; ".join((*why, told, last)))
