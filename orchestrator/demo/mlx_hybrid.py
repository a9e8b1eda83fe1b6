"""The demo's hybrid model in the form that mlx-vlm loads: a Qwen3.5 text model, and its MTP block as a drafter.

Both are the very weights of the GGUF file. Only names and one shape change, and the decay: llama.cpp multiplies by the
rate itself, Qwen3.5 keeps its logarithm, which is written as f32 in every export.

Source: mlx-vlm 0.7.10, models/qwen3_5/language.py and speculative/drafters/qwen3_5_mtp (parameter names).
"""

from __future__ import annotations

import array
import dataclasses
import math
import sys
from collections.abc import Mapping
from typing import Any

from orchestrator.demo.tensors import Tensor, as_kind

_TRUNK = "language_model.model."
_LAYER_NAMES = {
    "attn_norm.weight": "input_layernorm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_qkv.weight": "linear_attn.in_proj_qkv.weight",
    "attn_gate.weight": "linear_attn.in_proj_z.weight",
    "ssm_alpha.weight": "linear_attn.in_proj_a.weight",
    "ssm_beta.weight": "linear_attn.in_proj_b.weight",
    "ssm_conv1d.weight": "linear_attn.conv1d.weight",
    "ssm_dt.bias": "linear_attn.dt_bias",
    "ssm_a": "linear_attn.A_log",
    "ssm_norm.weight": "linear_attn.norm.weight",
    "ssm_out.weight": "linear_attn.out_proj.weight",
}
_DRAFTER_NAMES = {
    "nextn.eh_proj.weight": "fc.weight",
    "nextn.enorm.weight": "pre_fc_norm_embedding.weight",
    "nextn.hnorm.weight": "pre_fc_norm_hidden.weight",
    "nextn.shared_head_norm.weight": "norm.weight",
}
_WHOLE_NAMES = {"token_embd.weight": _TRUNK + "embed_tokens.weight", "output_norm.weight": _TRUNK + "norm.weight"}


def trunk(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Configuration and tensors of the target, without the MTP block.

    Args:
        config: The committed model's config.json.
        tensors: Its parameters under their llama.cpp names.
    """
    found = {_WHOLE_NAMES[name]: tensors[name] for name in _WHOLE_NAMES}
    for index in range(config["layers"]):
        prefix = f"blk.{index}."
        for name, tensor in tensors.items():
            if name.startswith(prefix):
                rest = name.removeprefix(prefix)
                found[f"{_TRUNK}layers.{index}.{_LAYER_NAMES[rest]}"] = _reshaped(rest, tensor)
    return {"architectures": ["Qwen3_5ForCausalLM"], **_text_config(config)}, found


def drafter(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Configuration and tensors of the MTP block; embedding and head are the target's."""
    prefix = f"blk.{config['layers']}."
    found = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            rest = name.removeprefix(prefix)
            found[_DRAFTER_NAMES.get(rest) or f"layers.0.{_LAYER_NAMES[rest]}"] = tensor
    told = {
        "model_type": "qwen3_5_mtp",
        "architectures": ["Qwen3_5MTP"],
        "text_config": _text_config(config),
        "tie_word_embeddings": True,
        "block_size": config["mtp_layers"] + 2,
    }
    return told, found


def _reshaped(name: str, tensor: Tensor) -> Tensor:
    """`tensor` in the form its new name has: a depthwise kernel with one input channel, a logarithm for the decay."""
    if name == "ssm_conv1d.weight":
        return dataclasses.replace(tensor, shape=(*tensor.shape, 1))
    return _logarithm_of_rate(tensor) if name == "ssm_a" else tensor


def _logarithm_of_rate(tensor: Tensor) -> Tensor:
    """The logarithm of what llama.cpp has the negative of."""
    rates = array.array("f")
    rates.frombytes(as_kind(tensor, "f32").data)
    if sys.byteorder == "big":
        rates.byteswap()
    logarithms = array.array("f", (math.log(-rate) for rate in rates))
    if sys.byteorder == "big":
        logarithms.byteswap()
    return Tensor("f32", tensor.shape, logarithms.tobytes())


def _text_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The model's sizes in Qwen3.5's words."""
    pairs = config["head"] // 2
    return {
        "model_type": "qwen3_5_text",
        "vocab_size": config["vocabulary"],
        "hidden_size": config["hidden"],
        "intermediate_size": config["feed_forward"],
        "num_hidden_layers": config["layers"],
        "num_attention_heads": config["heads"],
        "num_key_value_heads": config["kv_heads"],
        "head_dim": config["head"],
        "full_attention_interval": config["attention_interval"],
        "linear_num_key_heads": config["state_heads"],
        "linear_num_value_heads": config["state_heads"],
        "linear_key_head_dim": config["state"],
        "linear_value_head_dim": config["state"],
        "linear_conv_kernel_dim": config["convolution"],
        "mtp_num_hidden_layers": config["mtp_layers"],
        "rms_norm_eps": config["rms_norm_eps"],
        "max_position_embeddings": config["max_position_embeddings"],
        "attention_bias": False,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "type": "default",
            "rope_theta": config["rope_theta"],
            "partial_rotary_factor": 1.0,
            # Text has one position per token, so how the pairs are shared out between the axes does not matter.
            "mrope_section": [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3],
        },
        "bos_token_id": config["bos_token_id"],
        "eos_token_id": config["eos_token_id"],
        "pad_token_id": config["pad_token_id"],
    }
