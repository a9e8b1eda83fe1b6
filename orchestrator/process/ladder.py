"""Stopping an engine: from a polite word to a kill, and then a look whether anything is left.

A server gets TERM, then KILL. llama-server ends an orderly way on TERM, and so do Python servers; INT is not the
first rung because MLX aborts on it and because a parent that ignores INT (a shell's background job) hands that down.
A worker's stdin is closed before the first rung: end of input is its word for "finish".
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.process.tree import Family

DEFAULT_LADDER: tuple[str, ...] = ("TERM", "KILL")
_KILL_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class StopResult:
    """How a process ended.

    Args:
        exit_code: the return code, negative for a signal; ``None`` if it could not even be killed.
        signals_sent: names in order, empty when it had ended or ended by itself.
        survivors_killed: pids other than the engine's own that were still there when KILL was sent.
        left_alive: pids that outlived KILL (uninterruptible, or not ours to kill); normally empty.
    """

    exit_code: int | None
    signals_sent: tuple[str, ...]
    survivors_killed: tuple[int, ...] = ()
    left_alive: tuple[int, ...] = ()


def climb(
    leader: subprocess.Popen[bytes],
    family: Family,
    ladder: tuple[str, ...],
    grace_s: float,
    farewell: Callable[[], None] | None,
) -> StopResult:
    """Stop the family, one rung after the other, until nothing of it lives.

    Args:
        leader: the engine process.
        family: the leader with its descendants.
        ladder: signal names without ``SIG``; ``KILL`` is appended where it is missing.
        grace_s: seconds between rungs.
        farewell: what to do before the first rung (close stdin); ``None`` for nothing.

    Raises:
        ValueError: the ladder names an unknown signal.
    """
    rungs = tuple(ladder) if "KILL" in ladder else (*ladder, "KILL")
    numbers = {name: _signal(name) for name in rungs}
    sent: list[str] = []
    survivors: set[int] = set()
    family.note()
    if farewell is not None:
        farewell()
        if family.poll() is None:
            family.wait(grace_s)
    for name in rungs:
        if not family.alive():
            break
        family.note()
        if name == "KILL":
            survivors |= {process.pid for process in family.others()}
        family.signal(numbers[name])
        sent.append(name)
        family.wait(grace_s if name != "KILL" else _KILL_GRACE_S)
    left = {process.pid for process in family.others()}
    if family.poll() is None:
        left.add(leader.pid)
    return StopResult(leader.returncode, tuple(sent), tuple(sorted(survivors)), tuple(sorted(left)))


def _signal(name: str) -> signal.Signals:
    try:
        return signal.Signals[f"SIG{name}"]
    except KeyError as err:
        raise ValueError(f"{name!r} is not a signal; use names such as INT, TERM, KILL") from err
