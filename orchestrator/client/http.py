"""One HTTP exchange with a server engine, every piece of the answer stamped by our clock as it arrives.

One connection per request, never reused: llama-server drops about 6 of 100 reused ones, and a silent second try would
be a second measurement. No proxies, no redirects, no retries, no compression, and no host but this one.

This module loads httpx and must not be imported when the command line starts; it is loaded, and its client built,
before the first request, so that neither counts as the engine's time.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from orchestrator.client.errors import AddressError
from orchestrator.client.sse import Chunk, split_events
from orchestrator.clock import now_s
from orchestrator.schema.adapter import HttpStep
from orchestrator.schema.capture import RawEvent, StepCapture

MAX_ANSWER_BYTES = 256 * 1024 * 1024
READY_TIMEOUT_S = 5.0

_SHOWN_CHARS = 500
_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "specmatrix",
}


class EngineClient:
    """Exchanges with one engine. Usable from one thread at a time."""

    def __init__(self, base_url: str, max_answer_bytes: int = MAX_ANSWER_BYTES) -> None:
        """Prepare for an engine at ``http://127.0.0.1:port`` (a path prefix is kept).

        Raises:
            AddressError: the address is not plain HTTP on the loopback interface.
        """
        self._base = _loopback(base_url)
        self._limit = max_answer_bytes
        self._base.host.encode("idna")  # loads the codec (10 ms) that the first connection would load
        self._client = httpx.Client(
            headers=_HEADERS,
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(max_keepalive_connections=0),
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # never used; the default one reads certificate files
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the client's resources; no connection outlives its exchange anyway."""
        self._client.close()

    def exchange(self, step: HttpStep, silence_timeout_s: float, total_timeout_s: float) -> StepCapture:
        """Send the step's request and record the answer.

        Args:
            step: with ``stream`` each server-sent event is recorded with its arrival, otherwise the body as one event.
            silence_timeout_s: longest time without a byte, seconds.
            total_timeout_s: longest time for connecting, sending and the whole answer, seconds.

        Returns:
            The capture. ``sent_s`` is the moment before the request's first byte is written, on an open connection;
            ``done_s`` the end of the answer. Whatever goes wrong is in ``error``, with the events up to then.

        Raises:
            AddressError: the step's path leads to another host.
        """
        body = "" if step.body is None else json.dumps(dict(step.body), ensure_ascii=False)
        request = self._request(step, body, min(silence_timeout_s, total_timeout_s))
        run = _Exchange(total_timeout_s, self._limit)
        request.extensions["trace"] = run.trace
        begun_s = now_s()
        with run.deadline():
            self._run(request, run, silence_timeout_s)
        events, rest = split_events(run.chunks) if step.stream and run.status == httpx.codes.OK else (_whole(run), "")
        error = run.error
        if error is None and run.status != httpx.codes.OK:
            error = f"HTTP {run.status}: {_shown(''.join(event.data for event in events))}"
        elif error is None and rest:
            error = f"the stream ended inside an event: {_shown(rest)}"
        sent_s = begun_s if run.sent_s is None else run.sent_s
        return StepCapture(step.name, sent_s, body, events, run.done_s, run.status, error, run.timed_out)

    def get_ready(self, path: str) -> bool:
        """Whether ``GET path`` answers 200 within five seconds."""
        step = HttpStep("ready", "GET", path)
        return self.exchange(step, READY_TIMEOUT_S, READY_TIMEOUT_S).complete

    def _request(self, step: HttpStep, body: str, timeout_s: float) -> httpx.Request:
        if not step.path.startswith("/"):
            raise AddressError(f"the path {step.path!r} of step {step.name} must begin with '/'")
        url = httpx.URL(str(self._base).rstrip("/") + step.path)
        if (url.host, url.port) != (self._base.host, self._base.port):
            raise AddressError(f"the path {step.path!r} of step {step.name} leads to another host")
        return self._client.build_request(
            step.method,
            url,
            content=body.encode("utf-8", "surrogatepass") if step.body is not None else None,
            headers={"Content-Type": "application/json"} if step.body is not None else None,
            timeout=timeout_s,
        )

    def _run(self, request: httpx.Request, run: _Exchange, silence_s: float) -> None:
        try:
            response = self._client.send(request, stream=True)
            try:
                run.read(response)
            finally:
                response.close()
        except httpx.TimeoutException as err:
            late = run.total_s <= silence_s  # whichever of timer and socket noticed it first
            run.fail(run.too_late if late else f"{_phase(err)} {silence_s:g} s", timed_out=True)
        except (httpx.HTTPError, httpx.StreamError) as err:
            run.fail(f"the connection broke: {err or type(err).__name__}")


@dataclass(slots=True)
class _Exchange:
    """What is known of a running exchange: filled in while it runs, read once it is over."""

    total_s: float
    limit: int
    chunks: list[Chunk] = field(default_factory=list)
    sent_s: float | None = None
    done_s: float | None = None
    status: int | None = None
    error: str | None = None
    timed_out: bool = False
    expired: threading.Event = field(default_factory=threading.Event)
    connection: socket.socket | None = None

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Take the moment of sending, and the socket, from the transport's progress."""
        if name == "http11.send_request_headers.started":
            self.sent_s = now_s()
        elif name == "connection.connect_tcp.complete":
            self.connection = info["return_value"].get_extra_info("socket")
            if self.expired.is_set():
                self._cut()

    @contextlib.contextmanager
    def deadline(self) -> Iterator[None]:
        """Cut the connection when the total time is over: httpx itself only limits the time between two reads.

        The timer starts before the request, so that starting its thread does not delay a stamp.
        """
        timer = threading.Timer(self.total_s, self._expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def read(self, response: httpx.Response) -> None:
        """Stamp each chunk as it comes; nothing else happens in this loop."""
        self.status = response.status_code
        size = 0
        chunks = self.chunks
        for chunk in response.iter_raw():
            chunks.append((now_s(), chunk))
            size += len(chunk)
            if size > self.limit:
                self.fail(f"the answer is larger than {self.limit} bytes")
                return
        self.done_s = now_s()
        if response.headers.get("content-encoding", "identity") != "identity":
            self.fail("the answer is compressed although identity was asked for")
        elif self.expired.is_set():
            self.fail("")

    def fail(self, why: str, *, timed_out: bool = False) -> None:
        """Record why the exchange ended early; the total time-out, being the cause of a broken connection, wins."""
        self.done_s = now_s()
        self.timed_out = timed_out or self.expired.is_set()
        self.error = self.too_late if self.expired.is_set() else why

    @property
    def too_late(self) -> str:
        """The words for a total time that ran out."""
        return f"not done within {self.total_s:g} s"

    def _expire(self) -> None:
        self.expired.set()
        self._cut()

    def _cut(self) -> None:
        if self.connection is not None:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)


def _whole(run: _Exchange) -> tuple[RawEvent, ...]:
    """The body as one event, stamped with its last chunk; none when nothing came."""
    if not run.chunks:
        return ()
    text = b"".join(data for _, data in run.chunks).decode("utf-8", "replace")
    return (RawEvent(run.chunks[-1][0], text),)


def _loopback(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as err:
        raise AddressError(f"{base_url!r} is not an address: {err}; use http://127.0.0.1:PORT") from err
    local = url.host == "localhost"
    with contextlib.suppress(ValueError):
        local = local or ipaddress.ip_address(url.host).is_loopback
    if url.scheme != "http" or not local or url.userinfo or url.query or url.fragment:
        raise AddressError(f"{base_url!r} is not an engine on this machine; use http://127.0.0.1:PORT")
    return url


def _phase(err: httpx.TimeoutException) -> str:
    if isinstance(err, httpx.ConnectTimeout):
        return "no connection within"
    if isinstance(err, httpx.WriteTimeout):
        return "the request was not taken within"
    return "silent for"


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
