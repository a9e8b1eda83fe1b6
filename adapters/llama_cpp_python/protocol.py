"""What the llama-cpp-python worker says, read strictly: a line that is not exactly of this form yields no number."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.schema.capture import TrialCapture
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
    seed: int


class Effective(_Line):
    """The worker's echo of what it passed on, and of what the package says of itself."""

    sampling: EffectiveSampling
    max_tokens: int
    eos: str
    stops_at: tuple[int, ...]
    processors: int
    penalty_window: int
    n_ctx: int
    threads: int
    threads_batch: int
    num_pred_tokens: int
    max_ngram_size: int
    scores_bytes: int


class Perf(_Line):
    """llama.cpp's ``llama_perf_context_data`` since the trial began."""

    t_p_eval_ms: float
    t_eval_ms: float
    n_p_eval: int
    n_eval: int
    n_reused: int


class Done(_Line):
    """A finished trial. Times are seconds of the clock that all processes share.

    ``tokens`` are (id, time, index of the pass it was sampled from); ``passes`` how many tokens each was fed, the
    prompt's first; ``proposed`` what the drafter returned, call by call, one before each further pass.
    """

    event: Literal["done"]
    trial: int
    t0: float
    t1: float
    tokens: tuple[tuple[int, float, int], ...]
    passes: tuple[int, ...]
    proposed: tuple[tuple[int, ...], ...] | None
    draft_s: float | None
    text: str
    finish_reason: Literal["length", "stop"]
    prompt_tokens: int
    perf: Perf
    end_of_text_ids: tuple[int, ...]
    llama_cpp_python: str
    effective: Effective

    @property
    def ids(self) -> tuple[int, ...]:
        """The emitted token ids."""
        return tuple(token for token, _, _ in self.tokens)

    def of_pass(self, number: int) -> tuple[int, ...]:
        """The tokens sampled from one pass."""
        return tuple(token for token, _, one in self.tokens if one == number)


class Ready(_Line):
    """What the worker loaded."""

    event: Literal["ready"]
    llama_cpp_python: str
    python: str
    kind: str
    drafter_loaded: bool
    n_ctx: int
    scores_bytes: int


class Probed(_Line):
    """What the identity probe prints."""

    llama_cpp_python: str
    python: str
    gpu_offload: bool


def read_done(capture: TrialCapture) -> Done:
    """The answer of a trial's one exchange.

    Raises:
        CaptureError: it is missing, incomplete, an error, or not of the worker's form.
    """
    step, where = capture.steps.get(STEP), f"trial {capture.index}"
    if step is None:
        raise CaptureError(f"{where}: no exchange named {STEP}")
    if not step.complete or not step.events:
        raise CaptureError(f"{where}: the worker's answer is incomplete ({step.error or 'no end'})")
    try:
        done = Done.model_validate_json(step.events[-1].data)
    except ValidationError as err:
        problem = err.errors()[0]
        place = ".".join(str(part) for part in problem["loc"]) or "line"
        raise CaptureError(f"{where}: the worker's answer: {place}: {problem['msg']}") from err
    except ValueError as err:  # half a character of a pair, which JSON can spell and UTF-8 cannot
        raise CaptureError(f"{where}: the worker's answer is no text: {err}") from err
    if not done.tokens or not done.passes:
        raise CaptureError(f"{where}: the worker's answer has no token")
    stamps = (done.t0, *(t_s for _, t_s, _ in done.tokens), done.t1)
    if any(later < earlier for earlier, later in pairwise(stamps)):
        raise CaptureError(f"{where}: the worker's time stamps run backwards")
    order = tuple(number for _, _, number in done.tokens)
    if order[0] != 0 or any(later - earlier not in (0, 1) for earlier, later in pairwise(order)):
        raise CaptureError(f"{where}: the worker's passes are out of order")
    if order[-1] != len(done.passes) - 1:
        raise CaptureError(f"{where}: {len(done.passes)} passes were made, tokens came from {order[-1] + 1}")
    return done


def find_ready(stdout: str) -> Ready | None:
    """The worker's ready line in what it has written to stdout; ``None`` when there is none that can be read."""
    for line in stdout.splitlines():
        try:
            return Ready.model_validate_json(line)
        except ValueError:
            continue
    return None
