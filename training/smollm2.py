"""SmolLM2 and its draft in PyTorch: one llama graph, with and without a cache, its weights read from a GGUF file."""

from __future__ import annotations

import dataclasses
import pathlib

import gguf
import numpy as np
import torch
from torch import nn
from torch.nn import functional

ROPE_BASE = 100000.0
NORM_EPSILON = 1e-5
#: SmolLM2's chat markers: what opens and what closes a turn.
TURN_START, TURN_END = 1, 2


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a llama model whose output matrix is its embedding."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    feed_forward: int
    head: int = 64
    vocabulary: int = 49152


TARGET = Shape(layers=30, hidden=576, heads=9, kv_heads=3, feed_forward=1536)


def rotate(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """`x` (batch, heads, length, head) with RoPE, neighbours paired as llama.cpp's llama graph pairs them.

    Args:
        x: Queries or keys.
        positions: Position of every token (batch, length).
    """
    half = x.shape[-1] // 2
    frequency = ROPE_BASE ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = positions[:, None, :, None].float() * frequency
    cosine, sine = angle.cos(), angle.sin()
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack((first * cosine - second * sine, second * cosine + first * sine), dim=-1).flatten(-2)


@dataclasses.dataclass(slots=True)
class Cache:
    """Keys and values of every layer, (batch, KV heads, capacity, head) each."""

    keys: list[torch.Tensor]
    values: list[torch.Tensor]

    @classmethod
    def empty(cls, shape: Shape, batch: int, capacity: int) -> Cache:
        """A cache without content."""
        size = (batch, shape.kv_heads, capacity, shape.head)
        return cls([torch.zeros(size) for _ in range(shape.layers)], [torch.zeros(size) for _ in range(shape.layers)])

    def keep(self, rows: torch.Tensor) -> None:
        """Drop all sequences but `rows`."""
        self.keys = [value[rows] for value in self.keys]
        self.values = [value[rows] for value in self.values]


class Llama(nn.Module):
    """The graph. Parameters carry llama.cpp's names, with `/` for `.`, so that writing a GGUF is writing them down."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.store = nn.ParameterDict()
        queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
        self._matrix("token_embd.weight", shape.vocabulary, shape.hidden, 0.02)
        self._vector("output_norm.weight")
        last = (2 * shape.layers) ** -0.5
        for index in range(shape.layers):
            prefix = f"blk.{index}."
            self._vector(prefix + "attn_norm.weight")
            self._vector(prefix + "ffn_norm.weight")
            self._matrix(prefix + "attn_q.weight", queries, shape.hidden, shape.hidden**-0.5)
            self._matrix(prefix + "attn_k.weight", keys, shape.hidden, shape.hidden**-0.5)
            self._matrix(prefix + "attn_v.weight", keys, shape.hidden, shape.hidden**-0.5)
            self._matrix(prefix + "attn_output.weight", shape.hidden, queries, last * queries**-0.5)
            self._matrix(prefix + "ffn_gate.weight", shape.feed_forward, shape.hidden, shape.hidden**-0.5)
            self._matrix(prefix + "ffn_up.weight", shape.feed_forward, shape.hidden, shape.hidden**-0.5)
            self._matrix(prefix + "ffn_down.weight", shape.hidden, shape.feed_forward, last * shape.feed_forward**-0.5)

    def _matrix(self, name: str, rows: int, columns: int, deviation: float) -> None:
        self.store[name.replace(".", "/")] = nn.Parameter(torch.randn(rows, columns) * deviation)

    def _vector(self, name: str) -> None:
        self.store[name.replace(".", "/")] = nn.Parameter(torch.ones(self.shape.hidden))

    def tensor(self, name: str) -> torch.Tensor:
        """The parameter that llama.cpp calls `name`."""
        return self.store[name.replace(".", "/")]

    def tensors(self) -> dict[str, torch.Tensor]:
        """Every parameter by llama.cpp's name."""
        return {name.replace("/", "."): value.detach() for name, value in self.store.items()}

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight = self.tensor(name)
        return functional.rms_norm(x, weight.shape, weight, NORM_EPSILON)

    def _attention(
        self, x: torch.Tensor, index: int, positions: torch.Tensor, cache: Cache | None, mask: torch.Tensor | None
    ) -> torch.Tensor:
        shape, prefix = self.shape, f"blk.{index}."
        batch, length, _ = x.shape

        def project(name: str, heads: int) -> torch.Tensor:
            flat = functional.linear(x, self.tensor(f"{prefix}{name}.weight"))
            return flat.view(batch, length, heads, shape.head).transpose(1, 2)

        queries = rotate(project("attn_q", shape.heads), positions)
        keys, values = rotate(project("attn_k", shape.kv_heads), positions), project("attn_v", shape.kv_heads)
        if cache is not None:
            rows = torch.arange(batch)[:, None]
            cache.keys[index][rows, :, positions] = keys.transpose(1, 2)
            cache.values[index][rows, :, positions] = values.transpose(1, 2)
            keys, values = cache.keys[index], cache.values[index]
        mixed = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, is_causal=mask is None, enable_gqa=True
        )
        return functional.linear(
            mixed.transpose(1, 2).reshape(batch, length, -1), self.tensor(prefix + "attn_output.weight")
        )

    def _feed_forward(self, x: torch.Tensor, index: int) -> torch.Tensor:
        prefix = f"blk.{index}.ffn_"
        gate = functional.silu(functional.linear(x, self.tensor(prefix + "gate.weight")))
        inner = gate * functional.linear(x, self.tensor(prefix + "up.weight"))
        return functional.linear(inner, self.tensor(prefix + "down.weight"))

    def hidden(
        self, tokens: torch.Tensor, positions: torch.Tensor | None = None, cache: Cache | None = None
    ) -> torch.Tensor:
        """Normalised last hidden states of `tokens` (batch, length).

        Args:
            tokens: Ids.
            positions: Position of every token; 0, 1, … without.
            cache: Written at the positions and attended to up to each of them; without, the tokens see one another.
        """
        mask = None
        if positions is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape)
        if cache is not None:
            capacity = cache.keys[0].shape[2]
            mask = torch.arange(capacity)[None, None, None, :] <= positions[:, None, :, None]
        return self.hidden_of(functional.embedding(tokens, self.tensor("token_embd.weight")), positions, cache, mask)

    def hidden_of(
        self,
        x: torch.Tensor,
        positions: torch.Tensor | None = None,
        cache: Cache | None = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As `hidden`, of tokens that are embedded already (batch, length, hidden)."""
        if positions is None:
            positions = torch.arange(x.shape[1]).expand(x.shape[:2])
        for index in range(self.shape.layers):
            prefix = f"blk.{index}."
            x = x + self._attention(self._norm(x, prefix + "attn_norm.weight"), index, positions, cache, mask)
            x = x + self._feed_forward(self._norm(x, prefix + "ffn_norm.weight"), index)
        return self._norm(x, "output_norm.weight")

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits over the vocabulary of normalised hidden states."""
        return functional.linear(hidden, self.tensor("token_embd.weight"))


def read_target(path: pathlib.Path) -> Llama:
    """The target in `path`, its quantised weights as the f32 numbers that llama.cpp takes them for."""
    with torch.device("meta"):
        model = Llama(TARGET)
    for tensor in gguf.GGUFReader(path).tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        model.store[tensor.name.replace(".", "/")] = nn.Parameter(torch.from_numpy(values), requires_grad=False)
    return model
