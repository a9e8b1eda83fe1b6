"""Brings the three records of a trial's speculation together: the stream, the totals and the log must agree."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.llama_cpp.counters import ACCEPTED, CALLS, DRAFTED, PREDICTED, ROUNDS, Deltas
from adapters.llama_cpp.stream import Burst, Stream, whole
from adapters.llama_cpp.trace import Round


@dataclass(frozen=True, slots=True)
class Counts:
    """What is known of a trial's speculation; ``None`` is unknown, never zero.

    Args:
        drafted: tokens handed to verification; ``accepted`` of them were kept, the bonus token not counted.
        verify_rounds: passes that judged a draft, ``rounds_source`` says by which record.
        rounds: each round, in order.
        no_draft_rounds: decode passes with nothing drafted.
        replay_passes: decodes repeated after a checkpoint was restored.
        ended_in_round: whether end of text came in a verify round, which is then cut.
        dropped: tokens of the last pass that came after the end of text and were not emitted (0 or 1).
        problems: records that disagree, in words.
    """

    predicted: int
    drafted: int
    accepted: int
    verify_rounds: int | None
    rounds_source: str
    rounds: tuple[Round, ...] | None
    per_round_source: str
    no_draft_rounds: int | None
    replay_passes: int | None
    ended_in_round: bool | None
    dropped: int | None
    problems: tuple[str, ...]

    @property
    def target_passes(self) -> int | None:
        """All decode passes of the target after prefill."""
        parts = (self.verify_rounds, self.no_draft_rounds, self.replay_passes)
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


def combine(stream: Stream, deltas: Deltas, trace: tuple[Round, ...] | None, *, at_end_of_text: bool) -> Counts:
    """The counts of one speculative trial.

    ``draft_n`` is absent from the answer when nothing was drafted: zero there, and only there.
    """
    predicted = whole(stream.timings, "predicted_n")
    drafted, accepted = int(stream.timings.get("draft_n", 0)), int(stream.timings.get("draft_n_accepted", 0))
    bursts = stream.bursts[1:] if not stream.withheld else None
    streamed = _streamed_rounds(bursts, at_end_of_text=at_end_of_text)
    rounds, per_round = (trace, "stderr.log:LLAMA_TRACE lines") if trace is not None else (streamed, "events:request")
    counted = deltas.counts.get(ROUNDS)
    source = "events:metrics_after−metrics_before"
    if counted is None and rounds is not None:
        counted, source = len(rounds), per_round
    ended = _ended_in_round(bursts) if at_end_of_text else False
    replays = sum(item.replays for item in rounds) if rounds is not None else None
    dropped = _dropped(bursts, rounds, ended)
    problems = [
        *_disagreements(deltas, predicted, drafted, accepted),
        *_round_disagreements(counted, drafted, accepted, trace, bursts, deltas),
    ]
    no_draft = _no_draft(bursts, rounds, predicted, accepted, ended)
    counts = Counts(
        predicted,
        drafted,
        accepted,
        counted,
        source,
        rounds,
        per_round,
        no_draft,
        replays,
        ended,
        dropped,
        (),
    )
    problems += _pass_problems(counts, deltas)
    return Counts(
        predicted,
        drafted,
        accepted,
        counted,
        source,
        rounds,
        per_round,
        no_draft,
        replays,
        ended,
        dropped,
        tuple(problems),
    )


def _streamed_rounds(bursts: tuple[Burst, ...] | None, *, at_end_of_text: bool) -> tuple[Round, ...] | None:
    """Rounds from the stream's counters, where it proves that nothing was replayed: a replay adds one token."""
    if bursts is None:
        return None
    if any(burst.tokens != burst.accepted + 1 for burst in bursts) or at_end_of_text:
        return None
    return tuple(Round(burst.drafted, burst.accepted, 0) for burst in bursts if burst.drafted > 0)


def _ended_in_round(bursts: tuple[Burst, ...] | None) -> bool | None:
    if bursts is None:
        return None
    return bool(bursts) and bursts[-1].drafted > 0


def _dropped(bursts: tuple[Burst, ...] | None, rounds: tuple[Round, ...] | None, ended: bool | None) -> int | None:
    if ended is False:
        return 0
    if not bursts or not rounds or ended is None:
        return None
    last = rounds[-1]
    return last.accepted + 1 + (last.replays > 0) - bursts[-1].tokens


def _no_draft(
    bursts: tuple[Burst, ...] | None,
    rounds: tuple[Round, ...] | None,
    predicted: int,
    accepted: int,
    ended: bool | None,
) -> int | None:
    if bursts is not None:
        return sum(burst.drafted == 0 for burst in bursts)
    if rounds is None or ended is not False:
        return None
    return predicted - 1 - accepted - len(rounds) - sum(item.replays > 0 for item in rounds)


def _disagreements(deltas: Deltas, predicted: int, drafted: int, accepted: int) -> list[str]:
    said = ((PREDICTED, predicted, "output"), (DRAFTED, drafted, "drafted"), (ACCEPTED, accepted, "accepted"))
    problems = [
        f"{counted} {word} tokens by /metrics, {value} by the answer's timings"
        for name, value, word in said
        if (counted := deltas.counts.get(name)) is not None and counted != value
    ]
    if accepted > drafted:
        problems.append(f"{accepted} tokens accepted of {drafted} drafted")
    return problems


def _round_disagreements(
    counted: int | None,
    drafted: int,
    accepted: int,
    trace: tuple[Round, ...] | None,
    bursts: tuple[Burst, ...] | None,
    deltas: Deltas,
) -> list[str]:
    problems = []
    if trace is not None:
        by_log = (len(trace), sum(item.drafted for item in trace), sum(item.accepted for item in trace))
        if by_log != (counted, drafted, accepted):
            problems.append(
                f"rounds/drafted/accepted are {'/'.join(map(str, by_log))} by the log's lines, "
                f"{counted}/{drafted}/{accepted} by the counters"
            )
        positions = deltas.accepted_by_position
        if positions is not None and positions != _accepted_at(trace, len(positions)):
            problems.append(
                f"accepted by position is {_accepted_at(trace, len(positions))} by the log, {positions} by /metrics"
            )
    if bursts is not None and counted is not None and (streamed := sum(b.drafted > 0 for b in bursts)) != counted:
        problems.append(f"{streamed} bursts of the stream hold a verify round, {counted} rounds are counted")
    return problems


def _accepted_at(rounds: tuple[Round, ...], places: int) -> tuple[int, ...]:
    return tuple(sum(item.accepted > place for item in rounds) for place in range(places))


def _pass_problems(counts: Counts, deltas: Deltas) -> list[str]:
    """The pass invariant of llama.cpp, with replays that failed and were repeated added."""
    passes = counts.target_passes
    if passes is None or counts.dropped is None or counts.rounds is None:
        return []
    repeated = sum(max(item.replays - 1, 0) for item in counts.rounds)
    expected = counts.predicted - 1 - counts.accepted + counts.dropped + repeated
    problems = []
    if passes != expected:
        problems.append(
            f"{passes} target passes counted, but output − 1 − accepted"
            f"{' + tokens dropped after end of text' if counts.dropped else ''}"
            f"{' + repeated replays' if repeated else ''} is {expected}"
        )
    calls = deltas.counts.get(CALLS)
    if calls is not None and calls <= passes:
        problems.append(f"{passes} target passes, but the engine made {calls} decode calls, prefill included")
    return problems
