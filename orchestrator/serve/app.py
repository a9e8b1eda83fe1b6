"""The web application: a page, its moving part, the run's files, and the form that measures one cell again."""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from orchestrator.report.language.words import Words
from orchestrator.schema.errors import SelectionError, SpecmatrixError
from orchestrator.serve import page
from orchestrator.serve.guard import HEADERS, MOST_FORM_BYTES, Gate, read_form
from orchestrator.serve.live import Snapshot, Watcher

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from orchestrator.serve.rerun import Rerunner


@dataclass
class Site:
    """What the pages are made of."""

    watcher: Watcher
    rerunner: Rerunner
    gate: Gate
    words: Words
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def title(self) -> str:
        """The run's name."""
        return self.watcher.directory.header.run

    def look(self) -> tuple[Snapshot, page.LiveView, str]:
        """The moment, its words, and a tag that changes with either."""
        with self._lock:
            shot = self.watcher.look()
        job = self.rerunner.job
        view = page.live_view(shot, job, self.watcher.directory.path, self.words)
        return shot, view, f'"{zlib.crc32(repr(view).encode()):08x}"'

    def start(self, cell: str) -> None:
        """Measures the cell again; two requests at once start one."""
        with self._lock:
            shot = self.watcher.look()
            self.rerunner.start(cell, {one.id for one in shot.cells})


def make_app(site: Site) -> ASGIApp:
    """The application behind its guard; every answer carries the security headers."""
    pages = _Pages(site)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(site.rerunner.close)

    routes = [
        Route("/", pages.home),
        Route("/live", pages.live),
        Route("/rerun", pages.confirm, methods=["GET"]),
        Route("/rerun", pages.rerun, methods=["POST"]),
        Route("/{name}", pages.file, methods=["GET"]),
    ]
    return _Guarded(Starlette(routes=routes, lifespan=lifespan), site.gate)


class _Pages:
    """One method per address."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def home(self, _request: Request) -> Response:
        _, view, tag = await run_in_threadpool(self._site.look)
        return HTMLResponse(page.page_html(view, self._site.title, tag, self._site.words))

    async def live(self, request: Request) -> Response:
        _, view, tag = await run_in_threadpool(self._site.look)
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return HTMLResponse(page.live_html(view, self._site.words), headers={"ETag": tag})

    async def confirm(self, request: Request) -> Response:
        cell = request.query_params.get("cell", "")
        shot, _, _ = await run_in_threadpool(self._site.look)
        if cell not in {one.id for one in shot.cells}:
            return self._refused("there is no such cell in this run", 404)
        return HTMLResponse(page.confirm_html(cell, self._site.gate.token, self._site.title, self._site.words))

    async def rerun(self, request: Request) -> Response:
        form = await _form(request)
        refusal = self._site.gate.refusal(request.headers, form)
        if refusal:
            return self._refused(refusal, 403)
        try:
            await run_in_threadpool(self._site.start, form.get("cell", ""))
        except SelectionError as err:
            return self._refused(str(err), 404)
        except SpecmatrixError as err:
            return self._refused(str(err), 409)
        return RedirectResponse("/", 303)

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = self._site.watcher.directory.path / name
        if name not in page.SERVED or not path.is_file():
            return PlainTextResponse("there is no such file", 404)
        headers = {"Content-Security-Policy": page.FILE_POLICY}
        return FileResponse(path, media_type=page.SERVED[name], headers=headers)

    def _refused(self, why: str, status: int) -> Response:
        return HTMLResponse(page.refused_html(why, self._site.title, self._site.words), status)


class _Guarded:
    """Refuses what was not addressed to us, and puts the headers on every answer, errors included."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                wanted = {**HEADERS, "Content-Security-Policy": page.POLICY}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in wanted.items()
                        if name.lower().encode() not in present
                    ),
                ]
            await send(message)

        if len(hosts) != 1 or not self._gate.host_allowed(hosts[0]):
            await PlainTextResponse("this address is not served here", 421)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)


async def _form(request: Request) -> dict[str, str]:
    """The form of a request; one that is too long is not read to its end."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_FORM_BYTES:
            return {}
    return read_form(body)
