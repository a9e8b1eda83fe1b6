"""The demo's MTP model taken apart: its trunk without the MTP block, and the block alone as a head file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from orchestrator.demo.gguf_models import hybrid_gguf
from orchestrator.demo.recipes import mtp

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.demo.recipes import Model


def write_head(path: Path) -> Path:
    """An MTP-only GGUF in f32: embedding, closing norm and the MTP block; no block of the trunk."""
    model = mtp()
    trunk = tuple(f"blk.{layer}." for layer in range(model.config["layers"]))
    kept = {name: tensor for name, tensor in model.tensors.items() if not name.startswith(trunk)}
    return _write(path, dataclasses.replace(model, tensors=kept))


def write_trunk(path: Path) -> Path:
    """The same model in f32 without its MTP block."""
    model = mtp()
    block = f"blk.{model.config['layers']}."
    kept = {name: tensor for name, tensor in model.tensors.items() if not name.startswith(block)}
    return _write(path, dataclasses.replace(model, tensors=kept, config={**model.config, "mtp_layers": 0}))


def _write(path: Path, model: Model) -> Path:
    path.write_bytes(hybrid_gguf(path.stem, model.config, model.tensors, model.vocabulary, "f32"))
    return path
