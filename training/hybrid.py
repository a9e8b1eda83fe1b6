"""The `qwen35` graph of llama.cpp in PyTorch: gated delta net layers, full attention, one next-token (MTP) block.

Parameters carry the names llama.cpp gives them, so that exporting is writing them down.

Source: llama.cpp b11434, src/models/qwen35.cpp and src/models/delta-net-base.cpp.
"""

from __future__ import annotations

import dataclasses
import math

import torch
from llama import rotate
from torch import nn
from torch.nn import functional

NORM_EPSILON = 1e-6
#: Positions the delta rule solves at once.
CHUNK = 32


@dataclasses.dataclass(frozen=True, slots=True)
class HybridShape:
    """Sizes of the hybrid; every `attention_interval`-th layer attends, the others keep a delta-net state."""

    layers: int = 4
    hidden: int = 128
    heads: int = 4
    kv_heads: int = 2
    head: int = 32
    feed_forward: int = 256
    vocabulary: int = 1024
    attention_interval: int = 4
    state: int = 32
    state_heads: int = 4
    convolution: int = 4

    def config(self) -> dict[str, object]:
        """The config.json the exporter reads."""
        return {
            "model_type": "qwen35",
            **dataclasses.asdict(self),
            "mtp_layers": 1,
            "rms_norm_eps": NORM_EPSILON,
            "rope_theta": 10000.0,
            "max_position_embeddings": 1024,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "pad_token_id": 1,
        }


def delta_rule(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, decay: torch.Tensor, rate: torch.Tensor
) -> torch.Tensor:
    """What a gated delta net reads from its state, solved `CHUNK` positions at a time.

    Args:
        queries: Unit vectors divided by the root of their size (batch, heads, positions, state).
        keys: Unit vectors of the same shape.
        values: What to store, same shape.
        decay: Logarithm of the state's decay, at most 0 (batch, heads, positions).
        rate: Learning rate of the state, 0 to 1 (batch, heads, positions).
    """
    batch, heads, positions, size = queries.shape
    state = queries.new_zeros(batch, heads, size, size)
    outputs = []
    for start in range(0, positions, CHUNK):
        part = slice(start, min(start + CHUNK, positions))
        q, k, v = queries[:, :, part], keys[:, :, part], values[:, :, part]
        total = decay[:, :, part].cumsum(-1)
        learn = rate[:, :, part, None]
        length = q.shape[2]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        between = (total[..., :, None] - total[..., None, :]).masked_fill(~causal, -math.inf).exp()
        grown = total.exp()[..., None]
        system = (learn * (k @ k.mT) * between).tril(-1) + torch.eye(length)
        change = torch.linalg.solve_triangular(system, learn * (v - grown * (k @ state)), upper=False)
        outputs.append(grown * (q @ state) + ((q @ k.mT) * between) @ change)
        left = (total[..., -1:] - total).exp()[..., None]
        state = grown[..., -1:, :] * state + (k * left).mT @ change
    return torch.cat(outputs, dim=2)


class Hybrid(nn.Module):
    """The whole model. `forward` gives the trunk's logits and those of the MTP block, one token further on."""

    def __init__(self, shape: HybridShape) -> None:
        super().__init__()
        self.shape = shape
        self.store = nn.ParameterDict()
        self._matrix("token_embd.weight", shape.vocabulary, shape.hidden, deviation=0.02)
        self._vector("output_norm.weight", shape.hidden)
        for index in range(shape.layers):
            if self._attends(index):
                self._attention_parameters(f"blk.{index}.")
            else:
                self._delta_parameters(f"blk.{index}.")
        extra = f"blk.{shape.layers}."
        self._attention_parameters(extra)
        self._matrix(extra + "nextn.eh_proj.weight", shape.hidden, 2 * shape.hidden)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            self._vector(f"{extra}nextn.{name}.weight", shape.hidden)

    def _attends(self, index: int) -> bool:
        return (index + 1) % self.shape.attention_interval == 0

    def _matrix(self, name: str, rows: int, columns: int, deviation: float | None = None) -> None:
        scale = 1 / math.sqrt(columns) if deviation is None else deviation
        self.store[name.replace(".", "/")] = nn.Parameter(torch.randn(rows, columns) * scale)

    def _vector(self, name: str, size: int, value: float = 1.0) -> None:
        self.store[name.replace(".", "/")] = nn.Parameter(torch.full((size,), value))

    def _feed_forward_parameters(self, prefix: str) -> None:
        shape = self.shape
        for name in ("attn_norm", "post_attention_norm"):
            self._vector(f"{prefix}{name}.weight", shape.hidden)
        self._matrix(prefix + "ffn_gate.weight", shape.feed_forward, shape.hidden)
        self._matrix(prefix + "ffn_up.weight", shape.feed_forward, shape.hidden)
        self._matrix(
            prefix + "ffn_down.weight",
            shape.hidden,
            shape.feed_forward,
            deviation=1 / math.sqrt(2 * shape.layers * shape.feed_forward),
        )

    def _attention_parameters(self, prefix: str) -> None:
        shape = self.shape
        self._feed_forward_parameters(prefix)
        self._matrix(prefix + "attn_q.weight", 2 * shape.heads * shape.head, shape.hidden)
        self._matrix(prefix + "attn_k.weight", shape.kv_heads * shape.head, shape.hidden)
        self._matrix(prefix + "attn_v.weight", shape.kv_heads * shape.head, shape.hidden)
        self._vector(prefix + "attn_q_norm.weight", shape.head)
        self._vector(prefix + "attn_k_norm.weight", shape.head)
        self._matrix(prefix + "attn_output.weight", shape.hidden, shape.heads * shape.head)

    def _delta_parameters(self, prefix: str) -> None:
        shape = self.shape
        inner = shape.state * shape.state_heads
        self._feed_forward_parameters(prefix)
        self._matrix(prefix + "attn_qkv.weight", 3 * inner, shape.hidden)
        self._matrix(prefix + "attn_gate.weight", inner, shape.hidden)
        self._matrix(prefix + "ssm_conv1d.weight", 3 * inner, shape.convolution)
        self._matrix(prefix + "ssm_alpha.weight", shape.state_heads, shape.hidden)
        self._matrix(prefix + "ssm_beta.weight", shape.state_heads, shape.hidden)
        self._vector(prefix + "ssm_dt.bias", shape.state_heads, 0.0)
        # Trained as the logarithm of the rate; `tensors` writes the negative rate llama.cpp wants.
        self._vector(prefix + "ssm_a", shape.state_heads, 0.0)
        with torch.no_grad():
            self.store[(prefix + "ssm_a").replace(".", "/")].copy_(torch.linspace(-4.0, 0.0, shape.state_heads))
        self._vector(prefix + "ssm_norm.weight", shape.state)
        self._matrix(prefix + "ssm_out.weight", shape.hidden, inner)

    def _get(self, name: str) -> torch.Tensor:
        return self.store[name.replace(".", "/")]

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight = self._get(name)
        return functional.rms_norm(x, weight.shape, weight, NORM_EPSILON)

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(x, self._get(name))

    def _feed_forward(self, x: torch.Tensor, prefix: str) -> torch.Tensor:
        inner = functional.silu(self._linear(x, prefix + "ffn_gate.weight")) * self._linear(x, prefix + "ffn_up.weight")
        return self._linear(inner, prefix + "ffn_down.weight")

    def _attention(self, x: torch.Tensor, prefix: str) -> torch.Tensor:
        shape = self.shape
        batch, length, _ = x.shape
        joint = self._linear(x, prefix + "attn_q.weight").view(batch, length, shape.heads, 2 * shape.head)
        queries, gate = joint.split(shape.head, dim=-1)
        keys = self._linear(x, prefix + "attn_k.weight").view(batch, length, shape.kv_heads, shape.head)
        values = self._linear(x, prefix + "attn_v.weight").view(batch, length, shape.kv_heads, shape.head)
        queries = rotate(self._norm(queries, prefix + "attn_q_norm.weight").transpose(1, 2), shape.head)
        keys = rotate(self._norm(keys, prefix + "attn_k_norm.weight").transpose(1, 2), shape.head)
        group = shape.heads // shape.kv_heads
        mixed = functional.scaled_dot_product_attention(
            queries,
            keys.repeat_interleave(group, 1),
            values.transpose(1, 2).repeat_interleave(group, 1),
            is_causal=True,
        )
        gated = mixed.transpose(1, 2).reshape(batch, length, -1) * gate.reshape(batch, length, -1).sigmoid()
        return self._linear(gated, prefix + "attn_output.weight")

    def _delta(self, x: torch.Tensor, prefix: str) -> torch.Tensor:
        shape = self.shape
        batch, length, _ = x.shape
        mixed = self._linear(x, prefix + "attn_qkv.weight").transpose(1, 2)
        padded = functional.pad(mixed, (shape.convolution - 1, 0))
        kernel = self._get(prefix + "ssm_conv1d.weight")[:, None, :]
        mixed = functional.silu(functional.conv1d(padded, kernel, groups=kernel.shape[0])).transpose(1, 2)
        queries, keys, values = (
            part.view(batch, length, shape.state_heads, shape.state).transpose(1, 2) for part in mixed.chunk(3, dim=-1)
        )
        queries = functional.normalize(queries, dim=-1, eps=NORM_EPSILON) / math.sqrt(shape.state)
        keys = functional.normalize(keys, dim=-1, eps=NORM_EPSILON)
        rate = self._linear(x, prefix + "ssm_beta.weight").sigmoid().transpose(1, 2)
        step = functional.softplus(self._linear(x, prefix + "ssm_alpha.weight") + self._get(prefix + "ssm_dt.bias"))
        decay = (-self._get(prefix + "ssm_a").exp() * step).transpose(1, 2)
        read = delta_rule(queries, keys, values, decay, rate).transpose(1, 2)
        gate = self._linear(x, prefix + "attn_gate.weight").view_as(read)
        normal = self._norm(read, prefix + "ssm_norm.weight") * functional.silu(gate)
        return self._linear(normal.reshape(batch, length, -1), prefix + "ssm_out.weight")

    def _block(self, x: torch.Tensor, index: int, *, attends: bool) -> torch.Tensor:
        prefix = f"blk.{index}."
        normal = self._norm(x, prefix + "attn_norm.weight")
        x = x + (self._attention(normal, prefix) if attends else self._delta(normal, prefix))
        return x + self._feed_forward(self._norm(x, prefix + "post_attention_norm.weight"), prefix)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Trunk logits for every position, and MTP logits for every position but the last.

        MTP row t has seen tokens 0 to t + 1 and predicts token t + 2.
        """
        embedding = self._get("token_embd.weight")
        embedded = functional.embedding(tokens, embedding)
        x = embedded
        for index in range(self.shape.layers):
            x = self._block(x, index, attends=self._attends(index))
        hidden = self._norm(x, "output_norm.weight")
        prefix = f"blk.{self.shape.layers}.nextn."
        pair = (
            self._norm(embedded[:, 1:], prefix + "enorm.weight"),
            self._norm(hidden[:, :-1], prefix + "hnorm.weight"),
        )
        ahead = self._linear(torch.cat(pair, dim=-1), prefix + "eh_proj.weight")
        ahead = self._block(ahead, self.shape.layers, attends=True)
        ahead = self._norm(ahead, prefix + "shared_head_norm.weight")
        return functional.linear(hidden, embedding), functional.linear(ahead, embedding)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Every parameter under its llama.cpp name, with the rate in the form llama.cpp multiplies by."""
        named = {name.replace("/", "."): value.detach() for name, value in self.store.items()}
        return {name: -value.exp() if name.endswith("ssm_a") else value for name, value in named.items()}
