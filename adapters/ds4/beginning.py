"""When ds4 began to read the prompt: before that it loads, makes its session and warms up the GPU.

A wait for the first token that holds those would be ds4's alone: servers have done them long before they are asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from adapters.ds4.observations import LEAST_TOKENS
from adapters.ds4.run import Line, Run
from orchestrator.schema.errors import CaptureError

SLACK_S = 0.05
"""So much may our stamp of a line and ds4's own clock differ: lines pass a pipe and a busy machine."""
SURE_S = 0.01
"""Where the two printed digits alone move the moment by more, it is not counted back."""

_BEGINS = re.compile(r"^(?:processing \d+ input tokens: 0/|ds4: prefill layer 1/)")
"""Printed as prefill begins: a prompt in chunks on the GPU, and any on the CPU.

Source: ds4.c at 8d57664 and 000401c, where a short prompt on the GPU prints nothing, or a layer when that is done.
"""
_LATER = re.compile(
    r"^(?:ds4: (?:gpu )?prefill (?:layer )?\d+/\d+|processing \d+ input tokens"
    r"|ds4: (?:mtp (?:timing|spec|probe|conf)|glm mtp|DSpark (?:spec|cycle|scheduler)|(?:gpu )?decode) )"
)
"""Printed once prefill is under way or over: a cycle prints its line before its tokens, the first cycle too."""
_EARLY = re.compile(r"^ds4: context buffers ")
_STEP = 0.005
"""Half of the last digit of a printed rate."""


class Told(StrEnum):
    """What the beginning is known by."""

    LINE = "the line that ds4 prints as it begins to read the prompt"
    RATES = "ds4's own rates, counted back from its last line"
    BEFORE = "the last line before: its session and the GPU's warm-up are in the wait"


@dataclass(frozen=True, slots=True)
class Beginning:
    """A moment, by what it is known, and how much earlier ds4's own rates put it (``None``: they do not say)."""

    t_s: float
    told: Told
    earlier_s: float | None = None

    @property
    def sure(self) -> bool:
        """Whether nothing but the prompt and the answer comes after it, as far as ds4's own clock can tell."""
        agree = self.earlier_s is None or abs(self.earlier_s) <= SLACK_S
        return self.told is Told.RATES or (self.told is Told.LINE and agree)


def beginning(run: Run, tokens: int, prompt_tokens: int | None, *, early_line: bool) -> Beginning:
    """When the prompt began to be read.

    Args:
        run: the generation.
        tokens: of its answer.
        prompt_tokens: of its prompt, where they are known.
        early_line: this build prints its line on context buffers before it opens the model, so that it says nothing
            (May 2026).

    Raises:
        CaptureError: nothing parts loading from the rest.
    """
    by_rates = _counted_back(run, tokens, prompt_tokens)
    first = run.pieces[0].t_s if run.pieces else run.done_s
    last: Line | None = None
    for line in run.lines:
        if line.t_s > first:
            break
        if _BEGINS.match(line.text):
            return Beginning(line.t_s, Told.LINE, line.t_s - by_rates if by_rates is not None else None)
        if _LATER.match(line.text):
            break
        if line.text.startswith("ds4: ") and not (early_line and _EARLY.match(line.text)):
            last = line
    earliest = last.t_s if last is not None else run.started_s
    if by_rates is not None and earliest - SLACK_S <= by_rates <= first:
        return Beginning(max(by_rates, earliest), Told.RATES)
    if last is None:
        raise CaptureError("no line tells when the model was loaded, so the wait cannot be told from the load")
    return Beginning(last.t_s, Told.BEFORE, last.t_s - by_rates if by_rates is not None else None)


def _counted_back(run: Run, tokens: int, prompt_tokens: int | None) -> float | None:
    """The moment by ds4's own clock: it takes the times of prefill and of decoding back to back, then prints the rates.

    Off by the time of one token where the count of tokens, which is inferred, is off by one.
    """
    printed, rates = run.speed_line, run.speed
    if prompt_tokens is None or tokens < LEAST_TOKENS or min(rates.prefill, rates.generation) <= 0:
        return None
    seconds = ((prompt_tokens, rates.prefill), (tokens, rates.generation))
    if sum(count / rate * _STEP / rate for count, rate in seconds) > SURE_S:
        return None
    return printed.t_s - sum(count / rate for count, rate in seconds)
