"""What is in a pipe is queued before a reader says that nothing came, however late its thread is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from orchestrator.process.chunks import ChunkPump
from orchestrator.process.lines import LinePump

LONG_S = 60.0


def held_up(monkeypatch: pytest.MonkeyPatch, pump: type, method: str) -> threading.Event:
    """Lets the pump's thread do nothing with what it has read before the event is set."""
    go, real = threading.Event(), getattr(pump, method)
    monkeypatch.setattr(pump, method, lambda *given: (go.wait(LONG_S), real(*given)))
    return go


def test_a_settled_pump_has_queued_all_lines_although_the_pipe_is_held_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = held_up(monkeypatch, LinePump, "_queue")
    ours, theirs = os.pipe()
    pump = LinePump(os.fdopen(ours, "rb", 0), tmp_path / "log")
    os.write(theirs, b"one\ntwo\n")
    assert pump.next(0.0) is None
    threading.Timer(0.05, go.set).start()
    pump.settle(LONG_S)
    assert [pump.next(0.0).data for _ in range(2)] == ["one", "two"]
    assert not pump.ended
    os.write(theirs, b"three\n")
    pump.settle(LONG_S)
    assert pump.next(0.0).data == "three"
    os.close(theirs)
    pump.close()
    pump.settle(LONG_S)
    assert pump.ended


def test_a_settled_pump_has_queued_the_pieces_of_both_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = held_up(monkeypatch, ChunkPump, "_keep")
    pipes = {name: os.pipe() for name in ("stdout", "stderr")}
    pump = ChunkPump({name: (os.fdopen(ours, "rb", 0), tmp_path / name) for name, (ours, _) in pipes.items()})
    for name, (_, theirs) in pipes.items():
        os.write(theirs, name.encode())
    assert pump.next(0.0) is None
    threading.Timer(0.05, go.set).start()
    pump.settle(LONG_S)
    found = [pump.next(0.0) for _ in range(2)]
    assert {(one.stream, one.data) for one in found} == {("stdout", b"stdout"), ("stderr", b"stderr")}
    for _, theirs in pipes.values():
        os.close(theirs)
    pump.close()
    assert pump.ended


def test_a_closing_pump_reads_to_the_end_of_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its thread is so late that the close does not wait for it any more and someone holds the pipe."""
    go = held_up(monkeypatch, ChunkPump, "_keep")
    ours, theirs = os.pipe()
    pump = ChunkPump({"stdout": (os.fdopen(ours, "rb", 0), tmp_path / "log")})
    for word in (b"one", b"two"):
        os.write(theirs, word)
    threading.Timer(0.05, go.set).start()
    pump.close(timeout_s=0.0)
    os.close(theirs)
    assert (tmp_path / "log").read_bytes() == b"onetwo"


def test_a_pipe_that_is_written_to_without_end_is_not_waited_for(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    pump = LinePump(os.fdopen(ours, "rb", 0), tmp_path / "log", max_unread_bytes=100)
    over = threading.Event()

    def flood() -> None:
        while not over.is_set():
            os.write(theirs, b"line\n" * 1000)

    thread = threading.Thread(target=flood)
    thread.start()
    pump.settle(0.1)
    over.set()
    thread.join()
    os.close(theirs)
    pump.close()
