"""Distil a small draft for SmolLM2 from the text and the ranked tokens that `write_smollm2_text.py` wrote.

Usage: python training/distill_smollm2_draft.py TARGET.gguf TEXT_FOLDER OUTPUT.gguf STEPS

The draft has the target's vocabulary. Its embedding begins as the target's, projected onto its main directions; only
rows that occur in the text are trained. Beside OUTPUT.gguf a .json file says what came out on the sequences kept aside.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import pathlib
import sys
import time

import gguf
import numpy as np
import torch
from optimizer import Optimizer
from smollm2 import NORM_EPSILON, ROPE_BASE, Llama, Shape
from torch import nn
from torch.nn import functional

DRAFT = Shape(layers=2, hidden=128, heads=4, kv_heads=4, feed_forward=384, head=32)
#: Sequences of a step.
BATCH = 24
#: Rows of the embedding outside the text that each step sees as wrong answers.
STRANGERS = 1024
#: Weight of a place inside a prompt, of which one in four is looked at: a draft never writes one, but learns how words
#: go on.
PROMPT_WEIGHT = 0.6
PROMPT_SHARE = 0.25
#: Sequences kept aside.
HELD_OUT = 24
EMBEDDING = "token_embd.weight"
#: What a GGUF of the draft carries over from the target: how text becomes tokens.
CARRIED = "tokenizer.ggml."


@dataclasses.dataclass(frozen=True, slots=True)
class Sequence:
    """A prompt with its answer, and what the target ranked first after each token."""

    tokens: torch.Tensor
    prompt: int
    ids: torch.Tensor
    shares: torch.Tensor


def read_text(file: pathlib.Path) -> list[Sequence]:
    """The sequences of one batch file."""
    found, at, place = np.load(file), 0, 0
    sequences = []
    for length, prompt in zip(found["lengths"].tolist(), found["prompts"].tolist(), strict=True):
        ids = found["ids"][place : place + length - 1].astype(np.int64)
        shares = found["probabilities"][place : place + length - 1].astype(np.float32)
        tokens = torch.from_numpy(found["tokens"][at : at + length].astype(np.int64))
        sequences.append(Sequence(tokens, prompt, torch.from_numpy(ids), torch.from_numpy(shares)))
        at, place = at + length, place + length - 1
    return sequences


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Padded sequences: tokens and weights (batch, length), ranked ids and shares (batch, length, ranks)."""

    tokens: torch.Tensor
    weights: torch.Tensor
    ids: torch.Tensor
    shares: torch.Tensor


def padded(sequences: list[Sequence]) -> Batch:
    """The sequences as one batch; what is padding weighs nothing."""
    longest, ranks = max(len(one.ids) for one in sequences), sequences[0].ids.shape[1]
    tokens = torch.zeros(len(sequences), longest, dtype=torch.long)
    weights = torch.zeros(len(sequences), longest)
    ids = torch.zeros(len(sequences), longest, ranks, dtype=torch.long)
    shares = torch.zeros(len(sequences), longest, ranks)
    for row, one in enumerate(sequences):
        count = len(one.ids)
        tokens[row, :count], ids[row, :count], shares[row, :count] = one.tokens[:-1], one.ids, one.shares
        weights[row, :count] = PROMPT_WEIGHT
        weights[row, one.prompt - 1 : count] = 1.0
    return Batch(tokens, weights, ids, shares)


class Draft(nn.Module):
    """The draft while it trains: its embedding is in two parts, of which one stays as it is."""

    def __init__(self, table: torch.Tensor, known: torch.Tensor) -> None:
        super().__init__()
        self.body = Llama(DRAFT)
        del self.body.store[EMBEDDING.replace(".", "/")]
        self.embedding = nn.Parameter(table[known].clone())
        strangers = torch.ones(len(table), dtype=torch.bool)
        strangers[known] = False
        self.register_buffer("strange", table[strangers])
        self.register_buffer("place", torch.full((len(table),), -1, dtype=torch.long))
        self.place[known] = torch.arange(len(known))
        self.known = known
        with torch.no_grad():
            self.body.tensor("output_norm.weight").mul_(0.3)

    def hidden(self, tokens: torch.Tensor) -> torch.Tensor:
        """Normalised last hidden states."""
        return self.body.hidden_of(functional.embedding(self.place[tokens], self.embedding))

    def loss(self, batch: Batch, source: torch.Generator) -> torch.Tensor:
        """Cross-entropy, in nats, to what the target ranked first, over the tokens of the text and some strangers."""
        looked_at = torch.rand(batch.weights.shape, generator=source) < PROMPT_SHARE
        looked_at = (batch.weights == 1.0) | (looked_at & (batch.weights > 0))
        hidden = self.hidden(batch.tokens)[looked_at]
        ids, shares = self.place[batch.ids[looked_at]], batch.shares[looked_at]
        chosen = torch.randint(len(self.strange), (STRANGERS,), generator=source)
        scale = math.log(len(self.strange) / STRANGERS)
        known = functional.linear(hidden, self.embedding)
        total = torch.logaddexp(
            known.logsumexp(-1), functional.linear(hidden, self.strange[chosen]).logsumexp(-1) + scale
        )
        shares = shares * (ids >= 0)
        shares = shares / shares.sum(-1, keepdim=True).clamp_min(1e-6)
        wanted = (shares * known.gather(-1, ids.clamp_min(0))).sum(-1)
        weights = batch.weights[looked_at]
        return ((total - wanted) * weights).sum() / weights.sum()

    def table(self, original: torch.Tensor) -> torch.Tensor:
        """The whole embedding."""
        whole = original.clone()
        whole[self.known] = self.embedding.detach()
        return whole


def projected(target: torch.Tensor, size: int) -> torch.Tensor:
    """The rows of `target` along its `size` main directions."""
    _, vectors = torch.linalg.eigh(target.mT @ target)
    return target @ vectors[:, -size:].flip(1)


def known_tokens(sequences: list[Sequence]) -> torch.Tensor:
    """Ids that occur in the text, or that the target ranks often enough to be learnt."""
    mass = torch.zeros(DRAFT.vocabulary)
    for one in sequences:
        mass.index_add_(0, one.tokens, torch.ones(len(one.tokens)))
        mass.index_add_(0, one.ids.flatten(), one.shares.flatten())
    # Padding is token 0, whether or not the text has one.
    mass[0] = 1.0
    return (mass > 0.05).nonzero()[:, 0]


@torch.no_grad()
def agreement(draft: Draft, table: torch.Tensor, sequences: list[Sequence]) -> dict[str, float]:
    """On answers not trained on: how often the likeliest token is the target's, and the mass both share."""
    whole, hits, shared, count = draft.table(table), 0.0, 0.0, 0
    for one in sequences:
        hidden = draft.body.hidden_of(functional.embedding(one.tokens[None, :-1], whole))[0, one.prompt - 1 :]
        logits = functional.linear(hidden, whole)
        ids, shares = one.ids[one.prompt - 1 :], one.shares[one.prompt - 1 :]
        hits += float((logits.argmax(-1) == ids[:, 0]).sum())
        shared += float(torch.minimum(logits.softmax(-1).gather(-1, ids), shares).sum())
        count += len(ids)
    return {"same_first_token": round(hits / count, 4), "shared_mass": round(shared / count, 4), "places": count}


def train(draft: Draft, sequences: list[Sequence], steps: int) -> None:
    """Train in place, for `steps` steps from fixed seeds."""
    optimizer = Optimizer(draft, matrix_rate=0.02, rate=2e-3)
    rng, source = np.random.default_rng(1), torch.Generator().manual_seed(1)
    started, smooth = time.process_time(), 0.0
    order: list[int] = []
    for step in range(steps):
        if len(order) < BATCH:
            order = rng.permutation(len(sequences)).tolist()
        picked, order = order[:BATCH], order[BATCH:]
        factor = min(1.0, (step + 1) / 20) * (0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * step / steps)))
        loss = draft.loss(padded([sequences[index] for index in picked]), source)
        loss.backward()
        nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
        optimizer.step(factor)
        smooth = loss.item() if step == 0 else 0.95 * smooth + 0.05 * loss.item()
        if (step + 1) % 20 == 0:
            print(f"step {step + 1} loss {smooth:.3f} seconds {time.process_time() - started:.0f}", flush=True)


def write_draft(path: pathlib.Path, target: gguf.GGUFReader, tensors: dict[str, torch.Tensor]) -> None:
    """The draft as a GGUF: embedding and matrices in Q8_0, vectors in f32, the target's vocabulary."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("SmolLM2-135M-Instruct draft")
    writer.add_license("apache-2.0")
    writer.add_description("Distilled from SmolLM2-135M-Instruct (Hugging Face, Apache-2.0) on its own text")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_block_count(DRAFT.layers)
    writer.add_context_length(int(target.fields["llama.context_length"].contents()))
    writer.add_embedding_length(DRAFT.hidden)
    writer.add_feed_forward_length(DRAFT.feed_forward)
    writer.add_head_count(DRAFT.heads)
    writer.add_head_count_kv(DRAFT.kv_heads)
    writer.add_key_length(DRAFT.head)
    writer.add_value_length(DRAFT.head)
    writer.add_rope_dimension_count(DRAFT.head)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_vocab_size(DRAFT.vocabulary)
    for name, field in target.fields.items():
        if name.startswith(CARRIED):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    for name, value in tensors.items():
        numbers = value.float().numpy()
        kind = gguf.GGMLQuantizationType.F32 if numbers.ndim == 1 else gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quants.quantize(numbers, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Train on all sequences but the last ones, and write the draft with what it reaches."""
    target, folder, output = (pathlib.Path(argument) for argument in sys.argv[1:4])
    steps = int(sys.argv[4])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    files = sorted(file for file in folder.glob("*.npz") if ".part" not in file.name)
    everything = [one for file in files for one in read_text(file)]
    sequences, held_out = everything[:-HELD_OUT], everything[-HELD_OUT:]
    reader = gguf.GGUFReader(target)
    source = next(tensor for tensor in reader.tensors if tensor.name == EMBEDDING)
    table = projected(torch.from_numpy(gguf.quants.dequantize(source.data, source.tensor_type)), DRAFT.hidden)
    known = known_tokens(sequences)
    draft = Draft(table, known)
    train(draft, sequences, steps)
    whole = {EMBEDDING: draft.table(table), **draft.body.tensors()}
    write_draft(output, reader, whole)
    report = {
        "steps": steps,
        "sequences": len(sequences),
        "answer_tokens": sum(len(one.tokens) - one.prompt for one in sequences),
        "prompt_tokens": sum(one.prompt for one in sequences),
        "trained_rows": len(known),
        "parameters": sum(value.numel() for value in whole.values()),
        "held_out": agreement(draft, table, held_out),
        "bytes": output.stat().st_size,
        "sha256": hashlib.sha256(output.read_bytes()).hexdigest(),
    }
    output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
