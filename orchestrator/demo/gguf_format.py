"""The bytes of a GGUF file, from metadata and tensors.

Written here rather than by a library so that the same input gives the same bytes everywhere and for ever; the tests
read the result back with the `gguf` package.

Source: the GGUF specification, version 3, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from orchestrator.demo.tensors import Kind, Tensor

VERSION = 3
#: Every tensor starts at a multiple of this many bytes from the start of the data.
ALIGNMENT = 32

_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_TENSOR_TYPES: dict[Kind, int] = {"f32": 0, "f16": 1}

#: `int` is written as u32 and a list of `int` as i32, which is what llama.cpp reads for the keys used here.
Value = bool | int | float | str | list[int] | list[str]


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _typed(value: Value) -> bytes:
    """The type number of `value` and its bytes."""
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    texts = [_text(item) for item in value if isinstance(item, str)]
    if texts:
        return struct.pack("<IIQ", _ARRAY, _STRING, len(texts)) + b"".join(texts)
    return struct.pack(f"<IIQ{len(value)}i", _ARRAY, _INT32, len(value), *value)


def gguf_bytes(metadata: Mapping[str, Value], tensors: Mapping[str, Tensor]) -> bytes:
    """A GGUF file with `metadata` and `tensors`, both in the order given.

    Args:
        metadata: Keys and values; the file's own alignment key is not needed, the default is used.
        tensors: Tensors by their llama.cpp names, shapes slowest axis first.
    """
    head = [struct.pack("<4sIQQ", b"GGUF", VERSION, len(tensors), len(metadata))]
    head += [_text(key) + _typed(value) for key, value in metadata.items()]
    body: list[bytes] = []
    offset = 0
    for name, tensor in tensors.items():
        sizes = tuple(reversed(tensor.shape))
        head.append(_text(name))
        head.append(
            struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, _TENSOR_TYPES[tensor.kind], offset),
        )
        padding = -len(tensor.data) % ALIGNMENT
        body += [tensor.data, b"\0" * padding]
        offset += len(tensor.data) + padding
    start = b"".join(head)
    return start + b"\0" * (-len(start) % ALIGNMENT) + b"".join(body)
