"""How a fact that cannot be had is written: never as zero, never left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

KEY: Final = "unavailable"


class UnavailableError(Exception):
    """A fact that this machine does not tell; the message says why."""


def unavailable(why: str) -> dict[str, str]:
    """``{"unavailable": why}``."""
    return {KEY: why}


def fact(read: Callable[[], object]) -> object:
    """What ``read`` returns, or why there is nothing."""
    try:
        return read()
    except FileNotFoundError as err:
        return unavailable(f"{err.filename} does not exist")
    except (OSError, UnavailableError, ValueError) as err:
        return unavailable(str(err) or type(err).__name__)
