"""oMLX through its own server: native MTP, mlx-vlm's MTP with a drafter, and DFlash.

Speculation is set by files before the start, and told by log lines alone; so the server is ours, with a base path of
its own. Admin endpoints are never asked: they need a login, and some of their answers hold keys.
Verified by real runs of flyto-mlx 0.7.0, a fork with the same package ``omlx``, on Linux (CPU): without drafts, with
native MTP (Qwen3.5) and with VLM MTP (Gemma 4). DFlash and the log forms of later versions are read from source.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from pydantic import BaseModel

from adapters.omlx import arrivals, conditions, observations, support
from adapters.omlx import identity as identification
from adapters.omlx import ready as readiness
from adapters.omlx.identity import ISOLATED
from adapters.omlx.log import COMPLETED
from adapters.omlx.memory import OmlxMemory
from adapters.omlx.options import METHOD_OPTIONS, OmlxOptions, engine_options
from adapters.omlx.settings import HOME, files, model_id
from adapters.omlx.stream import REQUEST
from orchestrator.schema.adapter import (
    Adapter,
    Arrivals,
    Claim,
    Condition,
    EngineIdentity,
    HttpReady,
    HttpStep,
    Launch,
    LaunchContext,
    LogStep,
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

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""A path that is missing must never become a download."""

NO_LOOKUP = {"OMLX_MTP_CONTEXT_COPY": "0"}
"""Prompt lookup, which later versions mix into native MTP (omlx/patches/mlx_lm_mtp/context_copy.py of jundot/omlx
c2d7746: on unless this says 0, up to 15 tokens a draft): its drafts would be counted as the MTP module's."""

GUARD = "OMLX_MEMORY_GUARD_TIER"
"""Not the option ``--memory-guard-tier``: versions without it do not start with it (jundot/omlx 0149651), and do not
look at this variable."""


class Omlx(OmlxMemory):
    """The adapter; see :class:`orchestrator.schema.adapter.Adapter`."""

    name = "omlx"
    title = "oMLX (its server)"
    shape = Shape.SERVER
    verified = Verified.REAL_RUN
    install_hint = (
        "install oMLX (Mac: brew tap jundot/omlx && brew install omlx) and name its command as the engine's binary; "
        "elsewhere scripts/build-omlx-env.sh makes an interpreter with a fork for the CPU: name that as its python"
    )
    engine_options: type[BaseModel] = OmlxOptions
    method_options: Mapping[MethodKind, type[BaseModel]] = METHOD_OPTIONS
    always_drafts = frozenset({MethodKind.MTP, MethodKind.DRAFT})

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """A look at the installed package."""
        return identification.probe_commands(config)

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """Versions by package metadata; the server tells its own once it runs."""
        return identification.identify(config, outputs, self.install_hint)

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:
        """What oMLX would drop without a word; reads ``config.json`` and safetensors headers."""
        return support.supports(cell, identity)

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:
        """The acceptance rule claimed for the cell."""
        return support.exactness(cell, identity)

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The server's command; the arms of a block differ in the settings file alone."""
        options = engine_options(cell)
        config = cell.engine
        by_command = config.binary is not None and config.python is None
        start = (config.binary or "",) if by_command else (identification.python(config), *ISOLATED, "-m", "omlx.cli")
        argv = (
            *start,
            "serve",
            "--host",
            "127.0.0.1",
            "--port",
            str(context.port),
            "--model-dir",
            str(PurePath(cell.model.target).parent),
            "--base-path",
            str(context.folder.absolute() / HOME),
            "--no-cache",
            "--max-concurrent-requests",
            "1",
            "--log-level",
            "info",
        )
        env = {**OFFLINE, **NO_LOOKUP, GUARD: options.memory_guard_tier}
        env |= {} if options.runtime_tuning else {"OMLX_MLX_RUNTIME_TUNING": "0"}
        return Launch(argv, env, HttpReady("/health"), files=files(cell))

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:  # noqa: ARG002  (every cell is asked the same)
        """Version and loaded models."""
        return readiness.ready_steps()

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:  # noqa: ARG002
        """Why the process must not be measured: no model, no drafter, or one where there should be none."""
        return readiness.check_ready(cell, ready, stderr)

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """The request, and the end of its log."""
        asked = cell.sampling
        body = {
            "model": model_id(cell),
            "prompt": trial.prompt,
            "max_tokens": cell.workload.max_tokens,
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "min_p": asked.min_p,
            "presence_penalty": asked.presence_penalty,
            "frequency_penalty": asked.frequency_penalty,
            "xtc_probability": asked.xtc_probability,
            "xtc_threshold": asked.xtc_threshold,
            "seed": trial.seed,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return (HttpStep(REQUEST, "POST", "/v1/completions", body, stream=True), LogStep("log", COMPLETED))

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:
        """Tokens in time; keep-alive events are none."""
        return arrivals.arrivals(cell, capture)

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything that the engine says of one trial; raises ``CaptureError`` on an incomplete capture."""
        return observations.parse_trial(cell, capture)

    def parse_session(self, cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:  # noqa: ARG002
        """Nothing: oMLX's log tells request by request."""
        return ()

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """Requested and effective settings."""
        return conditions.conditions(cell, capture)

    def session_conditions(self, cell: Cell, capture: SessionCapture) -> tuple[Condition, ...]:
        """Version by the server's own word, and log lines that cannot be read."""
        return conditions.session_conditions(cell, capture)


ADAPTER: Adapter = Omlx()
