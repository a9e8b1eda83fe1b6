"""The speed-up model beside the measurement: what one verify pass cost, and what acceptance would have paid for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scipy.optimize import brentq

from orchestrator.schema.result import Estimate
from orchestrator.schema.units import percent, plain, ratio


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Speed-up = A ÷ (γ·c + v + o), solved for what was not measured. Costs are in plain passes of the baseline.

    Args:
        speedup: measured, as a ratio of decode rates (above 1 is faster).
        tokens_per_pass: A.
        mean_draft_length: γ, drafted tokens per target pass, passes without a draft included.
        acceptance: accepted ÷ drafted; ``None`` where it is not reported.
        pass_cost: A ÷ speed-up: what one pass with all that belongs to it cost.
        draft_cost: γ·c, ``None`` where the engine does not measure its drafter.
        verify_cost_low: of v + o (o is what neither drafts nor verifies: sampling, rollback, transfer);
            ``verify_cost_high`` likewise. Equal where the draft cost is known.
        break_even_acceptance: pooled acceptance at which this pass cost would just pay; 0 when any does, ``None``
            when even all tokens accepted would not, or nothing was drafted.
        break_even_alpha: the same as the per-token α of the i.i.d. model.
        model_alpha: α at which the i.i.d. model gives the measured A; ``None`` when none does.
        model_speedup: what the i.i.d. model predicts when a verify pass costs one plain pass; ``None`` without c.
        note: what had to be left out, in words; else empty.
        judged_alpha: accepted ÷ (accepted + refused), the α that the counts give; ``None`` where refusals are not told.
        predicted_tokens: tokens per pass that the i.i.d. model predicts from it, to hold against the measured A.
        predicted_speedup: the same ÷ (1 + γ·c), a verify pass taken at the price of a plain one; with an unknown draft
            cost the draft is taken as free, so that it is the most that could be hoped for.
    """

    speedup: float
    tokens_per_pass: float
    mean_draft_length: float
    acceptance: float | None
    pass_cost: float
    draft_cost: float | None
    verify_cost_low: float
    verify_cost_high: float
    break_even_acceptance: float | None
    break_even_alpha: float | None
    model_alpha: float | None
    model_speedup: float | None
    note: str = ""
    judged_alpha: float | None = None
    predicted_tokens: float | None = None
    predicted_speedup: float | None = None

    def model_words(self) -> str:
        """Predicted against measured in one sentence; empty where the counts give no prediction."""
        if self.predicted_tokens is None or self.predicted_speedup is None or self.judged_alpha is None:
            return ""
        most = "at most " if self.draft_cost is None else ""
        return (
            f"model (every judged token accepted with one chance, {percent(self.judged_alpha)}; verify passes as cheap "
            f"as plain ones): {plain(self.predicted_tokens)} tokens per pass and {most}{ratio(self.predicted_speedup)} "
            f"the decode rate; measured {plain(self.tokens_per_pass)} and {ratio(self.speedup)}"
        )

    def words(self) -> str:
        """One sentence with the numbers filled in."""
        accepted = f"{percent(self.acceptance)} of the drafted tokens accepted, " if self.acceptance is not None else ""
        head = (
            f"{accepted}{plain(self.tokens_per_pass)} tokens per pass, but"
            if self.speedup < 1
            else (f"{accepted}{plain(self.tokens_per_pass)} tokens per pass, and")
        )
        if self.draft_cost is None:
            cost = (
                f"one pass with its draft costs {plain(self.pass_cost)} plain passes "
                f"(the verification between {plain(self.verify_cost_low)} and {plain(self.verify_cost_high)}; "
                "the drafter's share is not reported)"
            )
        else:
            cost = (
                f"one verify pass costs {plain(self.verify_cost_high)} plain passes "
                f"and its draft {plain(self.draft_cost) if self.draft_cost else 'nothing'}"
            )
        note = f" ({self.note})" if self.note else ""
        return f"{head} {cost}: {ratio(self.speedup)} the decode rate; {self._break_even()}{note}"

    def _break_even(self) -> str:
        if self.mean_draft_length == 0:
            return "nothing was drafted"
        if self.break_even_acceptance is None:
            return f"at this cost not even all of {plain(self.mean_draft_length)} drafted tokens accepted would pay"
        if self.break_even_acceptance == 0:
            return "at this cost any acceptance pays"
        return f"at this cost it pays above {percent(self.break_even_acceptance)} acceptance"


def decompose(
    *,
    speedup: float,
    tokens_per_pass: float,
    mean_draft_length: float,
    acceptance: float | None = None,
    plain_pass_s: float | None = None,
    draft_s_per_pass: float | None = None,
    draft_is_free: bool = False,
    draft_is_lower_bound: bool = False,
    judged_alpha: float | None = None,
) -> Decomposition:
    """What the measured speed-up implies about the cost of a pass.

    Args:
        speedup: decode rate ÷ the baseline's, > 0.
        tokens_per_pass: ≥ 1 in an undisturbed run; > 0.
        mean_draft_length: drafted ÷ target passes, ≥ 0.
        acceptance: accepted ÷ drafted.
        plain_pass_s: seconds of one baseline pass (its time per token).
        draft_s_per_pass: drafter's seconds ÷ target passes, where the engine measures them.
        draft_is_free: the method has no drafter model (n-gram), so that its share is taken as 0.
        draft_is_lower_bound: the engine times a part of the drafting only, so that the verification costs at most v.
        judged_alpha: accepted ÷ (accepted + refused), from which the model's own prediction is made.

    Without a draft time, v + o lies between one plain pass (a verify pass does at least the work of one, so all
    the rest is drafting) and the whole pass cost; a pass cheaper than that gives its own cost as both bounds.

    Raises:
        ValueError: a number out of its range.

    Source: Leviathan et al. (2023), Theorem 3.8 and its i.i.d. expectation; the identity is in docs/methodology.
    """
    if speedup <= 0 or tokens_per_pass <= 0 or mean_draft_length < 0:
        raise ValueError(f"no speed-up model for {speedup=}, {tokens_per_pass=}, {mean_draft_length=}")
    cost = tokens_per_pass / speedup
    draft = 0.0 if draft_is_free or mean_draft_length == 0 else None
    if draft is None and draft_s_per_pass is not None and plain_pass_s is not None and plain_pass_s > 0:
        draft = draft_s_per_pass / plain_pass_s
    note = ""
    if draft and draft_is_lower_bound:
        note = "the drafter's time is a lower bound, so the verification costs at most that"
    if draft is not None and draft > cost:
        draft, note = None, "the engine's draft time is longer than the whole pass and is not used"
    low, high = (cost - draft, cost - draft) if draft is not None else (min(1.0, cost), cost)
    alpha = alpha_of(tokens_per_pass, mean_draft_length)
    modelled = expected_tokens(alpha, mean_draft_length) if alpha is not None else None
    predicted = expected_tokens(judged_alpha, mean_draft_length) if judged_alpha is not None else None
    return Decomposition(
        speedup,
        tokens_per_pass,
        mean_draft_length,
        acceptance,
        cost,
        draft,
        low,
        high,
        _break_even(cost, mean_draft_length),
        alpha_of(cost, mean_draft_length) if cost > 1 else (0.0 if mean_draft_length > 0 else None),
        alpha,
        modelled / (1 + draft) if modelled is not None and draft is not None else None,
        note,
        judged_alpha,
        predicted,
        predicted / (1 + (draft or 0.0)) if predicted is not None else None,
    )


def expected_tokens(alpha: float, draft_length: float) -> float:
    """Tokens per pass in the i.i.d. model: (1 − α^(γ+1)) ÷ (1 − α), and γ + 1 where α is 1.

    Args:
        alpha: chance that a judged draft token is accepted, 0 to 1.
        draft_length: γ ≥ 0; a mean length need not be whole.
    """
    if not 0 <= alpha <= 1 or draft_length < 0:
        raise ValueError(f"no expectation for {alpha=}, {draft_length=}")
    if 1 - alpha < 1e-12:
        return draft_length + 1
    return float((1 - alpha ** (draft_length + 1)) / (1 - alpha))


def alpha_of(tokens_per_pass: float, draft_length: float) -> float | None:
    """The α whose i.i.d. expectation is ``tokens_per_pass``; ``None`` outside 1 … γ + 1 or without a draft."""
    if draft_length <= 0 or not 1 <= tokens_per_pass <= draft_length + 1:
        return None
    return float(brentq(lambda alpha: expected_tokens(alpha, draft_length) - tokens_per_pass, 0.0, 1.0, xtol=1e-12))


def best_measured(ratios: Mapping[int, Estimate]) -> tuple[int, bool] | None:
    """The draft length with the highest measured ratio, and whether its interval stands clear of all others.

    Args:
        ratios: by draft length K, decode rate ÷ the baseline's.

    Returns:
        ``None`` for an empty sweep. The best of a sweep is partly luck: it is called best only after a fresh
        measurement (docs/methodology), whatever the second value says.
    """
    if not ratios:
        return None
    best = max(sorted(ratios), key=lambda k: ratios[k].point)
    low = ratios[best].low
    others = [row.high for k, row in ratios.items() if k != best]
    clear = low is not None and all(high is not None and high < low for high in others)
    return best, clear


def _break_even(cost: float, draft_length: float) -> float | None:
    if draft_length <= 0:
        return None
    wanted = (cost - 1) / draft_length
    if wanted > 1:
        return None
    return max(0.0, wanted)
