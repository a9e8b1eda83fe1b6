"""Answers ``--version`` and ``--help`` as llama-server b11434 does, then fails as asked: for faults only.

argv: ``FAULT`` (dead_port: never listens · hang: answers everything but a completion) and llama-server's own options.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = "version: 0.6.0-dev (build 11434, commit sdist)\nbuilt with GNU 12.2.0 for Linux x86_64\n"
OPTIONS = (
    "--spec-type none,draft-simple,draft-mtp,ngram-simple --fit --cache-ram --ctx-checkpoints --metrics --slots --poll "
    "--log-verbosity --log-colors --parallel --spec-draft-model --spec-draft-n-max --spec-draft-n-min "
    "--spec-draft-p-min --spec-draft-sampling --model --host --port --ctx-size"
)


class Handler(BaseHTTPRequestHandler):
    """The read-only endpoints of a server without speculation; a completion never answers."""

    model = ""

    def log_message(self, *_: object) -> None:
        """Nothing on stderr but what the test wants there."""

    def reply(self, body: str) -> None:
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        answers = {
            "/health": '{"status":"ok"}',
            "/slots": '[{"id":0,"n_ctx":1024,"speculative":false,"is_processing":false}]',
            "/props": json.dumps({"model_path": self.model, "build_info": "b11434-sdist"}),
            "/metrics": "llamacpp:tokens_predicted_total 0\n",
        }
        self.reply(answers[self.path])

    def do_POST(self) -> None:
        threading.Event().wait()


def main() -> None:
    fault, argv = sys.argv[1], sys.argv[2:]
    if "--version" in argv:
        sys.stderr.write(VERSION)
        return
    if "--help" in argv:
        sys.stdout.write(OPTIONS)
        return
    if "--list-devices" in argv:
        return
    sys.stderr.write(f"0.00.001.000 I pretending to start, fault {fault}\n")
    sys.stderr.flush()
    if fault == "dead_port":
        threading.Event().wait()
    Handler.model = argv[argv.index("--model") + 1]
    server = ThreadingHTTPServer(("127.0.0.1", int(argv[argv.index("--port") + 1])), Handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
