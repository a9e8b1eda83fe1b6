"""The files of a GGUF model that is split over several: an engine is given the first, and opens all of them."""

from __future__ import annotations

import re
from pathlib import Path

_SPLIT = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")
"""llama.cpp's form of the name, e.g. ``model-00001-of-00003.gguf``."""


def shards(path: str) -> tuple[str, ...]:
    """Every file of the model, in order, whether it is there or not; the path itself where its name tells of no others.

    Args:
        path: any one file of the model.
    """
    split = _SPLIT.match(Path(path).name)
    count = int(split["count"]) if split is not None else 0
    if split is None or not 1 <= int(split["number"]) <= count:
        return (path,)
    return tuple(
        str(Path(path).with_name(f"{split['stem']}-{number:05d}-of-{count:05d}.gguf")) for number in range(1, count + 1)
    )
