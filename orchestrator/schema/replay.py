"""Replays: what the baseline itself says of a text that it is given token by token.

They decide whether a flipped token was a near-tie, measure how much arithmetic moves with the width of a pass, and
score one arm's text under the other. A replay is no measurement: nothing of it is timed for comparison or pooled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from orchestrator.schema.adapter import Step
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell


class Purpose(StrEnum):
    """What a replay is for."""

    DIVERGENCE = "divergence"
    JITTER = "jitter"
    SCORING = "scoring"


class Width(StrEnum):
    """How the text enters the model: one token a pass as in plain decoding, or prompt and text in one pass."""

    SINGLE = "single"
    BATCHED = "batched"


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """A text for the baseline to rank.

    Args:
        index: trial index within the replay session.
        prompt: the prompt's text.
        ids: output tokens that are fed behind it.
        places: ascending; place ``p`` ranks the token that follows ``ids[:p]``.
        width: how the text enters the model.
        full: whether entropy and variance of the whole distribution are wanted, not its top alone.
    """

    index: int
    prompt: str
    ids: tuple[int, ...]
    places: tuple[int, ...]
    width: Width
    full: bool


@dataclass(frozen=True, slots=True)
class Ranked:
    """The baseline's next-token distribution at one place, after all samplers (at temperature 0: as if it were 1).

    Args:
        place: how many output tokens were fed.
        top: (token id, natural logarithm of its probability), best first.
        logprob: of the text's own next token; ``None`` where the text ends there or the token is not in the
            distribution as far as it was told.
        rank: of that token, 1 for the best; ``None`` like ``logprob``.
        entropy: −Σ p ln p, nat; ``None`` unless the whole distribution was told.
        variance: Σ p ln² p − entropy², nat²; likewise.
    """

    place: int
    top: tuple[tuple[int, float], ...]
    logprob: float | None
    rank: int | None
    entropy: float | None
    variance: float | None


@runtime_checkable
class Replayer(Protocol):
    """What an adapter offers besides the port when its baseline can rank a given text. Optional."""

    scoring_width: Width
    """The cheaper way to rank every place of a long text."""

    def replay_steps(self, cell: Cell, spec: ReplaySpec) -> tuple[Step, ...]:
        """The exchanges that rank the text; ``cell`` is a baseline."""
        ...

    def parse_replay(self, cell: Cell, spec: ReplaySpec, capture: TrialCapture) -> tuple[Ranked, ...]:
        """One entry per place, in order.

        Raises:
            CaptureError: the answer is incomplete or cannot be read.
        """
        ...
