"""Cross-scoring from the journal: one arm's texts and the other's, both under the baseline."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.exactness.neartie import ASSUMED_JITTER_NAT
from orchestrator.exactness.replays import Answer, gap_of, worst_rank
from orchestrator.exactness.scoring import CROSS_SCORING, ScoredToken, cross_scoring
from orchestrator.schema.result import CheckResult, Verdict

if TYPE_CHECKING:
    from orchestrator.exactness.replays import Replayed
    from orchestrator.schema.record import ReplayRecord
    from orchestrator.schema.replay import Ranked
    from orchestrator.store.states import CellState


ALPHA = 1e-3
"""Of the surprisal test, both sides together, by a bound: simulated exact samplers fail in less than 1 of 10,000."""
BORDER = 0.005
"""Share of tokens that may lie outside a truncated distribution: at its border rounding decides."""


def cross_scored(state: CellState, found: Replayed, answers: Mapping[str, Sequence[Answer]]) -> CheckResult:
    """Whether the baseline finds the cell's texts as likely as its own.

    Args:
        state: the speculative cell.
        found: the replays of its attempt.
        answers: by cell id, the answers that count (:func:`orchestrator.exactness.replays.scored_answers`): a text
            that was given more than once, or by both arms, is scored once and counts as often as it was given.
    """
    greedy = state.settings["sampling"]["temperature"] == 0
    texts = [Counter(answers.get(cell, ())) for cell in (state.baseline or "", state.id)]
    own, theirs = (_tokens(found.scored, one, greedy=greedy) for one in texts)
    if own is None or theirs is None:
        words = "not tested: the engine tells too small a part of the distribution"
        return CheckResult(CROSS_SCORING, Verdict.NOT_TESTED, words)
    known = {(one.prompt_id, one.ids) for one in found.scored}
    missing = sum(count for one in texts for answer, count in one.items() if answer not in known)
    if missing and own and theirs and not greedy:
        why = f": {found.failures[0]}" if found.failures else ""
        words = f"not tested: {missing} of {sum(one.total() for one in texts)} answers are not scored{why}"
        return CheckResult(CROSS_SCORING, Verdict.NOT_TESTED, words)
    if not own or not theirs:
        why = f": {found.failures[0]}" if found.failures else ""
        return CheckResult(CROSS_SCORING, Verdict.NOT_TESTED, f"not tested: no scored text of both arms{why}")
    if not greedy:
        return _drawn(own, theirs, truncated=_truncates(state.settings["sampling"]))
    limit = ASSUMED_JITTER_NAT if found.limit_nat is None else found.limit_nat
    basis = "assumed" if found.limit_nat is None else "measured"
    result = cross_scoring(own, theirs, max_rank=None, max_gap=limit)
    if result.verdict is Verdict.PASS:
        words = f"{len(theirs)} tokens, each the baseline's best or within {limit:.3g} nat of it ({basis} jitter)"
        return CheckResult(CROSS_SCORING, Verdict.PASS, words)
    return result


def _drawn(own: list[ScoredToken], theirs: list[ScoredToken], *, truncated: bool) -> CheckResult:
    """The surprisal test, with what lies outside a truncated distribution set apart while it is next to nothing."""
    kept = {}
    for name, tokens in (("own", own), ("theirs", theirs)):
        inside = [one for one in tokens if one.logprob > -math.inf]
        tolerated = truncated and len(tokens) - len(inside) <= max(1.0, BORDER * len(tokens))
        kept[name] = inside if tolerated else tokens
    result = cross_scoring(kept["own"], kept["theirs"], max_rank=None, alpha=ALPHA)
    outside = len(theirs) - len(kept["theirs"])
    if not outside:
        return result
    words = f"{result.evidence}; {outside} of {len(theirs)} tokens at the border of a truncated distribution left out"
    return CheckResult(CROSS_SCORING, result.verdict, words)


def _truncates(sampling: Mapping[str, Any]) -> bool:
    return bool(sampling["top_k"] or sampling["top_p"] < 1 or sampling["min_p"])


def _tokens(records: tuple[ReplayRecord, ...], texts: Counter[Answer], *, greedy: bool) -> list[ScoredToken] | None:
    """The scored tokens of these texts, as often as each was given; ``None`` where a distribution was not told."""
    tokens: list[ScoredToken] = []
    for answer, ranks in {(one.prompt_id, one.ids): one.ranked for one in records}.items():
        for _ in range(texts[answer]):
            for ranked in ranks:
                if not greedy and (ranked.entropy is None or ranked.variance is None):
                    return None
                tokens.append(_token(ranked, greedy=greedy))
    return tokens


def _token(ranked: Ranked, *, greedy: bool) -> ScoredToken:
    logprob = -math.inf if ranked.logprob is None else ranked.logprob
    if greedy:
        # Greedy tokens are not drawn, so their surprisal has no spread to be compared with.
        return ScoredToken(min(logprob, 0.0), worst_rank(ranked), 0.0, 0.0, gap_of(ranked))
    top = tuple(value for _, value in ranked.top)
    return ScoredToken(logprob, worst_rank(ranked), ranked.entropy or 0.0, ranked.variance or 0.0, top=top)
