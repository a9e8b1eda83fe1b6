"""What is concluded from a run, as plain data: the seam between the statistics and the words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.exactness.coverage import Caught
from orchestrator.exactness.groups import Mark
from orchestrator.report.analysis.quality_findings import Quality
from orchestrator.schema.observation import Absence
from orchestrator.schema.result import Comparison, Estimate, GreedyIdentity, Group, Placement, Summary
from orchestrator.schema.status import Status, Validity
from orchestrator.stats.acceptance import PositionAcceptance
from orchestrator.stats.noise import NoiseFloor
from orchestrator.stats.speedup import Decomposition
from orchestrator.stats.stability import Flag
from orchestrator.store.states import CellState

WAIT = "e2e_latency"
COMPARED: tuple[str, ...] = (WAIT, "ttft", "decode_rate", "peak_unified")
CACHED_FIRST = "ttft_cached"
"""In place of ``ttft`` where a workload's prompts are in the engine's cache; compared like it, and never with it."""
"""Compared for every cell, besides each ``time_to_n`` that both arms reached."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a metric has no value for a cell, or for ``count`` of its answers."""

    absence: Absence
    why: str
    count: int = 0


@dataclass(frozen=True, slots=True)
class ProcessTotal:
    """Running totals that an engine gives once a process, and not by answer.

    Args:
        total: one value per process.
        requests: how many requests, warm-up included, the shortest and the longest of these processes served.
        note: what the engine's total holds, as it was recorded.
    """

    total: Summary
    requests: tuple[int, int]
    note: str


@dataclass(frozen=True, slots=True)
class DraftTotals:
    """Draft tokens over the measured trials of a cell; ``None`` where the engine does not tell them apart."""

    drafted: int
    accepted: int
    refused: int | None
    discarded: int | None
    verify_rounds: int | None


@dataclass(frozen=True, slots=True)
class CategoryAcceptance:
    """Acceptance over the prompts of one category; ``rate`` is ``None`` where nothing was drafted."""

    category: str
    rate: Estimate | None
    totals: DraftTotals | None


@dataclass(frozen=True, slots=True)
class Drafting:
    """What became of a cell's draft tokens.

    Args:
        rate: Σ accepted ÷ Σ drafted with an interval over prompts; ``None`` when nothing was drafted.
        positions: by draft position, empty where the engine does not report it.
        flat_p: p of the test that conditional acceptance is the same at all positions.
        categories: by category of prompt, in the order of the prompts.
        problem: why the counts give no rate, in words; else empty.
    """

    totals: DraftTotals
    rate: Estimate | None
    positions: tuple[PositionAcceptance, ...]
    flat_p: float | None
    categories: tuple[CategoryAcceptance, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Several draft lengths of one drafter on one baseline.

    Args:
        lengths: those measured; ``best`` among them has the highest decode rate, as ``cell``.
        clear: whether its interval stands clear of all others'.
        confirmed: whether it was measured anew after it had been chosen.
    """

    block: str
    drafter: str
    lengths: tuple[int, ...]
    best: int
    cell: str
    clear: bool
    confirmed: bool

    def words(self) -> str:
        """One sentence: which length was best of those measured, and how sure that is."""
        tried = ", ".join(map(str, self.lengths))
        head = f"best measured draft length: K = {self.best} of {tried}"
        if self.confirmed:
            return f"{head}, confirmed in fresh sessions"
        sure = "its interval stands clear of the others'" if self.clear else "its interval overlaps another's"
        return f"{head}, not confirmed in fresh sessions; {sure}"


@dataclass(frozen=True, slots=True)
class CellFinding:
    """All that is concluded about one cell.

    Args:
        summaries: by metric, over measured trials (or sessions) that have a value, in the base unit.
        missing: by metric, why there is no value in any trial.
        partial: by metric, how many trials lack a value where others have one, and why the first of them does.
        comparisons: by metric, against the baseline of the same block attempt.
        headline: the metric that tells the wait: ``e2e_latency``, or a ``time_to_n`` where lengths differ.
        longest_n: the largest N that all measured trials of cell and baseline reached.
        lengths: whether the answers are of one length, and the sentence that says why.
        acceptance: pooled Σ ÷ Σ with an interval over prompts.
        flags: warnings about the cell's total wait.
        problems: broken invariants of pooled trials, each with its count.
        mark: how far the claim of exactness was checked.
        baseline_summaries: of the cell's baseline in the attempt that the cell was measured in.
        drafting: acceptance in full, by position and category; ``None`` where drafts are not reported.
        confirmed: whether the attempt measured the cell anew because it was the best of several faster ones.
        stopped: why an adaptive attempt stopped early; else empty.
        blocked: whether the attempt's cells ran one after the other instead of interleaved.
        phases: seconds by part of a round, from the instrumented repeat alone; never of the measured trials.
        per_process: by metric of one answer, where the engine gives a running total of the process alone.
    """

    state: CellState
    group: Group
    placement: Placement | None
    identity: GreedyIdentity | None
    summaries: Mapping[str, Summary]
    missing: Mapping[str, Missing]
    partial: Mapping[str, Missing]
    comparisons: Mapping[str, Comparison]
    headline: str
    longest_n: int | None
    lengths: tuple[bool, str] | None
    totals: DraftTotals | None
    acceptance: Estimate | None
    decomposition: Decomposition | None
    flags: tuple[Flag, ...]
    problems: tuple[tuple[str, int], ...]
    mark: Mark | None
    baseline_summaries: Mapping[str, Summary]
    faults: tuple[Caught, ...] = field(default=(), kw_only=True)
    """Faults between engine and figures, each with what would have caught it here; none for a baseline."""
    drafting: Drafting | None = None
    confirmed: bool = False
    stopped: str = ""
    blocked: bool = False
    phases: Mapping[str, Summary] = field(default_factory=dict)
    per_process: Mapping[str, ProcessTotal] = field(default_factory=dict)
    quality: Quality | None = None
    """Of the answers, beside the baseline's; ``None`` where nothing was measured."""

    @property
    def id(self) -> str:
        """The cell's id."""
        return self.state.id

    def name(self, axis: str) -> str:
        """The name on an axis: ``engine``, ``model``, ``method``, ``sampling`` or ``workload``."""
        return str(self.state.settings[axis]["name"])

    @property
    def measured(self) -> bool:
        """Whether any trial counts."""
        return bool(self.state.trials)

    @property
    def wait(self) -> Comparison | None:
        """The comparison that tells the wait."""
        return self.comparisons.get(self.headline)


class Advice(StrEnum):
    """Whether to turn speculation on."""

    ON = "on"
    OFF = "off"
    SAME = "no difference"
    UNKNOWN = "cannot say"


class Why(StrEnum):
    """Why there is no advice, or a weaker one."""

    NONE = ""
    NOTHING_MEASURED = "nothing measured"
    TOO_FEW = "too few sessions"
    TOO_NOISY = "too noisy"
    NOT_COMPARABLE = "not comparable"
    A_A = "the baseline differs from itself"
    NOT_EXACT = "no exact cell measured"


@dataclass(frozen=True, slots=True)
class SamplingAdvice:
    """The advice for one engine, model, workload and sampling; ``best`` is the cell that it rests on.

    Args:
        best: where it pays, the cell to turn on; where it does not, the one that lost least; where nothing can be
            said, the one that could still win.
        confirmed: whether the best of several faster cells was measured anew; ``None`` where it is the only one.
        gaining: how many cells made people wait less.
        unstable: whether the waits of ``best`` or of its baseline vary too much for a place among others.
    """

    sampling: str
    advice: Advice
    why: Why
    best: CellFinding | None
    considered: tuple[CellFinding, ...]
    confirmed: bool | None = None
    gaining: int = 0
    unstable: bool = False


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The advice for one engine, model and workload; ``advice`` is ``None`` where each sampling needs its own."""

    engine: str
    model: str
    workload: str
    advice: Advice | None
    by_sampling: tuple[SamplingAdvice, ...]


class ReasonKind(StrEnum):
    """Why a run is less than valid, or what a reader must know although it is valid."""

    NOTHING_MEASURED = "nothing measured"
    BAD_CELLS = "bad cells"
    A_A = "A/A"
    NO_FLOOR = "no noise floor"
    TOO_FEW = "too few sessions"
    PROBLEMS = "broken invariants"
    UNSTABLE = "unstable"
    BROKEN_ANSWERS = "broken answers"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason of the validity line, with the cells or blocks it is about; ``answers`` of them, where they count."""

    kind: ReasonKind
    effect: Validity
    about: tuple[str, ...]
    status: Status | None = None
    detail: str = ""
    answers: int = 0


@dataclass(frozen=True, slots=True)
class Analysis:
    """The whole run.

    Args:
        cells: every cell of the matrix in its order, baselines and twins included.
        floors: by (block, attempt, metric).
        coverage: status → ids of the cells that have it, speculative cells and baselines, in a fixed order.
        sweeps: the best measured draft length of each drafter that was tried with several.
    """

    cells: tuple[CellFinding, ...]
    floors: Mapping[tuple[str, int, str], NoiseFloor]
    coverage: tuple[tuple[Status, tuple[str, ...]], ...]
    validity: Validity
    reasons: tuple[Reason, ...]
    recommendations: tuple[Recommendation, ...]
    sweeps: tuple[Sweep, ...] = ()

    def by_id(self, cell: str) -> CellFinding:
        """The finding of a cell."""
        return next(found for found in self.cells if found.id == cell)
