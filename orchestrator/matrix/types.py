"""The matrix as the rest of the program sees it: every default resolved, every name defined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel

from orchestrator.schema.cell import Cell, CheckCell, EngineConfig, Method, MethodKind, Sampling, Workload

BASELINE_METHOD = "none"
"""The name of the built-in method without speculation."""

Order = Literal["abba", "random", "blocked_with_canary"]
CachePolicy = Literal["cold"]
Environment = Literal["clean", "everyday"]
Language = Literal["en", "ko"]
DistributionCheck = Literal["screen", "certify"]


class OptionSchemas(Protocol):
    """The part of an adapter that the loader needs: the strict schemas of what a user may set."""

    @property
    def engine_options(self) -> type[BaseModel]:
        """Schema of ``engines.*.options``."""
        ...

    @property
    def method_options(self) -> Mapping[MethodKind, type[BaseModel]]:
        """Schema of ``methods.*.options`` by kind of method; a kind that is missing is unsupported."""
        ...


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Measure until it is precise enough: whole sets, up to ``max_sessions`` of each cell.

    Args:
        half_width: wanted half-width of every interval that counts, as a ratio minus one (0.02 is ±2 %).
        max_sessions: when to stop whatever the intervals are.
    """

    half_width: float
    max_sessions: int


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How much is measured, in which order, and how long to wait.

    Args:
        preset: name of the preset that ``sessions``, ``trials``, ``warmup`` and ``twin`` came from unless written.
        sessions: fresh processes per cell; with ``adaptive`` at least so many.
        trials: measured requests per session.
        warmup: at most so many requests before them, kept and marked.
        order: how sessions of a block interleave; ``order_seed`` feeds ``random``. Under ``blocked_with_canary`` all
            sessions of a cell run in a row, the baseline's first and its twin's last.
        cache: ``cold``: no request meets an earlier one's prompt cache.
        twin: whether each baseline is measured a second time beside itself (A/A).
        silence_timeout_s: seconds without a sign of life.
        total_timeout_s: seconds for one whole request.
        startup_timeout_s: seconds until the engine is ready.
        phases: whether the last session of a cell repeats its requests instrumented, where the adapter can.
        adaptive: when to stop early; ``None`` measures exactly ``sessions``.
        confirm_winner: where several cells of a block are faster, measure the best anew before it is called best.
        force_fit: measure cells whose memory cannot fit by the prediction.
    """

    preset: str
    sessions: int
    trials: int
    warmup: int
    order: Order
    order_seed: int
    cache: CachePolicy
    twin: bool
    silence_timeout_s: float
    total_timeout_s: float
    startup_timeout_s: float
    phases: bool = False
    adaptive: Adaptive | None = None
    confirm_winner: bool = False
    force_fit: bool = False

    @property
    def most_sessions(self) -> int:
        """Sessions of each cell when nothing stops early."""
        return self.sessions if self.adaptive is None else self.adaptive.max_sessions


@dataclass(frozen=True, slots=True)
class Reserve:
    """Memory that must stay free for something else on this machine, in bytes."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What the user says of the machine while it measures."""

    reserve: tuple[Reserve, ...]
    environment: Environment


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """Which checks of the answers are wanted.

    Args:
        greedy_identity: at temperature 0, on against off token by token, differences adjudicated by replay.
        cross_scoring: the baseline scores both arms' texts token by token.
        memory_trial: one untimed request per cell with weights not mapped, for what a drafter adds to the memory.
    """

    greedy_identity: bool
    cross_scoring: bool = False
    memory_trial: bool = False
    distribution: DistributionCheck | None = None
    """Size of the distribution check that every speculative cell above temperature 0 gets; ``None``: no check."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files for one engine, as written. ``mtp_inside``: the MTP module is part of ``target``."""

    target: str
    drafts: Mapping[str, str]
    mtp: str | None
    mtp_inside: bool


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A target model with its files by engine."""

    name: str
    same_target: str | None
    weights_equivalent: bool
    files: Mapping[str, ModelFiles]


@dataclass(frozen=True, slots=True)
class Axes:
    """Names on each axis; used for the product and for each ``include``."""

    engine: tuple[str, ...]
    model: tuple[str, ...]
    method: tuple[str, ...]
    sampling: tuple[str, ...]
    workload: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Takes points out of the product: those that match every axis named. ``None`` matches everything."""

    engine: tuple[str, ...] | None = None
    model: tuple[str, ...] | None = None
    method: tuple[str, ...] | None = None
    sampling: tuple[str, ...] | None = None
    workload: tuple[str, ...] | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Adds the product of its own axes; ``where`` is ``file:line:column``."""

    axes: Axes
    where: str = ""


class Point(NamedTuple):
    """One combination of names."""

    engine: str
    model: str
    method: str
    sampling: str
    workload: str

    @property
    def id(self) -> str:
        """The id of the cell at this point."""
        return "/".join(self)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A valid ``matrix.yaml``. Paths are as written; :func:`orchestrator.matrix.expand.expand` makes them absolute.

    Args:
        method_options: a method's options with defaults, by (engine, method), where the engine's adapter knows it.
        axes: ``None`` when the file only has ``include``.
        defaults: dotted paths of every value that the file does not say, e.g. ``sampling.greedy.top_k``.
    """

    name: str
    path: Path
    text: str
    engines: Mapping[str, EngineConfig]
    models: Mapping[str, ModelSpec]
    methods: Mapping[str, Method]
    sampling: Mapping[str, Sampling]
    workloads: Mapping[str, Workload]
    run: RunSettings
    host: HostSettings
    axes: Axes | None
    exclude: tuple[Exclusion, ...]
    include: tuple[Inclusion, ...]
    checks: CheckSettings
    language: Language
    method_options: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    defaults: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Block:
    """Cells that share one baseline, with that baseline and, if wanted, its A/A twin."""

    id: str
    baseline: Cell
    cells: tuple[Cell, ...]
    twin: Cell | None

    @property
    def members(self) -> tuple[Cell, ...]:
        """Baseline, speculative cells, twin: everything that is measured."""
        return (self.baseline, *self.cells, *((self.twin,) if self.twin is not None else ()))


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a matrix comes to.

    Args:
        blocks: in the order in which the matrix names them.
        not_formed: (id, reason) of points of the product that cannot be cells.
        excluded: (id, why) of points that ``exclude`` took out.
        checks: the distribution checks of the blocks' speculative cells, where the matrix asks for them.
    """

    blocks: tuple[Block, ...]
    not_formed: tuple[tuple[str, str], ...]
    excluded: tuple[tuple[str, str], ...] = ()
    checks: tuple[CheckCell, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell of every block."""
        return tuple(cell for block in self.blocks for cell in block.members)
