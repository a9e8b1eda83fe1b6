"""The demo models as GGUF files that llama.cpp loads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.demo.gguf_format import Value, gguf_bytes
from orchestrator.demo.tensors import Kind, Tensor, as_kind, interleaved_halves
from orchestrator.demo.tokens import Vocabulary

#: `general.file_type` of a file whose matrices have this number format.
_FILE_TYPES: dict[Kind, int] = {"f32": 0, "f16": 1}
_LLAMA_LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_LLAMA_NAMES = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}


def _llama_name(name: str) -> str:
    """The llama.cpp name of a Hugging Face llama parameter."""
    if name in _LLAMA_NAMES:
        return _LLAMA_NAMES[name]
    _, _, index, rest = name.split(".", 3)
    return f"blk.{index}.{_LLAMA_LAYER_NAMES[rest.removesuffix('.weight')]}.weight"


def _stored(name: str, tensor: Tensor, kind: Kind) -> Tensor:
    """`tensor` in the format llama.cpp wants: vectors and convolution kernels are always f32."""
    exact = len(tensor.shape) == 1 or name.endswith("ssm_conv1d.weight")
    return as_kind(tensor, "f32" if exact else kind)


def llama_gguf(
    name: str, config: Mapping[str, Any], tensors: Mapping[str, Tensor], vocabulary: Vocabulary, kind: Kind
) -> bytes:
    """A llama model as GGUF.

    Args:
        name: Value of `general.name`.
        config: The model's config.json.
        tensors: Parameters under their Hugging Face names.
        vocabulary: Token texts; as many as the embedding has rows.
        kind: Number format of the matrices.

    Source: llama.cpp, gguf-py/gguf/constants.py (`MODEL_ARCH.LLAMA`).
    """
    metadata: dict[str, Value] = {
        "general.architecture": "llama",
        "general.name": name,
        "general.file_type": _FILE_TYPES[kind],
        "llama.vocab_size": config["vocab_size"],
        "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": config["hidden_size"],
        "llama.block_count": config["num_hidden_layers"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": config["num_attention_heads"],
        "llama.attention.head_count_kv": config["num_key_value_heads"],
        "llama.attention.key_length": config["head_dim"],
        "llama.attention.value_length": config["head_dim"],
        "llama.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "llama.rope.freq_base": config["rope_theta"],
        "llama.rope.dimension_count": config["head_dim"],
        **vocabulary.gguf_metadata(),
    }
    heads = {"q_proj.weight": config["num_attention_heads"], "k_proj.weight": config["num_key_value_heads"]}
    stored: dict[str, Tensor] = {}
    for source, tensor in tensors.items():
        last = ".".join(source.rsplit(".", 2)[-2:])
        moved = interleaved_halves(tensor, heads[last]) if last in heads else tensor
        target = _llama_name(source)
        stored[target] = _stored(target, moved, kind)
    return gguf_bytes(metadata, stored)


def hybrid_gguf(
    name: str, config: Mapping[str, Any], tensors: Mapping[str, Tensor], vocabulary: Vocabulary, kind: Kind
) -> bytes:
    """The gated-delta-net hybrid with its MTP block as a `qwen35` GGUF.

    Args:
        name: Value of `general.name`.
        config: The model's config.json.
        tensors: Parameters under their llama.cpp names.
        vocabulary: Token texts; as many as the embedding has rows.
        kind: Number format of the matrices.

    Source: llama.cpp b11434, src/models/qwen35.cpp (`load_arch_hparams`, `load_arch_tensors`).
    """
    pairs = config["head"] // 2
    metadata: dict[str, Value] = {
        "general.architecture": "qwen35",
        "general.name": name,
        "general.file_type": _FILE_TYPES[kind],
        "qwen35.vocab_size": config["vocabulary"],
        "qwen35.context_length": config["max_position_embeddings"],
        "qwen35.embedding_length": config["hidden"],
        # The count includes the MTP block, which the trunk does not run.
        "qwen35.block_count": config["layers"] + config["mtp_layers"],
        "qwen35.nextn_predict_layers": config["mtp_layers"],
        "qwen35.full_attention_interval": config["attention_interval"],
        "qwen35.feed_forward_length": config["feed_forward"],
        "qwen35.attention.head_count": config["heads"],
        "qwen35.attention.head_count_kv": config["kv_heads"],
        "qwen35.attention.key_length": config["head"],
        "qwen35.attention.value_length": config["head"],
        "qwen35.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "qwen35.rope.freq_base": config["rope_theta"],
        "qwen35.rope.dimension_count": config["head"],
        # Text has one position per token, so how the pairs are shared out between the axes does not matter.
        "qwen35.rope.dimension_sections": [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3, 0],
        "qwen35.ssm.conv_kernel": config["convolution"],
        "qwen35.ssm.inner_size": config["state"] * config["state_heads"],
        "qwen35.ssm.state_size": config["state"],
        "qwen35.ssm.time_step_rank": config["state_heads"],
        "qwen35.ssm.group_count": config["state_heads"],
        **vocabulary.gguf_metadata(),
    }
    return gguf_bytes(metadata, {key: _stored(key, tensor, kind) for key, tensor in tensors.items()})
