"""Set-up and build commands that a person starts and watches: echoed line by line while they run.

Not for engines and probes: ``docs/decisions/0002-subprocess-tee.md``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from orchestrator.process.errors import LaunchError


def run_echoed(argv: Sequence[str], cwd: Path | None = None) -> int:
    """Run the command to its end, its output shown as it comes; its return code.

    There is no time-out: a build takes what it takes, and the person at the terminal can press Ctrl-C. The
    environment is the person's own, except that messages are asked for in plain ASCII, because the library reads
    output as strict UTF-8 and stops reading at the first byte that is not.

    Raises:
        LaunchError: the command is missing or cannot be executed.
    """
    import subprocess_tee  # noqa: PLC0415  (loads asyncio, which no other command needs)

    env = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess_tee.run(list(argv), cwd=str(cwd) if cwd is not None else None, env=env)
    except OSError as err:
        command = " ".join(argv)
        raise LaunchError(f"{argv[0]} could not be started: {err}", command, "install it, or correct the path") from err
    return int(done.returncode)
