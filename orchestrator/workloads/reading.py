"""The text of a user's file, within limits: what is no prompt file is refused in words, never read whole."""

from __future__ import annotations

import json
import math
import pathlib
from typing import Any, NoReturn

from orchestrator.workloads.errors import WorkloadError

MAX_FILE_BYTES = 64 << 20
"""Of one prompt file: a thousand times the text of a 16 k context. What is larger is a data set, not a prompt set."""
MAX_LINE_CHARACTERS = 4 << 20
"""Of one line or one prompt: about a million tokens, more than any engine here takes."""
MAX_PROMPTS = 20_000
"""Of one set; a run measures a handful of each."""
MAX_LABEL_CHARACTERS = 200
"""Of an id, a category, a language: they stand in tables."""
_GZIP = b"\x1f\x8b"


def text_of(path: pathlib.Path) -> str:
    """The whole text of the file at `path`, without a byte order mark.

    Raises:
        WorkloadError: It is no ordinary file, cannot be read, is too large, not UTF-8, or holds a NUL.
    """
    raw = _bytes_of(path)
    if raw.startswith(_GZIP):
        refuse(str(path), "is compressed; unpack it first (gunzip) and name what comes out")
    if len(raw) > MAX_FILE_BYTES:
        refuse(str(path), f"larger than {MAX_FILE_BYTES >> 20} MiB; take out the prompts you want to measure with")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        before = err.object[: err.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        message = f"{path}:{line}: not UTF-8 at byte {column} of the line; save it as UTF-8"
        raise WorkloadError(message) from err
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        refuse(f"{path}:{line}", "holds a NUL character; this is no text file")
    return text


def lines_of(path: pathlib.Path) -> list[tuple[int, str]]:
    """The lines of `path` that are not blank, with their numbers from 1.

    Raises:
        WorkloadError: As `text_of`, or a line too long, or too many lines, or lines that only carriage returns end.
    """
    text = text_of(path)
    if "\n" not in text and "\r" in text.strip("\r"):
        refuse(str(path), "its lines end in a carriage return alone, so it would be one line; save it with line feeds")
    # Split at line feeds only: a prompt may hold the other separators `str.splitlines` knows.
    numbered = enumerate((line.removesuffix("\r") for line in text.split("\n")), start=1)
    kept = [(number, line) for number, line in numbered if line.strip()]
    for number, line in kept:
        if len(line) > MAX_LINE_CHARACTERS:
            refuse(f"{path}:{number}", f"a line of more than {MAX_LINE_CHARACTERS >> 20} Mi characters; shorten it")
    if len(kept) > MAX_PROMPTS:
        refuse(str(path), f"more than {MAX_PROMPTS} lines; take out the prompts you want to measure with")
    return kept


def object_of(line: str, where: str, expected: str) -> dict[str, Any]:
    """The JSON object in one line.

    Args:
        line: The line.
        where: Its file and number.
        expected: What the object should hold, for the message.

    Raises:
        WorkloadError: It is no JSON, nested too deeply, no object, or names a key twice.
    """
    try:
        fields = json.loads(line, object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant)
    except RecursionError as err:
        message = f"{where}: nested too deeply to be a prompt"
        raise WorkloadError(message) from err
    except json.JSONDecodeError as err:
        # Its own text counts lines too, of which this is always the first.
        message = f"{where}: not JSON: {err.msg} (column {err.colno})"
        raise WorkloadError(message) from err
    except ValueError as err:
        message = f"{where}: not JSON: {err}"
        raise WorkloadError(message) from err
    if not isinstance(fields, dict):
        refuse(where, f"expected an object with {expected}")
    return fields


def label(value: object, name: str, where: str) -> str:
    """`value` as a short text without control characters: an id, a category, a language.

    Raises:
        WorkloadError: It is none.
    """
    if not isinstance(value, str) or not value.strip():
        refuse(where, f"{name!r} must be a text that is not empty")
    if len(value) > MAX_LABEL_CHARACTERS or not value.isprintable():
        refuse(where, f"{name!r} must be at most {MAX_LABEL_CHARACTERS} printable characters")
    return value


def content(value: object, name: str, where: str) -> str:
    """`value` as a text that can be sent to an engine.

    Raises:
        WorkloadError: It is none, empty, or holds what no engine takes.
    """
    if not isinstance(value, str) or not value:
        refuse(where, f"{name!r} must be a text that is not empty")
    return sendable(value, name, where)


def sendable(value: str, name: str, where: str) -> str:
    """`value`, unless it holds a NUL or half of a surrogate pair, which JSON can spell and UTF-8 cannot.

    Raises:
        WorkloadError: It does.
    """
    if "\x00" in value:
        refuse(where, f"{name!r} holds a NUL character, at which engines cut a text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        refuse(where, f"{name!r} holds half of a surrogate pair, which is no character; write it whole")
    return value


def refuse(where: str, what: str) -> NoReturn:
    """Raise the error `where: what`."""
    message = f"{where}: {what}"
    raise WorkloadError(message)


def _bytes_of(path: pathlib.Path) -> bytes:
    """The bytes of an ordinary file, at most one more than are allowed."""
    try:
        # Asked first: a pipe or a device would be read for ever.
        ordinary = path.is_file() or not path.exists()
        raw = b""
        if ordinary:
            with path.open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as err:
        reason = (err.strerror if isinstance(err, OSError) else None) or str(err)
        message = f"{path}: cannot read the prompts: {reason}"
        raise WorkloadError(message) from err
    if not ordinary:
        refuse(str(path), "is not an ordinary file; name a file of prompts")
    return raw


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON whose keys differ; of a key named twice nobody knows which value is meant."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            message = f"key {name[:40]!r} is there twice"
            raise ValueError(message)
        found[name] = value
    return found


def _finite(text: str) -> float:
    """The number, unless it is too large for one."""
    number = float(text)
    if math.isinf(number):
        message = f"{text[:40]} is too large a number"
        raise ValueError(message)
    return number


def _no_constant(word: str) -> NoReturn:
    """`NaN` and its like are no JSON, though Python reads them."""
    message = f"{word} is no JSON value"
    raise ValueError(message)
