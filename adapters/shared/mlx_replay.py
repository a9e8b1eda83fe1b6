"""Replays on an MLX-LM baseline: the worker feeds the text to the target and tells each place's distribution."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from adapters.shared.penalties import neutral_penalties
from orchestrator.schema.adapter import WorkerStep
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.replay import Ranked, ReplaySpec

STEP = "score"
TOP = 16


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)


class _Row(_Line):
    place: int
    top: tuple[tuple[int, float], ...]
    logprob: float | None
    rank: int | None
    entropy: float | None
    variance: float | None


class _Scored(_Line):
    event: Literal["done"]
    trial: int
    rows: tuple[_Row, ...]


def replay_steps(cell: Cell, spec: ReplaySpec) -> tuple[WorkerStep, ...]:
    """One request for the whole text.

    Raises:
        ValueError: the cell speculates, or its penalties would see other tokens than in generation.
    """
    if cell.method.kind is not MethodKind.NONE:
        raise ValueError(f"{cell.id}: a replay is made on a baseline")
    if not neutral_penalties(cell.sampling):
        raise ValueError("with penalties a given text is not scored as a generated one")
    if cell.sampling.xtc_probability:
        raise ValueError("under XTC the distribution of a token depends on a coin")
    asked = cell.sampling
    message = {
        "op": "score",
        "trial": spec.index,
        "prompt": spec.prompt,
        "ids": list(spec.ids),
        "places": list(spec.places),
        "width": spec.width.value,
        "full": spec.full,
        "top": TOP,
        "sampling": {
            "temperature": asked.temperature,
            "top_k": asked.top_k,
            "top_p": asked.top_p,
            "min_p": asked.min_p,
            "repeat_penalty": asked.repeat_penalty,
            "presence_penalty": asked.presence_penalty,
            "frequency_penalty": asked.frequency_penalty,
        },
        "eos": cell.workload.eos.value,
    }
    return (WorkerStep(STEP, message),)


def parse_replay(spec: ReplaySpec, capture: TrialCapture) -> tuple[Ranked, ...]:
    """One entry per place; raises :class:`CaptureError` on an answer that is incomplete or not the worker's."""
    step = capture.step(STEP)
    if step is None or not step.events:
        raise CaptureError("the worker's answer to a replay is incomplete")
    try:
        scored = _Scored.model_validate_json(step.events[-1].data)
    except ValidationError as err:
        raise CaptureError(f"the worker's answer to a replay: {err.errors()[0]['msg']}") from err
    if tuple(row.place for row in scored.rows) != spec.places or any(not row.top for row in scored.rows):
        raise CaptureError("the worker's answer to a replay has other places than were asked for")
    return tuple(Ranked(row.place, row.top, row.logprob, row.rank, row.entropy, row.variance) for row in scored.rows)
