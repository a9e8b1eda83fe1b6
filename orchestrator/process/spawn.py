"""One engine process: started from a :class:`Launch`, watched, and stopped for certain."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
from pathlib import Path
from typing import Self

from orchestrator.clock import now_s, utc_now
from orchestrator.process import logs
from orchestrator.process.chunks import Chunk, ChunkPump
from orchestrator.process.environment import inherited_names, redacted_argv, redacted_env, scrubbed
from orchestrator.process.errors import LaunchError
from orchestrator.process.guard import Guard, register, unregister
from orchestrator.process.ladder import DEFAULT_LADDER, StopResult, climb
from orchestrator.process.lines import LinePump
from orchestrator.process.tree import Family
from orchestrator.schema.adapter import EachStep, Launch, LineReady
from orchestrator.schema.capture import RawEvent

STDOUT, STDERR, LAUNCH = "stdout.log", "stderr.log", "launch.json"


class EngineProcess:
    """A running engine in its own session, its output in files of the session's folder.

    Use it as a context manager: leaving the block always stops it. Besides, our interpreter's exit kills it, and so
    does our own death by any signal (:mod:`orchestrator.process.guard`).

    Attributes:
        pid: of the process, which leads its own session and process group.
        started_s: just before it was started, seconds of our clock.
        folder: its working directory; ``stdout_path`` and ``stderr_path`` are in it.
    """

    def __init__(self, popen: subprocess.Popen[bytes], folder: Path, started_s: float, *, by_lines: bool) -> None:
        """Take charge of a process that was just started in its own session; use :meth:`start`."""
        self.pid = popen.pid
        self.started_s = started_s
        self.folder = folder
        self.stdout_path = folder / STDOUT
        self.stderr_path = folder / STDERR
        self._popen = popen
        self._family = Family(popen)
        self._stopped: StopResult | None = None
        self._by_lines = by_lines
        self._pump: LinePump | None = None
        self._chunks: ChunkPump | None = None
        self._guard = Guard(popen.pid)
        try:
            if popen.stdout is not None and popen.stderr is not None:
                pipes = {"stdout": (popen.stdout, self.stdout_path), "stderr": (popen.stderr, self.stderr_path)}
                self._chunks = ChunkPump(pipes)
            elif popen.stdout is not None:
                self._pump = LinePump(popen.stdout, self.stdout_path)
        except BaseException:
            self._guard.dismiss()
            raise
        register(self)

    @classmethod
    def start(cls, launch: Launch, folder: Path) -> EngineProcess:
        """Write the launch's files and ``launch.json`` into ``folder``, and start its command there or in its ``cwd``.

        Raises:
            LaunchError: the command is missing or cannot be executed, its folder to run in is missing, or a file would
                land outside the folder.
        """
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        _write_files(launch, folder)
        env = scrubbed(launch.env, launch.keep_env)
        _write_launch(launch, folder, None)
        by_lines, by_chunks = isinstance(launch.ready, LineReady), isinstance(launch.ready, EachStep)
        with (folder / STDERR).open("wb") as stderr, (folder / STDOUT).open("wb") as stdout:
            started_s = now_s()
            try:
                popen = subprocess.Popen(
                    list(launch.argv),
                    bufsize=0,
                    stdin=subprocess.DEVNULL if by_chunks else subprocess.PIPE,
                    stdout=subprocess.PIPE if by_lines or by_chunks else stdout,
                    stderr=subprocess.PIPE if by_chunks else stderr,
                    cwd=_place_to_run(launch, folder),
                    env=env,
                    start_new_session=True,
                )
            except (OSError, ValueError, IndexError) as err:
                raise _not_started(launch, err) from err
        try:
            process = cls(popen, folder, started_s, by_lines=by_lines)
        except BaseException:
            popen.kill()
            popen.communicate()
            raise
        try:
            _write_launch(launch, folder, popen.pid)
        except BaseException:
            process.stop(("KILL",))
            raise
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def poll(self) -> int | None:
        """The return code (negative: minus the signal's number), ``None`` while the process lives."""
        return self._family.poll()

    @property
    def exit_text(self) -> str:
        """How it ended, in words: ``exit code 3``, ``signal SIGSEGV``, ``still running``."""
        code = self.poll()
        if code is None:
            return "still running"
        if code >= 0:
            return f"exit code {code}"
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"

    def wait(self, timeout_s: float) -> int | None:
        """The return code, waiting so long (seconds) for it; ``None`` when the process still lives."""
        if self.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(timeout_s)
        return self.poll()

    def note_children(self) -> None:
        """Remember the present descendants, so that one that detaches itself is still stopped. Takes milliseconds."""
        self._family.note()

    def stderr_size(self) -> int:
        """Bytes of standard error so far."""
        return logs.size(self.stderr_path)

    @property
    def stdout(self) -> str:
        """Standard output so far (of a huge one its last 64 MiB), undecodable bytes replaced."""
        return logs.read(self.stdout_path).decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error so far (of a huge one its last 64 MiB), undecodable bytes replaced."""
        return logs.read(self.stderr_path).decode("utf-8", "replace")

    def log_tail(self, n: int = 20, max_bytes: int = 65536) -> tuple[str, ...]:
        """The last lines of standard error, or of standard output when there are none; fit for a terminal."""
        return logs.tail(self.stderr_path, n, max_bytes) or logs.tail(self.stdout_path, n, max_bytes)

    def wait_for_log(self, pattern: str, since: int, timeout_s: float) -> bool:
        """Whether a complete line of standard error after byte ``since`` matches, within the time-out (seconds)."""
        return logs.wait_for(self.stderr_path, pattern, since, timeout_s, lambda: self.poll() is not None)

    def settle_output(self, timeout_s: float) -> None:
        """Wait until all that is in its pipes is queued, at most so long (seconds); of a dead process that is all."""
        for pump in (self._pump, self._chunks):
            if pump is not None:
                pump.settle(timeout_s)

    def next_line(self, timeout_s: float) -> RawEvent | None:
        """The next line of standard output (``LineReady`` only); ``None`` when none came in time or it has ended."""
        return self._lines().next(timeout_s)

    @property
    def lines_ended(self) -> bool:
        """Whether standard output has ended and all of its lines were taken."""
        return self._lines().ended

    @property
    def lines_fault(self) -> str | None:
        """Why lines of standard output were lost; ``None`` when none were."""
        return self._lines().fault

    def next_chunk(self, timeout_s: float) -> Chunk | None:
        """The next piece of either stream (``EachStep`` only); ``None`` when none came in time or both have ended."""
        return self._pieces().next(timeout_s)

    @property
    def chunks_ended(self) -> bool:
        """Whether both streams have ended and every piece was taken."""
        return self._pieces().ended

    @property
    def chunks_fault(self) -> str | None:
        """Why pieces of output were lost; ``None`` when none were."""
        return self._pieces().fault

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write to the process's stdin.

        Raises:
            TimeoutError: the process did not take all of it in time (seconds).
            BrokenPipeError: its stdin is closed.
        """
        stdin = self._popen.stdin
        if stdin is None or stdin.closed:
            raise BrokenPipeError("stdin is closed")
        pipe = stdin.fileno()
        os.set_blocking(pipe, False)
        deadline = now_s() + timeout_s
        view = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_WRITE)
            while view:
                left = deadline - now_s()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError(f"{len(view)} of {len(data)} bytes were not read within {timeout_s:g} s")
                with contextlib.suppress(BlockingIOError):
                    view = view[os.write(pipe, view) :]

    def stop(self, ladder: tuple[str, ...] = DEFAULT_LADDER, grace_s: float = 5.0) -> StopResult:
        """End the process and all that came from it; the first call's result is kept.

        A worker's stdin is closed first, then the ladder is climbed (:mod:`orchestrator.process.ladder`).

        Args:
            ladder: signal names in order; ``KILL`` is always the last.
            grace_s: seconds to wait at each rung.
        """
        if self._stopped is not None:
            return self._stopped
        try:
            farewell = self._close_stdin if self._by_lines else None
            self._stopped = climb(self._popen, self._family, ladder, grace_s, farewell)
        except BaseException:
            self._stopped = climb(self._popen, self._family, ("KILL",), 0, None)
            raise
        finally:
            self._release()
        return self._stopped

    def abandon(self) -> None:
        """Kill it at once, for our own exit."""
        self.stop(("KILL",), 0)

    def _lines(self) -> LinePump:
        if self._pump is None:
            raise ValueError("standard output of a server goes straight to its file; only a worker has lines")
        return self._pump

    def _pieces(self) -> ChunkPump:
        if self._chunks is None:
            raise ValueError("only a command that runs to its end has its output in pieces")
        return self._chunks

    def _close_stdin(self) -> None:
        if self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.close()

    def _release(self) -> None:
        self._close_stdin()
        for pump in (self._pump, self._chunks):
            if pump is not None:
                pump.close()
        self._guard.dismiss()
        unregister(self)


def _place_to_run(launch: Launch, folder: Path) -> Path:
    if launch.cwd is None:
        return folder
    place = Path(launch.cwd)
    if not place.is_dir():
        command = " ".join(redacted_argv(launch.argv))
        raise LaunchError(f"the folder to run in is missing: {place}", command, "correct the engine's path")
    return place


def _write_files(launch: Launch, folder: Path) -> None:
    for name, text in launch.files.items():
        path = (folder / name).resolve()
        if not path.is_relative_to(folder) or path == folder:
            raise LaunchError(f"the file {name!r} would land outside", str(folder), "use a relative path without '..'")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _write_launch(launch: Launch, folder: Path, pid: int | None) -> None:
    kept = {name: os.environ[name] for name in launch.keep_env if name in os.environ}
    body = {
        "argv": redacted_argv(launch.argv),
        "env": redacted_env(kept | dict(launch.env)),
        "inherited": list(inherited_names()),
        "cwd": launch.cwd or str(folder),
        "files": sorted(launch.files),
        "pid": pid,
        "utc": utc_now(),
    }
    (folder / LAUNCH).write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _not_started(launch: Launch, err: Exception) -> LaunchError:
    command = " ".join(redacted_argv(launch.argv)) or "(no command)"
    name = launch.argv[0] if launch.argv else "the command"
    if isinstance(err, FileNotFoundError):
        return LaunchError(f"{name} was not found", command, "install the engine, or name its path in the matrix file")
    if isinstance(err, PermissionError):
        return LaunchError(f"{name} may not be executed", command, "check the path, and make it executable (chmod +x)")
    return LaunchError(
        f"{name} could not be started: {err}", command, "check that it is a program built for this machine"
    )
