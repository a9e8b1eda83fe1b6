"""Writes a tiny random Qwen3.5 model with an MTP layer: ``python omlx_qwen35_maker.py FOLDER TOKENIZER_FOLDER``.

Run by an interpreter that has oMLX, which adds the MTP layer to mlx-lm's model. The layer is set to pass on the last
token's embedding, and the blocks to add little to it: so drafts are often, and not always, the model's own choice.
"""

import json
import math
import shutil
import sys
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from omlx.patches.mlx_lm_mtp import apply_mlx_lm_mtp_patch, set_mtp_active

WIDTH = 64
TEXT = {
    "model_type": "qwen3_5_text",
    "hidden_size": WIDTH,
    "intermediate_size": 128,
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "full_attention_interval": 4,
    "rms_norm_eps": 1e-6,
    "vocab_size": 1024,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "rope_parameters": {
        "type": "default",
        "mrope_section": [1, 1, 0],
        "rope_theta": 100000,
        "partial_rotary_factor": 0.25,
    },
    "mtp_num_hidden_layers": 1,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
CONFIG = {
    "model_type": "qwen3_5",
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "text_config": TEXT,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "tie_word_embeddings": False,
}
FUSION = "language_model.mtp.fc.weight"

folder, tokenizer = Path(sys.argv[1]), Path(sys.argv[2])
set_mtp_active(True)
apply_mlx_lm_mtp_patch()
from mlx_lm.models import qwen3_5  # noqa: E402  (it must be patched before it is used)

mx.random.seed(5)
model = qwen3_5.Model(qwen3_5.ModelArgs.from_dict(json.loads(json.dumps(CONFIG))))
weights = {}
for name, value in tree_flatten(model.parameters()):
    tensor = value
    if value.ndim > 1 and "conv" not in name:
        into_stream = any(part in name for part in ("o_proj", "out_proj", "down_proj"))
        scale = 1.0 if "embed" in name else (4.0 if "lm_head" in name else 1.0) / math.sqrt(value.shape[-1])
        scale *= (0.015 if "mtp.layers" in name else 0.15) if into_stream else 1.0
        tensor = mx.random.normal(value.shape) * scale
    weights[name] = tensor.astype(mx.float32)
weights[FUSION] = mx.concatenate([mx.eye(WIDTH), mx.zeros((WIDTH, WIDTH))], axis=1)
folder.mkdir(parents=True, exist_ok=True)
mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
(folder / "config.json").write_text(json.dumps(CONFIG, indent=1), encoding="utf-8")
for path in tokenizer.glob("token*"):
    shutil.copy(path, folder / path.name)
