"""The lines of a run's journal: what happened, append-only, each line complete in itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from orchestrator.schema.adapter import Claim, Condition, EngineIdentity
from orchestrator.schema.observation import Observation
from orchestrator.schema.status import Status

SCHEMA_VERSION = 1
"""Version of ``run.json`` and ``journal.jsonl``.

History:
    1: first version.
"""


class Phase(StrEnum):
    """Warm-up trials are kept and marked, never pooled."""

    WARMUP = "warmup"
    MEASURED = "measured"


class Engagement(StrEnum):
    """Whether the speculation that a cell asks for really took place (``METHOD``, Engagement)."""

    OFF = "off"
    ENGAGED = "engaged"
    IDLE = "idle"
    UNVERIFIABLE = "unverifiable"
    NOT_ENGAGED = "not_engaged"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the design a session stands.

    Args:
        cell: cell id.
        fingerprint: what its numbers depend on.
        block: block id.
        attempt: 1, 2, … per block; a rerun is a new attempt.
        set_index: 0, 1, …; one session of every cell of the attempt makes a set.
        take: 0, or more when an interrupted set was started anew.
        order: position of the session within its set.
    """

    cell: str
    fingerprint: str
    block: str
    attempt: int
    set_index: int
    take: int
    order: int


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One request and all that was observed of it. A failed trial is a record, never a gap."""

    place: Place
    trial: int
    phase: Phase
    prompt_id: str
    category: str
    language: str
    seed: int
    status: Status
    reason: str
    observations: tuple[Observation, ...]
    token_ids: tuple[int, ...]
    text: str
    finish_reason: str
    arrival_curve: tuple[tuple[float, int], ...]
    """(seconds since the request was sent, tokens so far) at each burst."""
    problems: tuple[str, ...]
    started_utc: str
    kind: Literal["trial"] = "trial"


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One engine process: what became of it, and what is known only once per process."""

    place: Place
    status: Status
    reason: str
    remedy: str
    engagement: Engagement
    observations: tuple[Observation, ...]
    conditions: tuple[Condition, ...]
    exit_code: int | None
    folder: str
    """Relative to the run directory."""
    log_tail: tuple[str, ...]
    started_utc: str
    ended_utc: str
    kind: Literal["session"] = "session"


@dataclass(frozen=True, slots=True)
class CellRecord:
    """A cell's fate where no session tells it: unsupported, unavailable."""

    cell: str
    fingerprint: str
    status: Status
    reason: str
    remedy: str
    utc: str
    kind: Literal["cell"] = "cell"


@dataclass(frozen=True, slots=True)
class SetRecord:
    """A set is complete: its sessions may be pooled. Sessions of a set without this line are never pooled."""

    block: str
    attempt: int
    set_index: int
    take: int
    cells: Mapping[str, str]
    """Fingerprint by cell id."""
    utc: str
    kind: Literal["set"] = "set"


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """A block attempt begins: which cells, how many sets, in which order design."""

    block: str
    attempt: int
    cells: Mapping[str, str]
    planned_sets: int
    trials_per_session: int
    order: str
    order_seed: int
    utc: str
    kind: Literal["attempt"] = "attempt"


@dataclass(frozen=True, slots=True)
class MatrixRecord:
    """A revision of the matrix: its text, and each cell resolved with its claim and engine."""

    text: str
    cells: tuple[Mapping[str, Any], ...]
    """Per cell: ``id``, ``fingerprint``, ``block``, ``role``, ``baseline``, ``settings``, ``claim``."""
    engines: Mapping[str, EngineIdentity]
    claims: Mapping[str, Claim]
    run_settings: Mapping[str, Any]
    utc: str
    kind: Literal["matrix"] = "matrix"


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """Something a reader of the run must know: interrupted, resumed after a pause, and the like."""

    what: str
    text: str
    utc: str
    kind: Literal["note"] = "note"


Record = TrialRecord | SessionRecord | CellRecord | SetRecord | AttemptRecord | MatrixRecord | NoteRecord


@dataclass(frozen=True, slots=True)
class RunHeader:
    """``run.json``: written once when the run directory is made."""

    schema: int
    tool_version: str
    run: str
    created_utc: str
    matrix_path: str
    matrix_text: str
    host: Mapping[str, Any]
    command: str
    extra: Mapping[str, Any] = field(default_factory=dict)
