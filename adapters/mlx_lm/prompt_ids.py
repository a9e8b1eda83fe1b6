"""Token ids of prompts from a worker of ours that knows the request ``tokenize``."""

from __future__ import annotations

import json

from orchestrator.schema.adapter import WorkerStep
from orchestrator.schema.capture import PROMPTS_TRIAL, TrialCapture

_STEP = "tokenize-"


def prompt_id_steps(prompts: tuple[str, ...]) -> tuple[WorkerStep, ...]:
    """One request per prompt."""
    return tuple(
        WorkerStep(f"{_STEP}{number}", {"op": "tokenize", "trial": PROMPTS_TRIAL, "prompt": prompt})
        for number, prompt in enumerate(prompts)
    )


def parse_prompt_ids(capture: TrialCapture) -> tuple[tuple[int, ...], ...] | None:
    """Token ids per prompt, in order; ``None`` where an answer is missing or of another form."""
    found = []
    for number in range(len(capture.steps)):
        step = capture.step(f"{_STEP}{number}")
        try:
            answer = json.loads(step.events[-1].data) if step is not None and step.events else None
        except ValueError:
            return None
        ids = answer.get("ids") if isinstance(answer, dict) else None
        if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids):
            return None
        found.append(tuple(ids))
    return tuple(found) or None
