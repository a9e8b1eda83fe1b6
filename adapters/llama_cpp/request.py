"""The exchanges of a llama.cpp trial: every sampler setting stated, nothing left to a default."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.schema.adapter import HttpStep, LogStep, Step, TrialSpec
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, EosPolicy

BEFORE, REQUEST, AFTER, SLOTS, LOG = "metrics_before", "request", "metrics_after", "slots", "log"
READY_SLOTS, READY_PROPS = "slots", "props"
TOKENIZE = "tokenize-"

RELEASED = r"slot\s+release: .*stop processing"
"""The last line that the server writes for a request, after its timings and statistics."""

SAMPLERS = ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature")
"""llama.cpp's own order; stated so that a build with another default is asked for this one."""

PENALTY_WINDOW = 64


def ready_steps() -> tuple[Step, ...]:
    """What is asked once after readiness: does it speculate, and which model and build is it."""
    return (HttpStep(READY_SLOTS, "GET", "/slots"), HttpStep(READY_PROPS, "GET", "/props"))


def trial_steps(cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
    """Counters, the request, its log to the last line, counters again, and the settings in effect."""
    return (
        HttpStep(BEFORE, "GET", "/metrics"),
        HttpStep(REQUEST, "POST", "/completion", request_body(cell, trial), stream=True),
        LogStep(LOG, RELEASED),
        HttpStep(AFTER, "GET", "/metrics"),
        HttpStep(SLOTS, "GET", "/slots"),
    )


def prompt_id_steps(prompts: tuple[str, ...]) -> tuple[Step, ...]:
    """``POST /tokenize`` with what ``/completion`` does to a text: special tokens are read, and those around are added.

    Source: llama.cpp b11434, tools/server/server-common.cpp (``tokenize_input_prompts``).
    """
    body = {"add_special": True, "parse_special": True}
    return tuple(
        HttpStep(f"{TOKENIZE}{number}", "POST", "/tokenize", {"content": prompt, **body})
        for number, prompt in enumerate(prompts)
    )


def parse_prompt_ids(capture: TrialCapture) -> tuple[tuple[int, ...], ...] | None:
    """Token ids per prompt, in order; ``None`` where an answer is missing or of another form."""
    found = []
    for number in range(len(capture.steps)):
        step = capture.step(f"{TOKENIZE}{number}")
        try:
            answer = json.loads(step.text) if step is not None and step.error is None else None
        except ValueError:
            return None
        ids = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids):
            return None
        found.append(tuple(ids))
    return tuple(found) or None


def request_body(cell: Cell, trial: TrialSpec) -> dict[str, Any]:
    """The body of ``POST /completion``."""
    sampling, workload = cell.sampling, cell.workload
    return {
        "prompt": trial.prompt,
        "n_predict": workload.max_tokens,
        "ignore_eos": workload.eos is EosPolicy.MASK,
        "seed": trial.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repeat_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repeat_last_n": PENALTY_WINDOW,
        "samplers": list(SAMPLERS),
        "typical_p": 1.0,
        "top_n_sigma": -1.0,
        "xtc_probability": sampling.xtc_probability,
        "xtc_threshold": sampling.xtc_threshold,
        "dynatemp_range": 0.0,
        "mirostat": 0,
        "dry_multiplier": 0.0,
        "min_keep": 0,
        "n_probs": 0,
        "n_keep": 0,
        "n_indent": 0,
        "t_max_predict_ms": 0,
        "backend_sampling": False,
        "logit_bias": [],
        "stop": [],
        "lora": [],
        "cache_prompt": workload.cache != "cold",
        "return_tokens": True,
        "return_progress": False,
        "timings_per_token": True,
        "stream": True,
    }
