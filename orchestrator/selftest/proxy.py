"""Stands between our client and a real llama.cpp server and corrupts what passes in one known way.

Usage: python proxy.py SETTINGS.json, with ``argv`` (the engine's worker) and ``fault`` in the settings. Standard
library alone: it is started by path, in the scrubbed environment of an engine. It speaks the worker's protocol: one
``ready`` line with the proxy's own address on standard output, and an end when standard input is closed.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

AT = 12
"""The event of a stream at which single faults happen."""
EVERY = 7
"""A lenient acceptance keeps a wrong token at every so many."""
STALL_S = 0.4
FOREIGN = 0
"""The token that is injected: the tiny models' end of text."""
ACCEPTED = re.compile(r"^(llamacpp:spec_decode_num_accepted_tokens_total) (\S+)$", re.MULTILINE)
TIMEOUT_S = 60.0


class Corruption:
    """One request's corruption; the default passes everything through."""

    def __init__(self, fault: str) -> None:
        """``fault`` is a name of ``orchestrator.exactness.coverage.Fault``, in lower case."""
        self.fault = fault
        self.events = 0
        self.seen: dict[int, str] = {}
        self.follows: dict[int, int] = {}
        self.last: int | None = None
        self.shift = 0

    def event(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """What is sent instead of one event of the stream."""
        if data.get("stop") is True:
            if self.fault == "count_in_answer" and "draft_n_accepted" in data.get("timings", {}):
                data["timings"]["draft_n_accepted"] += 1
            return [data]
        if len(data.get("tokens") or ()) != 1:
            return [data]
        self.events += 1
        change = getattr(self, f"_{self.fault}", None)
        sent = change(data) if change is not None else [data]
        self._remember(data)
        return sent

    def _remember(self, data: dict[str, Any]) -> None:
        token = data["tokens"][0]
        self.seen[token] = data["content"]
        if self.last is not None:
            self.follows[self.last] = token
        self.last = token

    def _lenient(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """Every so often the token that an n-gram drafter would propose, kept although the target chose another."""
        if self.events % EVERY:
            return [data]
        own = data["tokens"][0]
        proposed = self.follows.get(-1 if self.last is None else self.last, own)
        other = proposed if proposed != own else next((token for token in self.seen if token != own), own)
        return [{**data, "tokens": [other], "content": self.seen.get(other, "")}]

    def _duplicated(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        return [data, data] if self.events == AT else [data]

    def _injected(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """One more token, counted like any other; the counters at the end do not know of it."""
        if self.events == AT:
            self.shift = 1
            return [{**data, "tokens": [FOREIGN], "content": ""}, self._shifted(data)]
        return [self._shifted(data)]

    def _shifted(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "tokens_predicted": data["tokens_predicted"] + self.shift}

    def _stalled(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        if self.events == AT:
            time.sleep(STALL_S)
        return [data]


class Handler(BaseHTTPRequestHandler):
    """Forwards one exchange; an answer ends with its connection."""

    server: Proxy

    def do_GET(self) -> None:
        """Scrapes and properties: whole bodies."""
        status, text = self.server.ask("GET", self.path)
        self._head(status, "application/json")
        self.wfile.write(self.server.page(self.path, text).encode())

    def do_POST(self) -> None:
        """A request to generate: its events one by one."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        if self.server.fault == "cached_prompt" and self.path == "/completion":
            body["cache_prompt"] = True
            self.server.ask("POST", self.path, {**body, "n_predict": 1, "stream": False})
        self.server.posts += 1
        connection, answer = self.server.open("POST", self.path, body)
        try:
            self._head(answer.status, answer.getheader("Content-Type", "application/json"))
            if answer.status != http.client.OK or not body.get("stream"):
                self.wfile.write(answer.read())
                return
            corruption = Corruption(self.server.fault)
            for line in answer:
                if not line.startswith(b"data: {"):
                    if line.strip():
                        self.wfile.write(line + b"\n")
                    continue
                for data in corruption.event(json.loads(line[6:])):
                    self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
                    self.wfile.flush()
        finally:
            connection.close()

    def log_message(self, *_: object) -> None:
        """Nothing: the log is the engine's."""

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()


class Proxy(ThreadingHTTPServer):
    """The proxy in front of one engine."""

    daemon_threads = True

    def __init__(self, upstream: str, fault: str) -> None:
        """``upstream`` is the engine's address."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = urlsplit(upstream)
        self.fault = fault
        self.posts = 0

    def open(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[http.client.HTTPConnection, Any]:
        """A connection of its own with its answer's head."""
        connection = http.client.HTTPConnection(self.upstream.hostname or "", self.upstream.port, timeout=TIMEOUT_S)
        payload = None if body is None else json.dumps(body).encode()
        connection.request(method, path, payload, {"Content-Type": "application/json", "Connection": "close"})
        return connection, connection.getresponse()

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
        """Status and body of an exchange."""
        connection, answer = self.open(method, path, body)
        try:
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def page(self, path: str, text: str) -> str:
        """A scraped page as the fault leaves it."""
        if self.fault == "dropped_drafter" and path == "/slots":
            return json.dumps([{**slot, "speculative": True} for slot in json.loads(text)])
        if self.fault == "count_in_metrics" and path == "/metrics":
            return ACCEPTED.sub(lambda found: f"{found[1]} {float(found[2]) + self.posts:g}", text)
        return text


def main(argv: list[str]) -> int:
    """Starts the engine, then the proxy, and serves until standard input ends."""
    settings = json.loads(Path(argv[1]).read_text(encoding="utf-8"))
    engine = subprocess.Popen(settings["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if engine.stdin is None or engine.stdout is None:
        return 1
    for line in engine.stdout:
        said = json.loads(line)
        if said.get("event") == "ready":
            break
        sys.stdout.write(line)
        sys.stdout.flush()
    else:
        return engine.wait()
    proxy = Proxy(said["base_url"], settings["fault"])
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    sys.stdout.write(json.dumps({**said, "base_url": f"http://127.0.0.1:{proxy.server_address[1]}"}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    proxy.shutdown()
    engine.stdin.close()
    return engine.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
