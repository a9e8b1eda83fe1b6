"""Drafter heads for the demo target, made by hand: each proposes, after a token, the one it was told comes next.

The weights are not trained. A token is written as a fixed vector of signs, the embedding of a token is the vector of its
successor, and the layers around do no more than carry that vector to the output, so that what a head drafts is known
and some of it is accepted. All read the target's hidden states as a trained head does, and ignore them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.demo.gguf_format import Value, gguf_bytes
from orchestrator.demo.recipes import target
from orchestrator.demo.tensors import Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WIDTH, HEADS, HEAD = 128, 4, 32
HIDDEN = 16
"""Of the feed-forward part, which does nothing."""
CONSTANT, IS_MASK, CODE = 0, 1, 2
"""What the components of an embedding are for; the code takes the rest."""
MASK = 1
"""The padding token, which no answer holds."""
BLOCK_SIZE = 4

Weights = dict[str, "np.ndarray[Any, Any]"]


def write_eagle3(path: Path, successors: Mapping[int, int]) -> Path:
    """A head for ``draft-eagle3``; it reads three layers, as every such head."""
    wide = np.zeros((WIDTH, 2 * WIDTH))
    wide[:, CONSTANT] = 4.0  # a query and a key that fit best at the same position
    carry = np.zeros((WIDTH, 2 * WIDTH))
    carry[CODE:, CODE:WIDTH] = np.eye(WIDTH - CODE)
    weights: Weights = {
        "token_embd.weight": _embedding(successors),
        "fc.weight": np.zeros((WIDTH, 3 * WIDTH)),
        "output_norm.weight": np.ones(WIDTH),
        "output.weight": _reading(),
        "blk.0.attn_norm.weight": np.ones(WIDTH),
        "blk.0.attn_norm_2.weight": np.zeros(WIDTH),  # nothing of the state before goes on
        "blk.0.attn_q.weight": wide,
        "blk.0.attn_k.weight": wide,
        "blk.0.attn_v.weight": carry,
        **_rest(),
    }
    more: dict[str, Value] = {"eagle3.target_layers": [2, 8, 14], "eagle3.target_hidden_size": WIDTH,
                              "eagle3.norm_before_residual": True}  # fmt: skip
    return _write(path, "eagle3", more, weights)


def write_dflash(path: Path, successors: Mapping[int, int], *, markov: bool = False) -> Path:
    """A head for ``draft-dflash``; with ``markov`` one for ``draft-dspark``, whose Markov part does the drafting."""
    query, key, strong = np.zeros((WIDTH, WIDTH)), np.zeros((WIDTH, WIDTH)), np.zeros(HEAD)
    for head in range(HEADS):
        for place in (14, 15, 30, 31):  # which turn least with the position, however the pairs are laid out
            query[head * HEAD + place, CONSTANT] = 1.0
            key[head * HEAD + place, CONSTANT], key[head * HEAD + place, IS_MASK] = 1.0, -1.0
            strong[place] = 2.0
    carry = np.zeros((WIDTH, WIDTH))
    carry[CODE:, CODE:] = np.eye(WIDTH - CODE)
    embedding = _embedding(successors)
    embedding[MASK] = 0.0
    embedding[MASK, [CONSTANT, IS_MASK]] = 1.0
    weights: Weights = {
        "token_embd.weight": embedding,
        "fc.weight": np.zeros((WIDTH, 2 * WIDTH)),
        "enc.output_norm.weight": np.ones(WIDTH),
        "output_norm.weight": np.ones(WIDTH),
        "output.weight": np.zeros_like(_reading()) if markov else _reading(),
        "blk.0.attn_norm.weight": np.ones(WIDTH),
        "blk.0.attn_q.weight": query,
        "blk.0.attn_k.weight": key,
        "blk.0.attn_v.weight": carry,
        "blk.0.attn_q_norm.weight": strong,
        "blk.0.attn_k_norm.weight": strong,
        **_rest(),
    }
    more: dict[str, Value] = {"dflash.target_layers": [2, 8], "dflash.block_size": BLOCK_SIZE}
    if markov:
        weights |= {"markov_w1.weight": embedding[:, CODE:], "markov_w2.weight": _reading()[:, CODE:]}
        more |= {"dflash.sample_from_anchor": True, "dflash.has_confidence_head": False}
    return _write(path, "dflash", more, weights)


def _codes() -> np.ndarray[Any, Any]:
    """One vector of signs per token; two of 1 024 random ones of this length are never alike."""
    return np.random.default_rng(7).choice([-1.0, 1.0], (target().config["vocab_size"], WIDTH - CODE))


def _embedding(successors: Mapping[int, int]) -> np.ndarray[Any, Any]:
    codes = _codes()
    rows = np.zeros((len(codes), WIDTH))
    rows[:, CONSTANT] = 1.0
    rows[:, CODE:] = codes  # where no successor is told: all rows are of one length, so that none draws the attention
    for token, following in successors.items():
        rows[token, CODE:] = codes[following]
    return rows


def _reading() -> np.ndarray[Any, Any]:
    codes = _codes()
    return np.hstack([np.zeros((len(codes), CODE)), codes])


def _rest() -> Weights:
    return {
        "blk.0.attn_output.weight": np.eye(WIDTH),
        "blk.0.ffn_norm.weight": np.ones(WIDTH),
        "blk.0.ffn_gate.weight": np.zeros((HIDDEN, WIDTH)),
        "blk.0.ffn_up.weight": np.zeros((HIDDEN, WIDTH)),
        "blk.0.ffn_down.weight": np.zeros((WIDTH, HIDDEN)),
    }


def _write(path: Path, architecture: str, more: Mapping[str, Value], weights: Weights) -> Path:
    model = target()
    metadata: dict[str, Value] = {
        "general.architecture": architecture,
        "general.name": path.stem,
        f"{architecture}.vocab_size": model.config["vocab_size"],
        f"{architecture}.context_length": 1024,
        f"{architecture}.embedding_length": WIDTH,
        f"{architecture}.block_count": 1,
        f"{architecture}.feed_forward_length": HIDDEN,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": HEADS,
        f"{architecture}.attention.key_length": HEAD,
        f"{architecture}.attention.value_length": HEAD,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{architecture}.rope.freq_base": 10000.0,
        f"{architecture}.rope.dimension_count": HEAD,
        **more,
        **model.vocabulary.gguf_metadata(),
        "tokenizer.ggml.mask_token_id": MASK,
    }
    tensors = {name: Tensor("f32", one.shape, one.astype("<f4").tobytes()) for name, one in weights.items()}
    path.write_bytes(gguf_bytes(metadata, tensors))
    return path
