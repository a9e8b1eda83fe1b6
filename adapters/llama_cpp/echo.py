"""What the log of a starting process says of settings that no answer echoes: threads, attention, the cache's format."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapters.llama_cpp.options import engine_options
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.cell import Cell

LOG = "stderr.log"
_THREADS = re.compile(r"system_info: n_threads = (\d+) \(n_threads_batch = (\d+)\)")
_ATTENTION = re.compile(r"llama_context: flash_attn\s+= (\w+)")
_RESOLVED = re.compile(r"resolve_fused_ops: Flash Attention (enabled|not supported, set to disabled)")
_CACHE = re.compile(r"llama_kv_cache: size = .*?K \((\w+)\):.*?V \((\w+)\):")
_WORDS = {"enabled": "on", "disabled": "off"}


def startup_echo(cell: Cell, stderr: str) -> Iterable[Condition]:
    """The settings as the engine repeats them while it loads; ``unknown`` where a line is missing.

    Only the first lines of their kind count: they are the target's, a draft's come after them.

    Source: llama.cpp b11434, common/common.cpp (``common_params_get_system_info``), src/llama-context.cpp and
    src/llama-kv-cache.cpp, and real runs.
    """
    asked = engine_options(cell)
    threads = _THREADS.search(stderr)
    wanted = None if asked.threads is None else str(asked.threads)
    for place, name in enumerate(("threads", "threads_batch"), start=1):
        yield _told(name, wanted, threads and threads[place], f"{LOG}: system_info line")
    wanted = None if asked.flash_attention == "auto" else asked.flash_attention
    yield _told("flash_attention", wanted, _attention(stderr), f"{LOG}: llama_context and resolve_fused_ops lines")
    cache = _CACHE.search(stderr)
    for place, (name, kind) in enumerate(
        (("cache_type_k", asked.cache_type_k), ("cache_type_v", asked.cache_type_v)), 1
    ):
        yield _told(name, kind, cache and cache[place], f"{LOG}: llama_kv_cache line")


def _attention(stderr: str) -> str | None:
    """``on`` or ``off`` of the first context; ``auto`` is settled by a later line, and unknown without it."""
    first = _ATTENTION.search(stderr)
    if first is None or first[1] != "auto":
        return first and _WORDS.get(first[1], first[1])
    settled = _RESOLVED.search(stderr, first.end())
    if settled is None:
        return None
    return "on" if settled[1] == "enabled" else "off"


def _told(name: str, asked: str | None, found: str | None, source: str) -> Condition:
    words = "the engine's own" if asked is None else asked
    if not found:
        return Condition(name, words, None, Honoured.UNKNOWN, source)
    return Condition(name, words, found, Honoured.HONOURED if asked in {None, found} else Honoured.CHANGED, source)
