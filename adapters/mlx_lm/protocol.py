"""What the MLX-LM worker says, read strictly: a line that is not exactly of this form yields no number."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.schema.capture import StepCapture, TrialCapture
from orchestrator.schema.errors import CaptureError

STEP = "generate"
"""Name of the one exchange of a trial."""


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class EffectiveSampling(_Line):
    """Sampler settings as the worker got them."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    xtc_probability: float
    xtc_threshold: float
    seed: int


class Effective(_Line):
    """The worker's echo of what it passed to mlx-lm."""

    sampling: EffectiveSampling
    max_tokens: int
    num_draft_tokens: int
    eos: str
    stops_at: tuple[int, ...]
    processors: int
    penalty_window: int
    prefill_step_size: int
    kv_bits: int | None
    kv_group_size: int | None
    quantized_kv_start: int | None
    dtype: tuple[str, ...]
    draft_dtype: tuple[str, ...]
    device: str
    compiler: str | None


class Phases(_Line):
    """Seconds by part of a round, and the passes that were seen, in an instrumented repeat."""

    draft_s: float
    verify_s: float
    rollback_s: float
    draft_passes: int
    verify_passes: int


class Done(_Line):
    """A finished trial. Times are seconds of the clock that all processes share; ``tokens`` are (id, time, drafted)."""

    event: Literal["done"]
    trial: int
    t0: float
    t1: float
    t_idle: float
    tokens: tuple[tuple[int, float, bool], ...]
    text: str
    finish_reason: Literal["length", "stop"]
    prompt_tokens: int
    generation_tokens: int
    mlx_generation_tps: float
    mlx_prompt_tps: float
    peak_memory_bytes: int
    active_before_bytes: int
    short_trims: int
    end_of_text_ids: tuple[int, ...]
    mlx: str
    mlx_lm: str
    effective: Effective
    phases: Phases | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        """The emitted token ids."""
        return tuple(token for token, _, _ in self.tokens)

    @property
    def from_draft(self) -> tuple[bool, ...]:
        """Per token, whether the drafter proposed it."""
        return tuple(drafted for _, _, drafted in self.tokens)


class Ready(_Line):
    """What the worker loaded."""

    event: Literal["ready"]
    mlx: str
    mlx_lm: str
    python: str
    device: str
    prompt_cache: tuple[str, ...]
    draft_loaded: bool
    draft_prompt_cache: tuple[str, ...]
    window: int | None


class Probed(_Line):
    """What the identity probe prints."""

    mlx: str
    mlx_lm: str
    python: str
    device: str
    gpu_limit: int | None = None


def read_done(capture: TrialCapture) -> Done:
    """The answer of a trial's one exchange.

    Raises:
        CaptureError: it is missing, incomplete, an error, or not of the worker's form.
    """
    step = capture.steps.get(STEP)
    if step is None:
        raise CaptureError(f"trial {capture.index}: no exchange named {STEP}")
    if not step.complete or not step.events:
        raise CaptureError(f"trial {capture.index}: the worker's answer is incomplete ({step.error or 'no end'})")
    last = step.events[-1].data
    try:
        done = Done.model_validate_json(last)
    except ValidationError as err:
        problem = err.errors()[0]
        where = ".".join(str(part) for part in problem["loc"]) or "line"
        raise CaptureError(f"trial {capture.index}: the worker's answer: {where}: {problem['msg']}") from err
    except ValueError as err:  # half a character of a pair, which JSON can spell and UTF-8 cannot
        raise CaptureError(f"trial {capture.index}: the worker's answer is no text: {err}") from err
    if not done.tokens:
        raise CaptureError(f"trial {capture.index}: the worker's answer has no token")
    stamps = (done.t0, *(t_s for _, t_s, _ in done.tokens), done.t1, done.t_idle)
    if any(later < earlier for earlier, later in pairwise(stamps)):
        raise CaptureError(f"trial {capture.index}: the worker's time stamps run backwards")
    return done


def find_ready(stdout: str) -> Ready | None:
    """The worker's ready line in what it has written to stdout; ``None`` when there is none that can be read."""
    for line in stdout.splitlines():
        try:
            return Ready.model_validate_json(line)
        except ValueError:
            continue
    return None


def requested_seed(step: StepCapture) -> int | None:
    """The seed in the request as it was sent."""
    try:
        body = json.loads(step.body)
    except ValueError:
        return None
    sampling = body.get("sampling") if isinstance(body, dict) else None
    seed = sampling.get("seed") if isinstance(sampling, dict) else None
    return seed if isinstance(seed, int) else None
