"""A llama decoder in PyTorch, with the parameter names of a Hugging Face checkpoint."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional

ROPE_BASE = 10000.0
NORM_EPSILON = 1e-5


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a llama model; `vocabulary` embeddings are shared with the output."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int = 1024
    head: int = 32

    def config(self) -> dict[str, object]:
        """The config.json that MLX-LM and the exporter read."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "intermediate_size": self.feed_forward,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head,
            "rms_norm_eps": NORM_EPSILON,
            "vocab_size": self.vocabulary,
            "rope_theta": ROPE_BASE,
            "max_position_embeddings": 1024,
            "tie_word_embeddings": True,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "pad_token_id": 1,
            "torch_dtype": "float16",
        }


def rotate(x: torch.Tensor, rotary: int, base: float = ROPE_BASE) -> torch.Tensor:
    """`x` (batch, heads, positions, head) with RoPE on its first `rotary` channels, halves paired."""
    half = rotary // 2
    frequency = base ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = torch.arange(x.shape[-2], dtype=torch.float32)[:, None] * frequency
    first, second, rest = x[..., :half], x[..., half:rotary], x[..., rotary:]
    cosine, sine = angle.cos(), angle.sin()
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine, rest), dim=-1)


class Attention(nn.Module):
    """Causal attention with grouped keys and values."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.q_proj = nn.Linear(shape.hidden, shape.heads * shape.head, bias=False)
        self.k_proj = nn.Linear(shape.hidden, shape.kv_heads * shape.head, bias=False)
        self.v_proj = nn.Linear(shape.hidden, shape.kv_heads * shape.head, bias=False)
        self.o_proj = nn.Linear(shape.heads * shape.head, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the attention adds to `x` (batch, positions, hidden)."""
        batch, length, _ = x.shape

        def split(values: torch.Tensor, heads: int) -> torch.Tensor:
            return values.view(batch, length, heads, self.shape.head).transpose(1, 2)

        queries = rotate(split(self.q_proj(x), self.shape.heads), self.shape.head)
        keys = rotate(split(self.k_proj(x), self.shape.kv_heads), self.shape.head)
        values = split(self.v_proj(x), self.shape.kv_heads)
        group = self.shape.heads // self.shape.kv_heads
        mixed = functional.scaled_dot_product_attention(
            queries, keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1), is_causal=True
        )
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    """The gated feed-forward block (SwiGLU)."""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the feed-forward block adds to `x`."""
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """One decoder layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden, NORM_EPSILON)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, NORM_EPSILON)
        self.mlp = FeedForward(shape.hidden, shape.feed_forward)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x` after this layer."""
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    """Embeddings, layers and the last norm: the part a checkpoint calls `model`."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, NORM_EPSILON)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Normalised hidden states of `tokens` (batch, positions)."""
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    """The whole model; calling it returns logits (batch, positions, vocabulary)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        for name, value in self.named_parameters():
            if value.ndim > 1:
                deviation = 0.02 if "embed" in name else 1 / math.sqrt(value.shape[1])
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    deviation /= math.sqrt(2 * shape.layers)
                nn.init.normal_(value, std=deviation)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of the token after each of `tokens` (batch, positions)."""
        return functional.linear(self.model(tokens), self.model.embed_tokens.weight)


def expanded(source: Llama, layers: int) -> Llama:
    """A model of `layers` layers that computes what `source` computes: the new layers add nothing yet.

    The trained layers are spread evenly; every new layer is a copy of the trained one before it whose output
    projections are zero, so that training can move it at once.

    Source: block expansion as in LLaMA Pro (arXiv 2401.02415).
    """
    target = Llama(dataclasses.replace(source.shape, layers=layers))
    spacing = layers // source.shape.layers
    target.model.embed_tokens.load_state_dict(source.model.embed_tokens.state_dict())
    target.model.norm.load_state_dict(source.model.norm.state_dict())
    for index, layer in enumerate(target.model.layers):
        origin = min(index // spacing, source.shape.layers - 1)
        layer.load_state_dict(source.model.layers[origin].state_dict())
        if index != origin * spacing:
            nn.init.zeros_(layer.self_attn.o_proj.weight)
            nn.init.zeros_(layer.mlp.down_proj.weight)
    return target
