"""Whether a model folder's weights hold MTP tensors, by names alone: an index or the headers of safetensors files."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path

PREFIXES = ("mtp.", "model.mtp.", "language_model.mtp.", "model.language_model.mtp.")
"""Where conversions of the Qwen3.5 family keep them."""

INDEX = "model.safetensors.index.json"
_LONGEST_HEADER = 100_000_000


def has_mtp_weights(folder: str) -> bool | None:
    """Whether any tensor is one of an MTP module; ``None`` when no names can be read."""
    try:
        names = list(_names(Path(folder)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return None
    return any(name.startswith(PREFIXES) for name in names) if names else None


def _names(folder: Path) -> Iterable[str]:
    index = folder / INDEX
    if index.is_file():
        yield from json.loads(index.read_text(encoding="utf-8"))["weight_map"].keys()
        return
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            if size > _LONGEST_HEADER:
                raise ValueError(f"{path.name}: a header of {size} bytes")
            yield from json.loads(file.read(size)).keys()
