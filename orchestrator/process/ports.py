"""Free ports of the loopback interface, and whether it is really our engine that listens on one."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable
from typing import Any

import psutil


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now; who gets it is checked by :func:`owner_is` later."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def owner_is(pid: int, port: int) -> bool | None:
    """Whether the process or a descendant listens on the port, and nobody else on the same address.

    Two processes can share an address with ``SO_REUSEPORT``, which llama-server's HTTP library sets: the kernel then
    deals the requests out to both. Where the system lets us see other processes' sockets (Linux) that is ``False``.

    Returns:
        ``None`` when the operating system does not tell.
    """
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return None
    ours: set[str] = set()
    hidden = False
    for process in family:
        try:
            sockets = process.net_connections(kind="tcp")
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            hidden = True
            continue
        ours |= {ip for ip, _ in _listeners(sockets, port)}
    if not ours:
        return None if hidden else False
    return not _shared(ours, port, {process.pid for process in family})


def _shared(addresses: set[str], port: int, pids: set[int]) -> bool:
    """Whether someone else listens on one of the addresses too; ``False`` where that cannot be seen."""
    if sys.platform != "linux":
        return False
    rivals = _listeners(psutil.net_connections(kind="tcp"), port)
    return any(pid not in pids and ip in {*addresses, "127.0.0.1"} for ip, pid in rivals)


def _listeners(sockets: Iterable[Any], port: int) -> list[tuple[str, int | None]]:
    """Address and, where given, process of each socket that listens on the port."""
    return [
        (one.laddr.ip, getattr(one, "pid", None))
        for one in sockets
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
    ]
