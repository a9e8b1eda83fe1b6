"""Speaks as Slipstream's launcher and server do, by their source (npanj/slipstream, 5604182): for tests only.

argv: ``FAULT`` and then the launcher's own arguments. Faults: ``none`` · ``old`` (a release before v26.10.4) ·
``checkout`` (says no version) · ``no_keep`` (does not know --keep-gguf) · ``no_counters`` · ``reset`` (totals begin anew
during a request) · ``restart`` (the engine behind the server was restarted) · ``other_client`` (a request of somebody
else comes between) · ``stale`` (/status is never fresh) · ``stale_once`` (the first after a request is not) · ``always_drafts``
(drafts although it was told not to) · ``error`` (the stream ends in an error).
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HELP = """usage: slipstream-v2 serve [-h] --model OWNER/REPO_OR_PATH
                              [--max-memory MAX_MEMORY] [--max-context MAX_CONTEXT]
                              [--allowed-host HOST] [--max-image-pixels MAX_IMAGE_PIXELS]
                              [--api-key API_KEY] [--host HOST] [--port PORT]
                              [--no-webui]{keep}
"""
PASS_S = 0.004
TEXT = "the small candle stood beside a warm window and told the old lamp of rain that had come over the hill"
WORDS = tuple(TEXT.split())
MOST_TOP_K = 32


class Engine:
    """The running totals, and the drafts of a pass by the arm's variables."""

    def __init__(self, fault: str, model: str, port: int) -> None:
        self.fault, self.model, self.port = fault, model, port
        self.totals = {"drafted": 0, "accepted": 0, "passes": 0, "decoded": 0, "submitted": 0, "completed": 0}
        self.restarts, self.fresh_from = 0, 0
        self.asked_since_request = 9
        mtp, lookup = "SPLASH_NO_MTP" not in os.environ, "SPLASH_NO_PLD" not in os.environ
        self.drafts = int(os.environ.get("SPLASH_MTP_DRAFTS", "5")) if mtp or lookup else 0
        if fault == "always_drafts":
            self.drafts = self.drafts or 2

    def status(self) -> dict:
        self.asked_since_request += 1
        stale = self.fault == "stale" or (self.fault == "stale_once" and self.asked_since_request == 1)
        t = self.totals
        found = {
            "schema_version": 5,
            "ready": not stale,
            "memory_pressure": "normal",
            "metal": {"healthy": True},
            "scheduler": {"decode_batches": t["passes"], "decode_batches_by_width": {"b1": t["passes"]}},
            "requests": {"submitted": t["submitted"], "completed": t["completed"], "cancelled": 0, "failed": 0},
            "metrics": {
                "decode_output_tokens": t["decoded"],
                "drafted_tokens": t["drafted"],
                "accepted_draft_tokens": t["accepted"],
                "draft_acceptance_rate": t["accepted"] / t["drafted"] if t["drafted"] else 0,
            },
            "memory_actual": {"current_bytes": 17_000_000_000, "peak_bytes": 17_500_000_000},
            "transport": {"ready": True, "restarts": self.restarts, "status_stale": stale},
            "instance": {"id": "5b1c", "model": self.model, "port": self.port},
        }
        if self.fault == "no_counters":
            del found["metrics"]
        return found

    def passes(self, tokens: int):
        """Sizes of the passes that emit ``tokens``, with drafts that are accepted in turn fully, in part, not at all."""
        turn = 0
        while tokens > 0:
            drafted = min(self.drafts, tokens - 1)
            accepted = (drafted, drafted // 2, 0)[turn % 3] if drafted else 0
            turn += 1
            self.totals["drafted"] += drafted
            self.totals["accepted"] += accepted
            self.totals["passes"] += 1
            self.totals["decoded"] += 1 + accepted
            tokens -= 1 + accepted
            yield 1 + accepted


class Handler(BaseHTTPRequestHandler):
    """The endpoints that an adapter needs."""

    protocol_version = "HTTP/1.1"
    engine: Engine

    def log_message(self, *_: object) -> None:
        """The real server is silent too."""

    def version_string(self) -> str:
        return "Slipstream-v2"

    def reply(self, status: int, found: object) -> None:
        data = json.dumps(found, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        answers = {
            "/health": {"status": "ok"},
            "/ready": {"status": "ready"},
            "/v1/models": {"object": "list", "data": [{"id": self.engine.model, "owned_by": "slipstream"}]},
        }
        if self.path == "/status":
            self.reply(200, self.engine.status())
        else:
            self.reply(200 if self.path in answers else 404, answers.get(self.path, {"error": {"code": "not_found"}}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions" or not 1 <= body.get("top_k", 20) <= MOST_TOP_K or body.get("min_p"):
            self.reply(400, {"error": {"message": "invalid sampling parameters", "type": "invalid_request_error"}})
            return
        engine = self.engine
        engine.totals["submitted"] += 1
        started = time.monotonic()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b": slipstream-keepalive\n\n")
        self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
        prompt = body["messages"][0]["content"]
        pieces = [f"{word} " for word in (WORDS * 40)[len(prompt) % 7 :][: 30 + len(prompt) % 11]]
        if "글" in prompt:
            pieces[3:5] = ["", "글 "]  # a token that ends inside a character has no text; the next has that of both
        pieces = pieces[: body["max_completion_tokens"]]
        reason = "length" if len(pieces) == body["max_completion_tokens"] else "stop"
        first_at, first_size, place = None, 0, 0
        for size in engine.passes(len(pieces)):
            time.sleep(PASS_S)
            for text in pieces[place : place + size]:
                if text:
                    self.event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})
            first_at, first_size = first_at or time.monotonic(), first_size or size
            place += size
            if engine.fault == "error" and place > 8:
                self.event({"error": {"message": "request timed out", "type": "server_error", "code": "x"}})
                self.event("[DONE]")
                return
        self.close_stream(body, len(pieces), reason, started, first_at or started, first_size)

    def close_stream(
        self, body: dict, tokens: int, reason: str, started: float, first_at: float, first_size: int
    ) -> None:
        engine, done = self.engine, time.monotonic()
        prompt = len(body["messages"][0]["content"].split()) + 9
        engine.totals["completed"] += 1
        engine.asked_since_request = 0
        if engine.fault == "reset":
            engine.totals |= {"drafted": 0, "accepted": 0}
        if engine.fault == "restart":
            engine.restarts += 1
        if engine.fault == "other_client":
            for name, more in (("submitted", 1), ("completed", 1), ("drafted", 5), ("passes", 3), ("decoded", 4)):
                engine.totals[name] += more
        timings = {
            "prompt_n": prompt,
            "prompt_ms": (first_at - started) * 1e3,
            "predicted_n": tokens,
            "predicted_ms": (done - first_at) * 1e3,
            "cache_n": 0,
        }
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }
        metrics = {"prefill": {"tokens": prompt}, "decode": {"tokens": tokens - first_size}, "request_latency": {}}
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "timings": timings})
        self.event({"choices": [], "usage": usage, "metrics": metrics})
        self.event("[DONE]")

    def event(self, found: object) -> None:
        if isinstance(found, dict) and "choices" in found:
            found = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "model": self.engine.model, **found}
        text = found if isinstance(found, str) else json.dumps(found, separators=(",", ":"), ensure_ascii=False)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()


def main() -> int:
    fault, argv = sys.argv[1], sys.argv[2:]
    if argv == ["--version"]:
        said = {"old": "26.9.12", "checkout": "(source checkout)"}.get(fault, "26.10.4")
        sys.stdout.write(f"Slipstream v2 {said}\n")
        return 0
    if argv == ["serve", "--help"]:
        sys.stdout.write(HELP.format(keep="" if fault == "no_keep" else " [--keep-gguf]"))
        return 0
    if "--keep-gguf" not in argv:
        sys.stderr.write("punching holes into the model's file\n")
        return 3
    port = int(argv[argv.index("--port") + 1])
    name = Path(argv[argv.index("--model") + 1]).name
    Handler.engine = Engine(fault, f"local/{name}", port)
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
