"""What both llama.cpp paths share: the requests, the parsing and the judgement of a server that came up."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from adapters.llama_cpp import conditions, parse, replay, request, session, support
from adapters.llama_cpp import ready as readiness
from adapters.llama_cpp.buffers import engine_buffers
from adapters.llama_cpp.drafters import stateful
from adapters.llama_cpp.memory import LlamaMemory
from adapters.llama_cpp.options import METHOD_OPTIONS, LlamaOptions
from adapters.shared.chat_template import gguf_template
from adapters.shared.token_texts import gguf_texts
from orchestrator.schema.adapter import (
    Arrivals,
    Claim,
    Condition,
    EngineIdentity,
    ParsedTrial,
    Refusal,
    Shape,
    Step,
    TrialSpec,
    Verified,
)
from orchestrator.schema.capture import SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.chat_template import ChatTemplate
from orchestrator.schema.observation import Observation
from orchestrator.schema.replay import Ranked, ReplaySpec, Width

TRACE_ENV: Mapping[str, str] = {"LLAMA_TRACE": "1"}
"""A log line per verify round; set in every arm, the baseline too, so that its cost is equal."""


class LlamaBase(LlamaMemory):
    """One llama.cpp server process per session, driven over HTTP by our own client."""

    shape: Shape = Shape.SERVER
    verified: Verified = Verified.REAL_RUN
    engine_options: type[BaseModel] = LlamaOptions
    method_options: Mapping[MethodKind, type[BaseModel]] = METHOD_OPTIONS
    always_drafts: frozenset[MethodKind] = frozenset({MethodKind.DRAFT, MethodKind.MTP})
    scoring_width: Width = Width.SINGLE
    keeps_prompt_cache: bool = True

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:
        """Why the cell cannot work; reads GGUF headers."""
        return support.supports(cell, identity, self.required)

    def required(self, cell: Cell) -> frozenset[str]:  # noqa: ARG002  (a path without a command has no options)
        """Capabilities without which the cell cannot be started as it is meant."""
        return frozenset()

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:
        """The acceptance rule claimed for the cell."""
        return support.exactness(cell, identity)

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:  # noqa: ARG002  (every cell is asked the same)
        """Slots and properties of the server."""
        return request.ready_steps()

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:  # noqa: ARG002
        """Why the process must not be measured: it speculates when it should not, or the reverse."""
        return readiness.check_ready(cell, ready, stderr)

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """Counters, request, end of its log, counters, settings."""
        return request.trial_steps(cell, trial)

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:  # noqa: ARG002  (the stream tells all)
        """Tokens in time, grouped by the engine's own time stamps."""
        return parse.arrivals(capture)

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything the engine says of one trial; raises ``CaptureError`` on an incomplete capture."""
        return parse.parse_trial(cell, capture)

    def parse_session(self, cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:
        """The drafter's time over the whole process, and the buffers that were allocated for it."""
        return (*parse.parse_session(cell, capture), engine_buffers(capture.stderr))

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """Requested and effective settings."""
        return conditions.conditions(cell, capture)

    def session_conditions(self, cell: Cell, capture: SessionCapture) -> tuple[Condition, ...]:
        """What only the start of the process tells: the model's header, the roll-back mode, who drafted what."""
        return session.session_conditions(cell, capture)

    def keeps_state(self, cell: Cell) -> bool:
        """Whether a drafter of the cell remembers earlier requests of its process."""
        return stateful(cell.method)

    def token_texts(self, cell: Cell, ids: tuple[int, ...]) -> Mapping[int, str]:
        """See :func:`orchestrator.schema.adapter.token_texts`."""
        return gguf_texts(cell.model.target, ids)

    def chat_template(self, cell: Cell) -> ChatTemplate | None:
        """See :func:`orchestrator.schema.adapter.chat_template`."""
        return gguf_template(cell.model.target)

    def prompt_id_steps(self, prompts: tuple[str, ...]) -> tuple[Step, ...]:
        """See :class:`orchestrator.schema.adapter.TellsPromptIds`."""
        return request.prompt_id_steps(prompts)

    def parse_prompt_ids(self, capture: TrialCapture) -> tuple[tuple[int, ...], ...] | None:
        """See :class:`orchestrator.schema.adapter.TellsPromptIds`."""
        return request.parse_prompt_ids(capture)

    def replay_steps(self, cell: Cell, spec: ReplaySpec) -> tuple[Step, ...]:
        """One request of one token per place; see :mod:`adapters.llama_cpp.replay`."""
        return replay.replay_steps(cell, spec)

    def parse_replay(self, cell: Cell, spec: ReplaySpec, capture: TrialCapture) -> tuple[Ranked, ...]:
        """What the baseline ranks at each place; raises ``CaptureError`` on an incomplete capture."""
        return replay.parse_replay(cell, spec, capture)
