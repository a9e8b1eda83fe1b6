from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable

import pytest

from orchestrator.process.ports import free_port, owner_is
from orchestrator.process.spawn import EngineProcess
from orchestrator.process.worker import WorkerChannel

Start = Callable[..., EngineProcess]
LONG_S = 60.0
LISTEN = """
import socket, sys
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
sock.bind((sys.argv[2], int(sys.argv[1])))
sock.listen()
print('{"event": "ready"}', flush=True)
sys.stdin.readline()
"""
CONNECT = """
import socket
sock = socket.create_connection(('127.0.0.1', {port}))
print('{{"event": "ready"}}', flush=True)
sock.recv(1)
"""


def test_a_free_port_can_be_bound() -> None:
    port = free_port()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", port))
        assert sock.getsockname()[1] == port


def listener(start: Start, port: int, address: str = "127.0.0.1") -> EngineProcess:
    process = start(sys.executable, "-c", LISTEN, str(port), address)
    WorkerChannel(process).wait_ready(LONG_S)
    return process


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_our_own_listener_is_recognised(start: Start, address: str) -> None:
    port = free_port()
    process = listener(start, port, address)
    assert owner_is(process.pid, port) is True
    assert owner_is(process.pid, port + 1) is False


def test_a_descendants_listener_counts(start: Start) -> None:
    port = free_port()
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LISTEN!r}, '{port}', '127.0.0.1'])"
    process = start(sys.executable, "-c", outer)
    WorkerChannel(process).wait_ready(LONG_S)
    assert owner_is(process.pid, port) is True


def test_a_strangers_listener_does_not(start: Start) -> None:
    port = free_port()
    listener(start, port)
    stranger = start(sys.executable, "-c", "import sys; sys.stdin.readline()")
    assert owner_is(stranger.pid, port) is False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows other processes' sockets without rights")
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_shared_port_is_not_ours(start: Start, address: str) -> None:
    port = free_port()
    ours = listener(start, port, address)
    assert owner_is(ours.pid, port) is True
    listener(start, port, "127.0.0.1")
    assert owner_is(ours.pid, port) is False


def test_a_connection_is_no_listener(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert owner_is(os.getpid(), port) is True
        client = start(sys.executable, "-c", CONNECT.format(port=port))
        WorkerChannel(client).wait_ready(LONG_S)
        assert owner_is(client.pid, port) is False


def test_a_dead_process_owns_nothing(start: Start) -> None:
    process = start(sys.executable, "-c", "")
    process.wait(LONG_S)
    assert owner_is(process.pid, free_port()) is False
