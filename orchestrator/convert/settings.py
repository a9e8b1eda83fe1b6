"""The small files of a Hugging Face model folder: config.json, generation_config.json, tokenizer_config.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.convert.errors import ConvertError

if TYPE_CHECKING:
    from orchestrator.convert.source import Source
    from orchestrator.convert.weights import Number

_DTYPES: dict[Number, str] = {"f32": "float32", "f16": "float16"}
#: Texts of tokens that end an answer in llama.cpp whatever the file's end-of-text id is: turn ends, message ends, and
#: the marks of infilling that separate files. Without them the other engine would go on where llama.cpp stops.
#: Source: llama.cpp b11434, src/llama-vocab.cpp (`special_eog_ids`), the ones that byte-level vocabularies have.
_ENDS = frozenset({
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>",
    "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
})  # fmt: skip


def end_ids(source: Source) -> list[int]:
    """Every token that ends an answer in llama.cpp, the file's own end-of-text token first.

    Raises:
        ConvertError: The file names no end-of-text token.
    """
    eos = source.token("eos")
    if eos is None:
        message = f"{source.path}: tokenizer.ggml.eos_token_id is missing, so no answer would ever end"
        raise ConvertError(message)
    named = [source.token(name) for name in ("eot", "eom")]
    others = {number for number, token in enumerate(source.texts("tokens")) if token in _ENDS}
    others |= {number for number in named if number is not None}
    return [eos, *sorted(others - {eos})]


def config(source: Source, number: Number) -> dict[str, Any]:
    """The content of config.json."""
    ends = end_ids(source)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": source.count("embedding_length"),
        "num_hidden_layers": source.layers,
        "intermediate_size": source.count("feed_forward_length"),
        "num_attention_heads": source.heads,
        "num_key_value_heads": source.kv_heads,
        "head_dim": source.head_size,
        "rms_norm_eps": source.real("attention.layer_norm_rms_epsilon"),
        "vocab_size": len(source.texts("tokens")),
        "rope_theta": source.real("rope.freq_base", 10000.0),
        "max_position_embeddings": source.count("context_length"),
        "tie_word_embeddings": source.tied,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": source.token("bos"),
        "eos_token_id": ends[0] if len(ends) == 1 else ends,
        "pad_token_id": source.token("padding"),
        "torch_dtype": _DTYPES[number],
    }


def tokenizer_config(source: Source) -> dict[str, Any]:
    """The content of tokenizer_config.json."""
    tokens = source.texts("tokens")
    found: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": source.count("context_length"),
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
    }
    for key, name in (("bos_token", "bos"), ("eos_token", "eos"), ("unk_token", "unknown"), ("pad_token", "padding")):
        number = source.token(name)
        if number is not None:
            found[key] = tokens[number]
    template = source.fields.get("tokenizer.chat_template")
    if isinstance(template, str):
        found["chat_template"] = template
    return found
