"""Where the bytes of a GGUF file are: its tensors by name and size, and the small numeric arrays of its header."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from orchestrator.schema.shards import shards

MAGIC = b"GGUF"
TOKENS = "tokenizer.ggml.tokens"
ALIGNMENT_KEY = "general.alignment"
DEFAULT_ALIGNMENT = 32
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
_KEPT = 4096
"""Arrays up to this length are kept (one entry a layer); longer ones are vocabularies."""
_MOST = 1_000_000
_LONGEST = 64 * 1024 * 1024

Scalar = str | int | float | bool


class LayoutError(Exception):
    """A file whose layout cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A model's header and tensors, over all files of a split model.

    Args:
        scalars: header entries by key.
        arrays: numeric header arrays of at most 4096 entries.
        tensors: bytes by tensor name, padding to the alignment included.
        lengths: entries of each header array, kept or not.
    """

    scalars: Mapping[str, Scalar]
    arrays: Mapping[str, tuple[int | float | bool, ...]]
    tensors: Mapping[str, int]
    lengths: Mapping[str, int]

    @property
    def vocabulary(self) -> int | None:
        """Tokens, and so logits a position: many published headers say it by their list of tokens alone."""
        return self.number("vocab_size") or self.lengths.get(TOKENS)

    @property
    def architecture(self) -> str:
        """``general.architecture``; empty when the file does not tell."""
        found = self.scalars.get("general.architecture")
        return found if isinstance(found, str) else ""

    def number(self, name: str, default: int | None = None) -> int | None:
        """The whole number under ``<architecture>.<name>``."""
        found = self.scalars.get(f"{self.architecture}.{name}")
        return found if isinstance(found, int) and not isinstance(found, bool) else default

    def per_layer(self, name: str, layers: int) -> tuple[int, ...] | None:
        """A value for each layer, whether the header has one for all or one each; ``None`` where it has neither."""
        one = self.number(name)
        if one is not None:
            return (one,) * layers
        many = self.arrays.get(f"{self.architecture}.{name}")
        if many is None or len(many) < layers:
            return None
        return tuple(int(value) for value in many[:layers])

    def block_bytes(self, first: int, stop: int) -> int:
        """Bytes of the tensors of blocks ``first`` up to, not including, ``stop``."""
        wanted = {str(number) for number in range(first, stop)}
        return sum(
            size for name, size in self.tensors.items() if name.startswith("blk.") and name.split(".")[1] in wanted
        )


def read_layout(path: str) -> Layout:
    """The layout of a model; of a split one (``…-00001-of-00003.gguf``) over all its files.

    Raises:
        LayoutError: a file is missing, no GGUF, or ends inside its header.
    """
    try:
        files = [Path(part) for part in shards(path)]
        parts = [_read(str(part), part.stat().st_size, part.stat().st_mtime_ns) for part in files]
    except (OSError, struct.error, ValueError) as err:
        raise LayoutError(f"{path}: the layout cannot be read ({err})") from err
    tensors = {name: size for part in parts for name, size in part.tensors.items()}
    return Layout(parts[0].scalars, parts[0].arrays, tensors, parts[0].lengths)


@lru_cache(maxsize=64)
def _read(path: str, size: int, mtime_ns: int) -> Layout:  # noqa: ARG001  (the time is part of the cache's key)
    with Path(path).open("rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError("it does not begin with 'GGUF'")
        version, count, entries = struct.unpack("<IQQ", _take(file, 20))
        if version < 2 or entries > _MOST or count > _MOST:
            raise ValueError(f"version {version} with {entries} entries and {count} tensors")
        scalars: dict[str, Scalar] = {}
        arrays: dict[str, tuple[int | float | bool, ...]] = {}
        lengths: dict[str, int] = {}
        for _ in range(entries):
            key = _string(file)
            (kind,) = struct.unpack("<I", _take(file, 4))
            if kind == _ARRAY:
                lengths[key], found = _array(file)
                if found is not None:
                    arrays[key] = found
            elif kind == _STRING:
                scalars[key] = _string(file)
            else:
                scalars[key] = _number(file, kind)
        offsets = dict(_tensor(file) for _ in range(count))
        alignment = scalars.get(ALIGNMENT_KEY, DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"an alignment of {alignment}")
        begin = -(-file.tell() // alignment) * alignment
    return Layout(scalars, arrays, _sizes(offsets, size - begin), lengths)


def _sizes(offsets: Mapping[str, int], data: int) -> dict[str, int]:
    """Bytes of each tensor: up to where the next one begins, so that no table of number formats is needed."""
    ordered = sorted(offsets.items(), key=lambda item: item[1])
    stops = [offset for _, offset in ordered[1:]] + [data]
    sizes = {name: stop - offset for (name, offset), stop in zip(ordered, stops, strict=True)}
    if any(size < 0 for size in sizes.values()):
        raise ValueError("the file is shorter than its tensors")
    return sizes


def _tensor(file: BinaryIO) -> tuple[str, int]:
    name = _string(file)
    (dimensions,) = struct.unpack("<I", _take(file, 4))
    if dimensions > 8:
        raise ValueError(f"a tensor of {dimensions} dimensions")
    _take(file, 8 * dimensions + 4)
    (offset,) = struct.unpack("<Q", _take(file, 8))
    return name, int(offset)


def _array(file: BinaryIO) -> tuple[int, tuple[int | float | bool, ...] | None]:
    """How many entries, and the entries of a numeric one that is short enough to keep."""
    kind, count = struct.unpack("<IQ", _take(file, 12))
    if kind == _STRING:
        for _ in range(count):
            _string(file)
        return int(count), None
    layout = _SCALARS.get(kind)
    if layout is None:
        raise ValueError(f"an array of type {kind}")
    data = _take(file, count * struct.calcsize(layout))
    return int(count), struct.unpack(f"<{count}{layout[1]}", data) if count <= _KEPT else None


def _number(file: BinaryIO, kind: int) -> Scalar:
    layout = _SCALARS.get(kind)
    if layout is None:
        raise ValueError(f"a value of type {kind}")
    found: Scalar = struct.unpack(layout, _take(file, struct.calcsize(layout)))[0]
    return found


def _string(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _take(file, 8))
    return _take(file, int(length)).decode("utf-8", "replace")


def _take(file: BinaryIO, count: int) -> bytes:
    if count > _LONGEST:
        raise ValueError(f"an entry of {count} bytes")
    data = file.read(count)
    if len(data) != count:
        raise ValueError("it ends inside its header")
    return data
