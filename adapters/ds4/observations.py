"""What one trial of ds4 says, as observations of the vocabulary, each with its source and definition."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.ds4.options import MAY, engine_options
from adapters.ds4.rounds import MAY_CYCLE, ONE_PASS, Spoken
from adapters.ds4.run import Speed
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.metrics import Clock
from orchestrator.schema.observation import Absence, Observation, absent, observed

LEAST_TOKENS = 32
"""Below so many tokens no rate of ds4's is given.

Its count is inferred and can be off by one, which at 32 moves the rate by 3 %; our own stamps are not believed from 5 %
on (``orchestrator.runner.observe``). With one token the printed rate is nonsense, since no pass was made: 10 077.80 t/s
in a real run.
"""
WORST_ROUNDING = 0.01
"""Rates are printed with two digits behind the point; where that alone moves one by more than this, none is given."""
STEP = 0.005

SPEECH = "stderr:prefill: t/s, generation: t/s"
SPECULATION = (
    "drafted_tokens",
    "accepted_tokens",
    "rejected_tokens",
    "discarded_tokens",
    "verify_rounds",
    "no_draft_rounds",
    "replay_passes",
    "target_passes",
    "acceptance_rate",
    "mean_accepted_length",
    "tokens_per_round",
    "cut_rounds",
    "tokens_per_pass",
    "speculative_coverage",
    "drafted_by_position",
    "accepted_by_position",
    "draft_time",
    "verify_time",
    "rollback_time",
)


def passes_of(cell: Cell, tokens: int) -> int:
    """Decode passes within ds4's own decode time, for an answer of so many tokens.

    Plain decoding prints the first token from the prefill and never evaluates the last one: one pass less than tokens.
    A speculative answer, and one above temperature 0 in May 2026, evaluates every token before it prints it.

    Source: ds4_cli.c and ds4.c at 8d57664; ds4_cli.c at b4c5cc8 for September 2026.
    """
    may = engine_options(cell).generation == MAY
    before_print = cell.method.kind is MethodKind.MTP or (may and cell.sampling.temperature > 0)
    return tokens if before_print else tokens - 1


def engine_times(cell: Cell, speed: Speed, tokens: int, prompt_tokens: int | None) -> Iterable[Observation]:
    """Times and rates by ds4's own clock, from the rates that it prints."""
    if prompt_tokens is None:
        yield absent("engine_prefill_time", Absence.NOT_REPORTED, "ds4 prints a rate, and not of how many tokens")
    elif _rounds_away(speed.prefill):
        yield absent("engine_prefill_time", Absence.SUPPRESSED, _rounding(speed.prefill))
    else:
        yield observed(
            "engine_prefill_time",
            prompt_tokens / speed.prefill,
            SPEECH,
            definition="ds4:prompt tokens/prefill rate",
        )
    passes = passes_of(cell, tokens)
    why = None
    if tokens < LEAST_TOKENS:
        why = (
            f"{tokens} token(s): below {LEAST_TOKENS} the rate that ds4 prints says more about its ends than its passes"
        )
    elif _rounds_away(speed.generation):
        why = _rounding(speed.generation)
    if why is not None:
        yield absent("engine_decode_time", Absence.SUPPRESSED, why)
        yield absent("engine_decode_rate", Absence.SUPPRESSED, why)
        return
    seconds = tokens / speed.generation
    printed = f"ds4 prints {speed.generation:.2f} t/s, which is {tokens} tokens over {passes} passes"
    yield observed("engine_decode_time", seconds, SPEECH, definition="ds4:tokens/generation rate", note=printed)
    definition = "ds4:(n-1)/(n/generation rate)" if passes < tokens else "ds4:generation rate"
    yield observed("engine_decode_rate", passes / seconds, SPEECH, definition=definition, note=printed)


def baseline() -> Iterable[Observation]:
    """Nothing of speculation applies."""
    for metric in SPECULATION:
        yield absent(metric, Absence.NOT_APPLICABLE, "the method is none")


def unreported(why: str) -> Iterable[Observation]:
    """Nothing of speculation is told."""
    for metric in SPECULATION:
        yield absent(metric, Absence.NOT_REPORTED, why)


def nothing_drafted(why: str) -> Iterable[Observation]:
    """No line speaks of a draft, although lines were asked for: nothing was drafted."""
    yield observed("drafted_tokens", 0, "stderr: no line on speculation (inferred)", clock=Clock.DERIVED, note=why)
    yield observed("accepted_tokens", 0, "stderr: no line on speculation (inferred)", clock=Clock.DERIVED, note=why)
    for metric in SPECULATION[2:]:
        yield absent(metric, Absence.NOT_APPLICABLE, "nothing was drafted in this trial")


def speculative(said: Spoken, tokens: int, count_source: str, *, at_end_of_text: bool) -> Iterable[Observation]:
    """Counts and times of ds4's cycles.

    Args:
        said: what its lines tell.
        tokens: of the answer.
        count_source: where those were counted.
        at_end_of_text: the answer ended before its limit. Its last token can then have been a draft, which is in the
            lines and not in the answer.
    """
    yield from _counts(said)
    yield from _idle(said, tokens, count_source, at_end_of_text=at_end_of_text)
    yield from _ratios(said, tokens, count_source)
    yield from _positions(said)
    parts = {
        "draft_time": (said.draft_s, "a lower bound: the first draft of a cycle is made in the pass before"),
        "verify_time": (said.verify_s, "without the pass over the cycle's own token"),
        "rollback_time": (said.back_s, "saving, restoring and replaying"),
    }
    for metric, (seconds, what) in parts.items():
        if seconds is None:
            yield absent(metric, Absence.NOT_REPORTED, "ds4 prints no such time in this mode")
        else:
            note = what if said.definition == MAY_CYCLE else None
            yield observed(metric, seconds, said.source, definition=f"{said.definition}:{metric}", note=note)


def _counts(said: Spoken) -> Iterable[Observation]:
    told = "a build with this mode does not say how many tokens were proposed"
    dropped = f"{said.dropped} more were withdrawn unasked, their confidence too low" if said.dropped else None
    yield _count("drafted_tokens", said.drafted, said, told, dropped)
    yield _count("accepted_tokens", said.accepted, said, told)
    yield _count("rejected_tokens", said.rejected, said, told)
    if said.drafted is None or said.rejected is None:
        yield absent("discarded_tokens", Absence.NOT_REPORTED, told)
    else:
        yield observed(
            "discarded_tokens", said.drafted - said.accepted - said.rejected, "drafted − accepted − rejected"
        )
    passes = "a cycle in which ds4 drafted: a pass over its own token, and one over the rest where the first draft fits"
    passes += "; and one over the token in a refused draft's place" if said.replaced else ""
    yield _count("verify_rounds", said.cycles, said, told, None if said.definition in ONE_PASS else passes)
    yield _count("replay_passes", said.replays, said, "ds4 does not say how often it replayed")
    why = "a cycle makes one pass or two, and ds4 does not count them"
    yield absent("target_passes", Absence.NOT_REPORTED, why)
    yield absent("tokens_per_pass", Absence.NOT_REPORTED, why)


def _count(metric: str, value: int | None, said: Spoken, why: str, note: str | None = None) -> Observation:
    if value is None:
        return absent(metric, Absence.NOT_REPORTED, why)
    return observed(metric, value, said.source, definition=f"{said.definition}:{metric}", note=note)


def _idle(said: Spoken, tokens: int, count_source: str, *, at_end_of_text: bool) -> Iterable[Observation]:
    """Passes without a draft: the cycles that DSpark counts as such, and what no line accounts for."""
    left = said.left(tokens)
    if said.idle is not None and left is not None and left <= 0:
        yield observed("no_draft_rounds", said.idle, said.source, definition=f"{said.definition}:no_draft_rounds")
        return
    if left is None or left < 0:
        yield absent("no_draft_rounds", Absence.NOT_REPORTED, "ds4 prints no line for a pass without a draft")
        return
    source = f"{count_source} − ({said.source}) (inferred)"
    note = "inferred: tokens that no line accounts for, one a pass"
    if said.idle:
        note = f"{said.idle} cycles without a draft, and {left} {note.removeprefix('inferred: ')} (inferred)"
    if at_end_of_text:
        note += "; one more where the end of text was a draft"
    yield observed("no_draft_rounds", (said.idle or 0) + left, source, clock=Clock.DERIVED, note=note)


def _ratios(said: Spoken, tokens: int, count_source: str) -> Iterable[Observation]:
    names = ("acceptance_rate", "mean_accepted_length", "tokens_per_round", "cut_rounds", "speculative_coverage")
    if said.drafted == 0 or not said.cycles:
        for name in names:
            yield absent(name, Absence.NOT_APPLICABLE, "nothing was drafted in this trial")
        return
    if said.drafted is None:
        yield absent("acceptance_rate", Absence.NOT_REPORTED, "how many tokens were proposed is not told")
    else:
        yield observed("acceptance_rate", said.accepted / said.drafted, "accepted ÷ drafted")
    yield observed("mean_accepted_length", said.accepted / said.cycles, "accepted ÷ verify_rounds")
    committed, left = said.by_rounds, said.left(tokens)
    if committed is None or left is None:
        why = "how many drafts were refused is not told, and each refusal prints a token more"
        yield from (absent(name, Absence.NOT_REPORTED, why) for name in names[2:])
        return
    # The end-of-text token is accepted and not printed: then the lines tell one token more than the answer has.
    if left < 0:
        why = "the answer ended inside a cycle, and ds4 does not say how much of it was used"
        yield from (absent(name, Absence.NOT_REPORTED, why) for name in names[2:])
        return
    parts = "accepted + rounds + replacements" if said.replaced else "accepted + rounds"
    yield observed("tokens_per_round", committed / said.cycles, f"({parts}) ÷ rounds")
    yield observed(
        "cut_rounds", 0, f"{said.source}, {count_source}", note="no cycle reached beyond the end of the answer"
    )
    yield observed("speculative_coverage", committed / tokens, f"({parts}) ÷ {count_source}")


def _positions(said: Spoken) -> Iterable[Observation]:
    names = ("drafted_by_position", "accepted_by_position")
    if said.lengths is None or said.kept is None:
        yield from (
            absent(name, Absence.NOT_REPORTED, "ds4 prints no lengths of drafts in this mode") for name in names
        )
        return
    if not said.lengths:
        yield from (absent(name, Absence.NOT_APPLICABLE, "nothing was drafted in this trial") for name in names)
        return
    longest = max(said.lengths)
    for name, sizes in zip(names, (said.lengths, said.kept), strict=True):
        counts = tuple(sum(size > place for size in sizes) for place in range(longest))
        yield observed(name, counts, said.source, definition=f"{said.definition}:{name}")


def _rounds_away(rate: float) -> bool:
    return rate <= 0 or STEP / rate > WORST_ROUNDING


def _rounding(rate: float) -> str:
    return f"ds4 prints {rate:.2f} t/s: rounded to two digits it is worth ±{STEP / max(rate, STEP):.0%}"
