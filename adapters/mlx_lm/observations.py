"""What one answer of the MLX-LM worker says, as observations of the vocabulary, and where it contradicts itself."""

from __future__ import annotations

from adapters.mlx_lm.protocol import Done
from adapters.shared.rounds import Round, Tally, tally
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind
from orchestrator.schema.metrics import Clock
from orchestrator.schema.observation import Absence, Observation, absent, observed

LINE = "events:generate/"
FLAGS = f"{LINE}tokens[].from_draft"
SPECULATION = (
    "accepted_tokens",
    "rejected_tokens",
    "discarded_tokens",
    "verify_rounds",
    "acceptance_rate",
    "mean_accepted_length",
    "tokens_per_round",
    "cut_rounds",
    "speculative_coverage",
    "drafted_by_position",
    "accepted_by_position",
    "draft_time",
    "verify_time",
    "rollback_time",
)
"""Metrics that a baseline cannot have; drafted_tokens apart, which shows a drafter that ran in one."""


def common(done: Done) -> list[Observation]:
    """What is known with and without a draft."""
    return [
        observed("prompt_tokens", done.prompt_tokens, f"{LINE}prompt_tokens"),
        observed(
            "cached_tokens",
            0,
            f"{LINE}prompt_tokens",
            clock=Clock.DERIVED,
            note="0 by construction: every trial has a prompt cache of its own",
        ),
        observed("output_tokens", len(done.tokens), f"{LINE}tokens"),
        observed("finish_reason", word_of_end(done), f"{LINE}finish_reason"),
        observed(
            "engine_peak_memory",
            max(done.peak_memory_bytes, done.active_before_bytes),
            f"{LINE}peak_memory_bytes, active_before_bytes",
            definition=f"mlx:{done.mlx}:get_peak_memory",
            note="the larger of mlx's peak since it was reset before the trial and its active memory at that moment",
        ),
        absent(
            "engine_decode_rate",
            Absence.SUPPRESSED,
            "mlx-lm divides all tokens by a time that starts after the first, which flatters drafts the most",
        ),
        absent("engine_decode_time", Absence.NOT_REPORTED, "mlx-lm reports a rate only"),
    ]


def baseline(done: Done) -> list[Observation]:
    """Without a draft: every token is one pass of the target, the first one the pass over the last prompt token."""
    why = "a baseline does not speculate"
    count = len(done.tokens)
    flagged = sum(done.from_draft)
    passes = f"{LINE}tokens: one pass each"
    return [
        observed("drafted_tokens", flagged, FLAGS, note="at least so many: the engine marks the accepted ones only")
        if flagged
        else absent("drafted_tokens", Absence.NOT_APPLICABLE, why),
        *(absent(name, Absence.NOT_APPLICABLE, why) for name in SPECULATION),
        observed("no_draft_rounds", count, passes),
        observed("replay_passes", 0, "mlx-lm restores no checkpoints", clock=Clock.DERIVED),
        observed("target_passes", count, passes),
        observed("tokens_per_pass", 1.0, passes),
        _prefill_time(done),
    ]


def speculative(cell: Cell, done: Done, rounds: tuple[Round, ...]) -> list[Observation]:
    """With a draft: all from the sequence of accepted and own tokens."""
    sums = tally(rounds, cell.method.n_max or 0)
    count = len(done.tokens)
    tail = (
        "end of text came as an accepted draft token: what its round accepted beyond is not told"
        if (not rounds[-1].closed and done.finish_reason == "stop")
        else None
    )
    limit = f"mlx-lm drafts min(limit − tokens so far, {cell.method.n_max}) a round"
    return [
        observed("drafted_tokens", sums.drafted, FLAGS, note=limit),
        observed("accepted_tokens", sums.accepted, FLAGS, note=tail),
        observed("rejected_tokens", sums.rejected, FLAGS, note=tail),
        observed("discarded_tokens", sums.discarded, FLAGS, note=tail),
        observed("verify_rounds", sums.rounds, FLAGS),
        observed("no_draft_rounds", 0, FLAGS),
        observed("replay_passes", 0, "mlx-lm restores no checkpoints", clock=Clock.DERIVED),
        observed("target_passes", sums.rounds, FLAGS),
        observed("acceptance_rate", sums.accepted / sums.drafted, FLAGS, note=tail),
        observed("mean_accepted_length", sums.accepted / sums.rounds, FLAGS, note=tail),
        _tokens_per_round(sums),
        observed("cut_rounds", sums.cut, FLAGS),
        observed("tokens_per_pass", count / sums.rounds, FLAGS),
        observed("speculative_coverage", 1.0, FLAGS, note="every pass of mlx-lm with a draft verifies a draft"),
        observed("drafted_by_position", sums.drafted_by_position, FLAGS),
        observed("accepted_by_position", sums.accepted_by_position, FLAGS, note=tail),
        *_phase_times(done),
        absent(
            "engine_prefill_time",
            Absence.SUPPRESSED,
            "mlx-lm's prompt time contains the whole first draft and verify round",
        ),
    ]


def _phase_times(done: Done) -> list[Observation]:
    """The parts of a round, in an instrumented repeat alone."""
    seen = done.phases
    if seen is None:
        why = "measuring it would add synchronisations to a timed answer; run.phases measures it in a repeat"
        return [absent(name, Absence.NOT_REPORTED, why) for name in ("draft_time", "verify_time", "rollback_time")]
    parts = {
        "draft_time": (seen.draft_s, "draft passes and their sampling"),
        "verify_time": (seen.verify_s, "target passes, without the sampling of their rows"),
        "rollback_time": (seen.rollback_s, "trimming both caches"),
    }
    return [
        observed(
            name,
            seconds,
            f"{LINE}phases",
            definition=f"mlx-lm:{done.mlx_lm}:instrumented:{name}",
            clock=Clock.OURS,
            note=f"instrumented repeat; adds synchronisations ({what})",
        )
        for name, (seconds, what) in parts.items()
    ]


def problems(cell: Cell, done: Done, rounds: tuple[Round, ...]) -> list[str]:
    """Broken invariants, in words."""
    limit, echo, count = cell.workload.max_tokens, done.effective, len(done.tokens)
    found = []
    if count > limit:
        found.append(f"{count} tokens were emitted, the limit is {limit}")
    if done.finish_reason == "length" and count < limit:
        found.append(f"the answer ended by length after {count} of {limit} tokens")
    if done.generation_tokens != count:
        found.append(f"mlx-lm counts {done.generation_tokens} tokens, {count} arrived")
    if done.short_trims:
        found.append(f"{done.short_trims} times a cache gave back less than was refused: the text may be wrong")
    if echo.num_draft_tokens != (cell.method.n_max or 0):
        found.append(f"the worker was told to draft {echo.num_draft_tokens} tokens, the cell says {cell.method.n_max}")
    found += _phase_problems(done, rounds)
    if cell.method.kind is MethodKind.NONE and any(done.from_draft):
        found.append(f"{sum(done.from_draft)} tokens of a baseline came from a draft")
    return found + _end_of_text_problems(cell, done) + _tail_problems(done, rounds, limit)


def word_of_end(done: Done) -> str:
    """``length`` or ``eos``: the worker gives mlx-lm no stop words, so that its ``stop`` is end of text."""
    return "eos" if done.finish_reason == "stop" else "length"


def _end_of_text_problems(cell: Cell, done: Done) -> list[str]:
    policy, ends = cell.workload.eos, set(done.end_of_text_ids)
    stopped = done.finish_reason == "stop"
    if policy is EosPolicy.MASK and ends & set(done.ids):
        return ["end of text was to be masked, and was emitted"]
    if policy is not EosPolicy.STOP and stopped:
        return [f"the answer ended at end of text, the policy is {policy.value}"]
    if policy is EosPolicy.STOP and stopped and done.ids[-1] not in ends:
        return [f"the answer ended at end of text, its last token is {done.ids[-1]}"]
    if policy is EosPolicy.STOP and ends & set(done.ids[:-1]):
        return ["end of text was emitted before the last token, and the answer went on"]
    return []


def _phase_problems(done: Done, rounds: tuple[Round, ...]) -> list[str]:
    """The passes that the instruments saw against those that the flags tell, and their times against the whole."""
    seen = done.phases
    if seen is None:
        return []
    found = []
    counted = (sum(one.drafted for one in rounds), len(rounds))
    if (seen.draft_passes, seen.verify_passes) != counted:
        told = f"{seen.draft_passes} draft and {seen.verify_passes} verify passes"
        found.append(f"the instruments saw {told}, the flags tell {counted[0]} and {counted[1]}")
    parts = (seen.draft_s, seen.verify_s, seen.rollback_s)
    if min(parts) < 0 or sum(parts) > done.t1 - done.t0:
        found.append("the instrumented parts of the rounds take longer than the whole answer")
    return found


def _tail_problems(done: Done, rounds: tuple[Round, ...], limit: int) -> list[str]:
    if not rounds or rounds[-1].closed or done.finish_reason == "stop":
        return []
    last = rounds[-1]
    if len(done.tokens) == limit and last.accepted == last.drafted:
        return []
    return ["the last round has no token of the target's own, and neither the limit nor end of text explains it"]


def _tokens_per_round(sums: Tally) -> Observation:
    uncut = sums.rounds - sums.cut
    if uncut == 0:
        return absent("tokens_per_round", Absence.SUPPRESSED, "no round was left uncut")
    note = f"{sums.shortened} round(s) near the limit drafted fewer tokens" if sums.shortened else None
    return observed("tokens_per_round", sums.committed_by_uncut / uncut, FLAGS, note=note)


def _prefill_time(done: Done) -> Observation:
    if done.mlx_prompt_tps <= 0:
        return absent("engine_prefill_time", Absence.SUPPRESSED, "mlx-lm reports a prompt rate of 0")
    return observed(
        "engine_prefill_time",
        done.prompt_tokens / done.mlx_prompt_tps,
        f"{LINE}mlx_prompt_tps, prompt_tokens",
        definition=f"mlx-lm:{done.mlx_lm}:prompt_time",
        note="to the first token: its pass is in it, and the dispatch of the next",
    )
