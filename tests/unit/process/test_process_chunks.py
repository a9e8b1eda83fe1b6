"""Pieces of two pipes come in the order in which they were written, as far as one look at both can tell."""

from __future__ import annotations

import os

import pytest

from orchestrator.process.chunks import ChunkPump


@pytest.mark.parametrize("names", [("stdout", "stderr"), ("stderr", "stdout")])
def test_what_stood_ready_on_standard_error_goes_first(tmp_path, names):
    """Whichever pipe was opened or is asked first: a command says that it has loaded, then it answers."""
    ends = {name: os.pipe() for name in names}
    for name in ("stderr", "stdout"):
        os.write(ends[name][1], name.encode())
        os.close(ends[name][1])
    pump = ChunkPump({name: (os.fdopen(ends[name][0], "rb", 0), tmp_path / name) for name in names})
    try:
        first, second = pump.next(10.0), pump.next(10.0)
    finally:
        pump.close()
    assert [(one.stream, one.data) for one in (first, second)] == [("stderr", b"stderr"), ("stdout", b"stdout")]
    assert first.t_s <= second.t_s
