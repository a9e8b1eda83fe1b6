"""A stand-in for ``ds4`` and ``ds4-server`` that speaks their format: options, lock, lines, errors and exit codes.

Copied as ``ds4`` or ``ds4-server`` into a folder of its own, where ``fake.json`` says how it behaves:

* ``generation``: ``2026-05``, ``between`` or ``2026-09``;
* ``cycles``: what the drafter does, over and over: ``miss``, ``idle``, ``skip``, ``batch K``, ``exact K`` (K of 2 kept),
  ``one-by-one K`` (K of 3 kept); for DSpark ``D/K`` (D proposed, K kept), ``idle`` or ``bypass`` (a pass that is no
  cycle); for built-in MTP ``keep``, ``refuse`` or ``plain``;
* ``summary``: built-in MTP says only at its end what it did;
* ``pace_s``: seconds a pass; ``fault``: ``exit``, ``hang``, ``silent-end``, ``no-memory``;
* ``speculates``: false loads the drafter and never uses it, as a CPU build does; ``always``: ``dspark`` drafts unasked;
* ``chunked``: the prompt is read in chunks, so that a line is printed as that begins; ``warm_up_s``: seconds before it;
* ``ends_at``: tokens after which the text ends; ``cached``: prompt tokens from a cache;
* ``watched``: waits with its answer until its memory was looked at.

The lock is a file beside the program instead of one of the machine, so that tests do not meet.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import re
import sys
import time
import zlib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

HERE = Path(sys.argv[0]).resolve().parent
NAME = Path(sys.argv[0]).name
CONFIG = json.loads((HERE / "fake.json").read_text(encoding="utf-8"))
GENERATION = CONFIG.get("generation", "2026-05")
PACE_S = CONFIG.get("pace_s", 0.004)
BOTH = {
    "-m": 1, "--model": 1, "-c": 1, "--ctx": 1, "--backend": 1, "-t": 1, "--threads": 1, "--quality": 0,
    "--warm-weights": 0, "--cpu": 0, "--metal": 0, "--cuda": 0, "--mtp-draft": 1, "--mtp-margin": 1,
}  # fmt: skip
COMMAND = {
    "-p": 1, "--prompt": 1, "--prompt-file": 1, "-sys": 1, "--system": 1, "-n": 1, "--tokens": 1, "--temp": 1,
    "--top-p": 1, "--min-p": 1, "--seed": 1, "--think": 0, "--nothink": 0, "--dump-tokens": 0,
}  # fmt: skip
SERVER = {"--host": 1, "--port": 1}
MAY = {"--mtp": 1}
BETWEEN = {"--mtp": 1, "--dspark": 0, "--dspark-confidence": 1, "--glm-mtp": 0}
SEPTEMBER = {
    "--mtp": 0, "--mtp-model": 1, "--mtp-timing": 0, "--dspark": 0, "--dspark-confidence": 1, "--dspark-strict": 0,
    "--mtp-exact-sampling": 0,
}  # fmt: skip
HIDDEN = {"--mtp", "--mtp-model", "--mtp-draft", "--mtp-margin", "--mtp-timing", "--dspark", "--mtp-exact-sampling"}
"""Since June 2026 the short help leaves these out: they stand on a page of their own."""


def options() -> dict[str, int]:
    own = {"2026-05": MAY, "between": BETWEEN, "2026-09": SEPTEMBER}[GENERATION]
    mine = SERVER if NAME == "ds4-server" else COMMAND
    raw = {} if GENERATION == "2026-05" or NAME == "ds4-server" else {"--raw-prompt": 0}
    return {**BOTH, **mine, **raw, **own}


def usage(page: str | None) -> str:
    lines = [f"Usage: {NAME} [options]", "", "Model and runtime:"]
    for name, arguments in options().items():
        if GENERATION != "2026-05" and page != "all" and name in HIDDEN:
            continue
        entry = name + (" FILE" if name in ("--mtp", "--mtp-model") and arguments else " N" if arguments else "")
        lines += [f"  {entry}", "      What it does."] if GENERATION == "2026-05" else [f"  {entry:<30} What it does."]
    return "\n".join(lines) + "\n"


def parse(argv: list[str]) -> dict[str, str]:
    known, found, place = options(), {}, 0
    while place < len(argv):
        word = argv[place]
        if word in ("-h", "--help"):
            sys.stdout.write(usage(argv[place + 1] if place + 1 < len(argv) else None))
            raise SystemExit(0)
        if word not in known:
            say(f"{NAME}: unknown option: {word}")
            sys.stderr.write(usage(None))
            raise SystemExit(2)
        if known[word]:
            place += 1
            found[word] = argv[place]
            if word == "--seed" and argv[place] == "0":
                say(f"{NAME}: invalid value for --seed: 0")
                raise SystemExit(2)
        else:
            found[word] = "yes"
        place += 1
    return found


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def tokens_of(text: str) -> list[str]:
    return re.findall(r" ?[A-Za-z0-9]+|\n|.", text)


def spelled(piece: str) -> str:
    return "".join({" ": "Ġ", "\n": "Ċ"}.get(char, char) for char in piece)


def identity(piece: str) -> int:
    return zlib.crc32(piece.encode()) % 100_000


def dump(text: str) -> None:
    pieces = tokens_of(text)
    sys.stdout.write("[" + ", ".join(str(identity(piece)) for piece in pieces) + "]\n")
    for piece in pieces:
        sys.stdout.write(f"{identity(piece):6d}  {spelled(piece)}\n")


def answer(prompt: str, count: int, seed: int, temperature: float) -> list[str]:
    """The same words for the same question; above temperature 0 also by seed. ``end`` in the prompt ends early."""
    start = zlib.crc32(f"{prompt}/{seed if temperature > 0 else 0}".encode())
    words = ["red", "green", "blue", "warm", "cold", "bright", "small", "river", "stone", "field"]
    found = [f" {words[(start // (place + 1) + place) % len(words)]}" for place in range(count)]
    return found[: CONFIG.get("ends_at", count)]


def lock() -> object:
    file = (HERE / "ds4.lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        owner = file.read().strip()
        whom = f" (pid {owner})" if owner else ""
        say(f"ds4: another ds4 process is already running{whom}; refusing to start")
        raise SystemExit(2) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    note("begins")
    atexit.register(note, "ends")
    return file


def note(what: str) -> None:
    """Who held the lock when, for the test."""
    with (HERE / "lives.log").open("a", encoding="utf-8") as log:
        log.write(f"{os.getpid()} {what}\n")


def load(asked: dict[str, str]) -> object:
    context = asked.get("--ctx", "32768")
    stamp = "0101 00:00:00 " if NAME == "ds4-server" else ""
    if GENERATION == "2026-05":
        buffers = f"context buffers 17.65 MiB (ctx={context}, backend=metal, prefill_chunk=0)"
        say(f"{stamp}{'ds4-server' if stamp else 'ds4'}: {buffers}")
    held = lock()
    model = asked.get("--model", "ds4flash.gguf")
    if not Path(model).exists():
        say(f"ds4: cannot open model '{model}': No such file or directory")
        raise SystemExit(1)
    if CONFIG.get("fault") == "no-memory":
        say("ds4: metal failed to map model views; aborting startup. This is commonly caused by insufficient memory")
        raise SystemExit(1)
    module = asked.get("--mtp-model") or (asked.get("--mtp") if GENERATION == "2026-05" else None)
    if module is not None:
        say(
            f"ds4: DSpark support model detected: {module} (stages=3 block=5)"
            if "--dspark" in asked
            else f"ds4: MTP support model loaded: {module} (draft={asked.get('--mtp-draft', '1')})"
        )
    say("ds4: metal backend initialized for graph diagnostics")
    if GENERATION != "2026-05":
        say("ds4: memory: KV 0.61 GiB (raw 0.36 + compressed 0.25) + buffers 0.25 GiB = 0.86 GiB context")
        rows = "prefill_cap=4096 raw_kv_rows=4352 compressed_kv_rows=2050"
        say(f"ds4: memory detail: ctx={context} {rows} backend=metal")
    return held


def generate(asked: dict[str, str]) -> int:
    prompt = Path(asked["--prompt-file"]).read_text(encoding="utf-8")
    limit, temperature = int(asked.get("--tokens", "50000")), float(asked.get("--temp", "1"))
    held = load(asked)
    memory = Path(asked["--prompt-file"]).with_name("memory.jsonl")
    while CONFIG.get("watched") and not (memory.exists() and memory.stat().st_size):
        time.sleep(0.005)
    if CONFIG.get("fault") == "exit":
        say("ds4: prompt is empty or exceeds context size")
        return 1
    words = answer(prompt, limit, int(asked.get("--seed", "0")), temperature)
    count = len(tokens_of(prompt)) + 3
    time.sleep(CONFIG.get("warm_up_s", 0.0))
    begun = time.perf_counter()
    if CONFIG.get("chunked"):
        say(f"processing {count} input tokens: 0/{count} (0.0%)")
    elif GENERATION == "2026-05" and temperature <= 0 and "--mtp" not in asked:
        for layer in range(1, 44):
            sys.stderr.write(f"ds4: gpu prefill layer {layer}/43\r")
            sys.stderr.flush()
        sys.stderr.write("\n")
    time.sleep(PACE_S)
    if CONFIG.get("chunked"):
        say(f"processing {count} input tokens: {count}/{count} (100.0%)")
    prefilled = time.perf_counter()
    if CONFIG.get("fault") == "hang":
        time.sleep(600)
    drafter = drafter_of(asked, temperature)
    drafter.exact = "--mtp-exact-sampling" in asked and temperature > 0
    drafter.run(words, limit)
    ended = time.perf_counter()
    sys.stdout.write("\n")
    sys.stdout.flush()
    if CONFIG.get("fault") != "silent-end":
        say(
            f"ds4: prefill: {count / (prefilled - begun):.2f} t/s, "
            f"generation: {len(words) / max(ended - prefilled, 1e-6):.2f} t/s"
        )
    drafter.end()
    del held
    return 0


class Plain:
    """No drafts: a token is printed as soon as it is chosen, and the last one never evaluated."""

    exact = False
    """Exact sampling: a cycle that refuses a draft prints the token in its place too."""

    def run(self, words: list[str], limit: int) -> None:
        lines = bool(os.environ.get("DS4_TOKEN_TIMING"))
        for place, word in enumerate(words):
            self.show([word])
            if place == limit - 1:
                return
            time.sleep(PACE_S)
            if lines:
                say(f"ds4: gpu decode eval {place + 1} took {PACE_S * 1e3:.3f} ms")

    def show(self, words: list[str]) -> None:
        for word in words:
            sys.stdout.write(word)
            sys.stdout.flush()

    def end(self) -> None:
        """Nothing more to say."""


class Drafting(Plain):
    """Cycles as ``fake.json`` lists them; each is evaluated before its tokens are printed."""

    def __init__(self) -> None:
        self.cycles = CONFIG.get("cycles", ["batch 2"])
        self.totals: dict[str, int] = dict.fromkeys(
            ("cycles", "proposed", "accepted_draft", "full", "partial", "miss_first", "no_draft"), 0
        )
        self.lengths: dict[int, int] = {}
        self.kept: dict[int, int] = {}

    def run(self, words: list[str], limit: int) -> None:
        place = number = 0
        while place < len(words):
            time.sleep(PACE_S)
            most = min(len(words), limit) - place - 1
            more = min(self.cycle(self.cycles[number % len(self.cycles)], most), most)
            self.show(words[place : place + 1 + more])
            place += 1 + more
            number += 1

    def cycle(self, what: str, most: int) -> int:
        """Print the line of a cycle that may print so many tokens beside its own; how many it does."""
        raise NotImplementedError


class Support(Drafting):
    """One-stage MTP."""

    def cycle(self, what: str, most: int) -> int:
        kind, _, number = what.partition(" ")
        timing = bool(os.environ.get("DS4_MTP_TIMING"))
        if most == 0 or kind == "idle":
            return 0
        if kind == "miss":
            if os.environ.get("DS4_MTP_SPEC_LOG"):
                say("ds4: mtp spec miss first draft=17")
            return 0
        drafted = min(3 if kind == "one-by-one" else 2, most)
        kept = 1 if kind == "skip" else min(int(number), drafted)
        times = "draft=1.500 ms snapshot=0.250 ms verify=4.000 ms"
        line = {
            "skip": "margin-skip drafted=2 committed=1 margin=0.500 threshold=3.000 draft=1.500 ms verify=4.000 ms",
            "batch": f"micro drafted={drafted} committed={kept} {times}"
            + (" replay=2.000 ms" if kept < drafted else ""),
            "exact": f"decode2 drafted={drafted} committed={kept} {times}"
            + (" prefix=0.125 ms" if kept < drafted else ""),
            "one-by-one": f"seq drafted={drafted} verified={kept} draft=1.500 ms verify=4.000 ms",
        }[kind]
        if timing:
            say(f"ds4: mtp timing {line} total=6.000 ms")
        return kept


class Dspark(Drafting):
    """DSpark: totals at the end alone. Near the limit it does not draft, and such a pass is no cycle."""

    tail, tail_skips = 10, 0

    def cycle(self, what: str, most: int) -> int:
        if most == 0 or what == "bypass":
            return 0
        if most + 1 < self.tail:
            self.tail_skips += 1
            return 0
        self.totals["cycles"] += 1
        if what == "idle":
            self.totals["no_draft"] += 1
            self.kept[0] = self.kept.get(0, 0) + 1
            return 0
        drafted, kept = (min(int(part), most) for part in what.split("/"))
        self.totals["proposed"] += drafted
        self.totals["accepted_draft"] += kept
        self.totals["full" if kept == drafted else "partial" if kept else "miss_first"] += 1
        self.lengths[drafted] = self.lengths.get(drafted, 0) + 1
        self.kept[kept] = self.kept.get(kept, 0) + 1
        return kept + int(self.exact and kept < drafted)

    def end(self) -> None:
        if not os.environ.get("DS4_DSPARK_STATS"):
            return
        seen = self.totals
        rate = 100 * seen["accepted_draft"] / max(seen["proposed"], 1)
        lengths, kept = (",".join(f"{k}:{v}" for k, v in sorted(one.items())) for one in (self.lengths, self.kept))
        say(
            f"ds4: DSpark stats cycles={seen['cycles']} first_tokens={seen['cycles']} proposed={seen['proposed']} "
            f"accepted_draft={seen['accepted_draft']} accept_rate={rate:.2f}% avg_accept=0.000 full={seen['full']} "
            f"partial={seen['partial']} miss_first={seen['miss_first']} no_draft={seen['no_draft']} no_room=0 invalid=0 "
            f"verifier_unavailable=0 errors=0 scheduler_skips=0 tail_skips={self.tail_skips} draft_len_hist={lengths or 'none'} accepted_len_hist={kept or 'none'} "
            "time_ms propose=12.500 verify=80.000 verify_layer=79.000 replay=0.000 target=100.000 saved=50.000 "
            "net_saved=-30.000 spec_total=92.500"
        )


class Embedded(Drafting):
    """Built-in MTP: a line a cycle, or one at the end. A pass without a draft prints none."""

    def cycle(self, what: str, most: int) -> int:
        if most == 0 or what == "plain":
            return 0
        kept = int(what == "keep")
        self.totals["cycles"] += 1
        self.totals["accepted_draft"] += kept
        if not CONFIG.get("summary"):
            word = ("exact_reject", "EXACT_ACCEPT")[kept] if self.exact else ("reject", "ACCEPT")[kept]
            say(f"ds4: glm mtp cycle: verify2 40.0 ms, head+draft 4.0 ms, {word} (draft 7 ' red' vs true 8 ' blue')")
        return kept + int(self.exact and not kept)

    def end(self) -> None:
        if CONFIG.get("summary"):
            cycles, kept = self.totals["cycles"], self.totals["accepted_draft"]
            say(
                f"ds4: Qwen3.8 mtp: {cycles} verify cycles, {kept} drafts accepted ({100 * kept / max(cycles, 1):.1f}%)"
            )


def drafter_of(asked: dict[str, str], temperature: float) -> Plain:
    if CONFIG.get("always") == "dspark":
        return Dspark()
    if not CONFIG.get("speculates", True) or (GENERATION == "2026-05" and temperature > 0):
        return Plain()
    if "--dspark" in asked:
        return Dspark()
    if GENERATION != "2026-05" and "--mtp" in asked:
        return Embedded()
    has_module = ("--mtp" in asked or "--mtp-model" in asked) and temperature <= 0
    return Support() if has_module and int(asked.get("--mtp-draft", "1")) > 1 else Plain()


class Handler(BaseHTTPRequestHandler):
    """The part of the server's interface that a session uses."""

    def do_GET(self) -> None:
        self.reply(json.dumps({"object": "list", "data": [{"id": "deepseek-v4-flash", "object": "model"}]}))

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][0]["content"]
        words = answer(prompt, asked["max_tokens"], asked["seed"], asked["temperature"])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.event({"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]})
        field = "reasoning_content" if asked["thinking"]["type"] == "enabled" else "content"
        for word in words:
            time.sleep(PACE_S)
            self.event({"choices": [{"index": 0, "delta": {field: word}, "finish_reason": None}]})
        finish = "length" if len(words) == asked["max_tokens"] else "stop"
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        count, cached = len(tokens_of(prompt)) + 3, CONFIG.get("cached", 0)
        details = {"cached_tokens": cached, "cache_write_tokens": count - cached}
        usage = {"prompt_tokens": count, "completion_tokens": len(words), "prompt_tokens_details": details}
        self.event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, row: dict) -> None:
        self.wfile.write(f"data: {json.dumps(row)}\n\n".encode())
        self.wfile.flush()

    def reply(self, body: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, form: str, *values: object) -> None:
        """Nothing: what the real server logs is not read."""


def main() -> int:
    asked = parse(sys.argv[1:])
    if "--dump-tokens" in asked:
        text = Path(asked["--prompt-file"]).read_text(encoding="utf-8")
        dump(text if GENERATION == "2026-05" or "--raw-prompt" in asked else f"<user>{text}<assistant>")
        return 0
    if NAME == "ds4-server":
        held = load(asked)
        server = HTTPServer(("127.0.0.1", int(asked["--port"])), Handler)
        server.serve_forever()
        del held
        return 0
    return generate(asked)


if __name__ == "__main__":
    raise SystemExit(main())
