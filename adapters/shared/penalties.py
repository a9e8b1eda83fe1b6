"""Whether a cell's sampler has penalties at work."""

from __future__ import annotations

from orchestrator.schema.cell import Sampling


def neutral_penalties(sampling: Sampling) -> bool:
    """Whether no penalty is at work."""
    return (sampling.repeat_penalty, sampling.presence_penalty, sampling.frequency_penalty) == (1, 0, 0)
