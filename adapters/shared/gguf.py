"""Reads what a GGUF header says, without loading weights or a heavy library."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"
TOKENS = "tokenizer.ggml.tokens"
"""Key of the vocabulary, an array of texts."""
_SCALARS: Mapping[int, str] = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_LONGEST_STRING = 64 * 1024 * 1024
_MOST_ENTRIES = 1_000_000

FILE_TYPES: Mapping[int, str] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
}  # fmt: skip
"""``general.file_type`` by number.

Source: llama.cpp b11434, include/llama.h (``llama_ftype``).
"""

Scalar = str | int | float | bool


class GgufError(Exception):
    """A file that is not a readable GGUF; the message says why."""


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The scalar entries of a GGUF header, and the length of each array entry."""

    scalars: Mapping[str, Scalar]
    array_lengths: Mapping[str, int]

    @property
    def architecture(self) -> str | None:
        """``general.architecture``, e.g. ``qwen35``."""
        found = self.scalars.get("general.architecture")
        return found if isinstance(found, str) else None

    @property
    def mtp_layers(self) -> int:
        """Blocks for multi-token prediction in the file.

        Source: llama.cpp's key ``<architecture>.nextn_predict_layers``; absent means none.
        """
        found = self.scalars.get(f"{self.architecture}.nextn_predict_layers")
        return found if isinstance(found, int) else 0

    @property
    def quantisation(self) -> str | None:
        """Number format of most weights by ``general.file_type``, under llama.cpp's name; ``None`` when not told."""
        found = self.scalars.get("general.file_type")
        return FILE_TYPES.get(found, f"file type {found}") if isinstance(found, int) else None

    @property
    def tokenizer(self) -> str | None:
        """``tokenizer.ggml.model``, e.g. ``gpt2``."""
        found = self.scalars.get("tokenizer.ggml.model")
        return found if isinstance(found, str) else None

    @property
    def vocabulary_size(self) -> int | None:
        """Tokens in the vocabulary, when the file carries one."""
        return self.array_lengths.get("tokenizer.ggml.tokens")


def read_header(path: str) -> GgufHeader:
    """The header of the file.

    Raises:
        GgufError: the file cannot be read, is no GGUF, or ends inside its header.
    """
    try:
        stat = os.stat(path)  # noqa: PTH116  (a path with a NUL byte must become a GgufError too)
    except (OSError, ValueError) as err:
        raise GgufError(f"{path}: cannot be read ({err})") from err
    return _read(path, stat.st_size, stat.st_mtime_ns)


def read_strings(path: str, key: str) -> tuple[bytes, ...] | None:
    """The entries of a string array of the header, e.g. the texts of all tokens; ``None`` where there is none.

    Raises:
        GgufError: as :func:`read_header` does.
    """
    read_header(path)
    stat = os.stat(path)  # noqa: PTH116  (as above)
    return _strings(path, key, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=8)
def _strings(path: str, key: str, size: int, mtime_ns: int) -> tuple[bytes, ...] | None:  # noqa: ARG001
    with Path(path).open("rb") as file:
        _, _, entries = struct.unpack("<IQQ", _exactly(file, 24)[4:])
        for _ in range(entries):
            name = _string(file)
            (kind,) = struct.unpack("<I", _exactly(file, 4))
            if kind != _ARRAY:
                _scalar(file, kind)
            elif name != key:
                _skip_array(file)
            else:
                inner, count = struct.unpack("<IQ", _exactly(file, 12))
                return tuple(_exactly(file, _length(file)) for _ in range(count)) if inner == _STRING else None
    return None


@lru_cache(maxsize=64)
def _read(path: str, size: int, mtime_ns: int) -> GgufHeader:  # noqa: ARG001  (size and time are the cache's key)
    try:
        with Path(path).open("rb") as file:
            return _parse(file, path)
    except OSError as err:
        raise GgufError(f"{path}: cannot be read ({err})") from err
    except (struct.error, UnicodeDecodeError, ValueError) as err:
        raise GgufError(f"{path}: damaged GGUF header ({err})") from err


def _parse(file: BinaryIO, path: str) -> GgufHeader:
    if file.read(4) != MAGIC:
        raise GgufError(f"{path}: not a GGUF file (it does not begin with 'GGUF')")
    version, _tensors, entries = struct.unpack("<IQQ", _exactly(file, 20))
    if version < 2 or entries > _MOST_ENTRIES:
        raise GgufError(f"{path}: GGUF version {version} with {entries} header entries cannot be read")
    scalars: dict[str, Scalar] = {}
    lengths: dict[str, int] = {}
    for _ in range(entries):
        key = _string(file)
        (kind,) = struct.unpack("<I", _exactly(file, 4))
        if kind == _ARRAY:
            lengths[key] = _skip_array(file)
        else:
            scalars[key] = _scalar(file, kind)
    return GgufHeader(scalars, lengths)


def _scalar(file: BinaryIO, kind: int) -> Scalar:
    if kind == _STRING:
        return _string(file)
    layout = _SCALARS.get(kind)
    if layout is None:
        raise ValueError(f"unknown value type {kind}")
    value: Scalar = struct.unpack(layout, _exactly(file, struct.calcsize(layout)))[0]
    return value


def _skip_array(file: BinaryIO) -> int:
    kind, count = struct.unpack("<IQ", _exactly(file, 12))
    if kind == _STRING:
        for _ in range(count):
            _exactly(file, _length(file))
        return int(count)
    layout = _SCALARS.get(kind)
    if layout is None:
        raise ValueError(f"array of unknown type {kind}")
    _exactly(file, count * struct.calcsize(layout))
    return int(count)


def _string(file: BinaryIO) -> str:
    return _exactly(file, _length(file)).decode("utf-8", "replace")


def _length(file: BinaryIO) -> int:
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    return int(length)


def _exactly(file: BinaryIO, count: int) -> bytes:
    if count > _LONGEST_STRING:
        raise ValueError(f"an entry of {count} bytes")
    data = file.read(count)
    if len(data) != count:
        raise ValueError("the file ends inside its header")
    return data
