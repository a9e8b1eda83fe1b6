"""What one statistics line means in the words of the vocabulary, and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapters.omlx.log import DflashLine, NativeLine, VlmLine
from adapters.omlx.settings import block_size
from adapters.omlx.stream import Stream
from orchestrator.schema.cell import Cell
from orchestrator.schema.observation import Absence, Value

_TIMES = {"draft_time": "mtp", "verify_time": "backbone", "rollback_time": "cache"}


@dataclass(frozen=True, slots=True)
class Told:
    """A value with its source."""

    value: Value
    source: str
    note: str | None = None
    definition: str | None = None


@dataclass(slots=True)
class Counts:
    """Values by metric, reasons for those that are missing, and broken invariants in words."""

    values: dict[str, Told] = field(default_factory=dict)
    absences: dict[str, tuple[Absence, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def told(self, source: str, values: Mapping[str, Value], note: str | None = None) -> None:
        """Keep values that share a source."""
        for metric, value in values.items():
            self.values[metric] = Told(value, source, note)

    def missing(self, why: str, *metrics: str, reason: Absence = Absence.NOT_REPORTED) -> None:
        """Say why these are missing."""
        for metric in metrics:
            self.absences[metric] = (reason, why)


def native_counts(line: NativeLine, cell: Cell, stream: Stream, *, parked: bool) -> Counts:
    """Native MTP: cycles that verify a chain of drafts behind two tokens that come without any.

    Args:
        line: its statistics.
        cell: what was asked.
        stream: the answer.
        parked: a part of the answer was decoded without drafts, outside of what the line counts.
    """
    source = f"stderr.log:{line.form}"
    counts = Counts()
    counts.problems += _native_problems(line, cell, stream, parked=parked)
    rounds = line.cycles - line.idle
    judged, single = _judged(line, cell), _single(line, cell)
    counts.told(source, {"accepted_tokens": line.accepted, "verify_rounds": rounds})
    if judged is None:
        why = "the line counts no drafts by depth, and whether a cycle had one or more of them is not told"
        unknown = ("drafted_tokens", "judged_tokens", "rejected_tokens", "discarded_tokens", "acceptance_rate")
        counts.missing(why, *unknown, "judged_acceptance_rate", "drafted_by_position", "accepted_by_position")
    else:
        counts.told(source, {"judged_tokens": judged, "rejected_tokens": judged - line.accepted})
        _native_drafts(counts, line, judged, source, single=single)
    counts.missing("oMLX's native MTP has no such bound", "draft_capacity", reason=Absence.NOT_APPLICABLE)
    counts.missing("no such bound", "capacity_acceptance_rate", reason=Absence.NOT_APPLICABLE)
    if judged:
        counts.told("accepted ÷ judged", {"judged_acceptance_rate": line.accepted / judged})
    if rounds:
        counts.told("accepted ÷ verify_rounds", {"mean_accepted_length": line.accepted / rounds})
    else:
        none = ("acceptance_rate", "judged_acceptance_rate", "mean_accepted_length", "tokens_per_round")
        why = "no cycle had a draft" if line.idle else "no cycle came to its end"
        counts.missing(why, *none, reason=Absence.NOT_APPLICABLE)
        positions = ("drafted_by_position", "accepted_by_position")
        counts.missing(why, *positions, reason=Absence.NOT_APPLICABLE)
    for metric, part in _TIMES.items():
        note = "by the host's clock around work that the device may do later: the parts shade into each other"
        counts.values[metric] = Told(line.seconds[part], f"{source} timing.{part}", note, f"omlx:timing.{part}")
    _native_rounds(counts, line, rounds, single=single, parked=parked)
    return counts


def _judged(line: NativeLine, cell: Cell) -> int | None:
    """Drafts that were judged; ``None`` where cycles stand in their place and may have had more than one each."""
    if not line.by_cycles:
        return line.judged
    rounds = line.cycles - line.idle
    return rounds if not rounds or cell.method.n_max == 1 else None


def _single(line: NativeLine, cell: Cell) -> bool:
    """No cycle had more than one draft, so that every draft was judged."""
    if line.by_cycles:
        return line.cycles == line.idle or cell.method.n_max == 1
    return len(line.depth) <= 1


def _native_drafts(counts: Counts, line: NativeLine, judged: int, source: str, *, single: bool) -> None:
    if not single:
        why = "the line counts drafts that were judged; those behind a refused one are nowhere counted"
        counts.missing(why, "drafted_tokens", "discarded_tokens", "acceptance_rate", "drafted_by_position")
        counts.told(source, {"accepted_by_position": tuple(a for a, _ in line.depth)})
        return
    note = "one draft a cycle: every draft is judged" if judged or not line.idle else "every cycle was without drafts"
    counts.told(source, {"drafted_tokens": judged, "discarded_tokens": 0}, note)
    if judged:
        counts.told("accepted ÷ drafted", {"acceptance_rate": line.accepted / judged})
        counts.told(source, {"drafted_by_position": (judged,), "accepted_by_position": (line.accepted,)})


def _native_rounds(counts: Counts, line: NativeLine, rounds: int, *, single: bool, parked: bool) -> None:
    """What a cycle commits: its accepted drafts and one token more; of the last one some may be dropped.

    A cycle without drafts (``d0``) is a plain pass: its one token is emitted among those of the rounds and is none.
    """
    dropped = line.accepted + line.cycles - line.in_rounds
    by_rounds = line.in_rounds - line.idle
    cut = int(dropped > 0)
    counts.told("accepted + cycles − emitted", {"cut_rounds": cut})
    whole_rounds = rounds - cut
    if rounds and (not cut or (single and whole_rounds)):
        kept = by_rounds if not cut else by_rounds - 1
        counts.told("emitted ÷ cycles, uncut ones", {"tokens_per_round": kept / whole_rounds})
    elif rounds:
        why = "the last cycle was cut, and how many drafts it had accepted is not told"
        counts.missing(why, "tokens_per_round")
    if line.tokens:
        what = "(draft + bonus + verify − d0) ÷ tokens" if line.idle else "(draft + bonus + verify) ÷ tokens"
        counts.told(what, {"speculative_coverage": by_rounds / line.tokens})
    if parked:
        why = "a part of the answer was decoded without drafts, and its passes are not counted"
        counts.missing(why, "no_draft_rounds", "target_passes", "tokens_per_pass", "speculative_coverage")
        counts.values.pop("speculative_coverage", None)
        return
    alone = line.idle + max(line.init - 1, 0)
    note = "inferred: behind the token from prefill one more comes without a draft"
    counts.told("stderr.log: emits.init − 1 + d0 (inferred)", {"no_draft_rounds": alone}, note)
    counts.told("no checkpoints", {"replay_passes": 0}, "inferred: refused tokens are cut off or restored, not decoded")
    passes = rounds + alone
    counts.told("verify_rounds + no_draft_rounds", {"target_passes": passes}, "inferred from both")
    if passes and line.tokens > 1:
        counts.told("(tokens − 1) ÷ target_passes", {"tokens_per_pass": (line.tokens - 1) / passes})
    else:
        counts.missing("one token comes from prefill alone", "tokens_per_pass", reason=Absence.NOT_APPLICABLE)


def _native_problems(line: NativeLine, cell: Cell, stream: Stream, *, parked: bool) -> list[str]:
    problems = []
    possible = _emitted(stream)
    if line.tokens > max(possible) if parked else line.tokens not in possible:
        problems.append(f"{line.tokens} tokens by the statistics line, {stream.tokens} by the usage")
    if line.init + line.in_rounds != line.tokens:
        problems.append(f"the statistics line emits {line.init} + {line.in_rounds} tokens and counts {line.tokens}")
    if line.accepted > line.judged or line.judged > line.accepted + line.cycles:
        problems.append(f"{line.accepted} drafts accepted of {line.judged} judged in {line.cycles} cycles")
    if line.form == "MTP/1" and line.judged != line.cycles:
        problems.append(f"{line.judged} drafts judged in {line.cycles} cycles of one draft each")
    if line.in_rounds > line.accepted + line.cycles or line.draft > line.accepted:
        problems.append(f"{line.in_rounds} tokens from {line.cycles} cycles that accepted {line.accepted} drafts")
    sums = (sum(a for a, _ in line.depth), sum(d for _, d in line.depth))
    with_drafts = line.cycles - line.idle
    if line.by_cycles and (line.judged != line.cycles or line.accepted > with_drafts or (line.depth and with_drafts)):
        problems.append(f"{line.judged} drafts judged in {line.cycles} cycles, none of them counted by depth")
    elif not line.by_cycles and line.depth and sums != (line.accepted, line.judged):
        problems.append(
            f"by depth {sums[0]} of {sums[1]} drafts were accepted, in all {line.accepted} of {line.judged}"
        )
    if cell.method.n_max is not None and len(line.depth) > cell.method.n_max:
        problems.append(f"drafts of up to {len(line.depth)} tokens, the cell asks for at most {cell.method.n_max}")
    return problems


def vlm_counts(line: VlmLine, cell: Cell, stream: Stream) -> Counts:
    """VLM MTP: mlx-vlm's rounds. What was drafted is not told, only how much could have been."""
    source = "stderr.log:vlm_mtp stats"
    counts = Counts()
    if line.capacity != line.rounds * max(line.block - 1, 1) or line.accepted > line.capacity:
        problem = f"{line.accepted} of {line.capacity} in {line.rounds} rounds with blocks of {line.block}"
        counts.problems.append(f"the statistics line does not add up: {problem}")
    if line.emitted not in _emitted(stream):
        counts.problems.append(f"{line.emitted} tokens by the statistics line, {stream.tokens} by the usage")
    if line.emitted - 1 > line.accepted + line.rounds:
        counts.problems.append(f"{line.emitted} tokens from {line.rounds} rounds that accepted {line.accepted} drafts")
    if line.block != block_size(cell):
        counts.problems.append(f"blocks of {line.block} tokens, the cell asks for {block_size(cell)}")
    note = "rounds × (block − 1): a bound, since a block is made shorter near the limit and while few drafts are kept"
    counts.told(source, {"draft_capacity": line.capacity}, note)
    counts.told(source, {"accepted_tokens": line.accepted, "verify_rounds": line.rounds})
    if line.capacity:
        counts.told("accepted ÷ capacity", {"capacity_acceptance_rate": line.accepted / line.capacity})
    if line.rounds:
        counts.told("accepted ÷ verify_rounds", {"mean_accepted_length": line.accepted / line.rounds})
    why = "oMLX's line for VLM MTP gives the most that could have been drafted, not what was"
    unknown = ("drafted_tokens", "judged_tokens", "rejected_tokens", "discarded_tokens", "acceptance_rate")
    counts.missing(why, *unknown, "judged_acceptance_rate", "drafted_by_position", "accepted_by_position")
    if line.rounds and line.accepted + line.rounds == line.emitted - 1 and line.finish == "stop":
        counts.told("(accepted + rounds) ÷ rounds", {"tokens_per_round": (line.emitted - 1) / line.rounds})
        counts.told("no token was dropped", {"cut_rounds": 0})
    else:
        why = "whether the limit cut the last round is not told"
        counts.missing(why, "tokens_per_round", "cut_rounds")
    inferred = "inferred: behind the token from prefill every pass is a round"
    counts.told("every pass is a round (inferred)", {"no_draft_rounds": 0, "target_passes": line.rounds}, inferred)
    if line.emitted > 1 and line.rounds:
        counts.told("(emitted − 1) ÷ rounds", {"tokens_per_pass": (line.emitted - 1) / line.rounds})
        counts.told("(emitted − 1) ÷ emitted", {"speculative_coverage": (line.emitted - 1) / line.emitted})
    counts.missing("oMLX's line for VLM MTP has no times", "draft_time", "verify_time", "rollback_time")
    return counts


def dflash_counts(line: DflashLine, stream: Stream) -> Counts:
    """DFlash: cycles, and a rate whose two counts are not told."""
    counts = Counts()
    if line.tokens not in _emitted(stream):
        counts.problems.append(f"{line.tokens} tokens by the statistics line, {stream.tokens} by the usage")
    counts.told("stderr.log:DFlash generation complete", {"verify_rounds": line.cycles})
    why = "oMLX's line for DFlash gives a rate without its counts, whose denominator it does not name"
    counts.missing(why, "drafted_tokens", "accepted_tokens", "acceptance_rate", "mean_accepted_length")
    return counts


def _emitted(stream: Stream) -> tuple[int, ...]:
    """Tokens by a count that may hold the token which ended the text; the usage does not count that one."""
    return (stream.tokens, stream.tokens + 1) if stream.finish == "stop" else (stream.tokens,)
