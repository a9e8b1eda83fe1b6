"""The lines of a run's journal: what happened, append-only, each line complete in itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from orchestrator.schema.adapter import Claim, Condition, EngineIdentity
from orchestrator.schema.observation import Observation
from orchestrator.schema.replay import Purpose, Ranked, Width
from orchestrator.schema.status import Status

SCHEMA_VERSION = 1
"""Version of ``run.json`` and ``journal.jsonl``.

History:
    1: first version. Fields that came later have defaults, so that older journals load: ``CheckRecord.judged`` and
        ``unjudged``.
"""


CONFIRM = "confirm"
"""``AttemptRecord.purpose`` of an attempt that measures the best of several faster cells anew."""


class Phase(StrEnum):
    """Warm-up, instrumented and priming trials are kept and marked, never pooled.

    ``phases`` are timed inside a round; ``prime`` puts into the engine's cache what a workload wants to be there.
    """

    WARMUP = "warmup"
    PRIME = "prime"
    MEASURED = "measured"
    PHASES = "phases"


class Engagement(StrEnum):
    """Whether the speculation that a cell asks for really took place (docs/methodology, Engagement)."""

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
class TrialGrade:
    """How a trial's answer was graded, once, when it was measured.

    Args:
        grader: digest of the task, so that a grade is never read beside another task's.
        task: the kind of task: exact, numeric, regex, json, tool_call or python.
        valid: whether the answer has the form that was asked for; ``None`` where none was.
        correct: whether it is right; ``None`` where the task does not say what is.
        reason: why, for whatever is not true.
        so_far: right as far as it goes, and cut at the output limit; then ``correct`` is ``None``.
    """

    grader: str
    task: str
    valid: bool | None
    correct: bool | None
    reason: str
    so_far: bool = False


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
    grade: TrialGrade | None = None
    """``None`` where the prompt states no task, and in runs of versions that did not grade."""
    degenerate: str = ""
    """``empty: …``, ``unreadable: …`` or ``loop: …`` where the answer is no answer."""


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
    host: Mapping[str, Any] = field(default_factory=dict)
    """``start`` and ``end``: the machine's state before the engine was started and after it was stopped."""


@dataclass(frozen=True, slots=True)
class CellRecord:
    """A cell's fate where no session tells it: unsupported, unavailable, or confounded by a baseline that moved."""

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
    """A block attempt begins: which cells, how many sets, in which order design.

    Written a second time when an adaptive attempt stops early: ``planned_sets`` is then the number that was enough.

    Args:
        max_sets: the limit of an adaptive attempt; ``None`` where the number of sets is fixed.
        stopped: why an adaptive attempt stopped, with the interval that was reached; empty until it did.
        purpose: ``confirm`` where the best of several faster cells is measured anew; else empty.
    """

    block: str
    attempt: int
    cells: Mapping[str, str]
    planned_sets: int
    trials_per_session: int
    order: str
    order_seed: int
    utc: str
    kind: Literal["attempt"] = "attempt"
    max_sets: int | None = None
    stopped: str = ""
    purpose: str = ""


class CheckArm(StrEnum):
    """An arm of a distribution check: one engine process, many short generations."""

    PILOT = "pilot"
    """The baseline on candidate contexts, to choose those where something can be seen."""
    OFF = "off"
    OFF_AGAIN = "off_again"
    """The positive control: the baseline with other seeds, which must not differ from it."""
    CONTROL = "control"
    """The negative control: the baseline at a lower temperature, which must."""
    ON = "on"
    COUPLED = "coupled"
    """With speculation, and with the seeds of ``off``."""


@dataclass(frozen=True, slots=True)
class CheckPlanRecord:
    """A check attempt of a block begins: its contexts, chosen from the pilot, and its size.

    Args:
        fingerprint: what the arms without speculation depend on.
        preset: ``screen`` or ``certify``.
        contexts: text by context id, e.g. ``sum-1@12``: the first 12 characters of prompt ``sum-1``.
        per_arm: generations per arm and context.
        tokens: length of each generation.
        why: by context id, why it was chosen; under an empty key what a reader must know of the choice.
    """

    block: str
    fingerprint: str
    attempt: int
    preset: str
    contexts: Mapping[str, str]
    per_arm: int
    tokens: int
    why: Mapping[str, str]
    utc: str
    kind: Literal["check_plan"] = "check_plan"


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """A batch of generations of one arm after one context. An unfinished batch has no record and is made anew.

    Args:
        cell: id of the cell that generated: the baseline, or for ``on`` and ``coupled`` the speculative one.
        fingerprint: what these generations depend on.
        batch: 0, 1, … within arm and context.
        seeds: one per generation; ``tokens`` are the ids that came, in the same order.
        first_burst: the most tokens that came with a generation's first one: above 1 the first token is from a
            verify round, not from prefill.
        in_bursts: tokens that came in one burst with an earlier one, over the batch: draft tokens were accepted.
        drafted: draft tokens of the batch's first generation, which alone is observed in full; ``None`` unknown.
        judged: of arm ``on``, where the engine tells: per generation its judged places, four numbers each (see
            :func:`orchestrator.schema.judged.flattened`); empty where it does not.
        unjudged: why it does not; empty where it does, in other arms, and in records older than the field.
    """

    block: str
    cell: str
    fingerprint: str
    attempt: int
    arm: CheckArm
    context: str
    batch: int
    seeds: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]
    temperature: float
    first_burst: int
    in_bursts: int
    drafted: int | None
    folder: str
    started_utc: str
    ended_utc: str
    kind: Literal["check"] = "check"
    judged: tuple[tuple[float, ...], ...] = ()
    unjudged: str = ""


@dataclass(frozen=True, slots=True)
class CheckEndRecord:
    """A check of one cell needs nothing more, or cannot go on. The verdict is not here: it follows from the batches.

    Args:
        cell: the judged cell; ``fingerprint`` the check's.
        status: ``ok`` when the check is decided, else what went wrong with one of its arms.
        reason: where the looks ended, or what went wrong.
    """

    block: str
    cell: str
    fingerprint: str
    attempt: int
    status: Status
    reason: str
    remedy: str
    utc: str
    kind: Literal["check_end"] = "check_end"


@dataclass(frozen=True, slots=True)
class MatrixRecord:
    """A revision of the matrix: its text, and each cell resolved with its claim and engine."""

    text: str
    cells: tuple[Mapping[str, Any], ...]
    """Per cell: ``id``, ``fingerprint``, ``block``, ``role``, ``baseline``, ``settings``, ``claim``, ``facts``.

    ``facts`` are what the fingerprint hashes besides the settings, in clear; runs of older versions lack them."""
    engines: Mapping[str, EngineIdentity]
    claims: Mapping[str, Claim]
    run_settings: Mapping[str, Any]
    utc: str
    kind: Literal["matrix"] = "matrix"
    host: Mapping[str, Any] = field(default_factory=dict)
    """The machine when the revision was made: ``budget`` of memory and the ``largest_others``."""
    checks: tuple[Mapping[str, Any], ...] = ()
    """Per distribution check: ``id``, ``cell``, ``baseline``, ``block``, ``preset``, ``fingerprint``, ``base``."""
    adapters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Per engine, of its adapter: ``adapter``, ``title``, ``shape`` and ``verified`` (how, in words)."""


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """Something a reader of the run must know: interrupted, resumed after a pause, and the like."""

    what: str
    text: str
    utc: str
    kind: Literal["note"] = "note"


@dataclass(frozen=True, slots=True)
class ReplayRecord:
    """What a block's baseline ranked along a given text, in a session of its own: untimed, never pooled.

    Args:
        cell: the baseline that was asked, under its ``fingerprint``.
        about: the cell whose text it is.
        ids: the output tokens that were fed behind the prompt.
        places: which places were to be ranked; ``ranked`` has one entry each when ``status`` is ``ok``, else none.
        full: whether the whole distribution was wanted.
        seconds: how long it took, to tell what the check costs.
        folder: of the replay session, relative to the run directory.
    """

    block: str
    attempt: int
    cell: str
    fingerprint: str
    purpose: Purpose
    about: str
    prompt_id: str
    ids: tuple[int, ...]
    places: tuple[int, ...]
    width: Width
    full: bool
    ranked: tuple[Ranked, ...]
    status: Status
    reason: str
    seconds: float
    folder: str
    utc: str
    kind: Literal["replay"] = "replay"


@dataclass(frozen=True, slots=True)
class TokensRecord:
    """How tokens around the places where answers of a block part are spelled, by the target's own vocabulary.

    Args:
        texts: by token id, written as a decimal number.
    """

    block: str
    attempt: int
    texts: Mapping[str, str]
    utc: str
    kind: Literal["tokens"] = "tokens"


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One untimed request whose peak memory counts and nothing else: weights are not mapped where the engine allows it.

    Args:
        basis: how the weights were held, in words; only equal bases are compared.
        observations: the session's memory observations.
        folder: relative to the run directory.
    """

    cell: str
    fingerprint: str
    basis: str
    status: Status
    reason: str
    observations: tuple[Observation, ...]
    folder: str
    utc: str
    kind: Literal["memory"] = "memory"


Record = (
    TrialRecord
    | SessionRecord
    | CellRecord
    | SetRecord
    | AttemptRecord
    | MatrixRecord
    | NoteRecord
    | ReplayRecord
    | TokensRecord
    | MemoryRecord
    | CheckPlanRecord
    | CheckRecord
    | CheckEndRecord
)


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
