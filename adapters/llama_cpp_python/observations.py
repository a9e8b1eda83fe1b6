"""What one answer of the llama-cpp-python worker says, as observations, and where it contradicts itself."""

from __future__ import annotations

from adapters.llama_cpp_python.protocol import Done
from adapters.shared.rounds import Round, Tally, tally
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind
from orchestrator.schema.metrics import Clock
from orchestrator.schema.observation import Absence, Observation, absent, observed

LINE = "events:generate/"
INFERRED = f"inferred:{LINE}tokens per pass against {LINE}proposed"
HOW = "inferred: emitted tokens of a pass that equal what was proposed for it; the package reports no acceptance"
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
    """What is known with and without a drafter."""
    return [
        observed("prompt_tokens", done.prompt_tokens, f"{LINE}prompt_tokens"),
        observed(
            "cached_tokens",
            done.prompt_tokens - done.passes[0],
            f"{LINE}prompt_tokens − passes[0]",
            clock=Clock.DERIVED,
            note="the context is emptied before each trial",
        ),
        observed("output_tokens", len(done.tokens), f"{LINE}tokens"),
        observed("finish_reason", word_of_end(done), f"{LINE}finish_reason"),
        absent("engine_peak_memory", Absence.NOT_REPORTED, "llama-cpp-python does not report it"),
        absent(
            "engine_decode_rate",
            Absence.SUPPRESSED,
            "llama.cpp's counter leaves out sampling and the package's Python between passes: it is no rate of decode",
        ),
    ]


def baseline(done: Done, rounds: tuple[Round, ...]) -> list[Observation]:
    """Without a drafter: every token after the first is one pass of the target; the first comes from the prompt's."""
    why = "a baseline does not speculate"
    drafted = sum(one.drafted for one in rounds)
    return [
        observed("drafted_tokens", drafted, f"{LINE}passes", note="drafted although the method is none")
        if drafted
        else absent("drafted_tokens", Absence.NOT_APPLICABLE, why),
        *(absent(name, Absence.NOT_APPLICABLE, why) for name in SPECULATION),
        *_passes(done, rounds),
        *_engine_times(done),
    ]


def speculative(cell: Cell, done: Done, rounds: tuple[Round, ...]) -> list[Observation]:
    """With prompt lookup: drafted is counted, what became of it is inferred."""
    judged = tuple(one for one in rounds if one.drafted)
    sums = tally(judged, cell.method.n_max or 0)
    tail = f"{HOW}; the answer ended inside a round: what its pass accepted beyond is not told" if sums.cut else HOW
    counted = "counted at the drafter's return and at the pass it was fed to"
    return [
        observed("drafted_tokens", sums.drafted, f"{LINE}proposed, passes", note=counted),
        observed("accepted_tokens", sums.accepted, INFERRED, note=tail),
        observed("rejected_tokens", sums.rejected, INFERRED, note=tail),
        observed("discarded_tokens", sums.discarded, INFERRED, note=tail),
        observed("verify_rounds", sums.rounds, f"{LINE}passes", note="passes that were fed a draft"),
        *_passes(done, rounds),
        *_ratios(done, sums, tail),
        observed(
            "draft_time",
            done.draft_s or 0.0,
            f"{LINE}draft_s",
            definition=f"llama-cpp-python:{done.llama_cpp_python}:draft_model.__call__",
            clock=Clock.OURS,
            note="the drafter is a Python function; its calls are timed, each by two readings of the clock",
        ),
        absent("verify_time", Absence.NOT_REPORTED, "the package does not measure it"),
        absent("rollback_time", Absence.NOT_REPORTED, "the package does not measure it"),
        absent(
            "engine_prefill_time",
            Absence.SUPPRESSED,
            f"llama.cpp counts verify passes as prompt evaluation: {done.perf.n_p_eval} tokens, the prompt has "
            f"{done.prompt_tokens}",
        ),
        absent(
            "engine_decode_time",
            Absence.SUPPRESSED,
            f"llama.cpp counts single-token passes only: {done.perf.n_eval} of {len(rounds)} passes",
        ),
    ]


def problems(cell: Cell, done: Done) -> list[str]:
    """Broken invariants, in words."""
    limit, count, perf = cell.workload.max_tokens, len(done.tokens), done.perf
    found = []
    if count > limit:
        found.append(f"{count} tokens were emitted, the limit is {limit}")
    if done.finish_reason == "length" and count < limit:
        found.append(f"the answer ended by length after {count} of {limit} tokens")
    if done.passes[0] != done.prompt_tokens:
        found.append(f"the first pass read {done.passes[0]} tokens, the prompt has {done.prompt_tokens}")
    fed, told = sum(done.passes), perf.n_p_eval + perf.n_eval
    # Each of llama.cpp's two counters says 1 where it means 0.
    if told != fed and (told != fed + 1 or 1 not in (perf.n_p_eval, perf.n_eval)):
        found.append(f"llama.cpp evaluated {perf.n_p_eval} + {perf.n_eval} tokens, the passes were fed {fed}")
    wanted = (cell.method.n_max or 0) if cell.method.kind is MethodKind.NGRAM else 0
    if done.effective.num_pred_tokens != wanted:
        found.append(f"the drafter proposes up to {done.effective.num_pred_tokens} tokens, the cell says {wanted}")
    if cell.method.kind is MethodKind.NONE and done.proposed is not None:
        found.append("a drafter was asked in a baseline")
    if cell.method.kind is not MethodKind.NONE and done.proposed is None:
        found.append("no drafter was asked")
    return found + _end_of_text_problems(cell, done)


def word_of_end(done: Done) -> str:
    """``length`` or ``eos``: the worker stops at nothing but the limit and end of text."""
    return "eos" if done.finish_reason == "stop" else "length"


def _passes(done: Done, rounds: tuple[Round, ...]) -> list[Observation]:
    count, source = len(rounds), f"{LINE}passes"
    per_pass = (
        observed("tokens_per_pass", (len(done.tokens) - len(done.of_pass(0))) / count, source,
                 note="the first token comes from the prompt's pass")
        if count
        else absent("tokens_per_pass", Absence.NOT_APPLICABLE, "one token comes from the prompt's pass alone")
    )  # fmt: skip
    return [
        observed("no_draft_rounds", sum(one.drafted == 0 for one in rounds), source),
        observed("replay_passes", 0, "llama-cpp-python restores no checkpoints", clock=Clock.DERIVED),
        observed("target_passes", count, source, note="the prompt's pass is not counted"),
        per_pass,
    ]


def _ratios(done: Done, sums: Tally, note: str) -> list[Observation]:
    if sums.rounds == 0:
        why = "nothing was drafted: no beginning of the text ends as it does now"
        names = ("acceptance_rate", "mean_accepted_length", "tokens_per_round")
        return [
            *(absent(name, Absence.NOT_APPLICABLE, why) for name in names),
            observed("cut_rounds", 0, INFERRED),
            observed("speculative_coverage", 0.0, INFERRED),
            *(absent(name, Absence.NOT_APPLICABLE, why) for name in ("drafted_by_position", "accepted_by_position")),
        ]
    uncut = sums.rounds - sums.cut
    committed = sums.accepted + sums.rounds - sums.cut
    return [
        observed("acceptance_rate", sums.accepted / sums.drafted, INFERRED, note=note),
        observed("mean_accepted_length", sums.accepted / sums.rounds, INFERRED, note=note),
        observed("tokens_per_round", sums.committed_by_uncut / uncut, INFERRED, note=HOW)
        if uncut
        else absent("tokens_per_round", Absence.SUPPRESSED, "no round was left uncut"),
        observed("cut_rounds", sums.cut, INFERRED),
        observed("speculative_coverage", committed / len(done.tokens), INFERRED),
        observed("drafted_by_position", sums.drafted_by_position, f"{LINE}passes"),
        observed("accepted_by_position", sums.accepted_by_position, INFERRED, note=note),
    ]


def _engine_times(done: Done) -> list[Observation]:
    """llama.cpp's own counters; they tell prompt from answer by the size of a pass, which is right in a baseline."""
    perf, version = done.perf, done.llama_cpp_python
    found = []
    if perf.n_p_eval == done.prompt_tokens and perf.t_p_eval_ms > 0:
        note = "from the first decode call to when its scores are fetched"
        found.append(_time("engine_prefill_time", perf.t_p_eval_ms, "t_p_eval_ms", version, note))
    else:
        why = f"llama.cpp counts {perf.n_p_eval} tokens as prompt, which has {done.prompt_tokens}"
        found.append(absent("engine_prefill_time", Absence.SUPPRESSED, why))
    if perf.n_eval == len(done.passes) - 1 and perf.n_eval > 0 and perf.t_eval_ms > 0:
        note = "single-token passes alone: neither sampling nor the package's Python between them"
        found.append(_time("engine_decode_time", perf.t_eval_ms, "t_eval_ms", version, note))
    else:
        why = f"llama.cpp counts {perf.n_eval} single-token passes, {len(done.passes) - 1} were made"
        found.append(absent("engine_decode_time", Absence.SUPPRESSED, why))
    return found


def _time(metric: str, milliseconds: float, key: str, version: str, note: str) -> Observation:
    definition = f"llama-cpp-python:{version}:{key}"
    return observed(metric, milliseconds / 1e3, f"{LINE}perf.{key}", definition=definition, note=note)


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
