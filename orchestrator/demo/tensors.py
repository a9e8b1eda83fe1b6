"""Tensors as plain bytes, and the safetensors format that holds them.

The demo reads and writes its weights with the standard library alone: no library version can then change a byte of
what is exported, and the demo needs nothing installed. Every operation here is exact: f16 widens to f32 without
rounding, and rows are only moved.

Source: the safetensors format, https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import array
import dataclasses
import json
import math
import pathlib
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

Kind = Literal["f16", "f32"]

#: Bytes of one number.
SIZES: dict[Kind, int] = {"f16": 2, "f32": 4}
_SAFETENSORS_NAMES: dict[Kind, str] = {"f16": "F16", "f32": "F32"}
_KINDS: dict[str, Kind] = {label: kind for kind, label in _SAFETENSORS_NAMES.items()}


class TensorError(ValueError):
    """A tensor or a safetensors file is not what its header says."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tensor:
    """Little-endian numbers, row-major.

    Attributes:
        kind: Number format.
        shape: Sizes, slowest first.
        data: The numbers.
    """

    kind: Kind
    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        wanted = math.prod(self.shape) * SIZES[self.kind]
        if len(self.data) != wanted:
            message = f"a {self.kind} tensor of shape {self.shape} needs {wanted} bytes, got {len(self.data)}"
            raise TensorError(message)


def as_kind(tensor: Tensor, kind: Kind) -> Tensor:
    """`tensor` in number format `kind`; f16 widens exactly, f32 is never narrowed.

    Raises:
        TensorError: `tensor` is f32 and `kind` is f16.
    """
    if tensor.kind == kind:
        return tensor
    if kind == "f16":
        message = f"an f32 tensor of shape {tensor.shape} would lose bits as f16"
        raise TensorError(message)
    count = math.prod(tensor.shape)
    wide = array.array("f", struct.unpack(f"<{count}e", tensor.data))
    if sys.byteorder == "big":
        wide.byteswap()
    return Tensor("f32", tensor.shape, wide.tobytes())


def with_rows(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """`tensor` with its rows (first axis) taken in `order`.

    Raises:
        TensorError: `order` is not a permutation of the rows.
    """
    if sorted(order) != list(range(tensor.shape[0])):
        message = f"the row order is not a permutation of {tensor.shape[0]} rows"
        raise TensorError(message)
    width = len(tensor.data) // tensor.shape[0]
    rows = (tensor.data[row * width : (row + 1) * width] for row in order)
    return dataclasses.replace(tensor, data=b"".join(rows))


def interleaved_halves(tensor: Tensor, heads: int) -> Tensor:
    """Query or key weights whose rotary pairs lie side by side instead of half a head apart.

    Hugging Face pairs row i of a head with row i + half; llama.cpp's llama graph pairs rows 2i and 2i + 1.

    Args:
        tensor: Projection of shape (heads × head size, hidden).
        heads: Number of query or key heads.

    Source: `LlamaModel.permute` in llama.cpp's convert_hf_to_gguf.py.
    """
    size = tensor.shape[0] // heads
    half = size // 2
    order = [head * size + part * half + i for head in range(heads) for i in range(half) for part in range(2)]
    return with_rows(tensor, order)


def read_safetensors(path: pathlib.Path) -> dict[str, Tensor]:
    """Every tensor of `path` by name, in the file's order of names.

    Raises:
        TensorError: The file is cut short, or holds a number format other than f16 and f32.
    """
    content = path.read_bytes()
    if len(content) < 8:
        message = f"{path}: {len(content)} bytes are too few for a safetensors file"
        raise TensorError(message)
    (length,) = struct.unpack("<Q", content[:8])
    try:
        header = json.loads(content[8 : 8 + length])
    except ValueError as err:
        message = f"{path}: the safetensors header is not JSON: {err}"
        raise TensorError(message) from err
    body = memoryview(content)[8 + length :]
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _KINDS:
            message = f"{path}: tensor {name!r} is {entry['dtype']}, expected F16 or F32"
            raise TensorError(message)
        start, end = entry["data_offsets"]
        tensors[name] = Tensor(_KINDS[entry["dtype"]], tuple(entry["shape"]), bytes(body[start:end]))
    return tensors


def safetensors_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """A safetensors file of `tensors`, sorted by name; the same tensors give the same bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "mlx"}}
    position = 0
    names = sorted(tensors)
    for name in names:
        tensor = tensors[name]
        end = position + len(tensor.data)
        header[name] = {
            "dtype": _SAFETENSORS_NAMES[tensor.kind],
            "shape": list(tensor.shape),
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensors[name].data for name in names)
