"""Who belongs to an engine: its session, and the descendants that left it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading

import psutil

from orchestrator.clock import now_s

_POLL_S = 0.02


class Family:
    """An engine process that leads its own session, with everything that came from it.

    The session holds every descendant that did not call ``setsid``. Those that did are known only if they were seen as
    children while their parents lived (:meth:`note`).
    """

    def __init__(self, leader: subprocess.Popen[bytes]) -> None:
        """The leader must have been started with ``start_new_session``."""
        self._leader = leader
        self._noted: set[psutil.Process] = set()
        self._ended = False
        self._id_is_ours = True

    def poll(self) -> int | None:
        """The leader's return code, ``None`` while it lives.

        The session's id can be given to a stranger once leader and members are gone, so it is not used after that.
        """
        code = self._leader.poll()
        if code is not None and not self._ended:
            self._ended = True
            self._id_is_ours = bool(self._session())
        return code

    def note(self) -> None:
        """Remember the present descendants, so that one that leaves the session is still found."""
        if self.poll() is None:
            with contextlib.suppress(psutil.Error):
                self._noted.update(psutil.Process(self._leader.pid).children(recursive=True))

    def others(self) -> set[psutil.Process]:
        """Living members besides the leader. A zombie is dead: it holds neither memory nor a port."""
        found = {process for process in self._noted if _lives(process)}
        if self._id_is_ours:
            found |= {process for process in self._session() if _lives(process)}
        return found

    def alive(self) -> bool:
        """Whether the leader or any other member lives."""
        return self.poll() is None or bool(self.others())

    def signal(self, number: signal.Signals) -> None:
        """Send the signal to the leader's group, and to each member outside of it."""
        leader_lives = self.poll() is None
        rest = self.others()
        if self._id_is_ours and (leader_lives or rest):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader.pid, number)
        for process in rest:
            with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
                if os.getpgid(process.pid) != self._leader.pid:
                    process.send_signal(number)

    def wait(self, timeout_s: float) -> bool:
        """Wait until all are gone; ``False`` when some live after the time-out (seconds)."""
        deadline = now_s() + timeout_s
        pause = threading.Event()
        while self.alive():
            left = deadline - now_s()
            if left <= 0:
                return False
            if self.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._leader.wait(left)
            else:
                pause.wait(min(_POLL_S, left))
        return True

    def _session(self) -> set[psutil.Process]:
        found = set()
        for pid in psutil.pids():
            if pid == self._leader.pid:
                continue
            with contextlib.suppress(OSError, psutil.Error):
                if os.getsid(pid) == self._leader.pid:
                    found.add(psutil.Process(pid))
        return found


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
