"""Judges what was measured: did the speculation take place, and was it really this cell that ran?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.schema.cell import MethodKind
from orchestrator.schema.observation import Absence
from orchestrator.schema.record import Engagement, Phase
from orchestrator.schema.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.schema.adapter import Adapter
    from orchestrator.schema.capture import StepCapture, TrialCapture
    from orchestrator.schema.cell import Cell
    from orchestrator.schema.observation import Observation
    from orchestrator.schema.record import TrialRecord

SWAP_LIMIT_BYTES = 500_000_000
"""Growth of swap over a session from which it counts as measured under memory pressure (docs/memory)."""

CACHE_REST = 4
"""Tokens of a cached text that an engine may evaluate again: llama.cpp does so with the last one."""

STALL_LIMIT = 0.05
"""Share of a trial in which all tasks waited for memory, from which its times are not the engine's."""
STALL_LEAST_S = 0.02
"""Less than this is the noise of a counter of the whole machine, however short the trial."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A status with its reason; the reason is empty when all is well."""

    status: Status
    reason: str = ""


GOOD = Judgement(Status.OK)


def judge_exchange(capture: TrialCapture) -> Judgement:
    """Whether every exchange of a trial came to its end."""
    for step in capture.steps.values():
        if step.timed_out:
            return Judgement(Status.TIMEOUT, step.error or f"{step.name}: no answer in time")
        if step.error is not None:
            return Judgement(_refused_as(step) or Status.FAILED, f"{step.name}: {step.error}")
    return GOOD


def _refused_as(step: StepCapture) -> Status | None:
    """``UNSUPPORTED`` where a worker of ours refused the request in words, as it can before it loads a model."""
    try:
        said = json.loads(step.events[-1].data) if step.events else None
    except (ValueError, RecursionError):
        return None
    refused = {"event": "error", "kind": "refused", "type": Status.UNSUPPORTED.value}
    return Status.UNSUPPORTED if isinstance(said, dict) and refused.items() <= said.items() else None


def judge_trial(
    cell: Cell, observations: Iterable[Observation], phase: str = Phase.MEASURED, shared: int | None = None
) -> Judgement:
    """Whether something else than the cell was measured: a cached prompt, a cold one, or a drafter in a baseline.

    ``shared`` is with how many tokens all measured prompts of the session begin, where that is known.
    """
    observations = tuple(observations)
    values = {item.metric: item.value for item in observations if isinstance(item.value, int | float)}
    cached = values.get("cached_tokens", 0)
    if cell.workload.cache != "cold":
        if phase == Phase.MEASURED and (why := _too_cold(cell.workload.cache, values, shared)):
            return Judgement(Status.CONTAMINATED, why)
    elif cached:
        return Judgement(Status.CONTAMINATED, f"{cached} prompt tokens came from a cache; the cell asks for cold ones")
    if cell.method.kind is MethodKind.NONE and values.get("drafted_tokens", 0):
        return Judgement(Status.CONTAMINATED, f"{values['drafted_tokens']} tokens were drafted in a baseline")
    return GOOD


def _too_cold(cache: str, values: Mapping[str, float], shared: int | None) -> str:
    """Why a prompt was not as warm as its cell asks for; empty where it was."""
    if "cached_tokens" not in values or "prompt_tokens" not in values:
        return f"the engine does not count cached prompt tokens; the cell asks for a {cache} prompt"
    cached, prompt = values["cached_tokens"], values["prompt_tokens"]
    least = prompt if cache == "warm" else shared
    if cached == 0 or (least is not None and cached < least - CACHE_REST):
        found = "no prompt token" if cached == 0 else f"only {cached:g} of {prompt:g} prompt tokens"
        return f"{found} came from the cache; the cell asks for a {cache} one"
    return ""


def judge_memory(memory: Iterable[Observation], wait_s: float | None) -> Judgement:
    """Whether the machine ran short of memory during a trial that took ``wait_s`` seconds."""
    for item in memory:
        if item.metric == "memory_pressure" and item.value == "critical":
            return Judgement(Status.MEMORY_PRESSURE, "macOS reported critical memory pressure")
        if not isinstance(item.value, int | float):
            continue
        if item.metric == "trial_swap_delta" and item.value >= SWAP_LIMIT_BYTES:
            return Judgement(Status.MEMORY_PRESSURE, f"swap grew by {item.value / 1e9:.2f} GB during the trial")
        if item.metric == "memory_stall" and wait_s and item.value >= max(STALL_LEAST_S, STALL_LIMIT * wait_s):
            share = f"{item.value:.2f} s of {wait_s:.2f} s"
            return Judgement(Status.MEMORY_PRESSURE, f"every task of the machine waited for memory for {share}")
    return GOOD


def engagement(adapter: Adapter, cell: Cell, trials: Sequence[TrialRecord]) -> Engagement:
    """Whether the drafter worked, over the measured trials of one session (docs/methodology, Engagement)."""
    if cell.method.kind is MethodKind.NONE:
        return Engagement.OFF
    drafted, silent, rounds = 0, 0, 0
    measured = [trial for trial in trials if trial.phase is Phase.MEASURED and trial.status is Status.OK]
    for trial in measured:
        for item in trial.observations:
            if item.metric == "drafted_tokens":
                if isinstance(item.value, int):
                    drafted += item.value
                elif item.absent is Absence.NOT_REPORTED:
                    silent += 1
            elif item.metric == "verify_rounds" and isinstance(item.value, int):
                rounds += item.value  # by definition each judged a draft, even where the drafts are not counted
    if drafted or rounds:
        return Engagement.ENGAGED
    if not measured or silent == len(measured):
        return Engagement.UNVERIFIABLE
    return Engagement.NOT_ENGAGED if cell.method.kind in adapter.always_drafts else Engagement.IDLE


def judge_session(
    cell: Cell, trials: Sequence[TrialRecord], engaged: Engagement, memory: Iterable[Observation]
) -> Judgement:
    """The session's status: that of its first bad trial, else what engagement and memory say."""
    for trial in trials:
        if trial.status is not Status.OK and trial.phase is not Phase.PHASES:
            return Judgement(trial.status, f"trial {trial.trial} ({trial.phase}): {trial.reason}")
    if engaged is Engagement.NOT_ENGAGED:
        reason = f"the drafter of method {cell.method.name} proposes in every round, and proposed nothing"
        return Judgement(Status.NOT_ENGAGED, reason)
    for item in memory:
        if item.metric == "swap_delta" and isinstance(item.value, int | float) and item.value >= SWAP_LIMIT_BYTES:
            return Judgement(Status.MEMORY_PRESSURE, f"swap grew by {item.value / 1e9:.2f} GB while measuring")
    return GOOD
