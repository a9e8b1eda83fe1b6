"""Writes a vision model whose own folder holds the MTP module: the demo's hybrid with a vision tower of random weights.

Usage: python vlm_inside_maker.py TARGET DRAFTER DESTINATION
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_vlm.models.qwen3_5.config import ModelConfig
from mlx_vlm.models.qwen3_5.qwen3_5 import Model

target, drafter, destination = (Path(word) for word in sys.argv[1:4])
shutil.copytree(target, destination)
text = json.loads((target / "config.json").read_text(encoding="utf-8"))
vision = {
    "model_type": "qwen3_5",
    "depth": 1,
    "hidden_size": 32,
    "intermediate_size": 32,
    "out_hidden_size": text["hidden_size"],
    "num_heads": 2,
    "patch_size": 4,
    "num_position_embeddings": 16,
    "deepstack_visual_indexes": [],
}
told = {
    "model_type": "qwen3_5",
    "text_config": text,
    "vision_config": vision,
    "eos_token_id": text["eos_token_id"],
    "tie_word_embeddings": True,
}
mx.random.seed(1)
tower = dict(tree_flatten(Model(ModelConfig.from_dict(json.loads(json.dumps(told)))).vision_tower.parameters()))
weights = mx.load(str(target / "model.safetensors"))
weights |= {f"vision_tower.{name}": value.astype(mx.float32) for name, value in tower.items()}
weights |= {f"mtp.{name}": value for name, value in mx.load(str(drafter / "model.safetensors")).items()}
mx.save_safetensors(str(destination / "model.safetensors"), weights, metadata={"format": "mlx"})
(destination / "config.json").write_text(json.dumps(told), encoding="utf-8")
