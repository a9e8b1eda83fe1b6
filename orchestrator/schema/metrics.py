"""The vocabulary: every metric once, with its definition, unit, direction, clock and scope.

The docs page, the report's glossary and the adapter contract test are generated from this module.
A changed definition is a new version of the metric, never a silent edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """Base units; display units exist only in :mod:`orchestrator.schema.units`."""

    SECOND = "s"
    TOKEN = "tok"
    TOKEN_RATE = "tok/s"
    SECOND_PER_TOKEN = "s/tok"
    BYTE = "B"
    ONE = "1"
    COUNT = "count"
    WORD = "word"
    TRUTH = "bool"
    JOULE = "J"


class Better(StrEnum):
    """Which direction of a metric a person wants."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


class Clock(StrEnum):
    """Whose clock or counter a value comes from."""

    OURS = "ours"
    ENGINE = "engine"
    OS = "os"
    DERIVED = "derived"
    GRADER = "grader"


class Scope(StrEnum):
    """What one value of the metric describes."""

    TRIAL = "trial"
    SESSION = "session"
    CELL = "cell"


@dataclass(frozen=True, slots=True)
class Metric:
    """One entry of the vocabulary; ``id`` is ``name@version``."""

    name: str
    version: int
    definition: str
    unit: Unit
    better: Better
    clock: Clock
    scope: Scope

    @property
    def id(self) -> str:
        """The name with its version, as written beside stored values."""
        return f"{self.name}@{self.version}"


TIME_TO_N: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024)
"""The N for which ``time_to_n`` is taken from the arrival curve."""

_LOW, _HIGH, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER
_S, _TOK, _RATE, _B, _ONE, _N = Unit.SECOND, Unit.TOKEN, Unit.TOKEN_RATE, Unit.BYTE, Unit.ONE, Unit.COUNT
_OURS, _ENG, _OS, _DER = Clock.OURS, Clock.ENGINE, Clock.OS, Clock.DERIVED

_TRIAL: tuple[tuple[str, str, Unit, Better, Clock], ...] = (
    (
        "ttft",
        "Request sent to first token-bearing event; keep-alive, role-only, progress and empty events do not "
        "count. In MLX-LM with a draft the first token arrives after a whole draft and verify round, which it "
        "contains.",
        _S,
        _LOW,
        _OURS,
    ),
    (
        "ttft_cached",
        "As ttft, of a request whose prompt the engine had in its cache, wholly or its beginning: the workload says "
        "which. A cold prompt has none, and a cached one has no ttft.",
        _S,
        _LOW,
        _OURS,
    ),
    (
        "e2e_latency",
        "Request sent to last event: queueing, prefill, drafting, verification and synchronisation included.",
        _S,
        _LOW,
        _OURS,
    ),
    ("decode_time", "Arrival of the first burst to arrival of the last burst.", _S, _LOW, _OURS),
    (
        "decode_rate",
        "(Output tokens minus tokens of the first burst) ÷ decode_time; prefill excluded. Suppressed below two bursts.",
        _RATE,
        _HIGH,
        _OURS,
    ),
    ("tpot", "1 ÷ decode_rate.", Unit.SECOND_PER_TOKEN, _LOW, _OURS),
    (
        "burst_gap_p50",
        "Median time between bursts (tokens committed by one target pass arrive as one burst).",
        _S,
        _LOW,
        _OURS,
    ),
    ("burst_gap_p95", "95th percentile of the time between bursts.", _S, _LOW, _OURS),
    ("burst_count", "Bursts seen: groups of tokens committed by one target pass.", _N, _NEITHER, _OURS),
    (
        "engine_prefill_time",
        "Prefill time as the engine reports it; its boundary is named by the definition id.",
        _S,
        _LOW,
        _ENG,
    ),
    (
        "engine_decode_time",
        "Decode time as the engine reports it; its boundary is named by the definition id.",
        _S,
        _LOW,
        _ENG,
    ),
    (
        "engine_decode_rate",
        "Decode rate recomputed by us from the engine's token count and time, under the "
        "engine's boundary (named by the definition id).",
        _RATE,
        _HIGH,
        _ENG,
    ),
    ("prompt_tokens", "Prompt tokens by the engine's count, cached ones included.", _TOK, _NEITHER, _ENG),
    ("cached_share", "Cached prompt tokens ÷ prompt tokens, both by the engine's count.", _ONE, _NEITHER, _DER),
    ("cached_tokens", "Prompt tokens that the engine took from a cache instead of evaluating.", _TOK, _NEITHER, _ENG),
    (
        "output_tokens",
        "Tokens emitted, counted from token ids (an end-of-text token that was emitted counts).",
        _TOK,
        _NEITHER,
        _ENG,
    ),
    ("finish_reason", "Why the answer ended: length, stop, eos or error.", Unit.WORD, _NEITHER, _ENG),
    ("drafted_tokens", "Tokens proposed by the drafter and handed to verification.", _TOK, _NEITHER, _ENG),
    (
        "judged_tokens",
        "Drafted tokens that the target judged: accepted plus rejected. Drafts behind a refused one are not in it.",
        _TOK,
        _NEITHER,
        _ENG,
    ),
    (
        "draft_capacity",
        "Verify rounds × the most tokens that a round may draft. Shorter rounds count in full: a bound, not a count.",
        _TOK,
        _NEITHER,
        _ENG,
    ),
    ("accepted_tokens", "Drafted tokens accepted; the bonus or correction token is not counted.", _TOK, _HIGH, _ENG),
    (
        "rejected_tokens",
        "Drafted tokens that the target judged and refused: at most one per verify round.",
        _TOK,
        _LOW,
        _DER,
    ),
    (
        "discarded_tokens",
        "Drafted − accepted − rejected: dropped because an earlier one was refused, never judged.",
        _TOK,
        _LOW,
        _DER,
    ),
    ("verify_rounds", "Target passes that judged at least one draft token.", _N, _NEITHER, _ENG),
    ("no_draft_rounds", "Decode passes of the target with nothing drafted.", _N, _NEITHER, _DER),
    ("replay_passes", "Passes that decoded accepted tokens again after a checkpoint was restored.", _N, _LOW, _ENG),
    ("target_passes", "verify_rounds + no_draft_rounds + replay_passes.", _N, _LOW, _DER),
    (
        "acceptance_rate",
        "Accepted ÷ drafted. Pooled over a cell as the ratio of sums, never as a mean of rates.",
        _ONE,
        _HIGH,
        _DER,
    ),
    (
        "judged_acceptance_rate",
        "Accepted ÷ judged: above acceptance_rate where drafts are longer than one token, and never pooled with it.",
        _ONE,
        _HIGH,
        _DER,
    ),
    (
        "capacity_acceptance_rate",
        "Accepted ÷ draft_capacity: a lower bound of acceptance_rate, never pooled with it.",
        _ONE,
        _HIGH,
        _DER,
    ),
    ("mean_accepted_length", "Accepted ÷ verify_rounds, without the bonus token.", _TOK, _HIGH, _DER),
    (
        "tokens_per_round",
        "Tokens committed by verify rounds ÷ verify_rounds, bonus or correction included; a round "
        "cut by end of text or the limit is left out.",
        _TOK,
        _HIGH,
        _DER,
    ),
    (
        "cut_rounds",
        "Verify rounds cut short by end of text or the output limit, left out of tokens_per_round.",
        _N,
        _NEITHER,
        _DER,
    ),
    ("tokens_per_pass", "Tokens emitted by all counted passes ÷ target_passes.", _TOK, _HIGH, _DER),
    ("speculative_coverage", "Output tokens committed by verify rounds ÷ output tokens.", _ONE, _HIGH, _DER),
    ("drafted_by_position", "Draft tokens proposed at draft position 1, 2 and so on.", _TOK, _NEITHER, _DER),
    ("accepted_by_position", "Draft tokens accepted at draft position 1, 2 and so on.", _TOK, _HIGH, _DER),
    ("draft_time", "Time in the drafter where the engine measures it (a lower bound says so).", _S, _LOW, _ENG),
    ("verify_time", "Time in verification passes where the engine measures it.", _S, _LOW, _ENG),
    ("rollback_time", "Time restoring caches after a rejection where the engine measures it.", _S, _LOW, _ENG),
    ("engine_peak_memory", "The engine allocator's own peak; its basis is named by the definition id.", _B, _LOW, _ENG),
    ("trial_swap_delta", "Growth of the machine's swap in use over the trial.", _B, _LOW, _OS),
    (
        "memory_stall",
        "Time over the trial in which every runnable task of the machine waited for memory (Linux PSI, full).",
        _S,
        _LOW,
        _OS,
    ),
    (
        "memory_pressure",
        "Memory pressure around the trial in the system's word: macOS normal, warning or critical; Linux no stalls, "
        "some stalls or full stalls.",
        Unit.WORD,
        _LOW,
        _OS,
    ),
    (
        "energy_decode",
        "Energy from the first burst to the last, gross, by a power sampler of the chip: mains power is higher.",
        Unit.JOULE,
        _LOW,
        _OS,
    ),
    ("task_correct", "A fixed task's answer is right.", Unit.TRUTH, _HIGH, Clock.GRADER),
    (
        "task_valid",
        "A fixed task's answer has the form that the task asks for, be it right or wrong.",
        Unit.TRUTH,
        _HIGH,
        Clock.GRADER,
    ),
    (
        "output_degenerate",
        "The answer is no answer: empty, unreadable, or one piece of text over and over, unasked.",
        Unit.TRUTH,
        _LOW,
        Clock.GRADER,
    ),
)

_SESSION: tuple[tuple[str, str, Unit, Better, Clock], ...] = (
    ("load_time", "Process start to engine ready.", _S, _LOW, _OURS),
    (
        "peak_rss",
        "Peak resident set of the engine process as the kernel keeps it; file-backed pages included.",
        _B,
        _LOW,
        _OS,
    ),
    (
        "peak_footprint",
        "Peak physical footprint (macOS ledger): anonymous, dirty, compressed and GPU memory.",
        _B,
        _LOW,
        _OS,
    ),
    (
        "peak_unified",
        "max(footprint, resident set) of the process tree; where there is no footprint the resident "
        "set alone, and the source says so.",
        _B,
        _LOW,
        _OS,
    ),
    ("swap_delta", "Growth of the machine's swap in use over the session.", _B, _LOW, _OS),
    (
        "engine_buffers",
        "Sum of the buffers that the engine says it holds: weights (mapped ones too), caches, state and compute.",
        _B,
        _LOW,
        _ENG,
    ),
)


def _build() -> dict[str, Metric]:
    arrival = "Request sent to arrival of output token {}, from the arrival curve: matched length."
    timed = tuple((f"time_to_{n}", arrival.format(n), _S, _LOW, _OURS) for n in TIME_TO_N)
    rows = [
        Metric(name, 1, definition, unit, better, clock, scope)
        for table, scope in ((_TRIAL + timed, Scope.TRIAL), (_SESSION, Scope.SESSION))
        for name, definition, unit, better, clock in table
    ]
    return {row.name: row for row in rows}


VOCABULARY: dict[str, Metric] = _build()
"""Metric by name; the current version of each."""
