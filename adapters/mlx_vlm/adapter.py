"""mlx-vlm on text through a worker of ours: no draft, or an MTP drafter.

Never its command line, which drops an incompatible drafter and goes on without; never its server, whose counters are
those of a batch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.mlx_vlm.conditions import all_conditions
from adapters.mlx_vlm.files import drafter_folder, refuse_files
from adapters.mlx_vlm.memory import VlmMemory
from adapters.mlx_vlm.observations import baseline, common, problems, speculative, word_of_end
from adapters.mlx_vlm.protocol import STEP, Probed, find_ready, read_done, requested_seed
from adapters.mlx_vlm.rounds import read_rounds
from adapters.mlx_vlm.support import claim, refuse_method, refuse_sampling
from adapters.shared import mlx_replay
from adapters.shared.chat_template import folder_template
from adapters.shared.mlx_device import GPU_LIMIT_CODE
from adapters.shared.token_texts import folder_texts
from orchestrator.schema.adapter import (
    Adapter,
    Arrival,
    Arrivals,
    Claim,
    Condition,
    EngineIdentity,
    Launch,
    LaunchContext,
    LineReady,
    ParsedTrial,
    Probe,
    ProbeOutput,
    Refusal,
    Shape,
    Step,
    TrialSpec,
    Verified,
    WorkerStep,
)
from orchestrator.schema.capture import SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell, EngineConfig, MethodKind
from orchestrator.schema.chat_template import ChatTemplate
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Observation
from orchestrator.schema.replay import Ranked, ReplaySpec, Width
from orchestrator.schema.status import Status

WORKER = Path(__file__).resolve().parents[1] / "workers" / "mlx_vlm_worker.py"
CONFIG_FILE = "mlx_vlm_worker.json"
PACKAGES = "'mlx-vlm==0.7.10' 'mlx[cpu]==0.32.4'"
ISOLATED = ("-I", "-X", "utf8")
"""No user site, no ``PYTHON*`` variables, no folder of ours on the path: the engine's own environment alone."""
PROBE_CODE = (
    f"import json, platform, mlx.core as mx, mlx_vlm, mlx_vlm.version as v\n{GPU_LIMIT_CODE}"
    "print(json.dumps({'mlx': mx.__version__, 'mlx_vlm': v.__version__, 'gpu_limit': gpu_limit(), "
    "'python': platform.python_version(), 'device': str(mx.default_device())}))"
)
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""A path that is missing must never become a download."""


class Options(BaseModel):
    """``engines.*.options`` of mlx-vlm."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prefill_step_size: int | None = Field(
        2048,
        ge=1,
        description="Prompt tokens a prefill pass; null: the whole prompt at once, which an MTP drafter is then shown.",
    )
    seeding: Literal["stream", "position"] = Field(
        "stream",
        description="At temperature > 0: one stream of random numbers, as mlx-vlm's command line has it, or a key for "
        "each place of the answer, as its argument seed has it; drafts are then greedy.",
    )


class NoOptions(BaseModel):
    """A method without options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MlxVlm(VlmMemory):
    """The adapter; see :class:`orchestrator.schema.adapter.Adapter`."""

    name = "mlx_vlm"
    title = "mlx-vlm (in-process worker)"
    shape = Shape.WORKER
    verified = Verified.REAL_RUN
    install_hint = f"python -m pip install {PACKAGES}  (on macOS 'mlx==0.32.4' instead of 'mlx[cpu]==0.32.4')"
    engine_options: type[BaseModel] = Options
    method_options: Mapping[MethodKind, type[BaseModel]] = {MethodKind.NONE: NoOptions, MethodKind.MTP: NoOptions}
    always_drafts = frozenset({MethodKind.MTP})
    scoring_width = Width.BATCHED

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """One import of the engine by its own interpreter."""
        return (Probe("import", (_python(config), *ISOLATED, "-c", PROBE_CODE)),)

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """Versions and device, or why there is no engine and the line that installs it."""
        output = outputs.get("import")
        lines = output.stdout.splitlines() if output is not None else []
        try:
            found = Probed.model_validate_json(lines[-1] if lines else "")
        except ValueError:
            hint = self.install_hint.replace("python -m", f"{_python(config)} -m", 1)
            return EngineIdentity(unavailable=f"mlx-vlm cannot be imported ({_last_words(output)}); {hint}")
        backend = "cpu" if "cpu" in found.device else "metal" if sys.platform == "darwin" else found.device
        return EngineIdentity(
            facts={"mlx-vlm": found.mlx_vlm, "mlx": found.mlx, "python": found.python, "device": found.device},
            version=found.mlx_vlm,
            build=f"mlx {found.mlx}, Python {found.python}",
            backend=backend,
            capabilities=frozenset({MethodKind.NONE.value, MethodKind.MTP.value}),
            gpu_limit_bytes=found.gpu_limit,
        )

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:  # noqa: ARG002  (the port's signature)
        """Methods, sampler settings and model folders that this engine cannot measure rightly."""
        try:
            options = Options.model_validate(dict(cell.engine.options))
        except ValidationError as err:
            reason = f"engines.{cell.engine.name}.options: {err.errors()[0]['msg']}"
            return Refusal(Status.UNSUPPORTED, reason, "correct the options in the matrix")
        return refuse_method(cell) or refuse_sampling(cell, options.seeding) or refuse_files(cell)

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:
        """Match of the target's own choice, as far as it was measured."""
        return claim(cell, identity.version)

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The worker, by the engine's own interpreter, with its settings in a file."""
        options = Options.model_validate(dict(cell.engine.options))
        config = {"target": cell.model.target, "drafter": drafter_folder(cell), **options.model_dump()}
        argv = (_python(cell.engine), *ISOLATED, str(WORKER), str(context.folder.absolute() / CONFIG_FILE))
        text = json.dumps(config, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        return Launch(argv, OFFLINE, LineReady(), files={CONFIG_FILE: text})

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:  # noqa: ARG002
        """None: the ready line tells all."""
        return ()

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:  # noqa: ARG002
        """The drafter must be loaded, and as one for MTP, exactly where the cell asks for it."""
        found = find_ready(stdout)
        if found is None:
            return Refusal(Status.FAILED, "the worker's ready line is missing or cannot be read", "see stderr.log")
        wanted = cell.method.kind is MethodKind.MTP
        if wanted and not (found.draft_loaded and found.draft_kind == "mtp"):
            return Refusal(Status.NOT_ENGAGED, "the worker loaded no MTP drafter, and the cell asks for one")
        if found.draft_loaded and not wanted:
            return Refusal(Status.CONTAMINATED, "the worker loaded a drafter for a cell without one")
        return None

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """One request with every setting stated."""
        asked = cell.sampling
        message = {
            "op": "generate",
            "trial": trial.index,
            "prompt": trial.prompt,
            "max_tokens": cell.workload.max_tokens,
            "block_size": (cell.method.n_max or 0) + 1 if cell.method.kind is MethodKind.MTP else 0,
            "sampling": {
                "temperature": asked.temperature,
                "top_k": asked.top_k,
                "top_p": asked.top_p,
                "min_p": asked.min_p,
                "repeat_penalty": asked.repeat_penalty,
                "presence_penalty": asked.presence_penalty,
                "frequency_penalty": asked.frequency_penalty,
                "seed": trial.seed,
            },
            "eos": cell.workload.eos.value,
        }
        return (WorkerStep(STEP, message),)

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:  # noqa: ARG002
        """Tokens in time by the worker's stamps; those of one round, or each of a baseline, are a burst.

        The end is when mlx-vlm's stream ended, not when the device fell idle: without a drafter one more pass is then
        under way, for which nobody waits.
        """
        try:
            done = read_done(capture)
            read_rounds(done)
        except CaptureError:
            return None
        came = tuple(
            Arrival(t_s, (token,), f"p{place}" if done.speculation is None else f"r{number}")
            for place, (token, t_s, number) in enumerate(done.tokens)
        )
        return Arrivals(done.t0, came, done.t1, "engine")

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything the worker says of one trial.

        Raises:
            CaptureError: the answer is incomplete, cannot be read, or is none that mlx-vlm can give.
        """
        done = read_done(capture)
        rounds = read_rounds(done)
        speculates = cell.method.kind is MethodKind.MTP and done.speculation is not None
        own = speculative(done, rounds) if speculates else baseline(cell, done, rounds)
        found = problems(cell, done, rounds)
        if done.trial != capture.index:
            found.append(f"the worker answered trial {done.trial}")
        return ParsedTrial((*common(done), *own), done.ids, done.text, word_of_end(done), tuple(found))

    def parse_session(self, cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:  # noqa: ARG002
        """Nothing: the worker says all it knows trial by trial."""
        return ()

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """What was asked and what the worker passed on; empty while the answer is incomplete."""
        try:
            done = read_done(capture)
        except CaptureError:
            return ()
        options = Options.model_validate(dict(cell.engine.options))
        seed = requested_seed(capture.steps[STEP])
        return all_conditions(cell, seed, done, options.seeding, options.prefill_step_size)

    def chat_template(self, cell: Cell) -> ChatTemplate | None:
        """See :func:`orchestrator.schema.adapter.chat_template`."""
        return folder_template(cell.model.target)

    def token_texts(self, cell: Cell, ids: tuple[int, ...]) -> Mapping[int, str]:
        """See :func:`orchestrator.schema.adapter.token_texts`."""
        return folder_texts(cell.model.target, ids)

    def replay_steps(self, cell: Cell, spec: ReplaySpec) -> tuple[Step, ...]:
        """One request that ranks the whole text.

        Raises:
            ValueError: the cell speculates, has penalties, or seeds by position with filters, whose order then differs.
        """
        asked = cell.sampling
        filtered = asked.top_k > 0 or asked.top_p < 1
        if cell.engine.options.get("seeding") == "position" and not asked.greedy and filtered:
            raise ValueError("seeding by position applies its filters in another order than a replay does")
        return mlx_replay.replay_steps(cell, spec)

    def parse_replay(self, cell: Cell, spec: ReplaySpec, capture: TrialCapture) -> tuple[Ranked, ...]:  # noqa: ARG002
        """What the target ranks at each place; raises ``CaptureError`` on an incomplete answer."""
        return mlx_replay.parse_replay(spec, capture)


def _python(config: EngineConfig) -> str:
    return config.python or sys.executable


def _last_words(output: ProbeOutput | None) -> str:
    if output is None:
        return "not probed"
    if output.error is not None:
        return output.error
    lines = [line for line in output.stderr.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit status {output.exit_code}"


ADAPTER: Adapter = MlxVlm()
