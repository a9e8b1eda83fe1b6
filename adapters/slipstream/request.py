"""The exchanges of a Slipstream trial: its counters, the request, and its counters again."""

from __future__ import annotations

from typing import Any

from orchestrator.schema.adapter import HttpStep, Step, TrialSpec
from orchestrator.schema.cell import Cell

BEFORE, REQUEST, SETTLING, AFTER = "status_before", "request", "status_settling", "status_after"
READY_STATUS, READY_MODELS = "status", "models"

LARGEST_TOP_K = 32
"""The sampler keeps this many candidates at most, and the server refuses more (server/protocol.py)."""


def ready_steps() -> tuple[Step, ...]:
    """What is asked once after readiness: the counters, and which model is served."""
    return (HttpStep(READY_STATUS, "GET", "/status"), HttpStep(READY_MODELS, "GET", "/v1/models"))


def trial_steps(cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
    """Counters, the request, and the counters twice.

    Twice, since ``/status`` waits 50 ms for the engine and else answers with what it last knew, marked stale: the first
    asking makes it look again, the second has what it saw.
    """
    return (
        HttpStep(BEFORE, "GET", "/status"),
        HttpStep(REQUEST, "POST", "/v1/chat/completions", request_body(cell, trial), stream=True),
        HttpStep(SETTLING, "GET", "/status"),
        HttpStep(AFTER, "GET", "/status"),
    )


def sent_top_k(cell: Cell) -> int:
    """``top_k`` as sent: at temperature 0 it moves nothing, and the server has no word for "off"."""
    return LARGEST_TOP_K if cell.sampling.greedy else cell.sampling.top_k


def request_body(cell: Cell, trial: TrialSpec) -> dict[str, Any]:
    """The body of ``POST /v1/chat/completions``; there is no endpoint that takes a prompt without a template."""
    sampling = cell.sampling
    return {
        "messages": [{"role": "user", "content": trial.prompt}],
        "max_completion_tokens": cell.workload.max_tokens,
        "seed": trial.seed,
        "temperature": sampling.temperature,
        "top_k": sent_top_k(cell),
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "reasoning_effort": "none",
        "n": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": False,
    }
