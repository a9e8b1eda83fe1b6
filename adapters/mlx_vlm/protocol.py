"""What the mlx-vlm worker says, read strictly: a line that is not exactly of this form yields no number."""

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
    """Sampler settings as they were at work."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    seed: int


class Effective(_Line):
    """The worker's echo of what it passed to mlx-vlm."""

    sampling: EffectiveSampling
    max_tokens: int
    block_size: int
    eos: str
    stops_at: tuple[int, ...]
    sampler: str
    seeded_by: str
    penalty_window: int
    prefill_step_size: int | None
    prompt_cache: tuple[str, ...]
    draft_kind: str | None
    draft_type: str | None
    configured_block: int | None
    dtype: tuple[str, ...]
    draft_dtype: tuple[str, ...]
    device: str
    compiler: str | None


class Speculation(_Line):
    """What was recorded round by round.

    Args:
        proposed: tokens of each block, counted at what the drafter returned.
        accepted: mlx-vlm's ``accept_lens``.
        capacity: mlx-vlm's ``draft_lens``, the size it asked each block for.
        prompt_shown: prompt tokens that the drafter was shown; ``None`` for a drafter that is shown none.
        counters: rounds, accepted and capacity by mlx-vlm's running counters; ``None`` without a round.
        line: what mlx-vlm prints of them.
    """

    proposed: tuple[int, ...]
    accepted: tuple[int, ...]
    capacity: tuple[int, ...]
    prompt_shown: int | None
    counters: tuple[int, int, int] | None
    line: str | None


class Done(_Line):
    """A finished trial. Times are seconds of the clock that all processes share; ``tokens`` are (id, time, round)."""

    event: Literal["done"]
    trial: int
    t0: float
    t1: float
    t_idle: float
    tokens: tuple[tuple[int, float, int], ...]
    text: str
    finish_reason: Literal["length", "stop"]
    prompt_tokens: int
    cached_tokens: int
    generation_tokens: int
    told_ids: tuple[int, ...]
    mlx_generation_tps: float
    mlx_prompt_tps: float
    peak_memory_bytes: int
    active_before_bytes: int
    speculation: Speculation | None
    end_of_text_ids: tuple[int, ...]
    mlx: str
    mlx_vlm: str
    effective: Effective

    @property
    def ids(self) -> tuple[int, ...]:
        """The emitted token ids."""
        return tuple(token for token, _, _ in self.tokens)

    @property
    def emitted(self) -> tuple[int, ...]:
        """Tokens that each round added, round 0 being the prompt's pass."""
        last = self.tokens[-1][2]
        return tuple(sum(number == one for _, _, number in self.tokens) for one in range(last + 1))


class Ready(_Line):
    """What the worker loaded."""

    event: Literal["ready"]
    mlx: str
    mlx_vlm: str
    python: str
    device: str
    draft_loaded: bool
    draft_kind: str | None


class Probed(_Line):
    """What the identity probe prints."""

    mlx: str
    mlx_vlm: str
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
    try:
        done = Done.model_validate_json(step.events[-1].data)
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
    numbers = [number for _, _, number in done.tokens]
    if numbers[0] != 0 or any(later - earlier not in (0, 1) for earlier, later in pairwise(numbers)):
        raise CaptureError(f"trial {capture.index}: the worker's rounds are out of order")
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
