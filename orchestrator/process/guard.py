"""No engine outlives us: whatever ends our process, the engine's group is killed.

``finally`` and ``atexit`` cover an error, Ctrl-C and a normal exit. They do not run when we are killed, so each engine
also gets a guard: a shell that blocks on a pipe whose other end we hold. The kernel closes that end when we die in
any way, and the guard kills the group. It costs a sleeping process of about 1 MB and no processor time.

``PR_SET_PDEATHSIG`` was not taken: it needs ``preexec_fn``, which is unsafe beside threads, fires when the starting
*thread* ends, and does not exist on macOS.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import weakref
from typing import Protocol

_SCRIPT = 'read -r word || kill -s KILL -- "-$1"'
"""Constant: the group id is an argument, nothing of the user's is interpreted."""

_LONGEST_WAIT_S = 5.0


class Stoppable(Protocol):
    """What the exit handler needs of a process."""

    def abandon(self) -> None:
        """Kill it at once."""
        ...


class Guard:
    """Kills a process group as soon as our process is gone, unless dismissed first."""

    def __init__(self, group: int) -> None:
        """Start guarding the process group of that id."""
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "specmatrix-guard", str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={},
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """End the guard without killing: to be called once the group is gone."""
        if self._shell.stdin is not None:
            with contextlib.suppress(OSError):
                self._shell.stdin.write(b"dismissed\n")
            self._shell.stdin.close()
        try:
            self._shell.wait(_LONGEST_WAIT_S)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()


_live: weakref.WeakSet[Stoppable] = weakref.WeakSet()
_owner: list[int] = []


def register(process: Stoppable) -> None:
    """Have the process killed when our interpreter exits; the handler is installed with the first one."""
    if os.getpid() not in _owner:
        _owner[:] = [os.getpid()]
        _live.clear()
        atexit.register(_abandon_all)
    _live.add(process)


def unregister(process: Stoppable) -> None:
    """Forget a process that has been stopped."""
    _live.discard(process)


def _abandon_all() -> None:
    if os.getpid() not in _owner:  # a forked copy of us must not kill our engines
        return
    for process in tuple(_live):
        process.abandon()
