"""Serves one run on a loopback port until Ctrl-C."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.schema.errors import SpecmatrixError, StoreError
from orchestrator.serve.guard import loopback
from orchestrator.store.directory import RunDirectory
from orchestrator.store.names import slug

if TYPE_CHECKING:
    from orchestrator.serve.app import Site

INSTALL = "pip install 'specmatrix[serve]'"
SCRATCH = ".specmatrix"


def serve(
    directory: RunDirectory,
    *,
    host: str,
    port: int,
    matrix: Path | None,
    language: str | None,
    say: Callable[[str], None],
) -> None:
    """Serves the run; returns when the server was told to stop.

    Args:
        directory: the run.
        host: a loopback address.
        port: 0 for a free one.
        matrix: the run's matrix file, for re-runs; ``None`` takes the path that the run recorded.
        language: of the page; ``None`` takes the matrix's own.
        say: gets the address once it is served.

    Raises:
        SpecmatrixError: the host is not this machine, or the extra is not installed.
        StoreError: the port is taken.
    """
    address = loopback(host)
    try:
        import uvicorn  # noqa: PLC0415  (an optional extra)

        from orchestrator.serve.app import make_app  # noqa: PLC0415
    except ModuleNotFoundError as err:
        raise SpecmatrixError(f"serve needs {err.name}, which is not installed: {INSTALL}") from err
    listener = _listen(address, port)
    with listener:
        real = listener.getsockname()[1]
        site = make_site(directory, real, matrix, language)
        config = uvicorn.Config(
            make_app(site), log_level="warning", access_log=False, proxy_headers=False, server_header=False,
            timeout_graceful_shutdown=3,
        )  # fmt: skip
        say(f"http://{f'[{address}]' if ':' in address else address}:{real}/")
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how it ends
            uvicorn.Server(config).run(sockets=[listener])


def make_site(directory: RunDirectory, port: int, matrix: Path | None, language: str | None) -> Site:
    """What the application is made of, for a port that is already ours."""
    from orchestrator.report.language.words import Words  # noqa: PLC0415
    from orchestrator.report.page.first_screen.context import run_settings  # noqa: PLC0415
    from orchestrator.serve.app import Site  # noqa: PLC0415  (an optional extra)
    from orchestrator.serve.guard import Gate  # noqa: PLC0415
    from orchestrator.serve.live import Watcher  # noqa: PLC0415
    from orchestrator.serve.rerun import Rerunner  # noqa: PLC0415

    watcher = Watcher(directory)
    watcher.look()
    words = Words(language or str(run_settings(watcher.index).get("language", "en")))
    scratch = directory.path.parent / SCRATCH / "serve" / slug(directory.path.name)
    path = matrix if matrix is not None else Path(directory.header.matrix_path)
    return Site(watcher, Rerunner(directory, path, scratch), Gate(port), words)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(64)
    except OSError as err:
        listener.close()
        raise StoreError(f"{host}:{port}: cannot be served: {err.strerror}; leave --port out for a free one") from err
    return listener
