"""Writes a tiny random Gemma 4 model and its assistant: ``python omlx_gemma4_maker.py FOLDER TOKENIZER_FOLDER``.

Run by an interpreter that has oMLX. ``FOLDER/tiny-gemma4`` is the target with a vision tower, which oMLX wants of models that
it takes drafters for; ``FOLDER/tiny-assistant`` passes on the last token's embedding: so drafts are often, and not
always, the target's own choice.
"""

import json
import shutil
import sys
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from omlx.patches.mlx_vlm_mlx0322_compat import apply_mlx_vlm_mlx0322_compat_patch

WIDTH, VOCABULARY = 64, 1024
TEXT = {
    "model_type": "gemma4_text",
    "hidden_size": WIDTH,
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "global_head_dim": 16,
    "vocab_size": VOCABULARY,
    "vocab_size_per_layer_input": VOCABULARY,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "sliding_window": 512,
    "sliding_window_pattern": 2,
    "_sliding_window_pattern": 2,
    "max_position_embeddings": 2048,
    "use_double_wide_mlp": False,
    "final_logit_softcapping": 30.0,
}
VISION = {
    "model_type": "gemma4_vision",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "global_head_dim": 16,
    "position_embedding_size": 64,
}
CONFIG = {
    "model_type": "gemma4",
    "architectures": ["Gemma4ForConditionalGeneration"],
    "text_config": TEXT,
    "vision_config": VISION,
    "audio_config": None,
    "hidden_size": WIDTH,
    "vocab_size": VOCABULARY,
    "image_token_id": 1000,
    "audio_token_id": 1001,
    "boi_token_id": 1002,
    "eoi_token_id": 1003,
    "boa_token_id": 1004,
    "eoa_token_id": 1005,
    "bos_token_id": 0,
    "eos_token_id": [0],
}
ASSISTANT = {
    "model_type": "gemma4_assistant",
    "architectures": ["Gemma4AssistantForCausalLM"],
    "backbone_hidden_size": WIDTH,
    "text_config": {
        **TEXT,
        "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"],
        "num_kv_shared_layers": 2,
    },
    "tie_word_embeddings": True,
    "block_size": 4,
}
EMBEDDING = "language_model.model.embed_tokens.weight"

apply_mlx_vlm_mlx0322_compat_patch()
from mlx_vlm.models import gemma4  # noqa: E402  (it must be patched before it is used)
from mlx_vlm.speculative.drafters.gemma4_assistant.config import Gemma4AssistantConfig  # noqa: E402
from mlx_vlm.speculative.drafters.gemma4_assistant.gemma4_assistant import Gemma4AssistantDraftModel  # noqa: E402


def random_weights(model, into_stream):
    found = {}
    for name, value in tree_flatten(model.parameters()):
        tensor = value
        if value.ndim > 1:
            scale = 0.1 if "embed_tokens" in name else value.shape[-1] ** -0.5
            scale *= into_stream if "o_proj" in name or "down_proj" in name else 1.0
            tensor = mx.random.normal(value.shape) * scale
        found[name] = tensor.astype(mx.float32)
    return found


def write(folder, weights, config, tokenizer):
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    for path in tokenizer.glob("token*"):
        shutil.copy(path, folder / path.name)


made, tokenizer = Path(sys.argv[1]), Path(sys.argv[2])
mx.random.seed(5)
config = gemma4.ModelConfig.from_dict(json.loads(json.dumps(CONFIG)))
if isinstance(config.text_config, dict):
    config.text_config = gemma4.TextConfig.from_dict(config.text_config)
if isinstance(config.vision_config, dict):
    config.vision_config = gemma4.VisionConfig.from_dict(config.vision_config)
target = random_weights(gemma4.Model(config), 1.0)
write(made / "tiny-gemma4", target, CONFIG, tokenizer)
plain = json.loads(json.dumps(ASSISTANT))
assistant = random_weights(Gemma4AssistantDraftModel(Gemma4AssistantConfig.from_dict(plain)), 0.015)
assistant["pre_projection.weight"] = mx.concatenate([mx.eye(WIDTH), mx.zeros((WIDTH, WIDTH))], axis=1)
assistant["model.embed_tokens.weight"] = target[EMBEDDING]
write(made / "tiny-assistant", assistant, ASSISTANT, tokenizer)
