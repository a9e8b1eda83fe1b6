"""A worker engine with faults on demand; it speaks the worker protocol and does no inference.

argv: the path of a JSON file ``{"fault": "...", "drafts": bool, "fault_trial": int, "pace_s": float, "slow": [trial,
factor]}``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def surviving_child() -> None:
    code = (
        "import signal, time\n"
        "for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(name, signal.SIG_IGN)\n"
        "time.sleep(600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code])
    with open("child.pid", "w", encoding="utf-8") as file:
        file.write(str(child.pid))


def answer(config: dict[str, object], request: dict[str, object]) -> None:
    count = int(str(request["max_tokens"]))
    now = time.perf_counter()
    drafting = bool(config["drafts"]) and config["fault"] != "drafter_off"
    per_round = 4 if drafting else 1
    pace_s = float(str(config.get("pace_s", 0.001)))
    slow_trial, factor = config.get("slow") or (None, 1.0)  # type: ignore[misc]
    if request["trial"] == slow_trial:
        pace_s *= float(str(factor))
    tokens = [[(7 * i) % 100, now + pace_s * (1 + i // per_round), i // per_round] for i in range(count)]
    say(
        event="done",
        t0=now,
        t1=now + pace_s * (2 + count // per_round),
        tokens=tokens,
        drafted=3 * (count // 4) if drafting or config["fault"] == "drafts_in_baseline" else 0,
        cached=5 if config["fault"] == "cached" else 0,
    )


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    fault = config["fault"]
    if fault == "exit_at_start":
        sys.stderr.write("E model file is truncated\n")
        sys.exit(3)
    if fault == "hang_at_start":
        time.sleep(600)
    if fault == "refused":
        say(event="refused", status="unsupported", reason="the draft speaks another vocabulary")
        sys.exit(3)
    if fault == "child":
        surviving_child()
    sys.stderr.write("I engine started\n")
    say(event="ready")
    for line in sys.stdin:
        request = json.loads(line)
        sys.stderr.write(f"I trial {request['trial']}\n")
        sys.stderr.flush()
        here = request["trial"] == config.get("fault_trial", 1)
        if here and fault == "crash":
            os.abort()
        if here and fault == "hang":
            time.sleep(600)
        if here and fault == "garbage":
            sys.stdout.write("\x00\xff not json\n")
            sys.stdout.flush()
            continue
        if here and fault == "unreadable":
            say(event="done", unexpected=True)
            continue
        if here and fault == "error":
            say(event="error", message="out of memory")
            continue
        if fault == "slow":
            time.sleep(0.05)
        answer(config, request)


if __name__ == "__main__":
    main()
