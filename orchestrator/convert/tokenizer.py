"""The tokenizer of a GGUF file as Hugging Face's tokenizer.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.convert.errors import ConvertError

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
#: Token types that no text encodes to by merges; they are matched as a whole.
_ADDED = frozenset({_CONTROL, _USER_DEFINED})

_BYTE_LEVEL: Mapping[str, Any] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
#: `tokenizer.ggml.pre` by what splits a text before the merges.
#: Source: llama.cpp b11434, src/llama-vocab.cpp (`LLAMA_VOCAB_PRE_TYPE_GPT2`, `…_SMOLLM` with its two expressions: each
#: digit by itself, then the one of GPT-2), and the pre_tokenizer of the models' own tokenizer.json.
_SPLITTERS: Mapping[str, Mapping[str, Any]] = {
    "gpt-2": {**_BYTE_LEVEL, "use_regex": True},
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, {**_BYTE_LEVEL, "use_regex": True}],
    },
}


def tokenizer_json(tokens: Sequence[str], types: Sequence[int], merges: Sequence[str], splitter: str) -> dict[str, Any]:
    """The content of tokenizer.json for a byte-level BPE vocabulary.

    Args:
        tokens: Token texts by id, in byte-level spelling where they are not added tokens.
        types: llama.cpp's token type of each.
        merges: Pairs of token texts with a space between, earliest first.
        splitter: `tokenizer.ggml.pre`.

    Raises:
        ConvertError: The splitter or a token type is one this program cannot write down rightly.
    """
    if splitter not in _SPLITTERS:
        known = ", ".join(sorted(_SPLITTERS))
        message = f"the text splitter {splitter!r} (tokenizer.ggml.pre) is not known here; known: {known}"
        raise ConvertError(message)
    if len(tokens) != len(types):
        message = f"{len(tokens)} tokens, but {len(types)} token types"
        raise ConvertError(message)
    odd = sorted({kind for kind in types if kind not in {_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED}})
    if odd:
        message = f"token types {odd} do not occur in a byte-level vocabulary"
        raise ConvertError(message)
    added = [
        {
            "id": number,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == _CONTROL,
        }
        for number, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in _ADDED
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": dict(_SPLITTERS[splitter]),
        "post_processor": None,
        "decoder": {**_BYTE_LEVEL, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [pair.split(" ", 1) for pair in merges],
        },
    }
