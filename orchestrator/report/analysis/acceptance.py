"""What became of a cell's draft tokens, and what a pass cost: from its records to the statistics of drafting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import CategoryAcceptance, Drafting, DraftTotals, Sweep
from orchestrator.report.analysis.measures import Arm, acceptance_frame, draft_totals
from orchestrator.schema.cell import MethodKind, Role
from orchestrator.stats.acceptance import by_position, flatness, pooled
from orchestrator.stats.speedup import Decomposition, best_measured, decompose

if TYPE_CHECKING:
    from orchestrator.report.analysis.findings import CellFinding
    from orchestrator.schema.record import SessionRecord, TrialRecord
    from orchestrator.schema.result import Comparison, Estimate, Summary
    from orchestrator.store.states import CellState

RATE = "decode_rate"


def drafting_of(arm: Arm, *, greedy: bool) -> Drafting | None:
    """Acceptance pooled, by position and by category; ``None`` where no trial reports its drafts.

    The test of the positions is given every distinct answer once: a repeat that gave the same tokens was bound to give
    the same counts, and is no evidence of its own.

    Counts that no run of rounds can give are no reason to lose a report: ``problem`` says so, and there is no rate.
    """
    totals = draft_totals(arm)
    if totals is None:
        return None
    try:
        rate = pooled(acceptance_frame(arm))
        names = tuple(dict.fromkeys(trial.category for trial in arm.trials))
        whole = (CategoryAcceptance(names[0], rate, totals),)
        categories = tuple(_category(name, arm) for name in names) if len(names) > 1 else whole
        positions = by_position(_positions(arm.trials))
        tested = flatness(by_position(_positions(_distinct(arm.trials, greedy=greedy))))
    except ValueError as err:
        return Drafting(totals, None, (), None, (), str(err))
    return Drafting(totals, rate, positions, tested, categories)


def _category(name: str, arm: Arm) -> CategoryAcceptance:
    mine = Arm(arm.sessions, tuple(trial for trial in arm.trials if trial.category == name))
    return CategoryAcceptance(name, pooled(acceptance_frame(mine)), draft_totals(mine))


def _distinct(trials: Iterable[TrialRecord], *, greedy: bool) -> tuple[TrialRecord, ...]:
    """The first of the trials with the same answer to the same prompt; of sampled ones with the same seed too."""
    found: dict[tuple[object, ...], TrialRecord] = {}
    for trial in trials:
        answer = trial.token_ids or trial.text
        found.setdefault((trial.prompt_id, answer, 0 if greedy else trial.seed), trial)
    return tuple(found.values())


def _positions(trials: Iterable[TrialRecord]) -> Iterable[tuple[Sequence[int], Sequence[int]]]:
    """Drafted and accepted by position of each trial that reports both."""
    for trial in trials:
        found = {item.metric: item.value for item in trial.observations if isinstance(item.value, tuple)}
        drafted, accepted = found.get("drafted_by_position"), found.get("accepted_by_position")
        if drafted is not None and accepted is not None:
            yield drafted, accepted


def decomposition_of(
    state: CellState,
    comparisons: Mapping[str, Comparison],
    base: Mapping[str, Summary],
    arm: Arm,
    drafting: Drafting | None,
) -> Decomposition | None:
    """What a verify pass cost, where the engine reports its passes and the decode rates may be compared."""
    rate, plain = comparisons.get(RATE), base.get("tpot")
    passes, emitted, drafted = _passes(arm.trials)
    if rate is None or rate.ratio is None or drafting is None or not passes or emitted <= 0:
        return None
    seconds, lower_bound = _draft_seconds(state, arm, passes)
    return decompose(
        speedup=rate.ratio.point,
        tokens_per_pass=emitted / passes,
        mean_draft_length=drafted / passes,
        acceptance=drafting.rate.point if drafting.rate is not None else None,
        plain_pass_s=plain.median if plain is not None else None,
        draft_s_per_pass=seconds,
        draft_is_free=seconds is None and state.settings["method"]["kind"] == MethodKind.NGRAM,
        draft_is_lower_bound=lower_bound,
        judged_alpha=_alpha(drafting.totals),
    )


def _passes(trials: Sequence[TrialRecord]) -> tuple[float, float, float]:
    """Target passes, the tokens they emitted and the tokens drafted for them, over the trials that report all three."""
    passes = emitted = drafted = 0.0
    for trial in trials:
        values = _numbers(trial)
        found = [values.get(name) for name in ("target_passes", "tokens_per_pass", "drafted_tokens")]
        if all(value is not None for value in found):
            count, each, proposed = (value or 0.0 for value in found)
            passes, emitted, drafted = passes + count, emitted + count * each, drafted + proposed
    return passes, emitted, drafted


def _draft_seconds(state: CellState, arm: Arm, passes: float) -> tuple[float | None, bool]:
    """The drafter's seconds per target pass, and whether they are a lower bound by the engine's note.

    By trial where an engine tells, else over whole sessions: a running total of the process covers its warm-up too, so
    the passes of all its requests are counted then.
    """
    records: tuple[TrialRecord | SessionRecord, ...] = (*arm.trials, *arm.sessions)
    notes = (item.note or "" for one in records for item in one.observations if item.metric == "draft_time")
    lower_bound = any("lower bound" in note for note in notes)
    by_trial = [_numbers(trial).get("draft_time") for trial in arm.trials]
    if by_trial and all(value is not None for value in by_trial):
        return sum(value or 0.0 for value in by_trial) / passes, lower_bound
    by_session = [_numbers(session).get("draft_time") for session in arm.sessions]
    if not by_session or any(value is None for value in by_session):
        return None, False
    mine = {session.place for session in arm.sessions}
    every = [trial for trial in (*state.partner_trials, *state.trials) if trial.place in mine]
    counts = [_numbers(trial).get("target_passes") for trial in every]
    if not counts or any(count is None for count in counts):
        return None, False
    total = sum(count or 0.0 for count in counts)
    return (sum(value or 0.0 for value in by_session) / total, lower_bound) if total else (None, False)


def _alpha(totals: DraftTotals) -> float | None:
    """Chance that a judged draft token is accepted: accepted ÷ (accepted + refused); discarded ones were not judged."""
    if totals.refused is None or not totals.accepted + totals.refused:
        return None
    return totals.accepted / (totals.accepted + totals.refused)


def sweeps_of(cells: Sequence[CellFinding]) -> tuple[Sweep, ...]:
    """The best measured draft length of every drafter that was tried with several, by decode rate."""
    families: dict[tuple[str, str], dict[int, CellFinding]] = {}
    for cell in cells:
        method = cell.state.settings["method"]
        row = cell.comparisons.get(RATE)
        if cell.state.role is Role.SPECULATIVE and row is not None and row.ratio is not None and method["n_max"]:
            family = " ".join(filter(None, (str(getattr(method["kind"], "value", method["kind"])), method["draft"])))
            families.setdefault((cell.state.block, family), {}).setdefault(method["n_max"], cell)
    found = []
    for (block, family), members in families.items():
        ratios: dict[int, Estimate] = {
            k: row.ratio for k, cell in members.items() if (row := cell.comparisons[RATE]).ratio is not None
        }
        best = best_measured(ratios)
        if best is not None and len(ratios) > 1:
            k, clear = best
            found.append(Sweep(block, family, tuple(sorted(ratios)), k, members[k].id, clear, members[k].confirmed))
    return tuple(found)


def _numbers(record: TrialRecord | SessionRecord) -> dict[str, float]:
    return {
        item.metric: float(item.value)
        for item in record.observations
        if isinstance(item.value, int | float) and not isinstance(item.value, bool)
    }
