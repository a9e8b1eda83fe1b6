"""What one answer of the mlx-vlm worker says, as observations of the vocabulary, and where it contradicts itself."""

from __future__ import annotations

from adapters.mlx_vlm.protocol import Done
from adapters.mlx_vlm.rounds import Round, Tally, disagreements, tally
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind
from orchestrator.schema.metrics import Clock
from orchestrator.schema.observation import Absence, Observation, absent, observed

LINE = "events:generate/"
DRAFTED = f"{LINE}speculation.proposed"
ACCEPTED = f"{LINE}speculation.accepted"
BOTH = f"{ACCEPTED}, proposed"
ROUNDS = f"{LINE}tokens[].round"
HANDED_OVER = (
    "counted at what the drafter handed over; the token that it drafts ahead for a round that never comes is not in it"
)
SPECULATION = (
    "accepted_tokens",
    "rejected_tokens",
    "discarded_tokens",
    "judged_tokens",
    "draft_capacity",
    "verify_rounds",
    "acceptance_rate",
    "judged_acceptance_rate",
    "capacity_acceptance_rate",
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
    """What is known with and without a drafter."""
    return [
        observed("prompt_tokens", done.prompt_tokens, f"{LINE}prompt_tokens"),
        observed("cached_tokens", done.cached_tokens, f"{LINE}cached_tokens"),
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
            "mlx-vlm divides all tokens by a time that starts after the first, which comes from the prompt's pass",
        ),
        absent("engine_decode_time", Absence.NOT_REPORTED, "mlx-vlm reports a rate only"),
        _prefill_time(done),
    ]


def baseline(cell: Cell, done: Done, rounds: tuple[Round, ...]) -> list[Observation]:
    """Without a drafter: every token after the first is one pass of the target; the first comes from the prompt's."""
    speculates = cell.method.kind is MethodKind.MTP
    why = "mlx-vlm ran without a drafter" if speculates else "a baseline does not speculate"
    told = done.speculation
    passes = len(done.tokens) - 1 if told is None else len(rounds)
    source = f"{LINE}tokens: one pass each" if told is None else ROUNDS
    return [
        absent("drafted_tokens", Absence.NOT_APPLICABLE, why)
        if told is None
        else observed("drafted_tokens", sum(told.proposed), DRAFTED, note="drafted although the method is none"),
        *(absent(name, Absence.NOT_APPLICABLE, why) for name in SPECULATION),
        observed("no_draft_rounds", passes if told is None else 0, source),
        *_passes(done, passes, source),
    ]


def speculative(done: Done, rounds: tuple[Round, ...]) -> list[Observation]:
    """With an MTP drafter: mlx-vlm records what each round accepted, and the worker counts what was proposed."""
    sums = tally(rounds)
    tail = (
        f"{sums.unseen} accepted token(s) of the last round came after end of text and were not emitted"
        if sums.unseen
        else None
    )
    discarded = sums.drafted - sums.accepted - sums.rejected
    return [
        observed("drafted_tokens", sums.drafted, DRAFTED, note=HANDED_OVER),
        observed("accepted_tokens", sums.accepted, ACCEPTED, note=tail),
        observed("rejected_tokens", sums.rejected, BOTH),
        observed("discarded_tokens", discarded, BOTH),
        observed("judged_tokens", sums.accepted + sums.rejected, BOTH),
        _capacity(done),
        observed("verify_rounds", sums.rounds, ACCEPTED),
        observed("no_draft_rounds", 0, DRAFTED, note="each pass of the target after the prompt's judges a block"),
        *_passes(done, sums.rounds, ACCEPTED),
        *_ratios(done, sums, tail),
        *(
            absent(name, Absence.NOT_REPORTED, "mlx-vlm does not measure it")
            for name in ("draft_time", "verify_time", "rollback_time")
        ),
    ]


def problems(cell: Cell, done: Done, rounds: tuple[Round, ...]) -> list[str]:
    """Broken invariants, in words."""
    limit, count, told = cell.workload.max_tokens, len(done.tokens), done.speculation
    wanted = (cell.method.n_max or 0) + 1 if cell.method.kind is MethodKind.MTP else 0
    found = []
    if count > limit:
        found.append(f"{count} tokens were emitted, the limit is {limit}")
    if done.finish_reason == "length" and count < limit:
        found.append(f"the answer ended by length after {count} of {limit} tokens")
    if done.generation_tokens != count or done.told_ids != done.ids:
        found.append(f"mlx-vlm tells {done.generation_tokens} tokens, {count} arrived, or they are not the same")
    if done.effective.block_size != wanted:
        found.append(f"the worker was told to draft blocks of {done.effective.block_size}, the cell says {wanted}")
    if told is None and cell.method.kind is MethodKind.MTP:
        found.append("mlx-vlm ran without a drafter")
    if told is not None:
        found += disagreements(told)
        if cell.method.kind is MethodKind.NONE:
            found.append(f"a baseline drafted {sum(told.proposed)} tokens")
        elif rounds and max(one.drafted for one in rounds) > wanted - 1:
            found.append(f"a block had {max(one.drafted for one in rounds)} tokens, the cell says {wanted - 1}")
    return found + _end_of_text_problems(cell, done) + _tail_problems(done, rounds, limit)


def word_of_end(done: Done) -> str:
    """``length`` or ``eos``: the worker gives mlx-vlm no stop words, so that its ``stop`` is end of text."""
    return "eos" if done.finish_reason == "stop" else "length"


def _capacity_of(done: Done) -> int:
    return 0 if done.speculation is None else sum(done.speculation.capacity)


def _capacity(done: Done) -> Observation:
    return observed(
        "draft_capacity",
        _capacity_of(done),
        f"{LINE}speculation.capacity",
        definition=f"mlx-vlm:{done.mlx_vlm}:draft_lens",
        note="what mlx-vlm calls drafted: the size that it asked of each block, less near the limit",
    )


def _passes(done: Done, passes: int, source: str) -> list[Observation]:
    per_pass = (
        observed(
            "tokens_per_pass",
            (len(done.tokens) - 1) / passes,
            source,
            note="the first token comes from the prompt's pass",
        )
        if passes
        else absent("tokens_per_pass", Absence.NOT_APPLICABLE, "one token comes from the prompt's pass alone")
    )
    return [
        observed("replay_passes", 0, "mlx-vlm restores its caches without a pass", clock=Clock.DERIVED),
        observed("target_passes", passes, source, note="the prompt's pass is not counted"),
        per_pass,
    ]


def _ratios(done: Done, sums: Tally, tail: str | None) -> list[Observation]:
    if not sums.rounds:
        why = "the answer has one token, which comes from the prompt's pass"
        names = (
            "acceptance_rate",
            "judged_acceptance_rate",
            "capacity_acceptance_rate",
            "mean_accepted_length",
            "tokens_per_round",
        )
        return [
            *(absent(name, Absence.NOT_APPLICABLE, why) for name in names),
            observed("cut_rounds", 0, ROUNDS),
            observed("speculative_coverage", 0.0, ROUNDS),
            *(absent(name, Absence.NOT_APPLICABLE, why) for name in ("drafted_by_position", "accepted_by_position")),
        ]
    uncut = sums.rounds - sums.cut
    return [
        observed("acceptance_rate", sums.accepted / sums.drafted, BOTH, note=tail),
        observed("judged_acceptance_rate", sums.accepted / (sums.accepted + sums.rejected), BOTH, note=tail),
        observed(
            "capacity_acceptance_rate",
            sums.accepted / (_capacity_of(done) or sums.drafted),
            f"{ACCEPTED}, capacity",
            definition=f"mlx-vlm:{done.mlx_vlm}:% of drafted",
            note=tail,
        ),
        observed("mean_accepted_length", sums.accepted / sums.rounds, ACCEPTED, note=tail),
        observed("tokens_per_round", sums.committed_by_uncut / uncut, ROUNDS)
        if uncut
        else absent("tokens_per_round", Absence.SUPPRESSED, "no round was left uncut"),
        observed("cut_rounds", sums.cut, ROUNDS),
        observed("speculative_coverage", (len(done.tokens) - 1) / len(done.tokens), ROUNDS),
        observed("drafted_by_position", sums.drafted_by_position, DRAFTED),
        observed("accepted_by_position", sums.accepted_by_position, ACCEPTED, note=tail),
    ]


def _prefill_time(done: Done) -> Observation:
    if done.mlx_prompt_tps <= 0:
        return absent("engine_prefill_time", Absence.SUPPRESSED, "mlx-vlm reports a prompt rate of 0")
    return observed(
        "engine_prefill_time",
        done.prompt_tokens / done.mlx_prompt_tps,
        f"{LINE}mlx_prompt_tps, prompt_tokens",
        definition=f"mlx-vlm:{done.mlx_vlm}:prompt_time",
        note="to the first token, which with a drafter comes before the first round; tokenising is not in it",
    )


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


def _tail_problems(done: Done, rounds: tuple[Round, ...], limit: int) -> list[str]:
    if not rounds or rounds[-1].closed or done.finish_reason == "stop":
        return []
    if len(done.tokens) == limit and rounds[-1].emitted == rounds[-1].accepted:
        return []
    return ["the last round has no token of the target's own, and neither the limit nor end of text explains it"]
