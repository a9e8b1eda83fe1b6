"""Slipstream (npanj/slipstream) through its OpenAI-style server: a fresh server per session, its arm set by variables.

From source only: read at 5604182 and 0861e34, never run by us (it needs macOS and an Apple GPU). Its server counts
drafts over its whole life, so a trial's are differences of ``GET /status``; see :mod:`adapters.slipstream.counters`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath

from pydantic import BaseModel

from adapters.slipstream import parse, support
from adapters.slipstream.counters import at, has_counters
from adapters.slipstream.memory import SlipstreamMemory
from adapters.slipstream.options import METHOD_OPTIONS, SlipstreamOptions, draft_length, engine_options, environment
from adapters.slipstream.request import (
    READY_STATUS,
    REQUEST,
    ready_steps,
    request_body,
    sent_top_k,
    trial_steps,
)
from adapters.slipstream.stream import read_stream
from adapters.slipstream.support import KEEP_GGUF
from orchestrator.schema.adapter import (
    Adapter,
    Arrivals,
    Claim,
    Condition,
    EngineIdentity,
    Honoured,
    HttpReady,
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
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Observation
from orchestrator.schema.status import Status

_ASKED = f"events:{REQUEST}/body"
_NO_ECHO = "the server echoes no setting; it answers 400 to what it cannot do"


class Slipstream(SlipstreamMemory):
    """A ``slipstream`` launcher given by path, or the one on ``PATH``."""

    name: str = "slipstream"
    title: str = "Slipstream"
    shape: Shape = Shape.SERVER
    verified: Verified = Verified.SOURCE
    install_hint: str = (
        "on a Mac with Apple silicon: brew install npanj/tap/slipstream, or clone github.com/npanj/slipstream and "
        "make, and name its launcher as the engine's binary"
    )
    engine_options: type[BaseModel] = SlipstreamOptions
    method_options: Mapping[MethodKind, type[BaseModel]] = METHOD_OPTIONS
    always_drafts: frozenset[MethodKind] = frozenset({MethodKind.MTP})

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """Version, options, and the commit of a source checkout."""
        return support.probe_commands(config)

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """Version or commit, and known options."""
        return support.identify(config, outputs)

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:
        """Why the cell cannot work; a build that could use up a GGUF is refused."""
        return support.supports(cell, identity)

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:
        """Claimed exact from v26.10.4, relative to the engine's own top-32 sampler; before that, no claim."""
        return support.exactness(cell, identity)

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The server's command, the same in every arm; the arm is in the environment."""
        options = engine_options(cell)
        argv = [
            cell.engine.binary or "slipstream",
            "serve",
            "--model",
            cell.model.target,
            "--host",
            "127.0.0.1",
            "--port",
            str(context.port),
            "--no-webui",
            KEEP_GGUF,
        ]
        if options.max_context is not None:
            argv += ["--max-context", str(options.max_context)]
        if options.max_memory_gib is not None:
            argv += ["--max-memory", f"{options.max_memory_gib}G"]
        return Launch(tuple(argv), environment(cell), HttpReady("/ready"))

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:  # noqa: ARG002  (every cell is asked the same)
        """Counters and model of the server."""
        return ready_steps()

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:  # noqa: ARG002
        """Why the process must not be measured: it is another model's, or does not count.

        Whether a drafter is on no endpoint tells; a baseline that drafts shows in its counters, trial by trial.
        """
        step = ready.step(READY_STATUS)
        try:
            status = json.loads(step.text) if step is not None else None
        except ValueError:
            status = None
        if not isinstance(status, dict):
            return Refusal(Status.FAILED, "GET /status does not tell the server's state")
        if not has_counters(status):
            reason = (
                "this build's /status does not count drafted tokens, decode passes and requests as far as is needed"
            )
            return Refusal(Status.UNSUPPORTED, reason, "use Slipstream v26.10.4 or later")
        served, target = at(status, "instance.model"), PurePath(cell.model.target)
        known_by_name = target.suffix != ".gguf" and target.name != "prepared"
        if known_by_name and isinstance(served, str) and served.split("/")[-1] != target.name:
            reason = f"the server that answers serves {served}, the cell names {cell.model.target}"
            return Refusal(Status.CONTAMINATED, reason, "end the other server, or run again for another port")
        return None

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """Counters, request, counters."""
        return trial_steps(cell, trial)

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:  # noqa: ARG002  (the stream tells all)
        """Tokens in time; which of them came from one pass is inferred."""
        return parse.arrivals(capture)

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything the engine says of one trial; raises ``CaptureError`` on an incomplete capture."""
        return parse.parse_trial(cell, capture)

    def parse_session(self, cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:  # noqa: ARG002
        """Nothing: all that is read is told per trial."""
        return ()

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """What was asked; what was in effect only where the answer shows it."""
        try:
            stream = read_stream(capture)
        except CaptureError:
            return ()
        body = request_body(cell, TrialSpec(0, "measured", "", "", cell.sampling.seed))
        names = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty")
        asked = {name: body[name] for name in names}
        found = [Condition(name, f"{value:g}", None, Honoured.UNKNOWN, _NO_ECHO) for name, value in asked.items()]
        top_k = cell.sampling.top_k
        if cell.sampling.greedy:
            effective = f"{sent_top_k(cell)} sent, which moves nothing at temperature 0"
            found.append(Condition("top_k", str(top_k), effective, Honoured.HONOURED, _ASKED))
        else:
            found.append(Condition("top_k", str(top_k), None, Honoured.UNKNOWN, _NO_ECHO))
        template = "one user message in the model's chat template, reasoning off"
        found.append(Condition("prompt", "the text as it is", template, Honoured.CHANGED, _ASKED))
        reasoned = "some of the answer is reasoning" if stream.reasoning else "no reasoning in the answer"
        verdict = Honoured.CHANGED if stream.reasoning else Honoured.HONOURED
        found.append(Condition("reasoning", "none", reasoned, verdict, f"events:{REQUEST}/delta"))
        if cell.method.kind is not MethodKind.NONE:
            why = "no endpoint tells the draft length in effect; drafts may be shorter by the engine's own choice"
            found.append(Condition("draft_length", f"at most {draft_length(cell)}", None, Honoured.UNKNOWN, why))
        return tuple(found)

    def explain_exit(self, cell: Cell, stderr: str) -> Refusal | None:  # noqa: ARG002  (the port's signature)
        """What its last words mean: another server that runs, a port that is taken, a model that it does not take."""
        return support.explain_exit(stderr)


ADAPTER: Adapter = Slipstream()
