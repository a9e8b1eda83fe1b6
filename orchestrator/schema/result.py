"""What is concluded from records: estimates, comparisons, checks and the four groups."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.schema.record import Phase


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point with its interval; ``low``/``high`` are ``None`` where there is no interval, never zero width."""

    point: float
    low: float | None
    high: float | None
    level: float
    n: int
    """Independent units: sessions."""
    method: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Median, MAD and count of raw values in the metric's base unit, with the values themselves."""

    median: float
    mad: float
    n: int
    values: tuple[float, ...]


class Outcome(StrEnum):
    """The words of a comparison; ``lower``/``higher`` are about the metric, the report finds people's words."""

    LOWER = "lower"
    HIGHER = "higher"
    EQUIVALENT = "equivalent"
    NO_DIFFERENCE = "no detectable difference"
    RANGE_ONLY = "range only"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A cell against its own baseline in one metric.

    Args:
        cell: cell id; ``baseline`` likewise.
        metric: a name of the vocabulary.
        ratio: cell ÷ baseline; ``None`` when not comparable.
        outcome: in words; ``reason`` says why it is not comparable or has no verdict.
        noise_floor: half-width of the A/A interval as a ratio minus one; ``None`` without a twin.
        prompts_worse: prompts whose mean got worse, of ``prompts`` compared.
        p_value: two-sided p of the t test on session means; ``p_holm`` the same after Holm over the family.
        sign_flip_p: exact sign-flip permutation p, from six sessions on.
        bootstrap: hierarchical bootstrap interval, shown as a check.
        session_ratios: one per session, in order.
    """

    cell: str
    baseline: str
    metric: str
    ratio: Estimate | None
    outcome: Outcome
    reason: str
    noise_floor: float | None = None
    prompts_worse: int = 0
    prompts: int = 0
    p_value: float | None = None
    p_holm: float | None = None
    sign_flip_p: float | None = None
    bootstrap: Estimate | None = None
    session_ratios: tuple[float, ...] = ()
    sessions_needed: int | None = None

    @property
    def sessions_more(self) -> int | None:
        """Sessions still to measure for an interval of ±2 %; 0 when it is that narrow, ``None`` where nobody knows."""
        if self.sessions_needed is None or self.ratio is None:
            return None
        return max(0, self.sessions_needed - self.ratio.n)


class Verdict(StrEnum):
    """Of one exactness check."""

    PASS = "pass"  # noqa: S105  (a verdict)
    FAIL = "fail"
    NOT_TESTED = "not_tested"
    UNDERPOWERED = "underpowered"
    NOT_APPLICABLE = "not_applicable"
    UNINFORMATIVE = "uninformative"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one cell, with the evidence in words."""

    check: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two greedy outputs part.

    Args:
        prompt_id: the prompt.
        index: first differing token, from 0; the shorter length when one is a prefix of the other.
        length: tokens compared.
        baseline_text: output text of the baseline; ``cell_text`` of the speculative cell.
        tie: ``near-tie``, ``divergent`` or ``not adjudicated``; ``why`` says why, in words.
        margin_nat: how far the other token lies below the baseline's best there, by replay; ``None`` where
            that was not told.
        limit_nat: the distance up to which it counts as a near-tie.
    """

    prompt_id: str
    index: int
    length: int
    baseline_ids: tuple[int, ...]
    cell_ids: tuple[int, ...]
    baseline_text: str
    cell_text: str
    tie: str = "not adjudicated"
    why: str = ""
    margin_nat: float | None = None
    limit_nat: float | None = None


@dataclass(frozen=True, slots=True)
class GreedyIdentity:
    """On against off at temperature 0, by token ids.

    ``control_*`` compare the baseline with itself (other sessions and its twin): when the control disagrees the
    check says nothing about speculation.
    """

    cell: str
    verdict: Verdict
    same: int
    compared: int
    control_same: int
    control_compared: int
    flips_per_1000: float | None
    divergences: tuple[Divergence, ...]
    evidence: str


class Group(StrEnum):
    """Where a cell's figures stand; the groups never share a table, a plot or a ranking."""

    EXACT = "exact"
    OPPORTUNISTIC = "opportunistic"
    UNPROVEN = "unproven"
    CONTRADICTED = "contradicted"
    SYNTHETIC = "synthetic"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Placement:
    """A cell's group with the sentence that justifies it, and its checks."""

    cell: str
    group: Group
    sentence: str
    checks: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """What one trial answered, for the exactness checks.

    Args:
        cell: cell id.
        attempt: the block's attempt; only outputs of one attempt were measured side by side.
        trial: index within its session; ``phase`` says whether it was a warm-up.
        token_ids: emitted tokens, a token of end-of-text included where it was emitted.
    """

    cell: str
    attempt: int
    set_index: int
    trial: int
    phase: Phase
    prompt_id: str
    token_ids: tuple[int, ...]
    text: str
