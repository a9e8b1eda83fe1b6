"""Two runs side by side, cell by cell: how the gain of speculation changed, and what changed around it.

Each run's on ÷ off ratio was measured interleaved inside that run, so the change between two ratios stands on firm
ground. Absolute waits of different runs were not interleaved: nothing holds the machine's drift between them apart
from a real change, so they are shown without a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.report.analysis.analyse import analyse
from orchestrator.report.analysis.findings import COMPARED, WAIT, Analysis, CellFinding
from orchestrator.report.analysis.measures import arm_of
from orchestrator.report.compare.comparability import Conditions, Difference, Run, of_cells, of_runs
from orchestrator.schema.cell import Role
from orchestrator.schema.result import Comparison, Estimate, Outcome, Summary
from orchestrator.stats.estimate import summary
from orchestrator.stats.length import MARGIN
from orchestrator.stats.student import NO_SPREAD_LOG
from orchestrator.stats.unpaired import holm, session_logs, shift
from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import Index

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from orchestrator.stats.noise import NoiseFloor
    from orchestrator.store.states import CellState

    Floors = Mapping[tuple[str, int, str], NoiseFloor]

ABSOLUTE = (WAIT, "ttft", "decode_rate", "peak_unified")
NOT_INTERLEAVED = "not interleaved: the machine's drift between the two runs is not controlled"


@dataclass(frozen=True, slots=True)
class Change:
    """One metric's on ÷ off ratio in both runs, and after ÷ before of the two ratios.

    Args:
        ratio: ``None`` where either run has no ratio; ``reason`` says why.
        outcome: of the change; ``lower`` means that the ratio fell.
        floor: change of a ratio, minus one, that the two runs' own A/A comparisons do not tell from nothing.
    """

    metric: str
    before: Comparison | None
    after: Comparison | None
    ratio: Estimate | None
    outcome: Outcome
    reason: str
    p_value: float | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Absolute:
    """One metric of one arm in both runs: raw values, and after ÷ before without a verdict."""

    metric: str
    cell: str
    before: Summary
    after: Summary
    ratio: Estimate | None
    reason: str


@dataclass(frozen=True, slots=True)
class CellChange:
    """A speculative cell of both runs; refused cells have no figures."""

    before: CellFinding
    after: CellFinding
    conditions: Conditions
    changes: tuple[Change, ...] = ()
    absolutes: tuple[Absolute, ...] = ()

    @property
    def id(self) -> str:
        """The cell's id."""
        return self.after.id

    @property
    def comparable(self) -> bool:
        """Whether all named conditions agree."""
        return not self.conditions.refused

    def change(self, metric: str) -> Change | None:
        """The change in a metric."""
        return next((one for one in self.changes if one.metric == metric), None)


@dataclass(frozen=True, slots=True)
class RunsCompared:
    """Two runs.

    Args:
        same: both are one run: there is nothing independent to compare.
        conditions: what holds for every cell.
        cells: speculative cells of both runs, in the order of the second.
        only_before: ids of cells that only the first run has, ``only_after`` the second.
    """

    before: Run
    after: Run
    same: bool
    conditions: Conditions
    cells: tuple[CellChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def comparable(self) -> tuple[CellChange, ...]:
        """The cells with figures."""
        return tuple(cell for cell in self.cells if cell.comparable)


def compare_runs(before: Path, after: Path) -> RunsCompared:
    """Two run directories.

    Raises:
        StoreError: one of them cannot be read.
    """
    runs = [_load(path) for path in (before, after)]
    return compared(*runs, same=before.resolve() == after.resolve())


def compared(before: Run, after: Run, *, same: bool = False) -> RunsCompared:
    """The comparison of two loaded runs; pure."""
    whole = of_runs(before, after)
    one, two = analyse(before.index, before.header), analyse(after.index, after.header)
    mine, theirs = _speculative(one), _speculative(two)
    cells = [_cell(mine[name], cell, before, after, whole) for name, cell in theirs.items() if name in mine]
    filled = [_figures(cell, before, after, one.floors, two.floors) if cell.comparable else cell for cell in cells]
    return RunsCompared(
        before,
        after,
        same,
        whole,
        tuple(_corrected(filled)),
        tuple(name for name in mine if name not in theirs),
        tuple(name for name in theirs if name not in mine),
    )


def _load(path: Path) -> Run:
    directory = RunDirectory.open(path)
    return Run(directory.header, Index.build(directory.records()))


def _speculative(analysis: Analysis) -> dict[str, CellFinding]:
    return {cell.id: cell for cell in analysis.cells if cell.state.role is Role.SPECULATIVE}


def _cell(before: CellFinding, after: CellFinding, one: Run, two: Run, whole: Conditions) -> CellChange:
    """The conditions of the cell, of its baseline where they are others, and of the runs."""
    own = of_cells(before.state, after.state)
    bases = [_base(cell.state, run) for cell, run in ((before, one), (after, two))]
    theirs = Conditions((), ())
    if bases[0] is not None and bases[1] is not None:
        theirs = of_cells(bases[0], bases[1])
    refused = (*whole.refused, *own.refused, *_of_baseline(theirs.refused, own.refused))
    return CellChange(before, after, Conditions(refused, (*own.changed, *_of_baseline(theirs.changed, own.changed))))


def _of_baseline(theirs: Sequence[Difference], own: Sequence[Difference]) -> tuple[Difference, ...]:
    return tuple(replace(item, name=f"baseline {item.name}") for item in theirs if item not in own)


def _base(state: CellState, run: Run) -> CellState | None:
    return run.index.cells.get(state.baseline or "")


def _figures(cell: CellChange, before: Run, after: Run, one: Floors, two: Floors) -> CellChange:
    shared = [metric for metric in COMPARED if metric in cell.before.comparisons or metric in cell.after.comparisons]
    reached = [metric for metric in cell.before.comparisons if metric in cell.after.comparisons]
    timed = [metric for metric in reached if metric.startswith("time_to_")]
    longest = max(timed, key=lambda metric: int(metric.rsplit("_", 1)[-1]), default=None)
    metrics = (*shared[:1], *([longest] if longest else []), *shared[1:])
    floors = {metric: _floor(cell, metric, one, two) for metric in metrics}
    return replace(
        cell,
        changes=tuple(_change(cell, metric, floors[metric]) for metric in metrics),
        absolutes=tuple(_absolutes(cell, before, after, longest)),
    )


def _floor(cell: CellChange, metric: str, one: Floors, two: Floors) -> float | None:
    """Both runs' noise together; unknown where either is."""
    halves = []
    for finding, floors in ((cell.before, one), (cell.after, two)):
        found = floors.get((finding.state.block, finding.state.attempt or 0, metric))
        if found is None or found.half_width is None:
            return None
        halves.append(math.log1p(found.half_width))
    return math.expm1(math.hypot(*halves))


def _change(cell: CellChange, metric: str, floor: float | None) -> Change:
    rows = cell.before.comparisons.get(metric), cell.after.comparisons.get(metric)
    for row, name in zip(rows, ("first", "second"), strict=True):
        if row is None or row.ratio is None:
            why = row.reason if row is not None else "not compared there"
            return Change(metric, *rows, None, Outcome.NOT_COMPARABLE, f"{name} run: {why}")
    logs = [[math.log(value) for value in row.session_ratios] for row in rows if row is not None]
    moved = shift(logs[0], logs[1])
    outcome, reason = _outcome(moved.ratio, floor)
    return Change(metric, *rows, moved.ratio, outcome, reason, moved.p_value, floor)


def _outcome(ratio: Estimate, floor: float | None) -> tuple[Outcome, str]:
    if ratio.low is None or ratio.high is None:
        return Outcome.RANGE_ONLY, ratio.method
    if ratio.low <= 1 <= ratio.high:
        return Outcome.NO_DIFFERENCE, ""
    if floor is not None and abs(math.log(ratio.point)) <= math.log1p(floor):
        return Outcome.NO_DIFFERENCE, f"inside the two runs' noise floors (±{100 * floor:.1f} %)"
    note = "no A/A twin in both runs: the noise floor is not known" if floor is None else ""
    return (Outcome.LOWER if ratio.point < 1 else Outcome.HIGHER), note


def _corrected(cells: Sequence[CellChange]) -> list[CellChange]:
    """Holm over all compared cells of the two runs, metric by metric."""
    family: dict[str, dict[str, float]] = {}
    for cell in cells:
        for one in cell.changes:
            if one.p_value is not None:
                family.setdefault(one.metric, {})[cell.id] = one.p_value
    fallen = {metric: holm(values) for metric, values in family.items()}
    return [
        replace(cell, changes=tuple(_after_holm(one, cell.id, fallen, family) for one in cell.changes))
        for cell in cells
    ]


def _after_holm(
    one: Change, cell: str, fallen: Mapping[str, frozenset[str]], family: Mapping[str, Mapping[str, float]]
) -> Change:
    if one.outcome not in (Outcome.LOWER, Outcome.HIGHER) or cell in fallen.get(one.metric, frozenset()):
        return one
    reason = f"{one.outcome.value} if it stood alone, not among {len(family[one.metric])} cells (Holm)"
    return replace(one, outcome=Outcome.NO_DIFFERENCE, reason=reason)


def _absolutes(cell: CellChange, before: Run, after: Run, longest: str | None) -> list[Absolute]:
    """The arms of both runs: first without speculation, then with it."""
    arms = [(_base(cell.before.state, before), _base(cell.after.state, after)), (cell.before.state, cell.after.state)]
    found = []
    for one, two in arms:
        if one is None or two is None:
            continue
        frames = arm_of(one, cell.before.state.attempt), arm_of(two, cell.after.state.attempt)
        for metric in (WAIT, *([longest] if longest else []), *ABSOLUTE[1:]):
            values = [frame.frame(metric) for frame in frames]
            if any(value.empty for value in values):
                continue
            logs = session_logs(*values)
            refusal = logs[0].refusal
            if metric == WAIT and not refusal:
                refusal = _lengths(frames[0].frame("output_tokens"), frames[1].frame("output_tokens"))
            ratio = None if refusal else shift(logs[0].logs, logs[1].logs).ratio
            medians = [summary(value["value"]) for value in values]
            found.append(Absolute(metric, two.id, medians[0], medians[1], ratio, refusal or NOT_INTERLEAVED))
    return found


def _lengths(before: pd.DataFrame, after: pd.DataFrame) -> str:
    """Why total waits of answers of different lengths are not set against each other; empty where they may be."""
    one, two = session_logs(before, after)
    if one.refusal:
        return f"length: {one.refusal}"
    if all(abs(left - right) <= NO_SPREAD_LOG for left in one.logs for right in two.logs):
        return ""
    ratio = shift(one.logs, two.logs).ratio
    edges = (ratio.low or ratio.point, ratio.high or ratio.point)
    if max(abs(math.log(edge)) for edge in edges) <= math.log1p(MARGIN):
        return ""
    return f"length: the second run's answers have {ratio.point:.2f}× as many tokens; see the time to a common token"
