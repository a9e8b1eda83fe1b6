"""Settings that llama.cpp repeats in its log alone, against real lines of b11434."""

from __future__ import annotations

import pytest
from golden_cases import GOLDEN, load_case
from llama_cells import make_cell

from adapters.llama_cpp.echo import startup_echo
from orchestrator.schema.adapter import Honoured

LOG = """\
0.00.007.567 I cmn  common_param: system_info: n_threads = 3 (n_threads_batch = 4) / 8 | CPU : SSE3 = 1 |
0.00.050.465 I llama_context: flash_attn            = auto
0.00.051.100 I resolve_fused_ops: Flash Attention enabled
0.00.052.294 I llama_kv_cache: size =    2.00 MiB (   512 cells,  16 layers,  1/1 seqs), K (q8_0):    1.00 MiB, V (f16):    1.00 MiB
0.00.082.947 I llama_context: flash_attn            = disabled
0.00.083.246 I llama_kv_cache: size =    0.06 MiB (   512 cells,   1 layers,  1/1 seqs), K (f16):    0.03 MiB, V (f32):    0.03 MiB
"""


def echo(log, **options):
    cell = make_cell("llama_cpp", "/t", **options)
    return {one.name: (one.requested, one.effective, one.verdict) for one in startup_echo(cell, log)}


def test_the_targets_lines_are_read_and_not_the_drafts():
    assert echo(LOG, threads=3, cache_type_k="q8_0") == {
        "threads": ("3", "3", Honoured.HONOURED),
        "threads_batch": ("3", "4", Honoured.CHANGED),
        "flash_attention": ("the engine's own", "on", Honoured.HONOURED),
        "cache_type_k": ("q8_0", "q8_0", Honoured.HONOURED),
        "cache_type_v": ("f16", "f16", Honoured.HONOURED),
    }


@pytest.mark.parametrize(
    ("line", "asked", "effective", "verdict"),
    [
        ("flash_attn = enabled", "on", "on", Honoured.HONOURED),
        ("flash_attn = disabled", "on", "off", Honoured.CHANGED),
        ("flash_attn = auto", "auto", None, Honoured.UNKNOWN),
        (
            "flash_attn = auto\nresolve_fused_ops: Flash Attention not supported, set to disabled",
            "auto",
            "off",
            Honoured.HONOURED,
        ),
    ],
)
def test_attention_is_what_the_engine_settled_on(line, asked, effective, verdict):
    found = echo(f"llama_context: {line}\n", flash_attention=asked)["flash_attention"]
    assert found[1:] == (effective, verdict)


def test_a_missing_line_is_unknown():
    assert {verdict for _, _, verdict in echo("").values()} == {Honoured.UNKNOWN}


@pytest.mark.parametrize("adapter", ["llama_cpp", "llama_cpp_embedded"])
def test_the_captured_logs_tell_threads_and_cache(adapter):
    case = load_case(GOLDEN / adapter / "draft-greedy")
    found = {one.name: one.verdict for one in startup_echo(case.cell, case.capture().stderr)}
    assert {name for name, verdict in found.items() if verdict is Honoured.HONOURED} >= {
        "threads",
        "cache_type_k",
        "cache_type_v",
    }
