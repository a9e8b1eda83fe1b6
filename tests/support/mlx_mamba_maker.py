"""Writes the weights of a tiny random Mamba model to the path in argv[1] and its config beside it."""

import json
import sys
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import mamba

folder = Path(sys.argv[1])
config = {
    "model_type": "mamba",
    "vocab_size": 1024,
    "hidden_size": 32,
    "intermediate_size": 64,
    "state_size": 8,
    "num_hidden_layers": 2,
    "conv_kernel": 4,
    "use_bias": False,
    "use_conv_bias": True,
    "time_step_rank": 4,
    "eos_token_id": 0,
    "tie_word_embeddings": True,
}
mx.random.seed(0)
model = mamba.Model(mamba.ModelArgs.from_dict(config))
mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())))
(folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
