"""The tensors of a llama GGUF under Hugging Face's names, in Hugging Face's order of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from orchestrator.convert.errors import ConvertError

if TYPE_CHECKING:
    import numpy as np

    from orchestrator.convert.source import Source

Number = Literal["f32", "f16"]

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def hugging_face_name(name: str) -> str:
    """The Hugging Face name of a llama.cpp parameter."""
    if name in _NAMES:
        return _NAMES[name]
    _, index, rest = name.split(".", 2)
    return f"model.layers.{index}.{_LAYER_NAMES[rest.removesuffix('.weight')]}.weight"


def halves_apart(values: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """Query or key rows whose rotary pairs are half a head apart instead of side by side.

    llama.cpp's llama graph turns rows 2i and 2i + 1 of a head together, Hugging Face's rows i and i + half.

    Args:
        values: Projection of shape (heads × head size, hidden).
        heads: Query or key heads.

    Source: the inverse of `LlamaModel.permute` in llama.cpp's convert_hf_to_gguf.py.
    """
    rows, hidden = values.shape
    return values.reshape(heads, rows // heads // 2, 2, hidden).swapaxes(1, 2).reshape(rows, hidden)


def hugging_face_tensors(source: Source, number: Number) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Name and numbers of every tensor.

    Raises:
        ConvertError: A weight is too large for f16.
    """
    import numpy as np  # noqa: PLC0415  (heavy)

    turned = {"attn_q": source.heads, "attn_k": source.kv_heads}
    for tensor in source.reader.tensors:
        values = source.values(tensor)
        kind = tensor.name.split(".")[-2]
        if kind in turned:
            values = halves_apart(values, turned[kind])
        yield hugging_face_name(tensor.name), np.ascontiguousarray(narrowed(source, tensor.name, values, number))


def narrowed(source: Source, name: str, values: np.ndarray[Any, Any], number: Number) -> np.ndarray[Any, Any]:
    """`values` in number format `number`.

    Raises:
        ConvertError: One is too large for f16.
    """
    import numpy as np  # noqa: PLC0415  (heavy)

    if number == "f32":
        return values
    if np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
        message = f"{source.path}: {name} holds numbers too large for f16; convert to f32"
        raise ConvertError(message)
    return values.astype(np.float16)
