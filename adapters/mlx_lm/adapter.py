"""MLX-LM through a worker of ours: no draft, or a draft model.

Never ``mlx_lm.server``: it answers repeated prompts wrongly with a draft model while its prompt cache is on, runs
another loop without a draft than with one, and drops what tells the rounds apart.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.mlx_lm import prompt_ids
from adapters.mlx_lm.conditions import all_conditions
from adapters.mlx_lm.judging import MlxJudging
from adapters.mlx_lm.model_files import refuse_files
from adapters.mlx_lm.observations import baseline, common, problems, speculative, word_of_end
from adapters.mlx_lm.protocol import STEP, Done, Probed, find_ready, read_done, requested_seed
from adapters.mlx_lm.rounds import split_rounds
from adapters.mlx_lm.support import claim, refuse_method, refuse_sampling
from adapters.shared import mlx_replay
from adapters.shared.chat_template import folder_template
from adapters.shared.mlx_device import GPU_LIMIT_CODE
from adapters.shared.mlx_memory import MlxMemory
from adapters.shared.rounds import Round
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

WORKER = Path(__file__).resolve().parents[1] / "workers" / "mlx_lm_worker.py"
CONFIG_FILE = "mlx_lm_worker.json"
PACKAGES = "'mlx-lm==0.32.2' 'mlx[cpu]==0.32.4'"
PHASES = "phases"
"""The phase of a trial that is to be instrumented."""
ISOLATED = ("-I", "-X", "utf8")
"""No user site, no ``PYTHON*`` variables, no folder of ours on the path: the engine's own environment alone."""
PROBE_CODE = (
    f"import json, platform, mlx.core as mx, mlx_lm\n{GPU_LIMIT_CODE}"
    "print(json.dumps({'mlx': mx.__version__, 'mlx_lm': mlx_lm.__version__, 'gpu_limit': gpu_limit(), "
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
    """``engines.*.options`` of MLX-LM."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dtype: Literal["float32", "float16", "bfloat16"] | None = Field(None, description="Cast weights; null: as stored.")
    kv_bits: Literal[4, 8] | None = Field(None, description="Quantise the prompt cache from its first token.")
    kv_group_size: Literal[32, 64, 128] = Field(64, description="Numbers that share one scale in a quantised cache.")
    prefill_step_size: int = Field(2048, ge=1, description="Prompt tokens a prefill pass, with and without a draft.")


class NoOptions(BaseModel):
    """A method without options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MlxLm(MlxJudging, MlxMemory):
    """The adapter; see :class:`orchestrator.schema.adapter.Adapter`."""

    name = "mlx_lm"
    title = "MLX-LM (in-process worker)"
    shape = Shape.WORKER
    verified = Verified.REAL_RUN
    install_hint = f"python -m pip install {PACKAGES}  (on macOS 'mlx==0.32.4' instead of 'mlx[cpu]==0.32.4')"
    engine_options: type[BaseModel] = Options
    method_options: Mapping[MethodKind, type[BaseModel]] = {MethodKind.NONE: NoOptions, MethodKind.DRAFT: NoOptions}
    always_drafts = frozenset({MethodKind.DRAFT})
    phase_methods = frozenset({MethodKind.DRAFT})
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
            return EngineIdentity(unavailable=f"mlx-lm cannot be imported ({_last_words(output)}); {hint}")
        backend = "cpu" if "cpu" in found.device else "metal" if sys.platform == "darwin" else found.device
        facts = {"mlx-lm": found.mlx_lm, "mlx": found.mlx, "python": found.python, "device": found.device}
        return EngineIdentity(
            facts=facts,
            version=found.mlx_lm,
            build=f"mlx {found.mlx}, Python {found.python}",
            backend=backend,
            capabilities=frozenset({MethodKind.NONE.value, MethodKind.DRAFT.value}),
            gpu_limit_bytes=found.gpu_limit,
        )

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:  # noqa: ARG002  (the port's signature)
        """Methods, sampler settings and model folders that this engine cannot measure rightly."""
        try:
            options = Options.model_validate(dict(cell.engine.options))
        except ValidationError as err:
            reason = f"engines.{cell.engine.name}.options: {err.errors()[0]['msg']}"
            return Refusal(Status.UNSUPPORTED, reason, "correct the options in the matrix")
        return (
            refuse_method(cell) or refuse_sampling(cell) or refuse_files(cell, options.kv_bits, options.kv_group_size)
        )

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:
        """Match of the target's own choice, where nothing makes a verify pass sample otherwise than single passes."""
        return claim(cell, identity.version)

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The worker, by the engine's own interpreter, with its settings in a file."""
        options = Options.model_validate(dict(cell.engine.options))
        config = {"target": cell.model.target, "draft": _draft(cell), **options.model_dump()}
        argv = (_python(cell.engine), *ISOLATED, str(WORKER), str(context.folder.absolute() / CONFIG_FILE))
        text = json.dumps(config, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        return Launch(argv, OFFLINE, LineReady(), files={CONFIG_FILE: text})

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:  # noqa: ARG002
        """None: the ready line tells all."""
        return ()

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:  # noqa: ARG002
        """The draft must be loaded exactly where the cell asks for one."""
        found = find_ready(stdout)
        if found is None:
            return Refusal(Status.FAILED, "the worker's ready line is missing or cannot be read", "see stderr.log")
        wanted = _draft(cell) is not None
        if wanted and not found.draft_loaded:
            return Refusal(Status.NOT_ENGAGED, "the worker loaded no draft, and the cell asks for one")
        if found.draft_loaded and not wanted:
            return Refusal(Status.CONTAMINATED, "the worker loaded a draft for a cell without one")
        return None

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """One request with every setting stated."""
        asked = cell.sampling
        message = {
            "op": "generate",
            "trial": trial.index,
            "prompt": trial.prompt,
            "max_tokens": cell.workload.max_tokens,
            "num_draft_tokens": cell.method.n_max or 0,
            "sampling": {
                "temperature": asked.temperature,
                "top_k": asked.top_k,
                "top_p": asked.top_p,
                "min_p": asked.min_p,
                "repeat_penalty": asked.repeat_penalty,
                "presence_penalty": asked.presence_penalty,
                "frequency_penalty": asked.frequency_penalty,
                "xtc_probability": asked.xtc_probability,
                "xtc_threshold": asked.xtc_threshold,
                "seed": trial.seed,
            },
            "eos": cell.workload.eos.value,
        }
        if trial.phase == PHASES:
            message["phases"] = True
        return (WorkerStep(STEP, message),)

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:
        """Tokens in time by the worker's stamps; those of one round, or each of a baseline, are a burst.

        The end is when mlx-lm's stream ended, not when the device fell idle: without a draft one more pass is then
        under way, for which nobody waits.
        """
        try:
            done = read_done(capture)
            rounds = _rounds(cell, done)
        except CaptureError:
            return None
        keys = [f"r{number}" for number, one in enumerate(rounds) for _ in range(one.emitted)]
        if not rounds:
            keys = [f"r{number}" for number in range(len(done.tokens))]
        came = tuple(Arrival(t_s, (token,), key) for (token, t_s, _), key in zip(done.tokens, keys, strict=True))
        return Arrivals(done.t0, came, done.t1, "engine")

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything the worker says of one trial.

        Raises:
            CaptureError: the answer is incomplete, cannot be read, or is none that mlx-lm can give.
        """
        done = read_done(capture)
        rounds = _rounds(cell, done)
        own = speculative(cell, done, rounds) if rounds else baseline(done)
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
        words = {name: str(value) for name, value in options.model_dump().items()}
        return all_conditions(cell, requested_seed(capture.steps[STEP]), done, words)

    def token_texts(self, cell: Cell, ids: tuple[int, ...]) -> Mapping[int, str]:
        """See :func:`orchestrator.schema.adapter.token_texts`."""
        return folder_texts(cell.model.target, ids)

    def chat_template(self, cell: Cell) -> ChatTemplate | None:
        """See :func:`orchestrator.schema.adapter.chat_template`."""
        return folder_template(cell.model.target)

    def prompt_id_steps(self, prompts: tuple[str, ...]) -> tuple[Step, ...]:
        """See :class:`orchestrator.schema.adapter.TellsPromptIds`."""
        return prompt_ids.prompt_id_steps(prompts)

    def parse_prompt_ids(self, capture: TrialCapture) -> tuple[tuple[int, ...], ...] | None:
        """See :class:`orchestrator.schema.adapter.TellsPromptIds`."""
        return prompt_ids.parse_prompt_ids(capture)

    def replay_steps(self, cell: Cell, spec: ReplaySpec) -> tuple[Step, ...]:
        """One request that ranks the whole text."""
        return mlx_replay.replay_steps(cell, spec)

    def parse_replay(self, cell: Cell, spec: ReplaySpec, capture: TrialCapture) -> tuple[Ranked, ...]:  # noqa: ARG002
        """What the target ranks at each place; raises ``CaptureError`` on an incomplete answer."""
        return mlx_replay.parse_replay(spec, capture)


def _python(config: EngineConfig) -> str:
    return config.python or sys.executable


def _draft(cell: Cell) -> str | None:
    return cell.draft_path if cell.method.kind is MethodKind.DRAFT else None


def _rounds(cell: Cell, done: Done) -> tuple[Round, ...]:
    """The verify rounds of a speculative cell; none for a baseline."""
    if cell.method.kind is not MethodKind.DRAFT or cell.method.n_max is None or cell.method.n_max < 1:
        return ()
    return split_rounds(done.from_draft, cell.workload.max_tokens, cell.method.n_max)


def _last_words(output: ProbeOutput | None) -> str:
    if output is None:
        return "not probed"
    if output.error is not None:
        return output.error
    lines = [line for line in output.stderr.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit status {output.exit_code}"


ADAPTER: Adapter = MlxLm()
