"""Every status a trial, session or cell can have, with all that follows from it, in one table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """What became of a trial, a session or a cell."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    NOT_ENGAGED = "not_engaged"
    CONTAMINATED = "contaminated"
    MEMORY_PRESSURE = "memory_pressure"
    CONFOUNDED = "confounded"
    UNPARSED = "unparsed"
    STALE = "stale"
    ABORTED = "aborted"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"


class Validity(StrEnum):
    """The three words of the report's validity line."""

    VALID = "VALID"
    INCONCLUSIVE = "INCONCLUSIVE"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class StatusRule:
    """What follows from a status.

    Args:
        word: how the report calls it.
        fails_run: a requested cell with this status makes ``run`` exit with 1.
        fails_when_strict: the same, but only under ``--strict`` or when the cell was named explicitly.
        selected_by_failed: ``rerun --failed`` measures the cell again.
        ranked: figures of the cell may be compared.
        validity: what the status does to the run's validity line.
        meaning: one sentence for the glossary.
    """

    word: str
    fails_run: bool
    fails_when_strict: bool
    selected_by_failed: bool
    ranked: bool
    validity: Validity
    meaning: str


_V, _C, _X = Validity.VALID, Validity.INCONCLUSIVE, Validity.INVALID

STATUS_RULES: dict[Status, StatusRule] = {
    Status.OK: StatusRule("measured", False, False, False, True, _V, "Measured as asked."),
    Status.FAILED: StatusRule(
        "failed", True, True, True, False, _C, "The engine exited, refused a request or broke a stream."
    ),
    Status.TIMEOUT: StatusRule(
        "timed out", True, True, True, False, _C, "The engine was silent, or the whole took, longer than allowed."
    ),
    Status.UNSUPPORTED: StatusRule(
        "unsupported", False, True, False, False, _V, "This engine cannot do what the cell asks; the reason says why."
    ),
    Status.UNAVAILABLE: StatusRule(
        "unavailable",
        False,
        True,
        False,
        False,
        _V,
        "The engine or a file is not on this machine, or is not the pinned one: to be measured.",
    ),
    Status.NOT_ENGAGED: StatusRule(
        "not engaged", True, True, True, False, _C, "The engine ran without the speculation that the cell asks for."
    ),
    Status.CONTAMINATED: StatusRule(
        "contaminated",
        True,
        True,
        True,
        False,
        _X,
        "Something else was measured: a cached prompt, a drafter in a baseline, another process's port.",
    ),
    Status.MEMORY_PRESSURE: StatusRule(
        "memory pressure", True, True, True, False, _C, "The machine swapped or ran short of memory while measuring."
    ),
    Status.CONFOUNDED: StatusRule(
        "confounded", False, True, True, False, _C, "The baseline changed between its two measurements."
    ),
    Status.UNPARSED: StatusRule(
        "unparsed", True, True, True, False, _C, "The engine's output could not be read: no number is taken from it."
    ),
    Status.STALE: StatusRule(
        "stale", False, True, False, False, _V, "Measured with other settings or files than the matrix now names."
    ),
    Status.ABORTED: StatusRule("aborted", False, True, True, False, _C, "Interrupted before its sets were complete."),
    Status.SKIPPED: StatusRule("skipped", False, False, False, False, _V, "Not asked for in this run."),
    Status.NOT_RUN: StatusRule("not run", False, True, False, False, _V, "Planned, and not measured yet."),
}
