"""Train the demo's hybrid model with its MTP block.

Usage: python training/train_mtp.py TOKENIZER_DIRECTORY WORK_DIRECTORY
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

import numpy as np
import torch
from hybrid import Hybrid, HybridShape
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch.nn import functional
from train_models import Schedule, Text, train

#: The second term teaches the MTP block, and the trunk to say more than its next token needs.
MTP_WEIGHT = 0.5
SCHEDULE = Schedule(steps=500, batch=8, rate=4e-3, seed=5)


def losses(model: Hybrid, windows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy in nats of the trunk and of the MTP block."""
    trunk, ahead = model(windows[:, :-1])
    first = functional.cross_entropy(trunk.flatten(0, 1), windows[:, 1:].flatten())
    second = functional.cross_entropy(ahead.flatten(0, 1), windows[:, 2:].flatten())
    return first, second


def joint_loss(model: Hybrid, windows: torch.Tensor) -> torch.Tensor:
    """What the training lowers: the trunk's loss plus `MTP_WEIGHT` of the block's."""
    trunk, ahead = losses(model, windows)
    return trunk + MTP_WEIGHT * ahead


def main() -> None:
    """Train the hybrid and write it, f16, with its config.json and its losses."""
    tokenizer = Tokenizer.from_file(str(pathlib.Path(sys.argv[1]) / "tokenizer.json"))
    work = pathlib.Path(sys.argv[2])
    folder = work / "mtp"
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(SCHEDULE.seed)
    model = Hybrid(HybridShape())
    started = time.perf_counter()
    train(model, Text(tokenizer, 10 + SCHEDULE.seed, 6_000_000), SCHEDULE, joint_loss)
    held_out = Text(tokenizer, 7, 400_000)
    rng = np.random.default_rng(99)
    with torch.no_grad():
        pairs = [[loss.item() for loss in losses(model, held_out.windows(rng, 8))] for _ in range(8)]
    tensors = {name: value.half().contiguous() for name, value in model.tensors().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(model.shape.config(), indent=1) + "\n", encoding="utf-8")
    trunk, ahead = np.mean(pairs, axis=0)
    report = {
        "stage": "mtp",
        "steps": SCHEDULE.steps,
        "parameters": sum(value.numel() for value in model.parameters()),
        "held_out_loss_nats": round(float(trunk), 4),
        "held_out_mtp_loss_nats": round(float(ahead), 4),
        "seconds": round(time.perf_counter() - started),
    }
    (work / "mtp.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
