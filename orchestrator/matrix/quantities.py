"""Durations, sizes and shares as people write them: ``2min``, ``12GiB``, ``2 %``."""

from __future__ import annotations

import math
import re
from decimal import Decimal

DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(h|min|s) ?)*[0-9]+(\.[0-9]+)?(h|min|s)$"
SIZE_PATTERN = r"^[0-9]+(\.[0-9]+)? ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
SHARE_PATTERN = r"^[0-9]+(\.[0-9]+)? ?%$"

_SECONDS = {"s": 1, "min": 60, "h": 3600}
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}


def duration_s(value: object) -> float:
    """Seconds of ``90``, ``90s``, ``2min``, ``1h 30min``.

    Raises:
        ValueError: anything else, or a duration that is not above zero.
    """
    hint = 'write seconds as a number, or a text such as "90s", "2min", "1h"'
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"not a duration; {hint}")  # noqa: TRY004  (pydantic reports only ValueError)
    if isinstance(value, str):
        if re.fullmatch(DURATION_PATTERN, value) is None:
            raise ValueError(f"not a duration; {hint}")
        parts = re.findall(r"([0-9.]+)(h|min|s)", value)
        seconds = float(sum(Decimal(number) * _SECONDS[unit] for number, unit in parts))
    else:
        seconds = float(value)
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError("a duration must be above zero and finite")
    return seconds


def size_bytes(value: object) -> int:
    """Bytes of ``1024``, ``8GB`` (decimal), ``12GiB`` (binary), ``1.5 GiB``.

    Raises:
        ValueError: anything else, or a size below one byte.
    """
    hint = 'write bytes as a whole number, or a text such as "12GiB" or "8GB"'
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"not a size; {hint}")  # noqa: TRY004  (pydantic reports only ValueError)
    if isinstance(value, str):
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)", value)
        if found is None or found[2] not in _BYTES:
            raise ValueError(f"not a size; {hint}")
        count = int(Decimal(found[1]) * _BYTES[found[2]])
    else:
        count = value
    if count < 1:
        raise ValueError("a size must be at least one byte")
    return count


def share(value: object) -> float:
    """A share of one: ``0.02``, ``2%``, ``2.5 %``.

    Raises:
        ValueError: anything else, or a share that is not above 0 and below 1.
    """
    hint = 'write it as "2%" or 0.02'
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"not a share; {hint}")  # noqa: TRY004  (pydantic reports only ValueError)
    if isinstance(value, str):
        if re.fullmatch(SHARE_PATTERN, value) is None:
            raise ValueError(f"not a share; {hint}")
        found = float(Decimal(value.rstrip("% ")) / 100)
    else:
        found = float(value)
    if not 0 < found < 1:
        raise ValueError(f"a share must be above 0 and below 1 (100 %); {hint}")
    return found
