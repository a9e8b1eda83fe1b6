"""The port: what an engine's adapter plans and parses. The orchestrator does every act.

An adapter never starts a process, opens a socket or reads the clock. It answers questions with plain data:
which commands tell what the engine is, how to launch it, which exchanges make one trial, and what a capture says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel

from orchestrator.schema.capture import SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell, EngineConfig, MethodKind
from orchestrator.schema.chat_template import ChatTemplate
from orchestrator.schema.judged import Judged
from orchestrator.schema.observation import Observation
from orchestrator.schema.status import Status


class Shape(StrEnum):
    """How an engine is driven. End-to-end times are not compared across shapes."""

    SERVER = "server"
    WORKER = "worker"
    ONE_SHOT = "one_shot"


class Verified(StrEnum):
    """How an adapter's claims were checked."""

    REAL_RUN = "verified against a real run"
    GOLDEN = "against golden output"
    SOURCE = "from source only"


class Rule(StrEnum):
    """Acceptance rules (docs/methodology, Exactness)."""

    NONE = "none"
    GREEDY_MATCH = "greedy match"
    SAMPLE_MATCH = "sample match"
    REJECTION = "rejection"
    HEURISTIC = "heuristic"
    SYNTHETIC = "synthetic"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Probe:
    """A short command whose output tells what the engine is."""

    name: str
    argv: tuple[str, ...]
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ProbeOutput:
    """What a probe printed; ``error`` says why it could not run at all."""

    exit_code: int | None
    stdout: str
    stderr: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """What engine was found. Unknown stays ``None``; ``unavailable`` says why there is none, and how to get it.

    ``facts`` are compared with the pin by key, e.g. ``{"xllamacpp": "2026.10.11549"}``.
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    build: str | None = None
    commit: str | None = None
    binary_sha256: str | None = None
    backend: str | None = None
    capabilities: frozenset[str] = frozenset()
    unavailable: str | None = None
    gpu_limit_bytes: int | None = None
    """How much of the memory that it shares with the GPU the system lets that GPU use, as the engine is told it.

    Not among ``facts``: it moves no number of a cell that fits, and a setting of the user's changes it.
    """


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a cell cannot be measured: a status, the reason, and what to do next."""

    status: Status
    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """The acceptance rule claimed for a cell, by whom, at which version. ``exact`` is ``None`` without a claim."""

    rule: Rule
    exact: bool | None
    by: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class HttpReady:
    """Ready when ``GET path`` answers 200 on the port that the launch was given."""

    path: str = "/health"


@dataclass(frozen=True, slots=True)
class LineReady:
    """Ready when a JSON line on stdout has ``"event": "ready"``; its ``base_url``, if any, is where to talk to."""


@dataclass(frozen=True, slots=True)
class EachStep:
    """Nothing lives between trials: every :class:`CommandStep` starts the launch's command anew, to its own end."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start the engine: never a shell string.

    Args:
        argv: the command; element 0 is a path or a bare name looked up on ``PATH``.
        env: variables to set on top of a scrubbed environment (``PATH``, ``HOME`` and the like only).
        ready: how readiness is known.
        files: small files to write into the session's folder first, by relative path.
        keep_env: names to take over from our own environment.
        cwd: where to run, absolute; the session's own folder unless given.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    ready: HttpReady | LineReady | EachStep
    files: Mapping[str, str] = field(default_factory=dict)
    keep_env: tuple[str, ...] = ()
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What the orchestrator hands to ``launch``: a free port, and its session's own empty folder (absolute)."""

    port: int
    folder: Path


@dataclass(frozen=True, slots=True)
class HttpStep:
    """One HTTP exchange. With ``stream`` each server-sent event is stamped as it arrives; ``body`` is JSON."""

    name: str
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    stream: bool = False


@dataclass(frozen=True, slots=True)
class WorkerStep:
    """One JSON line to a worker's stdin, answered by JSON lines until one has ``"event": "done" | "error"``."""

    name: str
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogStep:
    """Wait until a regular expression matches the log written since the trial began, or the time is over."""

    name: str
    pattern: str
    timeout_s: float = 10.0


FOLDER = "{folder}"
"""Stands for the absolute path of the session's folder in the arguments of a command."""


@dataclass(frozen=True, slots=True)
class CommandStep:
    """One run of the launch's command (:class:`EachStep`) from its start to its end, both output streams stamped.

    The capture's events are JSON, each ``{"stream": "stdout" | "stderr", "text": "…"}`` as one read of the pipe gave it
    (``"hex"`` instead of ``"text"`` where the bytes end inside a character), then ``{"exit": 0}``. An exit code other
    than 0 is an error. The step's output is also in files of :func:`command_folder`, which a later step may name.

    Args:
        name: of the step, one of its trial.
        args: appended to the launch's command; :data:`FOLDER` in them becomes the session's folder.
        files: small files to write into the step's own folder first, by relative path.
    """

    name: str
    args: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)


def command_folder(trial: int, step: str) -> str:
    """The folder of one command, relative to the session's: its files, ``stdout.log`` and ``stderr.log``."""
    return f"{trial}-{step}"


Step = HttpStep | WorkerStep | LogStep | CommandStep


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One request: which prompt, with which seed, as the how-manieth of its session."""

    index: int
    phase: str
    prompt_id: str
    prompt: str
    seed: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """Tokens that came together: seconds of our clock, the token ids, and the key of their target pass.

    Consecutive arrivals with an equal ``burst`` belong to one target pass.
    """

    t_s: float
    ids: tuple[int, ...]
    burst: str


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A trial's tokens in time. ``burst_source`` is ``engine`` or ``inferred``."""

    sent_s: float
    tokens: tuple[Arrival, ...]
    done_s: float
    burst_source: str


@dataclass(frozen=True, slots=True)
class ParsedTrial:
    """What an adapter read from one capture. ``problems`` are broken invariants, in words."""

    observations: tuple[Observation, ...]
    token_ids: tuple[int, ...]
    text: str
    finish_reason: str
    problems: tuple[str, ...] = ()


class Honoured(StrEnum):
    """What became of a requested setting."""

    HONOURED = "honoured"
    CHANGED = "changed"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """A setting: what was asked, what was in effect by the engine's own word, and the verdict."""

    name: str
    requested: str
    effective: str | None
    verdict: Honoured
    source: str


def phase_methods(adapter: object) -> frozenset[MethodKind]:
    """Methods for which the adapter can time the parts of a round in an instrumented repeat.

    An adapter that can has the attribute ``phase_methods``, answers a :class:`TrialSpec` of phase ``phases`` with an
    instrumented request, and reports ``draft_time``, ``verify_time`` and ``rollback_time`` of it under a definition of
    its own. One without the attribute is never asked.
    """
    found: frozenset[MethodKind] = getattr(adapter, "phase_methods", frozenset())
    return found


def session_conditions(adapter: object, cell: Cell, capture: SessionCapture) -> tuple[Condition, ...]:
    """Conditions that only a whole process tells, by an adapter with a method of that name; nothing from another."""
    ask: Callable[[Cell, SessionCapture], tuple[Condition, ...]] | None = getattr(adapter, "session_conditions", None)
    return ask(cell, capture) if ask is not None else ()


def exit_refusal(adapter: object, cell: Cell, stderr: str) -> Refusal | None:
    """What it means that the engine's process ended by itself, by an adapter with a method ``explain_exit``.

    ``None`` where the adapter has none, or knows no better than the exit code and the last words of ``stderr``.
    """
    ask: Callable[[Cell, str], Refusal | None] | None = getattr(adapter, "explain_exit", None)
    return ask(cell, stderr) if ask is not None else None


def token_texts(adapter: object, cell: Cell, ids: tuple[int, ...]) -> Mapping[int, str]:
    """Texts of single tokens of the cell's target, as far as they are known, by an adapter with a method of that name.

    Read from the model's files. An id that is not told has no text, which is no error.
    """
    ask: Callable[[Cell, tuple[int, ...]], Mapping[int, str]] | None = getattr(adapter, "token_texts", None)
    return ask(cell, ids) if ask is not None and ids else {}


def keeps_prompt_cache(adapter: object) -> bool:
    """Whether the adapter can ask its engine to keep a prompt from request to request, by an attribute of that name."""
    return bool(getattr(adapter, "keeps_prompt_cache", False))


def chat_template(adapter: object, cell: Cell) -> ChatTemplate | None:
    """The chat template in the target's files, by an adapter with a method of that name; ``None`` from another.

    Raises:
        ValueError: the files are there and cannot be read.
    """
    ask: Callable[[Cell], ChatTemplate | None] | None = getattr(adapter, "chat_template", None)
    return ask(cell) if ask is not None else None


@runtime_checkable
class TellsPromptIds(Protocol):
    """An adapter whose engine turns a text into token ids without generating, by the rule of its own requests."""

    def prompt_id_steps(self, prompts: tuple[str, ...]) -> tuple[Step, ...]:
        """One exchange per prompt, in order."""

    def parse_prompt_ids(self, capture: TrialCapture) -> tuple[tuple[int, ...], ...] | None:
        """The ids per prompt, in order; ``None`` where an answer is not of the known form."""


@runtime_checkable
class JudgesDrafts(Protocol):
    """An adapter whose engine tells, in a request of its own that is never timed, what it thought of judged places."""

    def why_unjudged(self, cell: Cell) -> str:
        """Why the cell's places cannot be told; empty where they can."""

    def judged_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """The trial's exchanges, asking for the judged places besides."""

    def parse_judged(self, cell: Cell, capture: TrialCapture) -> tuple[Judged, ...]:
        """The judged places of one answer, in order.

        Raises:
            CaptureError: they are missing, or are no probabilities.
        """


def keeps_state(adapter: object, cell: Cell) -> bool:
    """Whether the cell's drafter remembers earlier requests, so that every session must make the very same ones."""
    ask: Callable[[Cell], bool] | None = getattr(adapter, "keeps_state", None)
    return ask(cell) if ask is not None else False


class Adapter(Protocol):
    """One engine path. Pure: same arguments, same answer."""

    name: str
    """Registry key, e.g. ``llama_cpp``."""
    title: str
    """How people call it, e.g. ``llama.cpp (llama-server)``."""
    shape: Shape
    verified: Verified
    install_hint: str
    """The command or sentence that tells how to get the engine."""
    engine_options: type[BaseModel]
    """Strict schema of ``engines.*.options``."""
    method_options: Mapping[MethodKind, type[BaseModel]]
    """Methods this adapter knows, each with the strict schema of ``methods.*`` options."""
    always_drafts: frozenset[MethodKind]
    """Methods whose drafter proposes in every round, so that nothing drafted means not engaged."""

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """The commands that tell what the engine is."""
        ...

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """What the probes say; ``unavailable`` set when the engine is not there."""
        ...

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:
        """Why the cell cannot work, known before any process starts; may read model files' headers."""
        ...

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:
        """The acceptance rule claimed for the cell."""
        ...

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """How to start the engine for this cell."""
        ...

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:
        """Exchanges after readiness, before the first trial."""
        ...

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:
        """Why the process that came up must not be measured, e.g. speculation is off."""
        ...

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """The exchanges of one trial, in order."""
        ...

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:
        """When which tokens came; ``None`` while the capture is incomplete."""
        ...

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything the engine says of one trial.

        Raises:
            CaptureError: the capture is incomplete or cannot be read.
        """
        ...

    def parse_session(self, cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:
        """What the engine says only once per process."""
        ...

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """Requested and effective settings, from the engine's own echo where it has one."""
        ...
