from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from liveness import is_dead

from orchestrator.process import guard
from orchestrator.process.errors import LaunchError
from orchestrator.process.ports import free_port
from orchestrator.process.spawn import EngineProcess
from orchestrator.process.worker import WorkerChannel
from orchestrator.schema.adapter import HttpReady, Launch, WorkerStep

Start = Callable[..., EngineProcess]
LONG_S = 60.0


def test_a_process_leads_its_own_session_and_group(start: Start) -> None:
    process = start(sys.executable, "-c", "import time; time.sleep(600)")
    assert os.getsid(process.pid) == process.pid == os.getpgid(process.pid)
    assert process.poll() is None
    assert process.exit_text == "still running"


def test_server_output_goes_to_files(start: Start) -> None:
    process = start(
        sys.executable,
        "-c",
        "import sys; print('out'); print('err \\x1b[31mred\\x1b[0m', file=sys.stderr)",
        server=True,
    )
    assert process.wait(LONG_S) == 0
    assert process.stdout == "out\n"
    assert process.stderr == "err \x1b[31mred\x1b[0m\n"
    assert process.stderr_size() == len(process.stderr)
    assert process.log_tail() == ("err red",)
    with pytest.raises(ValueError, match="only a worker has lines"):
        process.next_line(0)


def test_log_tail_falls_back_to_standard_output(start: Start) -> None:
    process = start(sys.executable, "-c", "print('a'); print('b'); print('c')", server=True)
    process.wait(LONG_S)
    assert process.log_tail(2) == ("b", "c")


def test_worker_output_is_teed_byte_for_byte(start: Start) -> None:
    script = "import os; os.write(1, b'one\\ntwo \\xff\\r\\n\\nlast without newline')"
    process = start(sys.executable, "-c", script)
    process.wait(LONG_S)
    lines = [process.next_line(LONG_S) for _ in range(3)]
    assert [line.data for line in lines] == ["one", "two \ufffd", ""]
    assert process.next_line(LONG_S) is None
    assert process.lines_ended
    process.stop()
    assert (process.folder / "stdout.log").read_bytes() == b"one\ntwo \xff\r\n\nlast without newline"


def test_line_stamps_lie_between_start_and_now(start: Start) -> None:
    process = start(sys.executable, "-c", "print(1, flush=True); print(2, flush=True)")
    first, second = process.next_line(LONG_S), process.next_line(LONG_S)
    assert process.started_s < first.t_s <= second.t_s


def test_exit_text_names_codes_and_signals(start: Start) -> None:
    plain = start(sys.executable, "-c", "raise SystemExit(3)")
    assert plain.wait(LONG_S) == 3
    assert plain.exit_text == "exit code 3"
    killed = start(sys.executable, "-c", "import os; os.kill(os.getpid(), 11)")
    assert killed.wait(LONG_S) == -signal.SIGSEGV
    assert killed.exit_text == "signal SIGSEGV"


def test_environment_is_scrubbed(worker: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_ARG_SPEC_TYPE", "draft-simple")
    monkeypatch.setenv("HF_HOME", "somewhere")
    monkeypatch.setenv("PYTHONPATH", "somewhere")
    monkeypatch.setenv("LC_NUMERIC", "C")
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("UNWANTED", "no")
    process = worker(env={"MLX_SET": "by the launch"}, keep_env=("WANTED", "NOT_SET_ANYWHERE"))
    channel = WorkerChannel(process)
    channel.wait_ready(LONG_S)
    answer = json.loads(channel.call(WorkerStep("env", {"do": "environment"}), LONG_S, LONG_S).text)
    allowed = {"PATH", "HOME", "TMPDIR", "USER", "LANG", "WANTED", "MLX_SET"}
    extra = {name for name in answer["environment"] if name not in allowed and not name.startswith("LC_")}
    assert extra == set()
    assert answer["environment"]["MLX_SET"] == "by the launch"
    assert answer["environment"]["WANTED"] == "yes"
    assert answer["environment"]["LC_NUMERIC"] == "C"
    assert answer["cwd"] == str(process.folder)


def test_keeping_an_engine_variable_is_refused(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_ARG_MODEL", "x")
    with pytest.raises(LaunchError, match="LLAMA_ARG_MODEL") as caught:
        start(sys.executable, "-c", "", keep_env=("LLAMA_ARG_MODEL",))
    assert "Launch.env" in caught.value.next_step


def test_launch_is_written_down_without_secrets(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_AUTH", "hidden0")
    process = start(
        sys.executable, "-c", "", "--api-key", "hidden1", "--token=hidden2", "--max-tokens", "32",
        env={"HF_TOKEN": "hidden3", "THREADS": "2"}, keep_env=("MY_AUTH",), files={"in/request.json": "{}"},
    )  # fmt: skip
    text = (process.folder / "launch.json").read_text()
    assert "hidden" not in text
    body = json.loads(text)
    hidden = "<redacted>"
    assert body["argv"][3:] == ["--api-key", hidden, f"--token={hidden}", "--max-tokens", "32"]
    assert body["env"] == {"HF_TOKEN": hidden, "THREADS": "2", "MY_AUTH": hidden}
    assert body["pid"] == process.pid
    assert body["cwd"] == str(process.folder)
    assert body["files"] == ["in/request.json"]
    assert body["utc"].endswith("Z")
    assert (process.folder / "in" / "request.json").read_text() == "{}"


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "."])  # noqa: S108  (must be refused)
def test_files_outside_of_the_folder_are_refused(start: Start, name: str) -> None:
    with pytest.raises(LaunchError, match="outside"):
        start(sys.executable, "-c", "", files={name: "x"})


def test_a_missing_command_is_a_launch_error(start: Start, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="was not found") as caught:
        start("no-such-engine-anywhere", "--port", "1")
    assert "no-such-engine-anywhere --port 1" in caught.value.where
    assert "install" in caught.value.next_step
    plain = tmp_path / "plain.txt"
    plain.write_text("no program")
    plain.chmod(0o644)
    with pytest.raises(LaunchError, match="may not be executed"):
        start(str(plain))
    plain.chmod(0o755)
    with pytest.raises(LaunchError, match="could not be started"):
        start(str(plain))
    with pytest.raises(LaunchError):
        start()
    assert json.loads((tmp_path / "session-0" / "launch.json").read_text())["pid"] is None


def test_wait_for_log_sees_only_complete_lines_after_the_mark(start: Start) -> None:
    script = (
        "import sys\n"
        "sys.stderr.write('old 1\\n'); sys.stderr.flush(); print('first', flush=True); sys.stdin.readline()\n"
        "sys.stderr.write('statistics 12\\nhalf 3'); sys.stderr.flush(); print('second', flush=True); sys.stdin.readline()\n"
        "sys.stderr.write('4\\n'); sys.stderr.flush(); sys.stdin.readline()"
    )
    process = start(sys.executable, "-c", script)
    process.next_line(LONG_S)
    mark = process.stderr_size()
    assert process.wait_for_log("^old", 0, LONG_S)
    assert not process.wait_for_log("^old", mark, 0)
    process.send(b"\n", LONG_S)
    assert process.wait_for_log(r"^statistics \d+$", mark, LONG_S)
    process.next_line(LONG_S)
    assert not process.wait_for_log("half 3", mark, 0)
    process.send(b"\n", LONG_S)
    assert process.wait_for_log("^half 34$", mark, LONG_S)


def test_wait_for_log_gives_up_when_the_process_is_dead(start: Start) -> None:
    process = start(sys.executable, "-c", "import sys; sys.stderr.write('last\\n')")
    process.wait(LONG_S)
    assert process.wait_for_log("last", 0, LONG_S)
    assert not process.wait_for_log("never", 0, 1e9)


def test_stop_closes_a_workers_stdin_first(worker: Start) -> None:
    process = worker()
    WorkerChannel(process).wait_ready(LONG_S)
    result = process.stop(grace_s=LONG_S)
    assert (result.exit_code, result.signals_sent, result.survivors_killed, result.left_alive) == (0, (), (), ())
    assert process.stop() is result


def test_stop_sends_term_to_a_server(server: Start) -> None:
    process = server(free_port())
    assert process.wait_for_log("x", 0, 0) is False
    result = process.stop(grace_s=LONG_S)
    assert result.signals_sent == ("TERM",)
    assert result.exit_code in (0, -signal.SIGTERM)  # before or after its handler was installed


def test_stop_sends_no_more_signals_than_it_needs(start: Start) -> None:
    code = (
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "os.write(2, b'deaf to TERM\\n'); signal.pause()"
    )
    process = start(sys.executable, "-c", code, server=True)
    assert process.wait_for_log("^deaf to TERM$", 0, LONG_S)
    result = process.stop(("INT", "TERM"), grace_s=LONG_S)
    assert result.exit_code == -signal.SIGINT
    assert result.signals_sent == ("INT",)


def test_stop_climbs_to_kill(worker: Start) -> None:
    process = worker("stubborn")
    WorkerChannel(process).wait_ready(LONG_S)
    result = process.stop(("TERM",), grace_s=0.2)
    assert result.signals_sent == ("TERM", "KILL")
    assert result.exit_code == -signal.SIGKILL


@pytest.mark.parametrize("mode", ["grandchild", "runaway"])
def test_a_surviving_grandchild_is_killed(worker: Start, mode: str) -> None:
    process = worker(mode)
    child = WorkerChannel(process).wait_ready(LONG_S)["child"]
    process._close_stdin()
    assert process.wait(LONG_S) == 0  # or the grace below would be the worker's too
    result = process.stop(grace_s=0.2)
    assert result.exit_code == 0
    assert result.survivors_killed == (child,)
    assert result.signals_sent == ("TERM", "KILL")
    assert result.left_alive == ()
    assert is_dead(child)


def test_a_grandchild_of_a_dead_leader_is_killed(worker: Start) -> None:
    process = worker("grandchild")
    child = WorkerChannel(process).wait_ready(LONG_S)["child"]
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(LONG_S) == -signal.SIGKILL
    result = process.stop(grace_s=0.2)
    assert result.survivors_killed == (child,)
    assert is_dead(child)


def test_nothing_is_signalled_when_all_has_ended(start: Start) -> None:
    process = start(sys.executable, "-c", "")
    process.wait(LONG_S)
    result = process.stop()
    assert (result.exit_code, result.signals_sent) == (0, ())


def test_an_unknown_signal_is_refused_and_the_process_still_stopped(start: Start) -> None:
    process = start(sys.executable, "-c", "import time; time.sleep(600)")
    with pytest.raises(ValueError, match="BOGUS"):
        process.stop(("BOGUS",))
    assert process.poll() == -signal.SIGKILL


def test_leaving_the_block_stops(tmp_path: Path) -> None:
    launch = Launch((sys.executable, "-c", "import time; time.sleep(600)"), {}, HttpReady())
    with pytest.raises(KeyError), EngineProcess.start(launch, tmp_path) as process:
        raise KeyError
    assert process.poll() is not None


def test_send_to_a_deaf_process_times_out(start: Start) -> None:
    process = start(sys.executable, "-c", "import time; time.sleep(600)")
    with pytest.raises(TimeoutError):
        process.send(b"x" * 1_000_000, 0.1)
    process.stop(grace_s=0.2)
    with pytest.raises(BrokenPipeError):
        process.send(b"x", 0.1)


def test_our_exit_kills_what_runs(start: Start) -> None:
    process = start(sys.executable, "-c", "import time; time.sleep(600)")
    stopped = start(sys.executable, "-c", "")
    stopped.stop(grace_s=LONG_S)
    guard._abandon_all()
    assert process.poll() == -signal.SIGKILL
    assert stopped.poll() == 0


OWNER = """
import signal, sys
from pathlib import Path
from orchestrator.process.spawn import EngineProcess
from orchestrator.schema.adapter import Launch, {ready}
launch = Launch((sys.executable, "-c", "import time; time.sleep(600)"), {{}}, {ready}())
process = EngineProcess.start(launch, Path(sys.argv[1]))
print(process.pid, flush=True)
{end}
"""


@pytest.mark.parametrize("ready", ["HttpReady", "LineReady"])
@pytest.mark.parametrize("end", ["", "raise SystemExit(5)", "import os; os.kill(os.getpid(), signal.SIGKILL)"])
def test_no_engine_outlives_us(start: Start, tmp_path: Path, ready: str, end: str) -> None:
    root = str(Path(__file__).parents[3])
    script = OWNER.format(ready=ready, end=end)
    owner = start(sys.executable, "-c", script, str(tmp_path / "inner"), env={"PYTHONPATH": root})
    pid = int(owner.next_line(LONG_S).data)
    try:
        engine = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return  # it is gone already, faster than we could look
    owner.wait(LONG_S)
    _until_dead(engine)


def _until_dead(engine: psutil.Process) -> None:
    """Returns once it is dead (an unreaped zombie counts); a guard that does nothing makes this a time-out."""
    for _ in range(600):
        if is_dead(engine.pid):
            return
        try:
            engine.wait(0.1)
        except psutil.TimeoutExpired:
            continue
    engine.kill()
    pytest.fail("the engine outlived the process that started it")
