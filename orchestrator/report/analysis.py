"""Draws the conclusions of a run: comparisons inside block attempts, noise floors, checks, groups, validity, advice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.report.checks import Checks, run_checks
from orchestrator.report.findings import COMPARED, WAIT, Analysis, CellFinding
from orchestrator.report.measures import (
    DRAFTING,
    Arm,
    acceptance_frame,
    arm_of,
    doubtful,
    draft_totals,
    longest_reached,
    missing,
    problem_counts,
    reached_by_both,
    summaries,
)
from orchestrator.report.verdicts import coverage, recommend, validity
from orchestrator.schema.cell import Role
from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.record import RunHeader
from orchestrator.schema.result import Comparison, Group, Outcome, Summary
from orchestrator.schema.status import STATUS_RULES
from orchestrator.stats.acceptance import pooled
from orchestrator.stats.compare import apply_holm, compare
from orchestrator.stats.length import length_comparable
from orchestrator.stats.noise import NoiseFloor, noise_floor
from orchestrator.stats.speedup import Decomposition, decompose
from orchestrator.stats.stability import Flag, flags

if TYPE_CHECKING:
    from orchestrator.schema.result import Estimate
    from orchestrator.store.index import Index
    from orchestrator.store.states import CellState

Floors = dict[tuple[str, int, str], NoiseFloor]

FROM_STAMPS = frozenset({"ttft", "decode_rate"})
"""Metrics that rest, like every ``time_to_n``, on stamps within an answer."""
DOUBTFUL_SHARE = 0.05
"""Answers that may break an invariant before such metrics are no longer compared."""

SHOWN: tuple[str, ...] = (
    *COMPARED, "output_tokens", "load_time", "prompt_tokens", "engine_prefill_time", "engine_decode_rate",
    "swap_delta", *sorted(DRAFTING),
)  # fmt: skip
"""Metrics for which a missing value is explained."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A cell's arm beside its baseline's and its twin's in the same attempt."""

    cell: Arm
    base: Arm
    twin: Arm | None


def analyse(index: Index, header: RunHeader) -> Analysis:  # noqa: ARG001  (part of the interface: later checks need it)
    """Everything that is concluded from a run; pure, the same records give the same conclusions."""
    states = tuple(index.cells.values())
    pairs = {state.id: _pair(state, index) for state in states}
    floors = _floors(states, index)
    checks = run_checks(index)
    compared = {
        state.id: _comparisons(state, pairs[state.id], floors, index)
        for state in states
        if state.role is Role.SPECULATIVE
    }
    _correct(states, compared)
    cells = tuple(_finding(state, pairs[state.id], compared.get(state.id, {}), checks) for state in states)
    found, reasons = validity(cells, floors, index)
    return Analysis(cells, floors, coverage(cells), found, reasons, recommend(cells, floors))


def _pair(state: CellState, index: Index) -> _Pair:
    base = index.cells.get(state.baseline or "")
    twin = next((s for s in index.cells.values() if s.role is Role.TWIN and s.block == state.block), None)
    nothing = Arm((), ())
    return _Pair(
        arm_of(state, state.attempt),
        arm_of(base, state.attempt) if base is not None else nothing,
        arm_of(twin, state.attempt) if twin is not None else None,
    )


def _floors(states: tuple[CellState, ...], index: Index) -> Floors:
    """The A/A comparison of each block attempt that some cell stands on."""
    floors: Floors = {}
    for state in states:
        if state.attempt is None:
            continue
        pair = _pair(state, index)
        if pair.twin is None:
            continue
        for metric in (*COMPARED, *reached_by_both(pair.twin, pair.base)):
            key = (state.block, state.attempt, metric)
            if key not in floors:
                floors[key] = noise_floor(pair.twin.frame(metric), pair.base.frame(metric))
    return floors


def _comparisons(state: CellState, pair: _Pair, floors: Floors, index: Index) -> dict[str, Comparison]:
    if not pair.cell.trials:
        return {}
    refused = _refusal(state, index)
    comparable, sentence = _lengths(pair)
    found = {}
    for metric in (*COMPARED, *reached_by_both(pair.cell, pair.base)):
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
            refused=refused or length or doubt,
        )
    return found


def _refusal(state: CellState, index: Index) -> str:
    """Why the figures of a cell must not be compared at all, by the status table."""
    base = index.cells.get(state.baseline or "")
    for one in (state, base):
        if one is not None and not STATUS_RULES[one.status].ranked and one.attempt == state.attempt:
            return f"{one.id} is {STATUS_RULES[one.status].word}" + (f": {one.reason}" if one.reason else "")
    return ""


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
    totals = draft_totals(pair.cell) if state.role is Role.SPECULATIVE else None
    acceptance = pooled(acceptance_frame(pair.cell)) if totals is not None else None
    placement = checks.placements.get(state.id)
    return CellFinding(
        state=state,
        group=placement.group if placement is not None else Group.BASELINE,
        placement=placement,
        identity=checks.identities.get(state.id),
        summaries=found,
        missing=absent,
        partial=partial,
        comparisons=comparisons,
        headline=_headline(comparisons, longest),
        longest_n=longest,
        lengths=_lengths(pair) if state.role is Role.SPECULATIVE and pair.cell.trials else None,
        totals=totals,
        acceptance=acceptance,
        decomposition=_decomposition(comparisons, found, base, acceptance),
        flags=_flags(pair.cell),
        problems=problem_counts(pair.cell.trials),
        mark=checks.marks.get(state.id),
        baseline_summaries=base,
    )


def _headline(comparisons: Mapping[str, Comparison], longest: int | None) -> str:
    """Total wait, unless lengths forbid it and a common N can be compared instead."""
    total = comparisons.get(WAIT)
    instead = f"time_to_{longest}"
    if total is None or total.outcome is not Outcome.NOT_COMPARABLE or instead not in comparisons:
        return WAIT
    return instead if comparisons[instead].outcome is not Outcome.NOT_COMPARABLE else WAIT


def _decomposition(
    comparisons: Mapping[str, Comparison],
    found: Mapping[str, Summary],
    base: Mapping[str, Summary],
    acceptance: Estimate | None,
) -> Decomposition | None:
    """What a verify pass cost, where the engine reports its passes."""
    rate = comparisons.get("decode_rate")
    needed = ("tokens_per_pass", "target_passes", "drafted_tokens")
    if rate is None or rate.ratio is None or any(metric not in found for metric in needed):
        return None
    passes = sum(found["target_passes"].values)
    plain = base.get("tpot")
    if not passes or sum(found["tokens_per_pass"].values) <= 0:
        return None
    return decompose(
        speedup=rate.ratio.point,
        tokens_per_pass=found["tokens_per_pass"].median,
        mean_draft_length=sum(found["drafted_tokens"].values) / passes,
        acceptance=acceptance.point if acceptance is not None else None,
        plain_pass_s=plain.median if plain is not None else None,
    )


def _flags(arm: Arm) -> tuple[Flag, ...]:
    return flags(arm.frame(WAIT)) if arm.trials else ()
