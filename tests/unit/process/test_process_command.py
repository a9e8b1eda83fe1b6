"""Commands that run to their end: pieces stamped as they come, exit codes, time-outs, and nothing left behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from liveness import is_dead

from orchestrator.process.chunks import ChunkPump
from orchestrator.process.command import Limits, record
from orchestrator.process.errors import LaunchError
from orchestrator.process.spawn import EngineProcess
from orchestrator.schema.adapter import EachStep, Launch
from orchestrator.schema.capture import StepCapture

LONG = Limits(60.0, 60.0, 120.0)


def run(code: str, folder: Path, limits: Limits = LONG, **more: object) -> tuple[StepCapture, EngineProcess]:
    launch = Launch((sys.executable, "-u", "-c", code), {}, EachStep(), **more)
    with EngineProcess.start(launch, folder) as process:
        return record(process, "generate", "{}", limits), process


def rows(capture: StepCapture) -> list[dict[str, object]]:
    return [json.loads(event.data) for event in capture.events]


def said(capture: StepCapture, stream: str) -> str:
    return "".join(str(row["text"]) for row in rows(capture) if row.get("stream") == stream)


def test_both_streams_are_recorded_with_the_exit(tmp_path):
    capture, _ = run("import sys; print('out'); print('err', file=sys.stderr)", tmp_path)
    assert capture.error is None
    assert said(capture, "stdout") == "out\n"
    assert said(capture, "stderr") == "err\n"
    assert rows(capture)[-1] == {"exit": 0}
    assert (tmp_path / "stdout.log").read_text(encoding="utf-8") == "out\n"
    assert (tmp_path / "stderr.log").read_text(encoding="utf-8") == "err\n"


def test_a_piece_is_stamped_when_it_comes_and_not_at_its_line_end(tmp_path):
    """The second piece waits for the first one to be seen in its file, so the two cannot be one read."""
    code = (
        "import sys, pathlib\n"
        "sys.stderr.write('1/2\\r'); sys.stderr.flush()\n"
        "log = pathlib.Path('stderr.log')\n"
        "while '1/2' not in log.read_text(): pass\n"
        "sys.stderr.write('2/2\\r'); sys.stderr.flush()\n"
    )
    capture, _ = run(code, tmp_path)
    pieces = [(event.t_s, json.loads(event.data).get("text")) for event in capture.events[:-1]]
    assert [text for _, text in pieces] == ["1/2\r", "2/2\r"]
    assert capture.sent_s < pieces[0][0] < pieces[1][0] < capture.done_s


def test_bytes_that_end_inside_a_character_are_kept(tmp_path):
    code = "import os; os.write(1, 'é'.encode()[:1])"
    capture, _ = run(code, tmp_path)
    assert rows(capture)[0] == {"stream": "stdout", "hex": "c3"}
    assert (tmp_path / "stdout.log").read_bytes() == b"\xc3"


def test_an_exit_code_is_an_error_with_the_last_words(tmp_path):
    capture, _ = run("import sys; print('it is locked', file=sys.stderr); sys.exit(2)", tmp_path)
    assert capture.error == "exit code 2; its last words: it is locked"
    assert not capture.timed_out
    assert rows(capture)[-1] == {"exit": 2}


def test_a_signal_is_an_error(tmp_path):
    capture, _ = run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", tmp_path)
    assert capture.error == "signal SIGKILL"


@pytest.mark.parametrize(
    ("code", "limits", "words"),
    [
        ("import time; time.sleep(600)", Limits(0.2, 60.0, 60.0), "nothing on standard output within 0.2 s"),
        ("import time; print('x'); time.sleep(600)", Limits(60.0, 0.2, 60.0), "silent for 0.2 s"),
        ("import itertools\nfor n in itertools.count(): print(n)", Limits(60.0, 60.0, 0.3), "not done within 0.3 s"),
    ],
)
def test_a_command_that_takes_too_long_is_stopped(tmp_path, code, limits, words):
    capture, process = run(code, tmp_path, limits)
    assert capture.timed_out
    assert capture.error == words
    assert is_dead(process.pid)


def test_progress_on_standard_error_alone_does_not_count_as_an_answer(tmp_path):
    """Loading and prefill may be long, and have one limit together, however much is said about them."""
    code = "import sys, time\nwhile True: sys.stderr.write('.\\r'); sys.stderr.flush(); time.sleep(0.02)"
    capture, _ = run(code, tmp_path, Limits(0.4, 60.0, 60.0))
    assert capture.error == "nothing on standard output within 0.4 s"


def test_it_has_no_input_and_runs_where_it_is_told(tmp_path):
    place = tmp_path / "checkout"
    place.mkdir()
    capture, _ = run("import os, sys; print(os.getcwd(), repr(sys.stdin.read()))", tmp_path / "s", cwd=str(place))
    assert said(capture, "stdout") == f"{os.path.realpath(place)} ''\n"
    assert json.loads((tmp_path / "s" / "launch.json").read_text(encoding="utf-8"))["cwd"] == str(place)


def test_a_missing_place_to_run_is_said(tmp_path):
    with pytest.raises(LaunchError, match="the folder to run in is missing"):
        run("pass", tmp_path / "s", cwd=str(tmp_path / "gone"))


def test_a_child_that_holds_the_pipes_does_not_hold_us(tmp_path):
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print('x')"
    )
    capture, process = run(code, tmp_path)
    assert capture.error is None
    assert said(capture, "stdout") == "x\n"
    assert process.stop().left_alive == ()


def test_output_that_nobody_takes_is_a_fault(tmp_path):
    ours, theirs = os.pipe()
    pump = ChunkPump({"stdout": (os.fdopen(ours, "rb", 0), tmp_path / "log")}, max_unread_bytes=4)
    os.write(theirs, b"more than four")
    os.close(theirs)
    try:
        while pump.fault is None:
            pump.next(1.0)
        assert "more than 4 bytes" in pump.fault
    finally:
        pump.close()
    assert (tmp_path / "log").read_bytes() == b"more than four"
