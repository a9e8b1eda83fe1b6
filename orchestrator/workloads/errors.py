"""What can be wrong with a prompt set, wherever in it."""

from __future__ import annotations


class WorkloadError(ValueError):
    """A prompt set cannot be found or read; the message says where and what is expected."""
