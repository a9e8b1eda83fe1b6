"""Errors that a user can cause, and errors of a capture: each says what, where and what to do next."""

from __future__ import annotations


class SpecmatrixError(Exception):
    """A user's error: printed without a traceback, exit status 2 unless a command says otherwise."""


class MatrixError(SpecmatrixError):
    """One or more faults in a matrix file; the message lists all of them."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        """Keep every fault, each as ``file:line:column: path: what; what to do``."""
        self.problems = problems
        super().__init__("\n".join(problems))


class StoreError(SpecmatrixError):
    """A run directory that cannot be read or written as asked."""


class SelectionError(SpecmatrixError):
    """A cell id or glob that names nothing."""


class CaptureError(Exception):
    """A capture from which an adapter cannot read a trial; becomes the status ``unparsed``."""


class EngineRefusal(Exception):  # noqa: N818  (a refusal is an answer, not a fault of the program)
    """The engine itself said no while starting; carries the status that the cell gets."""

    def __init__(self, status: str, reason: str) -> None:
        """Status is a value of :class:`orchestrator.schema.status.Status`."""
        self.status = status
        self.reason = reason
        super().__init__(reason)
