"""The error of an engine that could not be started or never became ready."""

from __future__ import annotations

from orchestrator.schema.errors import SpecmatrixError


class LaunchError(SpecmatrixError):
    """An engine process did not come up: what happened, where, and what to do next.

    Args:
        what: what happened.
        where: the command or folder concerned.
        next_step: what the user can do.
        timed_out: the process lived but was not ready in time.
    """

    def __init__(self, what: str, where: str, next_step: str, *, timed_out: bool = False) -> None:
        """Keep the three parts for records, and join them for people."""
        self.what = what
        self.where = where
        self.next_step = next_step
        self.timed_out = timed_out
        super().__init__(f"{what} ({where}); {next_step}")
