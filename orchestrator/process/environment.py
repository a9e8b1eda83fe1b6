"""The environment an engine gets, and how it is written down.

An inherited variable can change an engine without a trace: ``LLAMA_ARG_*`` adds a drafter to a baseline.
So an engine inherits only what a program needs to find its files and speak a language; all else is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from orchestrator.process.errors import LaunchError

INHERITED: tuple[str, ...] = ("PATH", "HOME", "TMPDIR", "USER", "LANG")
"""Names taken over when set, besides every ``LC_*``."""

NEVER_INHERITED: tuple[str, ...] = ("LLAMA_", "GGML_", "MLX_", "HF_", "DS4_", "OMLX_", "SPLASH_", "SLIPSTREAM_")
"""Prefixes of variables that configure engines: only ``Launch.env`` may set them."""

REDACTED = "<redacted>"

_SECRET_WORDS = frozenset(
    {"token", "secret", "password", "passwd", "passphrase", "credential", "credentials", "auth", "cookie", "apikey"}
)


def scrubbed(delta: Mapping[str, str], keep: Iterable[str] = ()) -> dict[str, str]:
    """A child's whole environment: the inherited minimum, the kept names that are set, then ``delta``.

    Raises:
        LaunchError: ``keep`` names a variable that must never be inherited.
    """
    wanted = tuple(keep)
    for name in wanted:
        if name.startswith(NEVER_INHERITED):
            raise LaunchError(
                f"the variable {name} would be inherited",
                "Launch.keep_env",
                "set it in Launch.env, so that its value is part of the cell",
            )
    kept = (name for name in wanted if name in os.environ)
    return {name: os.environ[name] for name in (*inherited_names(), *kept)} | dict(delta)


def inherited_names() -> tuple[str, ...]:
    """The variables that every engine inherits from our own environment, sorted."""
    return tuple(sorted(name for name in os.environ if name in INHERITED or name.startswith("LC_")))


def looks_secret(name: str) -> bool:
    """Whether a variable or option of this name holds a secret: ``HF_TOKEN``, ``--api-key``; not ``--max-tokens``."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    return bool(words) and (words[-1] == "key" or not _SECRET_WORDS.isdisjoint(words))


def redacted_env(env: Mapping[str, str]) -> dict[str, str]:
    """The variables with the values of secret-looking names replaced."""
    return {name: REDACTED if looks_secret(name) else value for name, value in env.items()}


def redacted_argv(argv: Iterable[str]) -> tuple[str, ...]:
    """The command with the values of secret-looking options replaced, whether ``--key value`` or ``--key=value``."""
    shown: list[str] = []
    hide_next = False
    for word in argv:
        if hide_next and not word.startswith("-"):
            shown.append(REDACTED)
            hide_next = False
            continue
        option, equals, _ = word.partition("=")
        secret = word.startswith("-") and looks_secret(option)
        hide_next = secret and not equals
        shown.append(f"{option}={REDACTED}" if secret and equals else word)
    return tuple(shown)
