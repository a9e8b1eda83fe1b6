"""The tokenizer inside a GGUF file, for the training scripts."""

from __future__ import annotations

import json
import pathlib

import gguf
from tokenizers import Tokenizer

from orchestrator.convert.tokenizer import tokenizer_json


def read_tokenizer(path: pathlib.Path) -> Tokenizer:
    """The tokenizer of the GGUF at `path`; special tokens in a text are read as such."""
    fields = gguf.GGUFReader(path).fields
    tokens, types, merges, splitter = (
        fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type", "merges", "pre")
    )
    return Tokenizer.from_str(json.dumps(tokenizer_json(tokens, types, merges, splitter)))
