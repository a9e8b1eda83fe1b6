"""Train the demo's llama models from fixed seeds and step counts.

Usage: python training/train_models.py STAGE TOKENIZER_DIRECTORY WORK_DIRECTORY
where STAGE is shallow, target or draft; target continues what shallow wrote.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from llama import Llama, Shape, expanded
from optimizer import Optimizer
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional

from orchestrator.demo import corpus

M = TypeVar("M", bound=nn.Module)

END_OF_TEXT = 0
WINDOW = 256


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast a stage trains; a step sees `batch` windows of `WINDOW` tokens."""

    steps: int
    batch: int
    rate: float
    matrix_rate: float = 0.02
    warmup: int = 30
    seed: int = 1


SHALLOW = Shape(layers=4, hidden=128, heads=4, kv_heads=2, feed_forward=320)
DRAFT = Shape(layers=1, hidden=64, heads=2, kv_heads=1, feed_forward=256)
TARGET_LAYERS = 16

SCHEDULES = {
    "shallow": Schedule(steps=900, batch=8, rate=4e-3),
    "target": Schedule(steps=40, batch=8, rate=5e-4, matrix_rate=0.004, warmup=8, seed=2),
    "draft": Schedule(steps=1600, batch=8, rate=4e-3, seed=3),
}


class Text:
    """Encoded documents, each ended by the end-of-text token, from which windows are drawn."""

    def __init__(self, tokenizer: Tokenizer, seed: int, characters: int) -> None:
        encodings = tokenizer.encode_batch(list(corpus.documents(seed, characters)))
        starts, ids = [], []
        for encoding in encodings:
            starts.append(len(ids))
            ids.extend(encoding.ids)
            ids.append(END_OF_TEXT)
        self.ids = torch.from_numpy(np.array(ids, dtype=np.int64))
        last = len(ids) - WINDOW - 1
        self.starts = np.array([start for start in starts if start < last])

    def windows(self, rng: np.random.Generator, count: int) -> torch.Tensor:
        """`count` windows of `WINDOW` + 1 tokens; each opens with a document, as a prompt does."""
        return torch.stack([self.ids[start : start + WINDOW + 1] for start in rng.choice(self.starts, count)])


def loss_of(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats of the next token over `windows`."""
    return functional.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def held_out_loss(model: nn.Module, text: Text) -> float:
    """Mean loss in nats over 64 windows the training never saw."""
    rng = np.random.default_rng(99)
    with torch.no_grad():
        return float(np.mean([loss_of(model, text.windows(rng, 8)).item() for _ in range(8)]))


def train(model: M, text: Text, schedule: Schedule, objective: Callable[[M, torch.Tensor], torch.Tensor]) -> None:
    """Train `model` in place with a cosine schedule, lowering `objective` of the drawn windows."""
    optimizer = Optimizer(model, schedule.matrix_rate, schedule.rate)
    rng = np.random.default_rng(schedule.seed)
    started, smooth = time.perf_counter(), 0.0
    for step in range(schedule.steps):
        progress = step / schedule.steps
        factor = min(1.0, (step + 1) / schedule.warmup) * (0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * progress)))
        loss = objective(model, text.windows(rng, schedule.batch))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(factor)
        smooth = loss.item() if step == 0 else 0.95 * smooth + 0.05 * loss.item()
        if (step + 1) % 20 == 0:
            elapsed = time.perf_counter() - started
            sys.stdout.write(f"step {step + 1} loss {smooth:.4f} seconds {elapsed:.0f}\n")
            sys.stdout.flush()


def save(model: Llama, folder: pathlib.Path) -> None:
    """Write `model` as f16 safetensors with its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.detach().half().contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(model.shape.config(), indent=1) + "\n", encoding="utf-8")


def load(shape: Shape, folder: pathlib.Path) -> Llama:
    """The model of `shape` that `save` wrote into `folder`, in f32."""
    model = Llama(shape)
    tensors = load_file(folder / "model.safetensors")
    model.load_state_dict({name: value.float() for name, value in tensors.items()})
    return model


def main() -> None:
    """Train the stage named on the command line and write it with its losses."""
    stage, work = sys.argv[1], pathlib.Path(sys.argv[3])
    tokenizer = Tokenizer.from_file(str(pathlib.Path(sys.argv[2]) / "tokenizer.json"))
    schedule = SCHEDULES[stage]
    torch.set_num_threads(1)
    torch.manual_seed(schedule.seed)
    if stage == "target":
        model = expanded(load(SHALLOW, work / "shallow"), TARGET_LAYERS)
    else:
        model = Llama(SHALLOW if stage == "shallow" else DRAFT)
    started = time.perf_counter()
    train(model, Text(tokenizer, 10 + schedule.seed, 6_000_000), schedule, loss_of)
    held_out = held_out_loss(model, Text(tokenizer, 7, 400_000))
    save(model, work / stage)
    report = {
        "stage": stage,
        "steps": schedule.steps,
        "parameters": sum(value.numel() for value in model.parameters()),
        "held_out_loss_nats": round(held_out, 4),
        "seconds": round(time.perf_counter() - started),
    }
    (work / f"{stage}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
