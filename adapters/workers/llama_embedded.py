"""Runs llama.cpp's server from the xllamacpp wheel until standard input ends.

Usage: python llama_embedded.py SETTINGS.json

Needs the standard library and xllamacpp alone, and runs under the engine's own interpreter. Standard output carries
the protocol and nothing else, one JSON object a line: ``{"event": "ready", "base_url": …}`` when requests are
answered, ``{"event": "refused", "status": …, "reason": …}`` when there will be none. The engine's log goes to
standard error.
"""

# ruff: noqa: ANN401  (the wheel's objects are seen through importlib, so that a missing wheel is an answer)

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Say = Callable[["dict[str, Any]"], None]

REFUSED_EXIT = 3

FLASH_ATTENTION = {
    "auto": "LLAMA_FLASH_ATTN_TYPE_AUTO",
    "on": "LLAMA_FLASH_ATTN_TYPE_ENABLED",
    "off": "LLAMA_FLASH_ATTN_TYPE_DISABLED",
}


def main(argv: list[str]) -> int:
    """Serve as the settings file says; returns the exit status."""
    say = protocol()
    if len(argv) != 2:
        return refuse(say, "failed", "usage: llama_embedded.py SETTINGS.json")
    try:
        settings = json.loads(Path(argv[1]).read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        return refuse(say, "failed", f"the settings {argv[1]} cannot be read: {err}")
    try:
        engine = importlib.import_module("xllamacpp")
    except ImportError as err:
        return refuse(say, "unavailable", f"xllamacpp cannot be loaded by {sys.executable}: {err}")
    try:
        params = parameters(engine, settings)
    except (AttributeError, KeyError, TypeError, ValueError) as err:
        return refuse(say, "unsupported", f"this xllamacpp does not take the settings: {type(err).__name__}: {err}")
    try:
        server = engine.Server(params)
    except (RuntimeError, ValueError, TypeError) as err:
        return refuse(say, "failed", f"the server did not start: {err} The engine's log (stderr) has the reason.")
    say({"event": "ready", "base_url": server.listening_address, "pid": os.getpid()})
    serve_until_input_ends()
    del server
    return 0


def protocol() -> Say:
    """A function that writes one message to the true standard output; all else printed there goes to stderr."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message, ensure_ascii=False) + "\n")
        channel.flush()

    return say


def refuse(say: Say, status: str, reason: str) -> int:
    """Report that there will be no server; the exit status says so too."""
    say({"event": "refused", "status": status, "reason": reason})
    return REFUSED_EXIT


def parameters(engine: Any, settings: dict[str, Any]) -> Any:
    """The server's parameters: what the ``llama-server`` path puts on its command line."""
    params = engine.CommonParams()
    params.model.path = settings["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = settings["port"]
    params.n_parallel = 1
    params.n_ctx = settings["n_ctx"]
    params.n_batch = settings["n_batch"]
    params.n_ubatch = settings["n_ubatch"]
    params.flash_attn_type = getattr(engine.llama_flash_attn_type, FLASH_ATTENTION[settings["flash_attention"]])
    params.cache_type_k = cache_type(engine, settings["cache_type_k"])
    params.cache_type_v = cache_type(engine, settings["cache_type_v"])
    params.fit_params = False
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.verbosity = 4
    params.use_color = False
    if not settings.get("mmap", True):
        params.load_mode = engine.llama_load_mode.LLAMA_LOAD_MODE_NONE
    if settings["gpu_layers"] is not None:
        params.n_gpu_layers = settings["gpu_layers"]
        params.speculative.draft.n_gpu_layers = settings["gpu_layers"]
    for threads in (params.cpuparams, params.cpuparams_batch):
        set_threads(threads, settings["threads"])
    speculation(engine, params, settings)
    return params


def speculation(engine: Any, params: Any, settings: dict[str, Any]) -> None:
    """Set the drafter; with ``none`` the list is empty of drafters, whatever the wheel's default is."""
    speculative, kinds = params.speculative, engine.common_speculative_type
    speculative.types = [
        getattr(kinds, "COMMON_SPECULATIVE_TYPE_" + name.upper().replace("-", "_"))
        for name in settings["spec_type"].split(",")
    ]
    draft = settings.get("draft")
    if draft is not None:
        speculative.draft.n_max = draft["n_max"]
        speculative.draft.n_min = draft["n_min"]
        speculative.draft.p_min = draft["p_min"]
        speculative.draft.probabilistic = draft["probabilistic"]
        if draft["path"] is not None:
            speculative.draft.mparams.path = draft["path"]
        for threads in (speculative.draft.cpuparams, speculative.draft.cpuparams_batch):
            set_threads(threads, settings["threads"])
    for name, told in settings.get("ngrams", {}).items():
        drafter = getattr(speculative, name.replace("-", "_"))
        for key, value in told.items():
            setattr(drafter, key, value)
    synthetic = settings.get("synthetic")
    if synthetic is not None and synthetic["length"] is not None:
        speculative.synth_len = synthetic["length"]
    if synthetic is not None and synthetic["rates"] is not None:
        speculative.synth_rates = synthetic["rates"]


def set_threads(threads: Any, count: int | None) -> None:
    """No polling: a spinning thread beside the measured one costs more than it saves on a shared machine."""
    threads.poll = 0
    if count is not None:
        threads.n_threads = count


def cache_type(engine: Any, name: str) -> Any:
    """The engine's constant for a cache format such as ``q8_0``."""
    return getattr(engine.ggml_type, "GGML_TYPE_" + name.upper())


def serve_until_input_ends() -> None:
    """Block until standard input is closed or a signal asks to end; requests are answered by the server's threads."""

    def leave(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    while os.read(0, 65536):
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv))
