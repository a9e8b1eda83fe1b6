"""A server engine with one fault per path: streams slowly, hangs, crashes, sends garbage, drops the connection.

``fault_server.py [--port N]`` listens on 127.0.0.1 and prints ``{"event": "ready", "base_url": …}`` once it does.
``GET /health`` answers 200. ``POST /fault/NAME`` behaves as the method ``_NAME`` below says.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOR_EVER = threading.Event()
TOKENS = 5


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/health":
            self._plain(200, b'{"status": "ok"}')
        elif self.path == "/headers":
            self._plain(200, json.dumps(list(self.headers.items())).encode())
        elif self.path == "/silent-health":
            FOR_EVER.wait()
        else:
            self._plain(503, b'{"status": "loading"}')

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        getattr(self, "_" + self.path.removeprefix("/fault/"), self._unknown)()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class's name)
        sys.stderr.write(f"{self.command} {self.path}\n")

    def _unknown(self) -> None:
        self._plain(404, b'{"error": "no such fault"}')

    def _none(self) -> None:
        """A healthy stream: one event a chunk, then the end marker."""
        self._begin()
        for index in range(TOKENS):
            self._chunk(self._event(index))
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _slow(self) -> None:
        """A healthy stream that takes its time."""
        self._begin()
        for index in range(TOKENS):
            FOR_EVER.wait(0.02)
            self._chunk(self._event(index))
        self._chunk(b"")

    def _echo(self) -> None:
        """The request's body as the answer."""
        self._plain(200, self.body)

    def _silent(self) -> None:
        """Takes the request and never answers."""
        FOR_EVER.wait()

    def _hang(self) -> None:
        """Two events, then nothing."""
        self._begin()
        self._chunk(self._event(0))
        self._chunk(self._event(1))
        FOR_EVER.wait()

    def _keepalive(self) -> None:
        """One event, then comments for ever: never silent, never done."""
        self._begin()
        self._chunk(self._event(0))
        while not FOR_EVER.wait(0.02):
            self._chunk(b": still here\n\n")

    def _crash(self) -> None:
        """Two events, then the process dies."""
        self._begin()
        self._chunk(self._event(0))
        self._chunk(self._event(1))
        sys.stderr.write("fatal: \x1b[31mfake crash\x1b[0m\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    def _drop(self) -> None:
        """Two and a half events, then the connection closes without the end of the answer."""
        self._begin()
        self._chunk(self._event(0))
        self._chunk(self._event(1))
        self._chunk(b'data: {"token": ')
        self._close()

    def _dropearly(self) -> None:
        """The connection closes before any answer."""
        self._close()

    def _garbage(self) -> None:
        """Bytes that are neither events nor text."""
        self._begin()
        self._chunk(b"\xff\xfe\x00 garbage without an end")
        self._chunk(b"")

    def _nohttp(self) -> None:
        """An answer that is not HTTP."""
        self.wfile.write(b"\x00\x01\x02 not http\r\n\r\n")
        self._close()

    def _refuse(self) -> None:
        """A refused request."""
        self._plain(400, b'{"error": {"message": "prompt too long"}}')

    def _overloaded(self) -> None:
        """A refusal with an endless body text."""
        self._plain(503, b"x" * 5000)

    def _redirect(self) -> None:
        """Points somewhere else."""
        self.send_response(302)
        self.send_header("Location", "http://192.0.2.1/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _compressed(self) -> None:
        """Claims a compression nobody asked for."""
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"abc")

    def _big(self) -> None:
        """More than the test's client takes."""
        self._begin()
        for index in range(100):
            self._chunk(b"data: " + b"x" * 1000 + str(index).encode() + b"\n\n")
        self._chunk(b"")

    def _event(self, index: int) -> bytes:
        return f"data: {json.dumps({'token': index})}\n\n".encode()

    def _begin(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _plain(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _close(self) -> None:
        self.close_connection = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    ready = {"event": "ready", "base_url": f"http://127.0.0.1:{server.server_port}"}
    sys.stdout.write(json.dumps(ready) + "\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
