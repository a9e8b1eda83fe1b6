from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from orchestrator.process import lines
from orchestrator.process.errors import LaunchError
from orchestrator.process.spawn import EngineProcess
from orchestrator.process.worker import WorkerChannel
from orchestrator.schema.adapter import WorkerStep
from orchestrator.schema.errors import EngineRefusal

Start = Callable[..., EngineProcess]
LONG_S = 60.0


def step(name: str, **more: object) -> WorkerStep:
    return WorkerStep("request", {"do": name, **more})


@pytest.fixture
def channel(worker: Start) -> WorkerChannel:
    opened = WorkerChannel(worker())
    opened.wait_ready(LONG_S)
    return opened


@pytest.fixture
def heard(channel: WorkerChannel, monkeypatch: pytest.MonkeyPatch) -> WorkerChannel:
    """A channel that waits for an answer's first line however long it takes; its time-outs are for what follows."""
    real, first = channel._process.next_line, [LONG_S]
    monkeypatch.setattr(channel._process, "next_line", lambda limit: real(first.pop() if first else limit))
    return channel


def test_ready_gives_the_json(worker: Start) -> None:
    process = worker()
    assert WorkerChannel(process).wait_ready(LONG_S) == {"event": "ready", "pid": process.pid}


def test_other_output_before_ready_is_ignored(worker: Start) -> None:
    process = worker("chatty")
    assert WorkerChannel(process).wait_ready(LONG_S)["pid"] == process.pid
    assert process.stdout.startswith("loading weights")


def test_a_refusal_carries_status_and_reason(worker: Start) -> None:
    with pytest.raises(EngineRefusal, match="fake_engine is not installed") as caught:
        WorkerChannel(worker("refuse")).wait_ready(LONG_S)
    assert caught.value.status == "unavailable"


def test_a_refusal_with_an_unknown_status_is_a_failure(start: Start) -> None:
    process = start(sys.executable, "-c", 'print(\'{"event": "refused", "status": "tired"}\')')
    with pytest.raises(EngineRefusal, match="no reason") as caught:
        WorkerChannel(process).wait_ready(LONG_S)
    assert caught.value.status == "failed"


def test_death_before_ready_shows_the_log(worker: Start) -> None:
    with pytest.raises(LaunchError, match=r"exit code 7.*ImportError: no fake engine") as caught:
        WorkerChannel(worker("die")).wait_ready(LONG_S)
    assert not caught.value.timed_out


def test_never_ready_is_a_time_out(worker: Start) -> None:
    process = worker("never")
    assert process.wait_for_log("still loading", 0, LONG_S)
    with pytest.raises(LaunchError, match=r"not ready within 0\.1 s.*still loading") as caught:
        WorkerChannel(process).wait_ready(0.1)
    assert caught.value.timed_out


def test_chatter_without_end_is_not_ready_either(start: Start) -> None:
    process = start(sys.executable, "-c", "while True: print('loading', flush=True)")
    with pytest.raises(LaunchError) as caught:
        WorkerChannel(process).wait_ready(0.2)
    assert caught.value.timed_out


def test_an_answer_is_recorded_line_by_line(channel: WorkerChannel) -> None:
    capture = channel.call(step("tokens", n=3), LONG_S, LONG_S)
    assert capture.complete
    assert [event.data for event in capture.events] == [
        '{"event": "token", "id": 0, "text": ""}',
        '{"event": "token", "id": 1, "text": "\\u00e9"}',
        '{"event": "token", "id": 2, "text": "\\u00e9\\u00e9"}',
        '{"event": "done"}',
    ]
    stamps = [capture.sent_s, *(event.t_s for event in capture.events), capture.done_s]
    assert stamps == sorted(stamps)
    assert capture.events[-1].t_s == capture.done_s
    assert (capture.name, capture.body, capture.http_status) == ("request", '{"do": "tokens", "n": 3}', None)


def test_calls_follow_one_another(channel: WorkerChannel) -> None:
    counts = [len(channel.call(step("tokens", n=n), LONG_S, LONG_S).events) for n in (0, 2, 1)]
    assert counts == [1, 3, 2]


def test_a_large_message_and_answer_pass(channel: WorkerChannel) -> None:
    capture = channel.call(step("tokens", n=300, padding="x" * 500_000), LONG_S, LONG_S)
    assert capture.complete
    assert len(capture.events) == 301


def test_an_error_line_is_the_workers_word_and_the_conversation_goes_on(channel: WorkerChannel) -> None:
    failed = channel.call(step("error"), LONG_S, LONG_S)
    assert failed.error == "out of memory"
    assert not failed.timed_out
    assert len(failed.events) == 2
    assert channel.call(step("tokens"), LONG_S, LONG_S).complete


@pytest.mark.parametrize(
    ("name", "error", "events"),
    [
        ("garbage", "no JSON object: 'Segmentation fault?", 2),
        ("bytes", "no JSON object", 1),
        ("die", r"exit code 3.*assertion failed in fake kernel", 1),
        ("kill", "signal SIGKILL", 1),
        ("torn", "exit code 0", 0),
    ],
)
def test_a_broken_answer_is_an_error_and_breaks_the_channel(
    channel: WorkerChannel, name: str, error: str, events: int
) -> None:
    broken = channel.call(step(name), LONG_S, LONG_S)
    with pytest.raises(ValueError, match=error):
        raise ValueError(broken.error)
    assert len(broken.events) == events
    assert not broken.timed_out
    assert broken.done_s is not None
    assert not broken.complete
    after = channel.call(step("tokens"), LONG_S, LONG_S)
    assert after.events == ()
    assert after.error.startswith("an earlier exchange broke the conversation")


def test_a_closed_output_is_an_error(channel: WorkerChannel) -> None:
    capture = channel.call(step("close"), LONG_S, LONG_S)
    assert capture.error.startswith("the worker closed its output")


def test_a_hang_ends_timed_out_with_what_came(heard: WorkerChannel) -> None:
    capture = heard.call(step("hang"), 0.3, LONG_S)
    assert capture.timed_out
    assert capture.error == "silent for 0.3 s"
    assert [event.data for event in capture.events] == ['{"event": "token", "id": 0}']


@pytest.mark.parametrize("name", ["hang", "flood"])
def test_the_total_time_is_limited_too(heard: WorkerChannel, name: str) -> None:
    capture = heard.call(step(name), LONG_S, 0.3)
    assert capture.timed_out
    assert capture.error == "not done within 0.3 s"
    assert capture.events[0].data == '{"event": "token", "id": 0}'


def test_a_worker_that_does_not_read_times_out(worker: Start) -> None:
    channel = WorkerChannel(worker("deaf"))
    channel.wait_ready(LONG_S)
    capture = channel.call(step("tokens", padding="x" * 1_000_000), 0.3, LONG_S)
    assert capture.timed_out
    assert "does not read its input" in capture.error


def test_death_is_seen_though_a_child_holds_the_pipe(start: Start) -> None:
    script = "import subprocess, sys; subprocess.Popen(['sleep', '600']); sys.stdin.readline()"
    holder = start(sys.executable, "-c", script)
    capture = WorkerChannel(holder).call(step("tokens"), LONG_S, LONG_S)
    assert "the worker ended (exit code 0)" in capture.error
    assert not holder.lines_ended
    holder.stop(grace_s=0.2)
    assert holder.lines_ended


def test_lines_nobody_reads_are_bounded(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines.LinePump.__init__, "__defaults__", (1000,))
    process = start(sys.executable, "-c", "for _ in range(1000): print('x' * 99)")
    process.wait(LONG_S)
    while (line := process.next_line(LONG_S)) is not None:
        assert line.data == "x" * 99
    assert process.lines_fault == "more than 1000 bytes of output were waiting to be read"
    process.stop()
    assert process.stdout_path.stat().st_size == 100_000


def test_a_line_without_end_is_bounded(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines.LinePump.__init__, "__defaults__", (1000,))
    process = start(sys.executable, "-c", "import sys; sys.stdin.readline(); print('x' * 5000)")
    capture = WorkerChannel(process).call(step("tokens"), LONG_S, LONG_S)
    assert capture.error == "more than 1000 bytes of output were waiting to be read"


def test_the_rest_of_a_lost_line_is_no_line(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines.LinePump.__init__, "__defaults__", (1000,))
    code = "import sys; w = sys.stdout; w.write('x' * 1500); w.flush(); sys.stdin.readline(); w.write('{}\\n')"
    process = start(sys.executable, "-c", code)
    while process.lines_fault is None:
        process.next_line(LONG_S)
    process.send(b"\n", LONG_S)
    process.wait(LONG_S)
    process.stop()  # reads to the end
    assert process.next_line(0.0) is None
