"""The chat template that a model's files carry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adapters.shared.gguf import GgufError, read_header, read_strings
from orchestrator.schema.chat_template import ChatTemplate
from orchestrator.workloads.errors import WorkloadError

_KEY = "tokenizer.chat_template"
_WITH_BOS = frozenset(
    {
        "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano",
        "tekken", "chameleon",
    }
)  # fmt: skip
_MOST_BYTES = 64_000_000


def gguf_template(path: str) -> ChatTemplate | None:
    """The template of a GGUF file for llama.cpp, which puts the first token before a text by itself; or ``None``.

    Source: llama.cpp b11434, src/llama-vocab.cpp (the key ``add_bos_token``; without it a ``gpt2`` vocabulary adds
    none, but for those in ``_WITH_BOS``).

    Raises:
        WorkloadError: the file cannot be read.
    """
    try:
        header = read_header(path)
        texts = read_strings(path, "tokenizer.ggml.tokens") or ()
    except GgufError as err:
        raise WorkloadError(str(err)) from err
    source = header.scalars.get(_KEY)
    if not isinstance(source, str):
        return None
    usual = header.tokenizer != "gpt2" or header.scalars.get("tokenizer.ggml.pre") in _WITH_BOS
    adds = header.scalars.get("tokenizer.ggml.add_bos_token", usual)

    def token(name: str) -> str:
        index = header.scalars.get(f"tokenizer.ggml.{name}_token_id")
        known = isinstance(index, int) and 0 <= index < len(texts)
        return texts[index].decode("utf-8", "replace") if known and isinstance(index, int) else ""

    return ChatTemplate(source, f"{path} ({_KEY})", token("bos"), token("eos"), adds is True)


def folder_template(path: str) -> ChatTemplate | None:
    """The template of a model folder: `chat_template.jinja`, else the one in `tokenizer_config.json`; or ``None``.

    Source: transformers, which writes the file of its own name since 4.43 and reads either.

    Raises:
        WorkloadError: a file is there and cannot be read.
    """
    folder = Path(path)
    config = _config(folder / "tokenizer_config.json")
    own = folder / "chat_template.jinja"
    if own.is_file():
        source, origin = _text(own), str(own)
    else:
        found = config.get("chat_template")
        if isinstance(found, list):  # several, each with a name
            named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
            found = named.get("default")
        if not isinstance(found, str):
            return None
        source, origin = found, f"{folder / 'tokenizer_config.json'} (chat_template)"
    return ChatTemplate(source, origin, _token(config.get("bos_token")), _token(config.get("eos_token")))


def _config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError) as err:
        raise WorkloadError(f"{path}: not JSON: {err}") from err
    return found if isinstance(found, dict) else {}


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise WorkloadError(f"{path}: larger than {_MOST_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise WorkloadError(f"{path}: cannot be read: {err}") from err


def _token(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""
