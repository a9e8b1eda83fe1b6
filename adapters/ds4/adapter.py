"""ds4 (DwarfStar): its command once an answer, or its server once a session; two generations of flags.

Read from real output where a build could be run (May 2026, CPU, which never speculates), from source elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from adapters.ds4 import command, failures, server, support
from adapters.ds4 import identity as identification
from adapters.ds4.conditions import conditions, session_conditions
from adapters.ds4.memory import Ds4Memory
from adapters.ds4.options import METHOD_OPTIONS, Ds4Options, by_server
from orchestrator.schema.adapter import (
    Adapter,
    Arrivals,
    Claim,
    Condition,
    EngineIdentity,
    Launch,
    LaunchContext,
    ParsedTrial,
    Probe,
    ProbeOutput,
    Refusal,
    Shape,
    Step,
    TrialSpec,
    Verified,
)
from orchestrator.schema.capture import SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell, EngineConfig, MethodKind
from orchestrator.schema.observation import Observation


class Ds4(Ds4Memory):
    """The adapter; see :class:`orchestrator.schema.adapter.Adapter`."""

    name = "ds4"
    title = "ds4 (DwarfStar)"
    shape = Shape.ONE_SHOT
    verified = Verified.GOLDEN
    install_hint = (
        "git clone https://github.com/antirez/ds4, run make there, get a model with its download_model.sh, and name "
        "its ds4 (for mode server its ds4-server) as the engine's binary"
    )
    engine_options: type[BaseModel] = Ds4Options
    method_options: Mapping[MethodKind, type[BaseModel]] = METHOD_OPTIONS
    always_drafts = frozenset({MethodKind.MTP})

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """Its help, and the checkout that it lies in: it has no version."""
        return identification.probe_commands(config)

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """Commit, generation and options; the runner adds the binary's hash."""
        return identification.identify(config, outputs, self.install_hint)

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:
        """Why the cell cannot work; reads the options that ``--help`` lists, and the headers of files."""
        return support.supports(cell, identity)

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:
        """The acceptance rule claimed for the cell."""
        return support.exactness(cell, identity)

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The server, or the command that each exchange starts anew."""
        return server.launch(cell, context) if by_server(cell) else command.launch(cell)

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:
        """What the server serves; of the command nothing runs yet."""
        return server.ready_steps() if by_server(cell) else ()

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:  # noqa: ARG002
        """Whether the server loaded what it should; the command is judged by each answer."""
        return server.check_ready(cell, stderr) if by_server(cell) else None

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """One chat, or one run of the command and what its text is in tokens."""
        return server.trial_steps(cell, trial) if by_server(cell) else command.trial_steps(cell, trial)

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:
        """When which tokens came; ``None`` while the capture is incomplete."""
        return server.arrivals_of(capture) if by_server(cell) else command.arrivals_of(cell, capture)

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything the engine says of one trial; raises ``CaptureError`` on an incomplete capture."""
        return server.parse_trial(cell, capture) if by_server(cell) else command.parse_trial(cell, capture)

    def parse_session(self, cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:
        """How long loading took, where each answer loads anew."""
        return () if by_server(cell) else command.parse_session(cell, capture)

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """Requested and effective settings, as far as ds4 tells."""
        return conditions(cell, capture)

    def session_conditions(self, cell: Cell, capture: SessionCapture) -> tuple[Condition, ...]:
        """Context and backend, by the lines of its start."""
        return session_conditions(cell, capture)

    def explain_exit(self, cell: Cell, stderr: str) -> Refusal | None:  # noqa: ARG002  (the port's signature)
        """What its last words mean: the lock of another ds4, a foreign file, an option that it does not know."""
        return failures.explain(stderr)


ADAPTER: Adapter = Ds4()
