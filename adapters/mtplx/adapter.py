"""MTPLX (youssofal/MTPLX) through its OpenAI-style server: a fresh server per session, plain prompts, MTP on or off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from adapters.mtplx import observations, stream, support
from adapters.mtplx.memory import MtplxMemory
from adapters.mtplx.stream import REQUEST, number, read_stream
from adapters.mtplx.support import METHOD_OPTIONS, MtplxOptions, depth, engine_options
from orchestrator.schema.adapter import (
    Adapter,
    Arrivals,
    Claim,
    Condition,
    EngineIdentity,
    Honoured,
    HttpReady,
    HttpStep,
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

HEALTH = "health"
SAMPLER = ("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty")
_ECHO = f"events:{REQUEST}/mtplx_stats"


class Mtplx(MtplxMemory):
    """An ``mtplx`` command given by path, or the one on ``PATH``."""

    name: str = "mtplx"
    title: str = "MTPLX"
    shape: Shape = Shape.SERVER
    verified: Verified = Verified.GOLDEN
    install_hint: str = (
        "on a Mac with Apple silicon: python -m pip install mtplx==2.12.2 in an environment of its own, and name its "
        "mtplx command as the engine's binary"
    )
    engine_options: type[BaseModel] = MtplxOptions
    method_options: Mapping[MethodKind, type[BaseModel]] = METHOD_OPTIONS
    always_drafts: frozenset[MethodKind] = frozenset({MethodKind.MTP})

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """The version."""
        return support.probe_commands(config)

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """The version, or why there is no engine."""
        return support.identify(config, outputs)

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:
        """Methods, options and sampler settings that the engine has not."""
        return support.supports(cell, identity)

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:  # noqa: ARG002  (read at one version, and said so)
        """Rejection with residual correction, by its README; greedy match at temperature 0."""
        return support.exactness(cell)

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The server's command, with the user's own settings, caches, prompt lookup and late warm-up out of the way.

        The model and its MTP head are loaded in every arm; ``--generation-mode`` alone tells them apart.
        """
        options = engine_options(cell)
        speculates = cell.method.kind is not MethodKind.NONE
        argv = [cell.engine.binary or "mtplx", "serve", "--model", cell.model.target]
        argv += ["--host", "127.0.0.1", "--port", str(context.port), "--no-auth", "--yes", "--no-stats-footer"]
        argv += ["--ssd-session-cache", "off", "--scheduler-mode", "serial", "--adaptive-policy", "none"]
        argv += ["--generation-mode", "mtp" if speculates else "ar"]
        argv += ["--depth", str(depth(cell))] if speculates else []
        argv += ["--profile", options.profile] if options.profile is not None else []
        argv += ["--context-window", str(options.context_window)] if options.context_window is not None else []
        argv += ["--unsafe-force-unverified"] if options.allow_unverified else []
        env = {
            "MTPLX_CONFIG": str(context.folder / "no-config.toml"),
            "MTPLX_CONTEXT_COPY": "0",  # prompt lookup: drafts in either arm's name, counted with the same rounds
            "MTPLX_WARMUP_BACKGROUND": "0",  # else it goes on warming up after it said that it is ready
            "HF_HUB_OFFLINE": "1",
        }
        return Launch(tuple(argv), env, HttpReady("/health"))

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:  # noqa: ARG002  (every cell is asked the same)
        """What the server says it is."""
        return (HttpStep(HEALTH, "GET", "/health"),)

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:  # noqa: ARG002
        """Why the process must not be measured: it serves another model or mode, or could not warm up.

        A model whose MTP head it cannot use is served without it, with no more than a line on its output.
        """
        found = _health(ready)
        if found is None:
            return Refusal(Status.FAILED, "GET /health does not tell the server's state")
        if found.get("model_path") != cell.model.target:
            reason = f"the server that answers serves {found.get('model_path')}, the cell names {cell.model.target}"
            return Refusal(Status.CONTAMINATED, reason, "end the other server, or run again for another port")
        speculates = cell.method.kind is not MethodKind.NONE
        mode, wanted = found.get("generation_mode"), "mtp" if speculates else "ar"
        if mode != wanted or (speculates and found.get("mtp_enabled") is not True):
            reason = f"the server decodes in mode {mode} (MTP head loaded: {found.get('mtp_enabled')}), not in {wanted}"
            return Refusal(Status.NOT_ENGAGED, reason, "use a model whose MTP head MTPLX takes: mtplx inspect-model")
        if speculates and found.get("depth") != depth(cell):
            reason = f"the server drafts {found.get('depth')} tokens a round, the cell asks for {depth(cell)}"
            return Refusal(Status.NOT_ENGAGED, reason, f"change n_max of method {cell.method.name}")
        warmup = found.get("warmup")
        error = warmup.get("error") if isinstance(warmup, dict) else None
        return Refusal(Status.FAILED, f"MTPLX could not generate while warming up: {error}") if error else None

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """One request, its prompt as it stands."""
        body = {
            "prompt": trial.prompt,
            "max_tokens": cell.workload.max_tokens,
            "seed": trial.seed,
            "stream": True,
            **{name: getattr(cell.sampling, name) for name in SAMPLER},
        }
        return (HttpStep(REQUEST, "POST", "/v1/completions", body, stream=True),)

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:  # noqa: ARG002  (the stream tells all)
        """Tokens in time; which of them came from one pass is inferred."""
        return stream.arrivals(capture)

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything the engine says of one trial; raises ``CaptureError`` on an incomplete capture."""
        return observations.parse_trial(cell, capture)

    def parse_session(self, cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:  # noqa: ARG002
        """Nothing: all that is read is told per trial."""
        return ()

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """What was asked, and what the closing event says was in effect."""
        try:
            stats = read_stream(capture).stats
        except CaptureError:
            return ()
        found = []
        for name in SAMPLER:
            asked, effective = float(getattr(cell.sampling, name)), number(stats, f"effective_{name}")
            found.append(_condition(name, f"{asked:g}", None if effective is None else f"{effective:g}"))
        if cell.method.kind is not MethodKind.NONE:
            effective = number(stats, "mtp_depth")
            found.append(_condition("draft_length", str(depth(cell)), None if effective is None else f"{effective:g}"))
        return tuple(found)


def _condition(name: str, asked: str, effective: str | None) -> Condition:
    if effective is None:
        return Condition(name, asked, None, Honoured.UNKNOWN, "the closing event does not echo it")
    return Condition(name, asked, effective, Honoured.HONOURED if asked == effective else Honoured.CHANGED, _ECHO)


def _health(ready: TrialCapture) -> Mapping[str, Any] | None:
    step = ready.step(HEALTH)
    try:
        found = json.loads(step.text) if step is not None else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


ADAPTER: Adapter = Mtplx()
