"""Writes files of DeepSeek V4 Flash's full shape whose weights are all zero: 81 GiB to look at, 3 MB on the disk.

A stock CPU build of ds4 (May 2026) loads them, so that its real output can be read without the real model. Zero weights
make every logit equal, and the first token of the vocabulary, " zero", is chosen for ever. Needs a file system with holes.

Usage: python tests/support/ds4_sparse_gguf.py FOLDER     writes FOLDER/zero.gguf and FOLDER/zero-mtp.gguf
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter

ARCHITECTURE = "deepseek4"
LAYERS, WIDTH, VOCABULARY, HEADS, HEAD = 43, 4096, 129_280, 64, 512
QUERY_RANK, OUTPUT_RANK, OUTPUT_GROUPS = 1024, 1024, 8
EXPERTS, EXPERTS_USED, EXPERT_WIDTH, STREAMS = 256, 6, 2048, 4
INDEX_HEADS, INDEX_HEAD, HASH_LAYERS, DENSE_LAYERS = 64, 128, 3, 2
WIDE, MIXED = WIDTH * STREAMS, 2 * STREAMS + STREAMS * STREAMS

_T = GGMLQuantizationType
_SPECIAL = (
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "｜DSML｜",
)

_MERGES = ["Ġ z", "e r", "Ġz er", "Ġzer o"]
"""So that the one word that the model says is taken apart as the one token that it is."""


@dataclass
class _File:
    """Tensors by name, innermost dimension first as the format counts them."""

    path: Path
    tensors: list[tuple[str, GGMLQuantizationType, tuple[int, ...]]] = field(default_factory=list)

    def add(self, name: str, kind: GGMLQuantizationType, *sizes: int) -> None:
        self.tensors.append((name, kind, sizes))

    def write(self, writer: GGUFWriter) -> None:
        end = 0
        for name, kind, sizes in self.tensors:
            block, block_bytes = GGML_QUANT_SIZES[kind]
            count = 1
            for size in sizes:
                count *= size
            nbytes = count // block * block_bytes
            # The writer counts dimensions outermost first, and wants a quantised row in bytes.
            shape = [*reversed(sizes[1:]), sizes[0] // block * block_bytes if block > 1 else sizes[0]]
            writer.add_tensor_info(name, shape, _numpy_of(kind), nbytes, raw_dtype=kind)
            end += -(-nbytes // 32) * 32
        writer.write_header_to_file(self.path)
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        writer.close()
        start = -(-self.path.stat().st_size // 32) * 32
        os.truncate(self.path, start + end)


def write_target(path: Path, named: int = VOCABULARY) -> Path:
    """The target: every tensor that ds4 validates, 1331 of them.

    ds4 wants the whole vocabulary; a reader of the header is content with fewer named tokens, which is quicker.
    """
    file = _File(path)
    file.add("token_embd.weight", _T.F16, WIDTH, VOCABULARY)
    file.add("output_hc_base.weight", _T.F32, STREAMS)
    file.add("output_hc_fn.weight", _T.F16, WIDE, STREAMS)
    file.add("output_hc_scale.weight", _T.F32, 1)
    file.add("output_norm.weight", _T.F32, WIDTH)
    file.add("output.weight", _T.Q8_0, WIDTH, VOCABULARY)
    for layer in range(LAYERS):
        _block(file, f"blk.{layer}.", _T.F16)
        _compression(file, f"blk.{layer}.", _ratio(layer))
        if layer < HASH_LAYERS:
            file.add(f"blk.{layer}.ffn_gate_tid2eid.weight", _T.I32, EXPERTS_USED, VOCABULARY)
    writer = GGUFWriter(None, ARCHITECTURE)
    _describe(writer, named)
    file.write(writer)
    return path


def write_module(path: Path, named: int = VOCABULARY) -> Path:
    """The one-stage MTP module, as ``--mtp`` of May 2026 takes it."""
    file, prefix = _File(path), "mtp.0."
    file.add(prefix + "hc_head_base.weight", _T.F32, STREAMS)
    file.add(prefix + "hc_head_fn.weight", _T.F32, WIDE, STREAMS)
    file.add(prefix + "hc_head_scale.weight", _T.F32, 1)
    for name in ("e_proj", "h_proj"):
        file.add(f"{prefix}{name}.weight", _T.Q8_0, WIDTH, WIDTH)
    for name in ("enorm", "hnorm", "norm"):
        file.add(f"{prefix}{name}.weight", _T.F32, WIDTH)
    _block(file, prefix, _T.F32)
    writer = GGUFWriter(None, ARCHITECTURE)
    _describe(writer, named)
    file.write(writer)
    return path


def write_stub(path: Path, tensor: str) -> Path:
    """A file of the family with one small tensor: enough for who reads headers, and quick to hash."""
    file = _File(path)
    file.add(tensor, _T.F32, STREAMS)
    file.write(GGUFWriter(None, ARCHITECTURE))
    return path


def _block(file: _File, prefix: str, mixing: GGMLQuantizationType) -> None:
    for part in ("attn", "ffn"):
        file.add(f"{prefix}hc_{part}_fn.weight", mixing, WIDE, MIXED)
        file.add(f"{prefix}hc_{part}_scale.weight", _T.F32, 3)
        file.add(f"{prefix}hc_{part}_base.weight", _T.F32, MIXED)
        file.add(f"{prefix}{part}_norm.weight", _T.F32, WIDTH)
    file.add(prefix + "attn_q_a.weight", _T.Q8_0, WIDTH, QUERY_RANK)
    file.add(prefix + "attn_q_a_norm.weight", _T.F32, QUERY_RANK)
    file.add(prefix + "attn_q_b.weight", _T.Q8_0, QUERY_RANK, HEADS * HEAD)
    file.add(prefix + "attn_kv.weight", _T.Q8_0, WIDTH, HEAD)
    file.add(prefix + "attn_kv_a_norm.weight", _T.F32, HEAD)
    file.add(prefix + "attn_sinks.weight", _T.F32, HEADS)
    low = OUTPUT_GROUPS * OUTPUT_RANK
    file.add(prefix + "attn_output_a.weight", _T.Q8_0, HEAD * HEADS // OUTPUT_GROUPS, low)
    file.add(prefix + "attn_output_b.weight", _T.Q8_0, low, WIDTH)
    file.add(prefix + "ffn_gate_inp.weight", mixing, WIDTH, EXPERTS)
    file.add(prefix + "exp_probs_b.bias", _T.F32, EXPERTS)
    for name in ("gate", "up"):
        file.add(f"{prefix}ffn_{name}_exps.weight", _T.IQ2_XXS, WIDTH, EXPERT_WIDTH, EXPERTS)
        file.add(f"{prefix}ffn_{name}_shexp.weight", _T.Q8_0, WIDTH, EXPERT_WIDTH)
    file.add(prefix + "ffn_down_exps.weight", _T.Q2_K, EXPERT_WIDTH, WIDTH, EXPERTS)
    file.add(prefix + "ffn_down_shexp.weight", _T.Q8_0, EXPERT_WIDTH, WIDTH)


def _compression(file: _File, prefix: str, ratio: int) -> None:
    if not ratio:
        return
    width = (2 if ratio == 4 else 1) * HEAD
    _compressor(file, f"{prefix}attn_compressor_", ratio, width, HEAD)
    if ratio == 4:
        file.add(prefix + "indexer.attn_q_b.weight", _T.F16, QUERY_RANK, INDEX_HEADS * INDEX_HEAD)
        file.add(prefix + "indexer.proj.weight", _T.F16, WIDTH, INDEX_HEADS)
        _compressor(file, f"{prefix}indexer_compressor_", ratio, 2 * INDEX_HEAD, INDEX_HEAD)


def _compressor(file: _File, prefix: str, ratio: int, width: int, norm: int) -> None:
    file.add(prefix + "ape.weight", _T.F16, width, ratio)
    file.add(prefix + "kv.weight", _T.F16, WIDTH, width)
    file.add(prefix + "gate.weight", _T.F16, WIDTH, width)
    file.add(prefix + "norm.weight", _T.F32, norm)


def _ratio(layer: int) -> int:
    """Tokens that one compressed row stands for; the first layers keep all."""
    if layer < DENSE_LAYERS:
        return 0
    return 4 if layer % 2 == 0 else 128


def _describe(writer: GGUFWriter, named: int) -> None:
    writer.add_name("all-zero DeepSeek V4 Flash")
    counts = {
        "block_count": LAYERS,
        "embedding_length": WIDTH,
        "vocab_size": VOCABULARY,
        "attention.head_count": HEADS,
        "attention.head_count_kv": 1,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
        "rope.dimension_count": 64,
        "attention.q_lora_rank": QUERY_RANK,
        "attention.output_lora_rank": OUTPUT_RANK,
        "attention.output_group_count": OUTPUT_GROUPS,
        "expert_count": EXPERTS,
        "expert_used_count": EXPERTS_USED,
        "expert_feed_forward_length": EXPERT_WIDTH,
        "expert_shared_count": 1,
        "hash_layer_count": HASH_LAYERS,
        "expert_group_count": 0,
        "expert_group_used_count": 0,
        "attention.sliding_window": 128,
        "attention.indexer.head_count": INDEX_HEADS,
        "attention.indexer.key_length": INDEX_HEAD,
        "attention.indexer.top_k": 512,
        "hyper_connection.count": STREAMS,
        "hyper_connection.sinkhorn_iterations": 20,
    }
    numbers = {
        "rope.freq_base": 10_000.0,
        "rope.scaling.factor": 16.0,
        "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0,
        "attention.compress_rope_freq_base": 160_000.0,
        "expert_weights_scale": 1.5,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "hyper_connection.epsilon": 1e-6,
    }
    for name, count in counts.items():
        writer.add_uint32(f"{ARCHITECTURE}.{name}", count)
    for name, number in numbers.items():
        writer.add_float32(f"{ARCHITECTURE}.{name}", number)
    writer.add_uint64(f"{ARCHITECTURE}.context_length", 1_048_576)
    writer.add_uint64(f"{ARCHITECTURE}.rope.scaling.original_context_length", 65_536)
    writer.add_bool(f"{ARCHITECTURE}.expert_weights_norm", True)
    ratios = [_ratio(layer) for layer in range(LAYERS)]
    _array(writer, "attention.compress_ratios", ratios)
    _array(writer, "swiglu_clamp_exp", [10.0] * LAYERS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("joyai-llm")
    writer.add_token_list(_tokens(named))
    writer.add_token_merges(_MERGES)


def _array(writer: GGUFWriter, name: str, values: list[int] | list[float]) -> None:
    from gguf import GGUFValueType  # noqa: PLC0415

    kind = GGUFValueType.UINT32 if isinstance(values[0], int) else GGUFValueType.FLOAT32
    writer.add_key_value(f"{ARCHITECTURE}.{name}", values, GGUFValueType.ARRAY, sub_type=kind)


def _tokens(count: int) -> list[str]:
    """``Ġzero`` first, which zero logits choose; the special tokens; a token a byte; and names for the rest."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [chr(0x100 + number) for number in range(0x100 - len(plain))]
    tokens = ["Ġzero", *_SPECIAL, *map(chr, plain), *shifted]
    return tokens + [f"<unused{number}>" for number in range(count - len(tokens))]


def _numpy_of(kind: GGMLQuantizationType) -> object:
    import numpy as np  # noqa: PLC0415

    return np.dtype({_T.F32: "float32", _T.F16: "float16", _T.I32: "int32"}.get(kind, "uint8"))


def main(folder: str) -> int:
    """Writes both files."""
    for path in (write_target(Path(folder) / "zero.gguf"), write_module(Path(folder) / "zero-mtp.gguf")):
        sys.stdout.write(f"{path}: {path.stat().st_size} bytes, {path.stat().st_blocks * 512} of them on the disk\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
