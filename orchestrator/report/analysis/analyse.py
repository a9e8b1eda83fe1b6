"""Draws the conclusions of a run: comparisons inside block attempts, noise floors, checks, groups, validity, advice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.exactness.coverage import coverage as coverage_of_faults
from orchestrator.report.analysis import ledger
from orchestrator.report.analysis.acceptance import decomposition_of, drafting_of, sweeps_of
from orchestrator.report.analysis.advice import recommend
from orchestrator.report.analysis.checks import Checks, run_checks
from orchestrator.report.analysis.findings import CACHED_FIRST, COMPARED, WAIT, Analysis, CellFinding
from orchestrator.report.analysis.measures import (
    DRAFTING,
    Arm,
    arm_of,
    doubtful,
    longest_reached,
    missing,
    phase_times,
    problem_counts,
    process_totals,
    reached_by_both,
    summaries,
)
from orchestrator.report.analysis.quality import broken_answers, quality_of
from orchestrator.report.analysis.verdicts import coverage, validity
from orchestrator.schema.cell import Role
from orchestrator.schema.metrics import VOCABULARY, Unit
from orchestrator.schema.record import CONFIRM, RunHeader
from orchestrator.schema.result import Comparison, Group, Outcome
from orchestrator.schema.status import STATUS_RULES
from orchestrator.stats.compare import apply_holm, compare
from orchestrator.stats.length import length_comparable
from orchestrator.stats.noise import NoiseFloor, blocked_floor, canary, noise_floor
from orchestrator.stats.stability import Flag, flags

if TYPE_CHECKING:
    from orchestrator.report.analysis.quality_findings import Quality
    from orchestrator.stats.broken import Broken
    from orchestrator.store.index import Index
    from orchestrator.store.states import AttemptState, CellState

Floors = dict[tuple[str, int, str], NoiseFloor]

FROM_STAMPS = frozenset({"ttft", CACHED_FIRST, "decode_rate"})
"""Metrics that rest, like every ``time_to_n``, on stamps within an answer."""
BLOCKED = "blocked_with_canary"
"""``AttemptState.order`` of an attempt whose cells ran one after the other, the baseline's twin last."""
DOUBTFUL_SHARE = 0.05
"""Answers that may break an invariant before such metrics are no longer compared."""

SHOWN: tuple[str, ...] = (
    *COMPARED, "time_to_16", "output_tokens", "load_time", "prompt_tokens", "engine_prefill_time", "engine_decode_rate",
    "swap_delta", *sorted(DRAFTING),
)  # fmt: skip
"""Metrics for which a missing value is explained."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A cell's arm beside its baseline's and its twin's in the same attempt; ``blocked``: one after the other."""

    cell: Arm
    base: Arm
    twin: Arm | None
    attempt: AttemptState | None

    @property
    def blocked(self) -> bool:
        return self.attempt is not None and self.attempt.order == BLOCKED


def analyse(index: Index, header: RunHeader) -> Analysis:  # noqa: ARG001  (part of the interface: later checks need it)
    """Everything that is concluded from a run; pure, the same records give the same conclusions."""
    states = tuple(index.cells.values())
    pairs = _pairs(states, index)
    floors = _floors(states, pairs)
    checks = run_checks(index)
    compared = {
        state.id: _comparisons(state, pairs[state.id], floors, index)
        for state in states
        if state.role is Role.SPECULATIVE
    }
    _correct(states, compared)
    cells = tuple(_finding(state, pairs[state.id], compared.get(state.id, {}), checks) for state in states)
    found, reasons = validity(cells, floors, index)
    return Analysis(cells, floors, coverage(cells), found, reasons, recommend(cells, floors), sweeps_of(cells))


def _pairs(states: tuple[CellState, ...], index: Index) -> dict[str, _Pair]:
    """Every cell's pair; cells on one baseline share its arm."""
    twins = {state.block: state for state in states if state.role is Role.TWIN}
    arms: dict[tuple[str, int | None], Arm] = {}

    def arm(state: CellState | None, attempt: int | None) -> Arm | None:
        if state is None:
            return None
        if (state.id, attempt) not in arms:
            arms[state.id, attempt] = arm_of(state, attempt)
        return arms[state.id, attempt]

    return {state.id: _pair(state, index, arm, twins.get(state.block)) for state in states}


def _pair(
    state: CellState, index: Index, arm: Callable[[CellState | None, int | None], Arm | None], twin: CellState | None
) -> _Pair:
    nothing = Arm((), ())
    return _Pair(
        arm(state, state.attempt) or nothing,
        arm(index.cells.get(state.baseline or ""), state.attempt) or nothing,
        arm(twin, state.attempt),
        next((one for one in index.attempts.get(state.block, ()) if one.attempt == state.attempt), None),
    )


def _floors(states: tuple[CellState, ...], pairs: Mapping[str, _Pair]) -> Floors:
    """The A/A comparison of each block attempt that some cell stands on."""
    floors: Floors = {}
    for state in states:
        if state.attempt is None:
            continue
        pair = pairs[state.id]
        if pair.twin is None:
            continue
        for metric in (*COMPARED, CACHED_FIRST, *reached_by_both(pair.twin, pair.base)):
            key = (state.block, state.attempt, metric)
            if key not in floors:
                judge = blocked_floor if pair.blocked else noise_floor
                floors[key] = judge(pair.twin.frame(metric), pair.base.frame(metric))
    return floors


def _comparisons(state: CellState, pair: _Pair, floors: Floors, index: Index) -> dict[str, Comparison]:
    if not pair.cell.trials:
        return {}
    refused = _refusal(state, index) or _broken(state, pair).refusal
    refused = refused or ledger.refusal(pair.cell.sessions, pair.base.sessions)
    comparable, sentence = _lengths(pair)
    found = {}
    for metric in (*COMPARED, CACHED_FIRST, *reached_by_both(pair.cell, pair.base)):
        if not len(pair.cell.frame(metric)):
            continue
        floor = floors.get((state.block, state.attempt or 0, metric))
        length = "" if comparable or metric != WAIT else sentence
        doubt = _doubt(pair) if metric in FROM_STAMPS or metric.startswith("time_to_") else ""
        found[metric] = compare(
            state.id,
            state.baseline or "",
            metric,
            pair.cell.frame(metric),
            pair.base.frame(metric),
            better=VOCABULARY[metric].better,
            noise_floor=floor.half_width if floor is not None else None,
            refused=refused or length or doubt or _moved(pair, metric) or _differs_from_itself(floor, metric),
        )
    return found


def _refusal(state: CellState, index: Index) -> str:
    """Why the figures of a cell must not be compared at all, by the status table."""
    base = index.cells.get(state.baseline or "")
    for one in (state, base):
        if one is not None and not STATUS_RULES[one.status].ranked and one.attempt == state.attempt:
            return f"{one.id} is {STATUS_RULES[one.status].word}" + (f": {one.reason}" if one.reason else "")
    return ""


def _differs_from_itself(floor: NoiseFloor | None, metric: str) -> str:
    """Why a time must not be compared where the baseline differs from its own twin; memory differs by pages only."""
    if floor is None or not floor.inconclusive or VOCABULARY[metric].unit is Unit.BYTE:
        return ""
    return floor.reason


def _broken(state: CellState, pair: _Pair) -> Broken:
    return broken_answers(pair.cell, pair.base, greedy=not state.settings["sampling"]["temperature"])


def _quality(state: CellState, pair: _Pair, comparisons: Mapping[str, Comparison], headline: str) -> Quality | None:
    if not pair.cell.trials:
        return None
    return quality_of(pair.cell, pair.base, _broken(state, pair), headline, comparisons)


def _moved(pair: _Pair, metric: str) -> str:
    """Why the metric must not be compared where the baseline changed while other cells had their turn."""
    if not pair.blocked:
        return ""
    twin = pair.twin if pair.twin is not None else Arm((), ())
    steady, why = canary(pair.base.frame(metric), twin.frame(metric))
    return "" if steady else f"confounded: {why}"


def _doubt(pair: _Pair) -> str:
    """Why figures that rest on the stamps within an answer must not be compared; empty where they may.

    A stamp that came late shifts the first answer and the rate, but not the end, so the total wait stands.
    """
    for arm, name in ((pair.cell, "the cell"), (pair.base, "the baseline")):
        bad = doubtful(arm)
        if bad > DOUBTFUL_SHARE * len(arm.trials):
            return f"{bad} of {len(arm.trials)} answers of {name} break an invariant between our clock and the engine's"
    return ""


def _lengths(pair: _Pair) -> tuple[bool, str]:
    return length_comparable(pair.cell.frame("output_tokens"), pair.base.frame("output_tokens"))


def _correct(states: tuple[CellState, ...], compared: dict[str, dict[str, Comparison]]) -> None:
    """Holm over the cells of one baseline, metric by metric."""
    families: dict[tuple[str, str], list[str]] = defaultdict(list)
    for state in states:
        for metric in compared.get(state.id, {}):
            families[state.block, metric].append(state.id)
    for (_, metric), members in families.items():
        corrected = apply_holm([compared[cell][metric] for cell in members])
        for cell, row in zip(members, corrected, strict=True):
            compared[cell][metric] = row


def _finding(state: CellState, pair: _Pair, comparisons: Mapping[str, Comparison], checks: Checks) -> CellFinding:
    found = summaries(pair.cell)
    absent, partial = missing(state, pair.cell, SHOWN)
    base = summaries(pair.base)
    longest = longest_reached((pair.cell, pair.base)) if state.role is Role.SPECULATIVE else None
    greedy = state.settings["sampling"]["temperature"] == 0
    drafting = drafting_of(pair.cell, greedy=greedy) if state.role is Role.SPECULATIVE else None
    placement = checks.placements.get(state.id)
    headline = _headline(comparisons, longest)
    return CellFinding(
        state=state,
        group=placement.group if placement is not None else Group.BASELINE,
        placement=placement,
        identity=checks.identities.get(state.id),
        summaries=found,
        missing=absent,
        partial=partial,
        comparisons=comparisons,
        headline=headline,
        longest_n=longest,
        lengths=_lengths(pair) if state.role is Role.SPECULATIVE and pair.cell.trials else None,
        totals=drafting.totals if drafting is not None else None,
        acceptance=drafting.rate if drafting is not None else None,
        decomposition=decomposition_of(state, comparisons, base, pair.cell, drafting),
        flags=_flags(pair.cell),
        problems=problem_counts(pair.cell.trials),
        mark=checks.marks.get(state.id),
        faults=coverage_of_faults(checks.gates[state.id]) if state.id in checks.gates and pair.cell.trials else (),
        baseline_summaries=base,
        drafting=drafting,
        confirmed=pair.attempt is not None and pair.attempt.purpose == CONFIRM,
        stopped=pair.attempt.stopped if pair.attempt is not None else "",
        blocked=pair.blocked,
        phases=phase_times(state, pair.cell),
        per_process=process_totals(state, pair.cell),
        quality=_quality(state, pair, comparisons, headline),
    )


def _headline(comparisons: Mapping[str, Comparison], longest: int | None) -> str:
    """Total wait, unless lengths forbid it and a common N can be compared instead."""
    total = comparisons.get(WAIT)
    instead = f"time_to_{longest}"
    if total is None or total.outcome is not Outcome.NOT_COMPARABLE or instead not in comparisons:
        return WAIT
    return instead if comparisons[instead].outcome is not Outcome.NOT_COMPARABLE else WAIT


def _flags(arm: Arm) -> tuple[Flag, ...]:
    return flags(arm.frame(WAIT)) if arm.trials else ()
