"""A worker engine with faults: JSON lines on stdin, JSON lines on stdout.

``fault_worker.py [MODE]``: how it starts, one of ``STARTS`` (``ready`` when left out). A message ``{"do": NAME}`` then
behaves as the function of that name in ``ANSWERS`` says.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

FOR_EVER = threading.Event()
CHILD = (
    "import signal, sys, threading\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "sys.stdout.write('x')\n"
    "sys.stdout.close()\n"
    "threading.Event().wait()\n"
)
Message = dict[str, object]


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def say(**message: object) -> None:
    write(json.dumps(message) + "\n")


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def child(*, own_session: bool) -> Message:
    """A child that ignores polite signals; returns once it does."""
    started = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, start_new_session=own_session)
    started.stdout.read(1)
    return {"child": started.pid}


def start_chatty() -> Message:
    """Other output comes before the ready line."""
    write('loading weights: 100 %\n["json, but no object"]\n')
    return {}


def start_refuse() -> Message:
    """Says why it cannot work."""
    say(event="refused", status="unavailable", reason="the module fake_engine is not installed")
    sys.exit(0)


def start_die() -> Message:
    """Ends before it is ready."""
    complain("ImportError: no fake engine")
    sys.exit(7)


def start_never() -> Message:
    """Lives and is never ready."""
    complain("still loading")
    FOR_EVER.wait()
    return {}


def start_deaf() -> Message:
    """Ready, and never reads."""
    say(event="ready", pid=os.getpid())
    FOR_EVER.wait()
    return {}


def start_stubborn() -> Message:
    """Ignores TERM, and the end of its input."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return {}


STARTS = {
    "ready": dict,
    "chatty": start_chatty,
    "refuse": start_refuse,
    "die": start_die,
    "never": start_never,
    "deaf": start_deaf,
    "stubborn": start_stubborn,
    # a child that ignores TERM and outlives the worker: in the worker's session, or in its own
    "grandchild": lambda: child(own_session=False),
    "runaway": lambda: child(own_session=True),
}


def tokens(message: Message) -> None:
    """A healthy answer of ``n`` tokens."""
    for index in range(int(str(message.get("n", 3)))):
        say(event="token", id=index, text="é" * index)
    say(event="done")


def error(_: Message) -> None:
    """A fault the worker itself reports."""
    say(event="token", id=0)
    say(event="error", reason="out of memory")


def garbage(_: Message) -> None:
    """Another library's words in the middle of an answer."""
    say(event="token", id=0)
    write("Segmentation fault? no: \x07just noise\n")
    say(event="done")


def raw_bytes(_: Message) -> None:
    """A line that is not even text."""
    sys.stdout.buffer.write(b"\xff\xfe\x00\n")
    sys.stdout.buffer.flush()


def hang(_: Message) -> None:
    """One token, then nothing."""
    say(event="token", id=0)
    FOR_EVER.wait()


def flood(_: Message) -> None:
    """Never silent, never done."""
    while True:
        say(event="token", id=0)


def die(_: Message) -> None:
    """Exits in the middle of an answer."""
    say(event="token", id=0)
    complain("assertion failed in fake kernel")
    os._exit(3)


def kill(_: Message) -> None:
    """Is killed in the middle of an answer."""
    say(event="token", id=0)
    os.kill(os.getpid(), signal.SIGKILL)


def torn(_: Message) -> None:
    """Ends in the middle of a line."""
    write('{"event": "do')
    os._exit(0)


def close(_: Message) -> None:
    """Closes its output and lives on."""
    os.close(1)
    FOR_EVER.wait()


def environment(_: Message) -> None:
    """What it was given."""
    say(event="done", environment=dict(os.environ), cwd=str(Path.cwd()))


ANSWERS = {
    "tokens": tokens,
    "error": error,
    "garbage": garbage,
    "bytes": raw_bytes,
    "hang": hang,
    "flood": flood,
    "die": die,
    "kill": kill,
    "torn": torn,
    "close": close,
    "environment": environment,
}


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else "ready"
    say(event="ready", pid=os.getpid(), **STARTS[mode]())
    for line in sys.stdin:
        message = json.loads(line)
        ANSWERS[message["do"]](message)
    if mode == "stubborn":
        FOR_EVER.wait()
    os._exit(0)  # its children are left behind on purpose


if __name__ == "__main__":
    main()
