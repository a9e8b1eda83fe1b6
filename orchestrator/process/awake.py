"""Keeps a Mac awake while it measures; elsewhere nothing is needed and nothing is done."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

COMMAND = ("/usr/bin/caffeinate", "-dims", "-w")
"""No sleep of display, system, disk or on mains power, until the process with the pid that follows has ended."""


@contextmanager
def awake(platform: str = sys.platform) -> Iterator[str]:
    """Keeps the machine awake inside the block; yields what is done, in words. A Mac without the command runs on.

    ``caffeinate`` watches our own pid besides, so it ends with us even when we are killed.
    """
    if platform != "darwin":
        yield "not needed on this system"
        return
    try:
        process = subprocess.Popen(
            [*COMMAND, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as err:
        yield f"caffeinate cannot be started ({err.strerror}); the machine may fall asleep"
        return
    try:
        yield "caffeinate -dims"
    finally:
        process.terminate()
        process.wait()
