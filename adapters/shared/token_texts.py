"""Texts of single tokens, from the vocabulary that stands in the model's own files; nothing is run for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from adapters.shared.gguf import TOKENS, GgufError, read_header, read_strings

BYTE_LEVEL = "gpt2"
"""``tokenizer.ggml.model`` of vocabularies that spell every byte as one printable character."""
SPACE_MARK = "\u2581"


def gguf_texts(path: str, ids: Iterable[int]) -> dict[int, str]:
    """Texts by id out of a GGUF file; empty where it holds no vocabulary or cannot be read."""
    try:
        kind, spelled = read_header(path).tokenizer, read_strings(path, TOKENS)
    except GgufError:
        return {}
    if spelled is None:
        return {}
    known = (number for number in ids if 0 <= number < len(spelled))
    return {number: _read(spelled[number].decode("utf-8", "replace"), kind == BYTE_LEVEL) for number in known}


def folder_texts(folder: str, ids: Iterable[int]) -> dict[int, str]:
    """Texts by id out of a model folder's ``tokenizer.json``; empty where there is none."""
    path = Path(folder) / "tokenizer.json"
    try:
        stat = path.stat()
        spelled, byte_level = _folder(str(path), stat.st_size, stat.st_mtime_ns)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Another layout than the one known here: ids are shown without their texts.
        return {}
    return {number: _read(spelled[number], byte_level) for number in ids if number in spelled}


@lru_cache(maxsize=4)
def _folder(path: str, size: int, mtime_ns: int) -> tuple[Mapping[int, str], bool]:  # noqa: ARG001  (the cache's key)
    data: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    vocabulary = data["model"]["vocab"]
    if isinstance(vocabulary, dict):
        spelled = {int(number): str(text) for text, number in vocabulary.items()}
    else:
        # Unigram vocabularies are lists of (text, score).
        spelled = {number: str(text) for number, (text, _) in enumerate(vocabulary)}
    spelled |= {int(token["id"]): str(token["content"]) for token in data.get("added_tokens") or ()}
    return spelled, '"ByteLevel"' in json.dumps([data.get("decoder"), data.get("pre_tokenizer")])


def _read(text: str, byte_level: bool) -> str:
    """The token as it is written; bytes that are no whole character are spelled as hexadecimal escapes."""
    if not byte_level:
        if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
            return bytes([int(text[3:5], 16)]).decode("utf-8", "backslashreplace")
        return text.replace(SPACE_MARK, " ")
    letters = _letters()
    if not all(char in letters for char in text):
        return text  # a special token stands as it is
    return bytes(letters[char] for char in text).decode("utf-8", "backslashreplace")


@lru_cache(maxsize=1)
def _letters() -> Mapping[str, int]:
    """Byte by the character that spells it in byte-level vocabularies.

    Printable bytes of Latin-1 spell themselves, all others are numbered from U+0100 on in their order.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + place): byte for place, byte in enumerate(others)}
